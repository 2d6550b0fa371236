"""Which database a URL names, and where its parts are. Each driver is an extra, loaded when a URL
asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afl.app.extras import extra_part


@dataclass(frozen=True, slots=True)
class Part:
    """A class of ours that works on a database."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Engine:
    """A kind of database."""

    name: str
    extra: str
    schemes: tuple[str, ...]
    #: the packages that keep something have their schemas in a package of this name
    package: str
    persistence: Part
    doorbell: Part
    logs: Part
    server: Part
    turns: Part
    #: whether a pooler may stand before it, which then has to be told what to prepare
    has_poolers: bool = False
    #: whether it can keep tenants apart by itself, behind the checks of the server
    has_walls: bool = False

    def load(self, part: Part) -> Any:  # noqa: ANN401 - a class, known by its part
        """
        Raises:
            ExtraMissing: the driver is not installed; the message says how to.
        """
        module = extra_part(part.module, self.extra, f"The {self.name} store needs")
        return getattr(module, part.name)

    def connect(
        self,
        part: Part,
        url: str,
        *,
        prepare_threshold: int | None = None,
        max_size: int | None = None,
    ) -> Any:  # noqa: ANN401 - what the part is
        """A part on the database at this URL; see the part for what it is.

        Args:
            prepare_threshold: after how many uses a statement is prepared. Without it nothing is,
                so that a pooler may stand before the database.
            max_size: how many connections there may be, if not as many as the part thinks fit.
        """
        options: dict[str, int | None] = {} if max_size is None else {"max_size": max_size}
        if self.has_poolers:
            options["prepare_threshold"] = prepare_threshold
        return self.load(part).connect(url, **options)


POSTGRES = Engine(
    name="PostgreSQL",
    extra="postgres",
    schemes=("postgresql://", "postgres://"),
    package="postgres",
    persistence=Part("afl.runtime.postgres_store", "PostgresPersistence"),
    doorbell=Part("afl.kernel.postgres.doorbell", "PostgresDoorbell"),
    logs=Part("afl.logs.postgres_store", "PostgresLogStore"),
    server=Part("afl.server.postgres_store", "PostgresServerStore"),
    turns=Part("afl.turns.postgres_store", "PostgresTurnStore"),
    has_poolers=True,
    has_walls=True,
)
MONGO = Engine(
    name="MongoDB",
    extra="mongo",
    schemes=("mongodb://", "mongodb+srv://"),
    package="mongo",
    persistence=Part("afl.runtime.mongo_store", "MongoStore"),
    doorbell=Part("afl.kernel.mongo.doorbell", "MongoDoorbell"),
    logs=Part("afl.logs.mongo_store", "MongoLogStore"),
    server=Part("afl.server.mongo_store", "MongoServerStore"),
    turns=Part("afl.turns.mongo_store", "MongoTurnStore"),
)
ENGINES = (POSTGRES, MONGO)


def engine_of(url: str) -> Engine | None:
    """What a URL names, by its scheme."""
    return next((engine for engine in ENGINES if url.startswith(engine.schemes)), None)


def known_engine(url: str) -> Engine:
    """What a URL names that was found to be one of a database. Words of libpq that are no URL name
    a PostgreSQL."""
    return engine_of(url) or POSTGRES
