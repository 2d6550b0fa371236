"""Which URLs are those of servers."""

from __future__ import annotations

_SCHEMES = ("http://", "https://")


def is_server(url: str) -> bool:
    """Whether a URL is that of a server, and not of a database."""
    return url.startswith(_SCHEMES)
