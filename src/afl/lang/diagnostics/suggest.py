"""Did you mean: the candidate nearest to a misspelt name."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The best candidate that a person may have meant, or None when nothing is close enough."""
    best: str | None = None
    best_score = _tolerance(name) + 1
    for candidate in sorted(candidates):
        score = _distance(name.lower(), candidate.lower(), best_score)
        if score < best_score:
            best, best_score = candidate, score
    return best


def _tolerance(name: str) -> int:
    # short names are near to everything; they are only offered in another case
    return 0 if len(name) <= 2 else 1 if len(name) <= 4 else 2 if len(name) <= 8 else 3


def _distance(left: str, right: str, bound: int) -> int:
    """Damerau-Levenshtein distance (adjacent swaps count one), cut off at `bound`."""
    if abs(len(left) - len(right)) >= bound:
        return bound
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for row, a in enumerate(left, 1):
        current = [row]
        for column, b in enumerate(right, 1):
            cost = min(
                previous[column] + 1,
                current[column - 1] + 1,
                previous[column - 1] + (a != b),
            )
            if row > 1 and column > 1 and a == right[column - 2] and left[row - 2] == b:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) >= bound:
            return bound
        before, previous = previous, current
    return previous[-1]
