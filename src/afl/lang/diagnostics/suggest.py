"""Did you mean: the candidate nearest to a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable

#: Nobody mistypes a name that long by a letter, and comparing it costs.
_LONGEST = 64
#: Comparing with more than this many names is not worth the wait.
_MOST = 200


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The best candidate that a person may have meant, or None when nothing is close enough."""
    if len(name) > _LONGEST:
        return None
    lowered = name.lower()
    best: tuple[int, str] | None = None
    bound = _tolerance(name) + 1
    for candidate in _likely(name, candidates, bound):
        score = _distance(lowered, candidate.lower(), bound)
        # of equally near ones the first in the alphabet, whatever order they come in
        if score < bound and (best is None or (score, candidate) < best):
            best = (score, candidate)
            bound = score + 1
    return best[1] if best is not None else None


def _likely(name: str, candidates: Iterable[str], bound: int) -> list[str]:
    """Candidates worth comparing; out of very many, those that start the same way."""
    close = [other for other in candidates if abs(len(other) - len(name)) < bound and other != name]
    if len(close) > _MOST:
        close = [other for other in close if other[:2].lower() == name[:2].lower()]
    return close[:_MOST]


def _tolerance(name: str) -> int:
    # short names are near to everything; they are only offered in another case
    return 0 if len(name) <= 2 else 1 if len(name) <= 4 else 2 if len(name) <= 8 else 3


def _distance(left: str, right: str, bound: int) -> int:
    """Damerau-Levenshtein distance (adjacent swaps count one), cut off at `bound`.

    What both start and end with costs nothing, and of the rest only the cells within `bound` of the
    diagonal are looked at: the others cannot matter.
    """
    left, right = _without_ends(left, right)
    before: list[int] = []
    previous = [column if column < bound else bound for column in range(len(right) + 1)]
    for row, a in enumerate(left, 1):
        low, high = max(1, row - bound), min(len(right), row + bound)
        current = [bound] * (len(right) + 1)
        current[0] = row if row < bound else bound
        smallest = current[0]
        for column in range(low, high + 1):
            b = right[column - 1]
            cost = min(
                previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (a != b)
            )
            if row > 1 and column > 1 and a == right[column - 2] and left[row - 2] == b:
                cost = min(cost, before[column - 2] + 1)
            current[column] = cost
            smallest = min(smallest, cost)
        if smallest >= bound:
            return bound
        before, previous = previous, current
    return min(previous[-1], bound)


def _without_ends(left: str, right: str) -> tuple[str, str]:
    """Two names without what they start and end with in common."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return left[start : len(left) - end], right[start : len(right) - end]
