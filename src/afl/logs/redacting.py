"""Secrets are taken out of lines before they touch a disk.

A value that was named as a secret is always found, also where a long line was cut in the middle of
it. What only looks like a secret is found by its form, where it stands in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What stands in the place of a secret.
MARK = b"[redacted]"
#: Shorter values are words that lines are full of.
_SHORTEST = 6
#: A secret of one letter again and again must not make memory grow.
_MOST_KEPT = 256 * 1024
#: Forms that nothing but a secret has. Each keeps its first group.
_FORMS = re.compile(
    rb"\b(sk-|sk-ant-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza)[A-Za-z0-9_\-]{16,}"
    rb"|((?i:authorization:\s*(?:bearer|basic)\s+))[A-Za-z0-9+/=._\-]{8,}"
    rb"|(://[^\s/:@]+:)[^\s/@]+(?=@)"
)


class Redactor:
    """Knows the secrets. Threads may share one."""

    def __init__(self, secrets: Iterable[str] = (), *, forms: bool = True) -> None:
        """
        Args:
            secrets: values that no line may show. Of a value with several lines, each is a secret.
            forms: whether to look for what has the form of a secret too.
        """
        parts = (part.strip() for secret in secrets for part in secret.splitlines())
        values = {part.encode() for part in parts if len(part) >= _SHORTEST}
        # the longest first: one may be a part of another
        self._values = sorted(values, key=lambda value: (-len(value), value))
        self._forms = forms

    def redacted(self, data: bytes) -> bytes:
        """The bytes without secrets."""
        for value in self._values:
            if value in data:
                data = data.replace(value, MARK)
        if self._forms and _has_hint(data):
            data = _FORMS.sub(_keep_first, data)
        return data

    def held_back(self, data: bytes) -> int:
        """How many of the last bytes may be the beginning of a secret, or belong to one that they
        may be the beginning of another of."""
        cut = len(data) - max((_begun(value, data) for value in self._values), default=0)
        # no secret may be cut: what goes out and what is kept are looked at apart
        while (start := self._across(data, cut)) is not None:
            cut = start
        return len(data) - cut

    def _across(self, data: bytes, cut: int) -> int | None:
        """Where a secret begins that goes over the cut."""
        for value in self._values:
            room = len(value) - 1
            start = data.find(value, max(0, cut - room), cut + room)
            if start != -1:
                return start
        return None


def _has_hint(data: bytes) -> bool:
    """Whether there is something that stands in every match of a form. Quicker than a search for
    one, and written out, since every line of every process comes by."""
    return (
        b"://" in data
        or b"sk-" in data
        or b"gh" in data
        or b"glpat-" in data
        or b"xox" in data
        or b"AKIA" in data
        or b"AIza" in data
        or b"uthorization" in data
        or b"UTHORIZATION" in data
    )


def _begun(value: bytes, data: bytes) -> int:
    """How many of the last bytes are how a secret begins."""
    lengths = range(min(len(value) - 1, len(data)), 0, -1)
    return next((length for length in lengths if data.endswith(value[:length])), 0)


def _keep_first(found: re.Match[bytes]) -> bytes:
    return next((group for group in found.groups() if group), b"") + MARK


class LineRedactor:
    """Redacts the parts of one stream's lines. Keeps the end of a part that goes on, until the next
    part shows whether it was the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept = b""

    def redacted(self, data: bytes, *, partial: bool) -> bytes:
        """What can be shown by now of a line, or of a part of it that goes on."""
        if self._kept:
            data = self._kept + data
            self._kept = b""
        if partial:
            length = self._redactor.held_back(data)
            if 0 < length <= _MOST_KEPT:
                data, self._kept = data[:-length], data[-length:]
        return self._redactor.redacted(data)

    @property
    def holds(self) -> bool:
        """Whether something is kept that the next part has to show."""
        return bool(self._kept)
