"""`python -m afl.runtime.runner`: a runner on a database, with handlers from modules."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence

from afl.base.errors import AflError, ConfigError
from afl.base.settings import Settings
from afl.kernel.doorbell import Doorbell
from afl.runtime.evaluator import Evaluator
from afl.runtime.persistence import PersistenceAPI
from afl.runtime.runner.registry import ToolRegistry
from afl.runtime.runner.service import RunnerConfig, RunnerService

_DEFAULTS = RunnerConfig()
#: What a module is searched for when no object is named.
_OBJECTS = ("registry", "handlers", "HANDLERS")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until it is told to end."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        return _serve(options)
    except (AflError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


def _serve(options: argparse.Namespace) -> int:
    settings = Settings.load()
    url = options.database_url or settings.database_url
    if url is None:
        raise ConfigError("Which database? Give --database-url, or set AFL_DATABASE_URL.")
    registry = load_handlers(options.handlers)
    config = RunnerConfig(
        server_group=options.server_group,
        server_name=options.server_name,
        topics=options.topic,
        task_list=options.task_list,
        poll_interval_ms=options.poll_interval_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        lock_duration_ms=options.lock_duration_ms,
        lock_extend_interval_ms=options.lock_extend_interval_ms,
        max_concurrent=options.max_concurrent,
        shutdown_timeout_ms=options.shutdown_timeout_ms,
        http_port=options.http_port,
        http_max_port_attempts=options.http_max_port_attempts,
    )
    persistence, doorbell = _connect(url, settings)
    try:
        service = RunnerService(
            persistence, Evaluator(persistence), config, registry, doorbell=doorbell
        )
        logging.getLogger("afl.runner").info(
            "serving %s as %s", ", ".join(registry.names()) or "no facets", service.server_id
        )
        service.start()
    finally:
        doorbell.close()
        persistence.close()
    return 0


def _connect(url: str, settings: Settings) -> tuple[PersistenceAPI, Doorbell]:
    # each driver is an extra of its own
    if url.startswith("mongodb"):
        from afl.kernel.mongo.doorbell import MongoDoorbell  # noqa: PLC0415
        from afl.runtime.mongo_store import MongoStore  # noqa: PLC0415

        return MongoStore.connect(url), MongoDoorbell(url)
    from afl.kernel.postgres.doorbell import PostgresDoorbell  # noqa: PLC0415
    from afl.runtime.postgres_store import PostgresPersistence  # noqa: PLC0415

    store = PostgresPersistence.connect(url, prepare_threshold=settings.prepare_threshold)
    return store, PostgresDoorbell(url)


def load_handlers(places: Sequence[str]) -> ToolRegistry:
    """The handlers of modules, each given as `module` or `module:object`.

    Raises:
        ConfigError: a module or object is not there, or is neither a `ToolRegistry` nor a dict.
    """
    registry = ToolRegistry()
    for place in places:
        found = _find(place)
        if isinstance(found, ToolRegistry):
            registry.update(found)
        elif isinstance(found, dict) and all(callable(each) for each in found.values()):
            for name, handler in found.items():
                registry.register(str(name), handler)
        else:
            raise ConfigError(f"{place} is no ToolRegistry and no dict of names to callables.")
    return registry


def _find(place: str) -> object:
    module_name, _, name = place.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"The handlers in {module_name} cannot be imported: {error}") from error
    for each in (name,) if name else _OBJECTS:
        if hasattr(module, each):
            found: object = getattr(module, each)
            return found
    wanted = name or " or ".join(_OBJECTS)
    raise ConfigError(f"The module {module_name} has no {wanted}.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m afl.runtime.runner", description="Advance runs and serve facets."
    )
    parser.add_argument("--database-url", help="PostgreSQL; the default is AFL_DATABASE_URL")
    parser.add_argument(
        "--handlers",
        action="append",
        default=[],
        metavar="MODULE[:OBJECT]",
        help="a ToolRegistry, or a dict of names to callables; may be given again",
    )
    parser.add_argument("--topic", action="append", default=[], help="serve only this facet")
    for name in ("server_group", "server_name", "task_list"):
        parser.add_argument(f"--{name.replace('_', '-')}", default=getattr(_DEFAULTS, name))
    for name in (
        "poll_interval_ms",
        "heartbeat_interval_ms",
        "lock_duration_ms",
        "lock_extend_interval_ms",
        "max_concurrent",
        "shutdown_timeout_ms",
        "http_port",
        "http_max_port_attempts",
    ):
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=int, default=getattr(_DEFAULTS, name), metavar="N"
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
