"""Signing in to the dashboard at an identity provider, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.issuer import AUDIENCE
from tests.server.provider import CLIENT, SECRET, providing
from tests.ui.conftest import browse, served


def test_a_session_is_begun_used_and_ended(
    empty_database: str, shots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with providing() as provider:
        provider.claims = {"sub": "ada", "afl_role": "admin", "afl_tenant": "*"}
        monkeypatch.setenv("AFL_OIDC_ISSUER", provider.url)
        monkeypatch.setenv("AFL_OIDC_AUDIENCE", AUDIENCE)
        monkeypatch.setenv("AFL_OIDC_CLIENT_ID", CLIENT)
        monkeypatch.setenv("AFL_OIDC_CLIENT_SECRET", SECRET)
        with served(empty_database) as url:
            browse("sign-in", url, shots)
        assert provider.exchanged == 1
