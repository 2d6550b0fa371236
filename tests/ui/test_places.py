"""The pages around runs, in a real browser: each is readable, and does what it offers."""

from __future__ import annotations

from tests.ui.conftest import Dashboard


def test_every_page_is_readable(dashboard: Dashboard) -> None:
    dashboard.browse("looks")


def test_every_page_does_what_it_offers(dashboard: Dashboard) -> None:
    dashboard.browse("places")
