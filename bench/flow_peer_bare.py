"""PostgreSQL itself on the flows of `bench.flow`: URL.

Runs in an environment of its own (see `flow_peers`), with the fastest driver that Python has. A
flow is a row that is inserted, a row for each step, each in a transaction of its own that looks
whether the flow is still in the same hands, and an update in the end. Nobody claims, nobody waits
for anybody, and nothing could be taken up again after a crash: it is the floor, not a system. A
fan-out is the same with more steps. There are 16 connections; one client uses one of them.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]

from bench.flow_side import FAN, STEPS, serve

_SCHEMA = """
create table run (
    id uuid primary key, name text not null, state text not null, input jsonb, output jsonb,
    epoch int not null default 1, created timestamptz not null default now(), ended timestamptz
);
create table step (
    run uuid not null, seq int not null, name text not null, output jsonb,
    created timestamptz not null default now(), primary key (run, seq)
);
"""
_BEGIN = "insert into run (id, name, state, input) values ($1, 'flow', 'running', '{}')"
_STEP = """
insert into step (run, seq, name, output)
select $1, $2, 'step', $3::text::jsonb
from run where id = $1 and epoch = 1 and state = 'running' on conflict do nothing
"""
_END = """
update run set state = 'done', output = $2::text::jsonb, ended = now() where id = $1 and epoch = 1
"""
#: More would lower the rate of a small machine.
_CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Client:
    """A connection with its prepared statements."""

    begin: asyncpg.PreparedStatement
    step: asyncpg.PreparedStatement
    end: asyncpg.PreparedStatement
    #: clients beyond the number of connections take turns
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def flow(self, shape: str) -> int:
        run = uuid4()
        await self.begin.fetch(run)
        total = 0
        for seq in range(STEPS[shape]):
            total = total + seq + 1 if shape == FAN else seq + 1
            await self.step.fetch(run, seq, f'{{"n": {total}}}')
        await self.end.fetch(run, f'{{"n": {total}}}')
        return total


class Bare:
    """Connections that clients share."""

    def __init__(self, clients: list[Client]) -> None:
        self._clients = clients

    async def flow(self, shape: str, client: int) -> int:
        mine = self._clients[client % len(self._clients)]
        async with mine.lock:
            return await mine.flow(shape)


async def main(url: str) -> None:
    async with AsyncExitStack() as stack:

        async def connect() -> Client:
            connection = await asyncpg.connect(url)
            stack.push_async_callback(connection.close)
            begin, step, end = [await connection.prepare(each) for each in (_BEGIN, _STEP, _END)]
            return Client(begin, step, end)

        first = await asyncpg.connect(url)
        await first.execute(_SCHEMA)
        await first.close()
        clients = [await connect() for _ in range(_CONNECTIONS)]
        await serve(Bare(clients), f"asyncpg {asyncpg.__version__}")


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
