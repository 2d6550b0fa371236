"""The processes of the storm over log lines.

    python -m tests.chaos.logs_worker produce ROOT DATABASE NATS NUMBER LINES/STREAMS/SECONDS
    python -m tests.chaos.logs_worker doomed ROOT DATABASE NATS NUMBER LINES/STREAMS/SECONDS
    python -m tests.chaos.logs_worker heir ROOT DATABASE NATS
    python -m tests.chaos.logs_worker sink DATABASE NATS

`produce` says that it is ready, waits for a line, writes its own in so many seconds or
longer, and ends when they are stored. `doomed` never ends by
itself, and prints the number of lines that were taken after each hundred. `heir` writes nothing,
and ships what dead ones have left until its input is closed. The database is a PostgreSQL or a
MongoDB; without NATS, which is `none`, lines go to it directly.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from pathlib import Path

from afl.logs.jetstream import JetStreamRoad
from afl.logs.keeping import Keeper
from afl.logs.model import StreamKey
from afl.logs.mongo_store import MongoLogStore
from afl.logs.postgres_store import PostgresLogStore
from afl.logs.shipping import DirectRoad
from afl.logs.sink import JetStreamSink
from afl.logs.spool import Spool

Store = PostgresLogStore | MongoLogStore

PATIENCE_SECONDS = 600.0
#: How often to look for spools of the dead.
SEARCH_SECONDS = 0.5
TOLD_EVERY = 100
NO_NATS = "none"
_WORDS = b"the quick brown fox jumps over the lazy dog and says something about log lines "


def run_of(number: int) -> str:
    return f"run-{number}"


def text_of(stream: int, number: int) -> bytes:
    """The line with a number, in a stream: each differs, and lengths do."""
    return b"%d %d " % (stream, number) + _WORDS[: 10 + number * 7 % 70]


def key_of(number: int, stream: int) -> StreamKey:
    return StreamKey(run_of(number), f"0/step{stream}", 1, "stdout")


def connect(url: str) -> Store:
    kind = MongoLogStore if url.startswith("mongodb:") else PostgresLogStore
    return kind.connect(url)


def _keeper(root: Path, store: Store, nats: str, name: str) -> Keeper:
    spool = Spool(root, name)
    road = DirectRoad(store) if nats == NO_NATS else JetStreamRoad(nats, store.home)
    keeper = Keeper(root, spool, road, store, search_seconds=SEARCH_SECONDS)
    keeper.start()
    return keeper


def produce(root: Path, store: Store, nats: str, number: int, size: str) -> bool:
    lines, streams = map(int, size.split("/")[:2])
    seconds = float(size.split("/")[2])
    keeper = _keeper(root, store, nats, f"producer-{number}")
    writers = [keeper.spool.open(key_of(number, stream)) for stream in range(streams)]
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    for line in range(lines):
        place, stream = divmod(line, streams)
        if stream == 0:
            time.sleep(max(0.0, start + seconds * line / lines - time.monotonic()))
        writers[stream].line(text_of(stream, place + 1))
    for writer in writers:
        writer.close()
    return keeper.stop(PATIENCE_SECONDS)


def doomed(root: Path, store: Store, nats: str, number: int, size: str) -> bool:
    streams = int(size.split("/")[1])
    keeper = _keeper(root, store, nats, f"doomed-{number}")
    writers = [keeper.spool.open(key_of(number, stream)) for stream in range(streams)]
    place = 0
    while True:
        place += 1
        for stream, writer in enumerate(writers):
            writer.line(text_of(stream, place))
        if place % TOLD_EVERY == 0:
            print(place, flush=True)


def heir(root: Path, store: Store, nats: str) -> bool:
    keeper = _keeper(root, store, nats, "heir")
    sys.stdin.read()
    return keeper.stop(PATIENCE_SECONDS)


def sink(store: Store, nats: str) -> bool:
    working = JetStreamSink(nats, store)
    working.start()
    sys.stdin.read()
    working.stop()
    return True


def main(arguments: list[str]) -> int:
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    verb, *rest = arguments
    if verb == "sink":
        url, nats = rest
        with connect(url) as store:
            return int(not sink(store, nats))
    root, url, nats = Path(rest[0]), rest[1], rest[2]
    with connect(url) as store:
        if verb == "heir":
            return int(not heir(root, store, nats))
        work = {"produce": produce, "doomed": doomed}[verb]
        return int(not work(root, store, nats, int(rest[3]), rest[4]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
