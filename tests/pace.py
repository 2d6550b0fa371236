"""How slow this machine is now, so that a limit on processor time means the same everywhere."""

from __future__ import annotations

import time

#: The processor time of one round on the machine that the limits were written for.
_NOMINAL_SECONDS = 0.0075
_ROUNDS = 5


def slowness() -> float:
    """How many times longer than there a fixed piece of Python takes here; never below 1.

    The best of a few rounds, because a limit must not grow with a hiccup.
    """
    return max(1.0, min(_round() for _ in range(_ROUNDS)) / _NOMINAL_SECONDS)


def _round() -> float:
    start = time.thread_time()
    words: dict[str, int] = {}
    for number in range(30_000):
        word = str(number % 997)
        words[word] = words.get(word, 0) + number
    return time.thread_time() - start
