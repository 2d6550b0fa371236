"""Databases for the tests of turns that need real processes or many workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.turns.lasting_stores import KINDS, LastingTurns, fresh_turns


@pytest.fixture(params=KINDS)
def lasting_turns(request: pytest.FixtureRequest) -> Iterator[LastingTurns]:
    """A database with the whole schema, for one test."""
    with fresh_turns(request.param) as url:
        yield LastingTurns(request.param, url)
