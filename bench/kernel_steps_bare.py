"""Bare SQL that writes the rows of `kernel_steps`, into the same tables, and looks at nothing.

Each transaction is one flush and one wait, of prepared statements over arrays. Nobody is asked
whether a fence is still held, whether a key is known or who waits; all of that is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg

from afl.base.system import SystemIds

_FAN_CALLS = 100
_MAKE = """
insert into afl.task (
    id, tenant, run, kind, name, short_name, list, hold, parent_call, caller, depth, state,
    priority, run_at, wake, fence, last_fence, worker, claim_token, max_failures, retry_delay,
    retry_backoff, retry_max_delay, retry_jitter, max_crashes, deadline, input, created_at)
select x.id, 'default', coalesce(x.caller, x.id)::text,
       case when x.caller is null then 'flow' else 'event' end,
       case when x.caller is null then 'afl:execute' else 'bench.Work' end,
       case when x.caller is null then 'afl:execute' else 'Work' end, 'default', true,
       x.call, x.caller, case when x.caller is null then 0 else 1 end, 'running', 0, now(), 'any',
       x.fence, x.fence, 'bare', 'token', 0, '1s', 2.0, '5min', true, 5,
       case when x.caller is not null then now() + interval '3650 days' end,
       '{"facet":"bench.Work","params":{"n":1},"run":"0","step":"0/s1"}', now()
from unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::bigint[]) as x(id, caller, call, fence)
"""
_OPEN = """
insert into afl.call (id, run, caller, key, callee, deadline)
select x.id, x.caller::text, x.caller, x.key, x.callee, now() + interval '3650 days'
from unnest(%s::uuid[], %s::uuid[], %s::text[], %s::uuid[]) as x(id, caller, key, callee)
"""
_END = """
update afl.task k set state = 'closed', outcome = 'success', closed_at = now(), fence = null,
    worker = null, claim_token = null, committed_fence = k.fence, commits = 1,
    result = '{"n":42,"path":"out/part-0001"}'
where k.id = any(%s::uuid[])
"""
_EVENTS = """
insert into afl.outbox (topic, task, run, body, created_at)
select 'closed', x.id, x.run::text,
       '{"outcome":"success","kind":"event","name":"bench.Work","parent_call":null,"dead":false}',
       now()
from unnest(%s::uuid[], %s::uuid[]) as x(id, run)
"""
_ANSWER = """
update afl.call c set status = 'ok', reply = '{"n":42,"path":"out/part-0001"}', replied_at = now(),
    applied = %s
where c.id = any(%s::uuid[])
"""
_STEP = """
update afl.task k set committed_fence = k.fence, commits = %s, crashes = 0
where k.id = any(%s::uuid[])
"""
_TAKE = "update afl.call c set applied = true where c.id = any(%s::uuid[])"
_ROWS = """
insert into afl.step as s (run, path, object_type, statement_id, facet_name, state, params, returns,
                           frame, created_at, changed_at)
select x.run, y.path, 'VariableAssignment', 's', 'bench.Work', 'state.statement.Complete',
       '{"n":1}', '{"n":42}', '{"open":1}', now(), now()
from unnest(%s::uuid[]) as x(run) cross join unnest(%s::text[]) as y(path)
on conflict (run, path) do update set state = excluded.state, returns = excluded.returns,
    changed_at = excluded.changed_at
"""


class BareSteps:
    """One connection that writes rows."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, prepare_threshold=0)
        # planned once, when the tables are empty, and by key all the same: like our functions
        for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off"):
            self._connection.execute(f"set {setting}".encode())
        self._connection.commit()
        self._ids = SystemIds()
        self._fence = 1 << 40

    @property
    def backend(self) -> int:
        return self._connection.info.backend_pid

    def close(self) -> None:
        self._connection.close()

    def sequence(self, runs: int) -> Iterator[int]:
        flows, callees, calls = self._new(runs), list[str](), list[str]()
        self._write((_MAKE, [flows, [None] * runs, [None] * runs, self._fences(runs)]))
        for number in range(1_000_000):
            ended, answered = callees, calls
            callees, calls = self._new(runs), self._new(runs)
            paths = ["", f"0/s{number}", *([f"0/s{number - 1}"] if number else [])]
            self._write(
                (_END, [ended]),
                (_EVENTS, [ended, flows[: len(ended)]]),
                (_ANSWER, [True, answered]),
                (_OPEN, [calls, flows, [f"0/s{number}"] * runs, callees]),
                (_MAKE, [callees, flows, calls, self._fences(runs)]),
                (_STEP, [number + 1, flows]),
                (_ROWS, [flows, paths]),
            )
            yield runs

    def fan(self, batch: int) -> Iterator[int]:
        while True:
            (flow,) = flows = self._new(1)
            callees, calls = self._new(_FAN_CALLS), self._new(_FAN_CALLS)
            keys = [f"0/s{number}" for number in range(_FAN_CALLS)]
            self._write((_MAKE, [flows, [None], [None], self._fences(1)]))
            self._write(
                (_OPEN, [calls, flows * _FAN_CALLS, keys, callees]),
                (_MAKE, [callees, flows * _FAN_CALLS, calls, self._fences(_FAN_CALLS)]),
                (_STEP, [1, flows]),
                (_ROWS, [flows, ["", "0/s0"]]),
            )
            for start in range(0, _FAN_CALLS, batch):
                part = slice(start, start + batch)
                self._write(
                    (_END, [callees[part]]),
                    (_EVENTS, [callees[part], [flow] * len(callees[part])]),
                    (_ANSWER, [False, calls[part]]),
                )
            self._write(
                (_TAKE, [calls]),
                (_END, [flows]),
                (_EVENTS, [flows, flows]),
                (_ROWS, [flows, ["", "0/s0", "0/s1"]]),
            )
            yield _FAN_CALLS

    def _write(self, *statements: tuple[str, Sequence[object]]) -> None:
        with self._connection.pipeline(), self._connection.transaction():
            for statement, values in statements:
                self._connection.execute(statement.encode(), values)

    def _new(self, count: int) -> list[str]:
        return [self._ids.new_id() for _ in range(count)]

    def _fences(self, count: int) -> list[int]:
        first, self._fence = self._fence, self._fence + count
        return list(range(first, self._fence))
