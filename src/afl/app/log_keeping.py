"""Keeps the log lines of a worker: what its handlers say through their context, and the output of
the commands that it runs.

Lines are written to a spool on this machine's disk, and shipped to the database from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, cast, runtime_checkable
from urllib.parse import unquote, urlsplit

from afl.app.engines import known_engine
from afl.app.extras import extra_part
from afl.app.log_handler import HandlerLogs, key_of
from afl.app.services import Services
from afl.base.errors import AflError
from afl.base.settings import Settings, environment
from afl.kernel.port import Locks
from afl.kernel.working.leading import Lead
from afl.logs.keeping import Keeper
from afl.logs.model import microseconds
from afl.logs.redacting import Redactor
from afl.logs.shipping import DirectRoad, Road
from afl.logs.spool import Bounds, Spool, StreamWriter
from afl.logs.store import LogStore, Positions
from afl.runtime.handler_table import HandlerTable, Invocation

_LEAD = "afl.logs.sink"
_LED = timedelta(seconds=10)
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|PRIVATE_KEY|API_?KEY|ACCESS_KEY")


class CannotKeepLogs(AflError):
    """There is no place for log lines on this machine."""

    code = "app.cannot_keep_logs"


def default_folder() -> Path:
    """Where workers of this user keep lines until they are stored."""
    state = environment().get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "afl" / "spool"


def secrets_of(settings: Settings, variables: Mapping[str, str]) -> list[str]:
    """What no log line may show: passwords in addresses, and variables that are named like
    secrets."""
    addresses = (settings.database_url, settings.nats_url, settings.redis_url)
    passwords = (urlsplit(address).password for address in addresses if address)
    named = (value for name, value in variables.items() if _SECRET_NAME.search(name.upper()))
    return [*(unquote(each) for each in passwords if each), *named]


class Sink(Protocol):
    """What takes lines out of NATS."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


@runtime_checkable
class HttpPlace(Positions, Road, Protocol):
    """A server that takes lines: the road, and what knows how far it has come."""

    def home(self) -> str: ...


class DatabasePlace(LogStore, Protocol):
    """The store of lines itself."""

    def close(self) -> None: ...


def _over_http(settings: Settings) -> HttpPlace:
    module = extra_part("afl.logs.http_road", "server", "Log lines over HTTP need")
    return cast("HttpPlace", module.HttpLogs(settings.logs_url, settings.token))


def _database(database: str, settings: Settings) -> DatabasePlace:
    engine = known_engine(database)
    store = engine.connect(
        engine.logs, database, max_size=3, prepare_threshold=settings.prepare_threshold
    )
    return cast("DatabasePlace", store)


class LogKeeping:
    """Keeps lines from `start` to `stop`."""

    def __init__(
        self,
        database: str,
        locks: Locks,
        settings: Settings,
        folder: Path,
        worker: str,
        *,
        bounds: Bounds | None = None,
    ) -> None:
        """
        Args:
            database: the URL of the database that stores the lines.
            locks: where workers agree on who takes lines out of NATS.
            folder: where this and other workers of this machine have their spools.
            worker: a name to know this worker by.

        Raises:
            CannotKeepLogs: the folder cannot be used; the message says what to do.
        """
        self._places = ExitStack()
        self._sink: Sink | None = None
        self._lead: Lead | None = None
        place = _over_http(settings) if settings.logs_url else _database(database, settings)
        self._places.callback(place.close)
        # a spool belongs to one database: what is left must not be shipped to another
        root = folder / place.home()
        redactor = Redactor(secrets_of(settings, environment()))
        try:
            spool = Spool(root, worker, bounds=bounds, redactor=redactor)
        except OSError as error:
            self._places.close()
            raise CannotKeepLogs(
                f"Log lines cannot be kept in {root}: {error}. Name a folder that can be written "
                "to with `--spool`."
            ) from error
        road: Road
        if isinstance(place, HttpPlace):
            road = place
        elif settings.nats_url is None:
            road = DirectRoad(place)
        else:
            road = self._through_nats(settings.nats_url, place, locks, spool.id)
        self._keeper = Keeper(root, spool, road, place)
        self._handlers = HandlerLogs(spool)
        self.folder = root
        #: where the worker writes results down while the database is away
        self.results = root.with_name(f"{root.name}.results")

    def start(self) -> None:
        self._keeper.start()
        if self._sink is not None:
            self._sink.start()
        self._handlers.attach()

    def stop(self, timeout: timedelta = timedelta(seconds=10)) -> bool:
        """Ships what is left; tells whether all was stored in that time. What was not is shipped by
        the next worker that uses the folder."""
        self._handlers.detach()
        stored = self._keeper.stop(timeout.total_seconds())
        if self._sink is not None:
            self._sink.stop()
        if self._lead is not None:
            self._lead.release()
        self._places.close()
        return stored

    def _through_nats(self, url: str, store: LogStore, locks: Locks, owner: str) -> Road:
        """The road through NATS, and one of the sinks at its end."""
        module = extra_part("afl.logs.sink", "nats", "Log lines through NATS need")
        self._lead = Lead(locks, _LEAD, owner, _LED)
        self._sink = cast("Sink", module.JetStreamSink(url, store, self._lead.take))
        module = extra_part("afl.logs.jetstream", "nats", "Log lines through NATS need")
        return cast("Road", module.JetStreamRoad(url, store.home))

    def kept(self, table: HandlerTable) -> HandlerTable:
        """The same handlers, each with streams of its own for what it says."""
        return table.changed(self._handlers.around)

    @contextmanager
    def lines(self, invocation: Invocation) -> Iterator[ProcessLines]:
        """Takes the output of a command that an invocation runs."""
        taken = ProcessLines(self._keeper.spool, invocation)
        try:
            yield taken
        finally:
            taken.close()


@contextmanager
def keep_logs(
    database: str, services: Services, settings: Settings, folder: str | None, worker: str
) -> Iterator[LogKeeping]:
    """Keeps the lines of a worker while this lasts.

    Args:
        folder: where spools are; None for the folder of this user.

    Raises:
        CannotKeepLogs: the folder cannot be used; the message says what to do.
    """
    place = default_folder() if folder is None else Path(folder)
    keeping = LogKeeping(database, services.persistence.kernel, settings, place, worker)
    keeping.start()
    try:
        yield keeping
    finally:
        keeping.stop()


class ProcessLines:
    """The output of one command: a stream for each of its pipes. Threads share it."""

    def __init__(self, spool: Spool, invocation: Invocation) -> None:
        self._open: Callable[[str], StreamWriter] = lambda name: spool.open(
            key_of(invocation, name), until=invocation.cancelled
        )
        self._streams: dict[str, StreamWriter] = {}

    def line(self, stream: str, data: bytes, *, partial: bool, time: datetime) -> None:
        """Keeps a line. Waits when the spool is full, so that the command waits too, until nobody
        wants its result any more."""
        writer = self._streams.get(stream)
        if writer is None:
            writer = self._streams[stream] = self._open(stream)
        writer.line(data, partial=partial, time_us=microseconds(time))

    def close(self) -> None:
        for writer in self._streams.values():
            writer.close()
