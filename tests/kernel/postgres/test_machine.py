"""The PostgreSQL store plays random games against the reference, and never differs."""

from __future__ import annotations

import pytest

from tests.kernel.games import GAMES, play
from tests.kernel.postgres.databases import PostgresHarness, clear


@pytest.mark.timeout(max(300, GAMES * 20))
def test_games(url: str) -> None:
    def fresh() -> PostgresHarness:
        clear(url)
        return PostgresHarness(url)

    play(fresh)
