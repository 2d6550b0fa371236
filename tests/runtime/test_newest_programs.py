"""Which programs were saved last."""

from __future__ import annotations

from datetime import timedelta

from afl.app.compiling import compile_program
from afl.runtime.programs import Plans
from tests.runtime.kept import Kept


def test_the_newest_programs_come_first_deployed_or_not(kept: Kept) -> None:
    plans = Plans(kept.store)
    saved = []
    for name in ("A", "B", "C"):
        saved.append(plans.add(compile_program(f"namespace n {{ event facet {name}() => () }}")))
        kept.advance(timedelta(seconds=1))
    kept.store.deploy("default", saved[0])
    assert list(kept.store.newest_programs(2)) == [saved[2], saved[1]]
    assert list(kept.store.newest_programs(9)) == saved[::-1]
