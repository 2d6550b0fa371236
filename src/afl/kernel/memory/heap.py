"""A heap that forgets."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
#: Keys must be comparable with each other.
Key = TypeVar("Key", bound=Any)

_SLACK = 64


class KeyedHeap(Generic[Item, Key]):
    """Items in the order of their keys, each of which can be taken out wherever it stands.

    What was taken out stays in the heap until it comes to the top or there is too much of it, so
    that each step costs O(log n) on average and memory follows what is really there.
    """

    __slots__ = ("_heap", "_keys")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, Item]] = []
        self._keys: dict[Item, Key] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Item]:
        """The items, in no order."""
        return iter(self._keys)

    def add(self, item: Item, key: Key) -> None:
        self._keys[item] = key
        heapq.heappush(self._heap, (key, item))

    def discard(self, item: Item) -> None:
        if self._keys.pop(item, None) is not None and len(self._heap) > 2 * len(self) + _SLACK:
            self._heap = [(key, kept) for kept, key in self._keys.items()]
            heapq.heapify(self._heap)

    def first(self) -> tuple[Key, Item] | None:
        """The item with the smallest key, and its key."""
        heap, keys = self._heap, self._keys
        while heap:
            key, item = heap[0]
            if keys.get(item) == key:
                return heap[0]
            heapq.heappop(heap)
        return None

    def up_to(self, key: Key, limit: int) -> list[Item]:
        """The items with keys up to this one, in order, at most so many. They stay in the heap."""
        found: list[tuple[Key, Item]] = []
        while len(found) < limit and (first := self.first()) is not None and first[0] <= key:
            found.append(first)
            del self._keys[first[1]]
        for found_key, item in found:
            self.add(item, found_key)
        return [item for _, item in found]
