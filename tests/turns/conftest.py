"""Databases for the tests of turns that need real processes or many workers, and ways to commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.turns.lasting_stores import KINDS, LastingTurns, fresh_turns


@pytest.fixture(params=[False, True], ids=["with the answer", "before the request"])
def commit_before(request: pytest.FixtureRequest) -> bool:
    """Whether a turn commits what it has before it asks a model."""
    return bool(request.param)


@pytest.fixture(params=KINDS)
def lasting_turns(request: pytest.FixtureRequest) -> Iterator[LastingTurns]:
    """A database with the whole schema, for one test."""
    with fresh_turns(request.param) as url:
        yield LastingTurns(request.param, url)
