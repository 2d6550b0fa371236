"""The shapes that a layout is made of. All lengths are pixels; y grows downwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """The place of an item; x and y are its top left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Lane:
    """A straight part of an arrow, from top to bottom."""

    x: float
    top: float
    bottom: float

    def moved(self, x: float, y: float) -> Lane:
        """The lane in coordinates that start elsewhere."""
        return Lane(self.x + x, self.top + y, self.bottom + y)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is. A way is the lanes of the edge with that index; bends join them."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    ways: Mapping[int, tuple[Lane, ...]]


@dataclass(slots=True)
class Slot:
    """What takes room in a layer: an item, or the lane of a passing edge. `x` is its middle."""

    id: str
    layer: int
    width: float
    height: float = 0.0
    is_lane: bool = False
    x: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """Two slots of neighbouring layers that an edge joins; ends are offsets from their middles."""

    upper: str
    lower: str
    upper_end: float
    lower_end: float
