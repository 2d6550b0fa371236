from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator

import pytest
import redis

from afl.app.migrating import migrate
from tests.kernel.mongo import databases as mongo
from tests.kernel.postgres.databases import migrated_database, server_is_there
from tests.messaging.postgres_harness import clear_mail
from tests.messaging.redis_servers import server
from tests.runtime.kept import clear_runs


@pytest.fixture(scope="session")
def app_database() -> Iterator[str]:
    """A database with the whole schema, which the tests of this process share."""
    if not server_is_there():
        pytest.skip("there is no PostgreSQL to test with")
    with migrated_database() as url:
        migrate(url)
        yield url


@pytest.fixture(scope="session")
def app_mongo() -> Iterator[str]:
    """A MongoDB with the whole schema, which the tests of this process share."""
    if not mongo.server_is_there():
        pytest.skip("there is no MongoDB to test with")
    with mongo.empty_database() as url:
        migrate(url)
        yield url


@pytest.fixture(params=["memory", "postgres", "mongo"])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of a store with nothing in it: memory, PostgreSQL and MongoDB by turns."""
    if request.param == "memory":
        return f"memory:{secrets.token_hex(4)}"
    if request.param == "mongo":
        return _cleared_mongo(request)
    conninfo = str(request.getfixturevalue("app_database"))
    clear_runs(conninfo)
    return _as_url(conninfo)


def _cleared_mongo(request: pytest.FixtureRequest) -> str:
    url = str(request.getfixturevalue("app_mongo"))
    mongo.clear(url)
    return url


def _as_url(conninfo: str) -> str:
    parts = dict(part.split("=", 1) for part in conninfo.split())
    return f"postgresql://{parts['host']}/{parts['dbname']}"


@pytest.fixture(scope="session")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that the tests of this process share: mailboxes in it have no prefix of their own."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server to start")
    with server(tmp_path_factory.mktemp("redis")) as made:
        yield f"redis://127.0.0.1:{made.port}"


@pytest.fixture(params=["memory", "postgres", "mongo", "redis"])
def mail_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store with nothing in it; mailboxes are in it, or in Redis."""
    if request.param == "memory":
        return f"memory:{secrets.token_hex(4)}"
    if request.param == "mongo":
        return _cleared_mongo(request)
    conninfo = str(request.getfixturevalue("app_database"))
    clear_runs(conninfo)
    if request.param == "postgres":
        clear_mail(conninfo)
    else:
        url = str(request.getfixturevalue("own_redis"))
        with redis.Redis.from_url(url) as client:
            client.flushall()
        monkeypatch.setenv("AFL_REDIS_URL", url)
    return _as_url(conninfo)
