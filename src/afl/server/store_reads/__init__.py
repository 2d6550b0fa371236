"""What pages about the whole installation read. Nothing here costs more where more was done
before."""

from __future__ import annotations

from afl.kernel import memory
from afl.kernel.kinds import is_on_mongo, is_on_postgres
from afl.runtime.persistence import PersistenceAPI
from afl.server.store_reads.from_kernel import KernelReads
from afl.server.store_reads.port import StoreReads


def store_reads(persistence: PersistenceAPI) -> StoreReads:
    """The reads on the store that runs are on."""
    kernel = persistence.kernel
    if isinstance(kernel, memory.MemoryStore):
        return KernelReads(persistence)
    # each driver is an extra of its own
    if is_on_mongo(kernel):
        from afl.server.store_reads.from_mongo import MongoReads  # noqa: PLC0415

        return MongoReads(kernel)
    from afl.server.store_reads.from_postgres import PostgresReads  # noqa: PLC0415

    assert is_on_postgres(kernel)
    return PostgresReads(kernel)
