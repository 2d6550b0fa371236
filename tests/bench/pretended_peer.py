"""A queue in memory that speaks as the peers of the bench do: honest, lossy or doubling."""

from __future__ import annotations

import asyncio
import sys

from bench.peer_side import serve


class Pretended:
    def __init__(self, manner: str) -> None:
        self._manner = manner
        self._done = 0

    async def produce(self, seconds: float) -> int:
        await asyncio.sleep(seconds)
        self._done += {"honest": 10, "lossy": 9, "doubling": 11}[self._manner]
        return 10

    async def done(self, made: int) -> int:
        return self._done

    async def clear(self) -> None:
        self._done = 0


def main() -> None:
    manner, *arguments = sys.argv[1:]
    if manner == "failing":
        raise SystemExit(3)
    if arguments != ["install"]:
        asyncio.run(serve(Pretended(manner)))


if __name__ == "__main__":
    main()
