"""The store that a command works on, and what goes wrong with it in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from afl.app import migrating
from afl.app.engines import engine_of, known_engine
from afl.app.errors import BadDatabase
from afl.app.remote.addresses import is_server
from afl.app.remote.errors import ServerUnavailable
from afl.app.services import Services, connect
from afl.base.errors import AflError
from afl.base.settings import Settings
from afl.cli.errors import CommandError, MissingError, NotEndedError, RequestError
from afl.cli.running.servers import refuse_server
from afl.cli.terminal import count
from afl.kernel.doorbell import LocalDoorbell
from afl.kernel.errors import NotFound, StoreUnavailable
from afl.runtime import errors
from afl.runtime.operations import Operations
from afl.turns.errors import UnknownAgent
from afl.turns.mcp.errors import UnknownMcpTool

_MISSING = (
    errors.UnknownFacet,
    errors.UnknownRun,
    errors.UnknownStep,
    errors.UnknownProgram,
    errors.UnknownItem,
    errors.UnknownSchedule,
    UnknownAgent,
    UnknownMcpTool,
    NotFound,
)


def store_url(given: str | None) -> str:
    """The database of `--database`, else of the setting; it may be a server."""
    url = _meant(given)
    if not is_server(url) and engine_of(url) is None:
        raise RequestError(
            "the database of AFL_DATABASE_URL or --database has to be a URL of PostgreSQL, of "
            "MongoDB or of a server",
            help="it looks like postgresql://host/name, mongodb://host/name or https://host:7400",
        )
    return url


def database_url(given: str | None) -> str:
    """The same for commands that need the database itself."""
    url = _meant(given)
    refuse_server(url)
    if engine_of(url) is None:
        raise RequestError(
            "the database of AFL_DATABASE_URL or --database has to be a URL of PostgreSQL or of "
            "MongoDB",
            help="it looks like postgresql://host/name or mongodb://host/name",
        )
    return url


def _meant(given: str | None) -> str:
    url = given or Settings.load().database_url
    if url is None:
        raise RequestError(
            "there is no database: use --database or AFL_DATABASE_URL",
            help="`export AFL_DATABASE_URL=postgresql://host/name` and `afl db migrate` set one up;"
            " `afl run` needs none",
        )
    return url


@contextmanager
def opened(database: str | None, *, rings: bool = False) -> Iterator[Operations]:
    """The operations on the database that is meant; closed afterwards.

    Args:
        rings: tell workers at once that there is something to do. It costs a moment.
    """
    url = store_url(database)
    if is_server(url):
        with refusals(), connect(url) as services:
            yield services.operations
        return
    with connected(database, rings=rings) as services:
        yield services.operations


@contextmanager
def connected(database: str | None, *, rings: bool = False) -> Iterator[Services]:
    """The same, with all that works on the database."""
    url = database_url(database)
    with refusals():
        refuse_pending(url)
        with connect(url) if rings else _quiet(url) as services:
            yield services


def _quiet(url: str) -> Services:
    """Services that tell nobody. Nothing is prepared, so that a pooler may stand before it."""
    engine = known_engine(url)
    store = engine.connect(engine.persistence, url, max_size=2)
    return Services.on(store, LocalDoorbell())


@contextmanager
def refusals() -> Iterator[None]:
    """Errors of the runtime as errors of a command, each with its exit code."""
    try:
        yield
    except _MISSING as error:
        raise MissingError(error.message) from error
    except (errors.BadInputs, errors.BadSchedule, BadDatabase) as error:
        raise RequestError(error.message) from error
    except errors.StillRunning as error:
        raise NotEndedError(error.message) from error
    except ServerUnavailable as error:
        raise CommandError(error.message) from error
    except StoreUnavailable as error:
        raise CommandError(error.message, help="`afl doctor` shows what is wrong") from error
    except AflError as error:
        if isinstance(error, CommandError):
            raise
        raise CommandError(error.message) from error


def refuse_pending(url: str) -> None:
    """Refuses a database whose schema is not that of this version."""
    pending = sum(step.applied_at is None for step in migrating.status(url))
    if pending:
        raise CommandError(
            f"the schema of the database is not up to date: {count(pending, 'migration')} pending",
            help="`afl db migrate` applies what is pending",
        )
