"""DBOS on the flows of `bench.flow`: URL.

Runs in an environment of its own (see `flow_peers`). Its defaults, with the log off. Steps in a row
are synchronous functions in a thread for each client, which is its faster way; steps at once are
asynchronous functions that are gathered, as its documentation has it. Every step is a row.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib.metadata import version

from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found]

from bench.flow_side import FAN, SEQUENCE, STEPS, serve


@DBOS.step()  # type: ignore[untyped-decorator]
def step(n: int) -> int:
    return n + 1


@DBOS.step()  # type: ignore[untyped-decorator]
async def step_at_once(n: int) -> int:
    return n + 1


@DBOS.workflow()  # type: ignore[untyped-decorator]
def sequence() -> int:
    n = 0
    for _ in range(STEPS[SEQUENCE]):
        n = step(n)
    return n


@DBOS.workflow()  # type: ignore[untyped-decorator]
async def fan() -> int:
    return sum(await asyncio.gather(*map(step_at_once, range(STEPS[FAN]))))


class Dbos:
    async def flow(self, shape: str, client: int) -> int:
        result: int = await (fan() if shape == FAN else asyncio.to_thread(sequence))
        return result


def main(url: str) -> None:
    logging.disable(logging.CRITICAL)
    config: DBOSConfig = {"name": "bench", "system_database_url": url, "log_level": "CRITICAL"}
    DBOS(config=config)
    DBOS.launch()
    asyncio.run(serve(Dbos(), f"dbos {version('dbos')}"))
    DBOS.destroy()


if __name__ == "__main__":
    main(sys.argv[1])
