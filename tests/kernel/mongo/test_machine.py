"""The MongoDB store plays random games against the reference, and never differs."""

from __future__ import annotations

import pytest

from tests.kernel.games import GAMES, play
from tests.kernel.mongo.databases import MongoHarness, clear


@pytest.mark.timeout(max(300, GAMES * 30))
def test_games(url: str) -> None:
    def fresh() -> MongoHarness:
        clear(url)
        return MongoHarness(url)

    play(fresh)
