"""Which store a store is, for those who keep something beside it. Each driver is an extra: nobody
has a store on a database whose driver is not loaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

from afl.kernel.port import Store

if TYPE_CHECKING:
    from afl.kernel.mongo.store import MongoStore
    from afl.kernel.postgres.store import PostgresStore


def is_on_postgres(store: Store) -> TypeGuard[PostgresStore]:
    module = sys.modules.get("afl.kernel.postgres.store")
    return module is not None and isinstance(store, module.PostgresStore)


def is_on_mongo(store: Store) -> TypeGuard[MongoStore]:
    module = sys.modules.get("afl.kernel.mongo.store")
    return module is not None and isinstance(store, module.MongoStore)
