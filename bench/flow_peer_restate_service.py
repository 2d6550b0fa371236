"""The service of `bench.flow_peer_restate`: an application for an HTTP server."""

from __future__ import annotations

import restate  # type: ignore[import-not-found]

from bench.flow_side import FAN, SEQUENCE, STEPS

bench = restate.Service("bench")


async def step(n: int) -> int:
    return n + 1


@bench.handler()  # type: ignore[untyped-decorator]
async def sequence(context: restate.Context, n: int) -> int:
    for number in range(STEPS[SEQUENCE]):
        n = await context.run_typed(f"step{number}", step, n=n)
    return n


@bench.handler()  # type: ignore[untyped-decorator]
async def fan(context: restate.Context, n: int) -> int:
    steps = [context.run_typed(f"step{number}", step, n=number) for number in range(STEPS[FAN])]
    results: list[int] = [await each for each in await restate.gather(*steps)]
    return n + sum(results)


app = restate.app([bench])
