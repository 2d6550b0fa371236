"""What all tests have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers keep nothing in the folder of the user who runs the tests."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


# how long an example takes says more about who else uses the machine
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
