"""What the measurements of the kernel share: databases of their own on a server."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import make_conninfo
from pymongo import MongoClient

MONGODB = "mongodb://127.0.0.1:27017/?replicaSet=rs0"
SERVER = "host=127.0.0.1 dbname=postgres"


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a database that is dropped afterwards. Its commits wait for the disk."""
    name = f"afl_bench_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        try:
            admin.execute(f"alter database {name} set synchronous_commit to on".encode())
            yield make_conninfo(server, dbname=name)
        finally:
            # the connection above may have been lost in the time
            with psycopg.connect(server, autocommit=True) as last:
                last.execute(f"drop database {name} with (force)".encode())


@contextmanager
def mongo_database(server: str) -> Iterator[str]:
    """The URL of a database of a MongoDB, which is dropped afterwards."""
    name = f"afl_bench_{secrets.token_hex(6)}"
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        client: MongoClient[dict[str, object]] = MongoClient(server)
        client.drop_database(name)
        client.close()


def parser(description: str | None) -> argparse.ArgumentParser:
    """The command line of a measurement, with the server."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--server", default=SERVER, help=f"libpq's words ({SERVER})")
    return made


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies: 0.5 for the median."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
