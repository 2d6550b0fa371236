"""The order of the slots in each layer, and their places from left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.cli.graph.geometry import Link, Slot
from afl.cli.graph.metrics import BOX_GAP, LANE_GAP

_SWEEPS = 8

#: A slot's id to its links, each with the slot at the other end and the offsets of both ends.
_Joined = Mapping[str, Sequence[tuple[Slot, float, float]]]


def arrange(rows: list[list[Slot]], links: Sequence[Link]) -> list[list[Slot]]:
    """Sort the slots of each layer so that few links cross, and set the places of all slots."""
    slots = {slot.id: slot for row in rows for slot in row}
    above: dict[str, list[tuple[Slot, float, float]]] = {id: [] for id in slots}
    below: dict[str, list[tuple[Slot, float, float]]] = {id: [] for id in slots}
    for link in links:
        above[link.lower].append((slots[link.upper], link.upper_end, link.lower_end))
        below[link.upper].append((slots[link.lower], link.lower_end, link.upper_end))
    rows = _order(rows, links, above, below)
    _set_places(rows, above, below)
    return rows


def _order(
    rows: list[list[Slot]], links: Sequence[Link], above: _Joined, below: _Joined
) -> list[list[Slot]]:
    """Barycentre sweeps down and up; the first order with the fewest crossings wins."""
    best = [list(row) for row in rows]
    fewest = _crossings(best, links)
    current = best
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        current = _sweep(current, above if down else below, down=down)
        crossings = _crossings(current, links)
        if crossings < fewest:
            best, fewest = [list(row) for row in current], crossings
    return best


def _sweep(rows: list[list[Slot]], joined: _Joined, *, down: bool) -> list[list[Slot]]:
    result = [list(row) for row in rows]
    place = {slot.id: float(index) for row in rows for index, slot in enumerate(row)}
    for number in range(len(rows)) if down else reversed(range(len(rows))):
        row = result[number]

        def middle(slot: Slot) -> float:
            # a port of a wide box counts by where it is, not by where the box is
            ends = [
                place[other.id] + other_end / max(other.width, 1.0)
                for other, other_end, _ in joined[slot.id]
            ]
            return sum(ends) / len(ends) if ends else place[slot.id]

        row.sort(key=middle)
        place.update({slot.id: float(index) for index, slot in enumerate(row)})
    return result


def _crossings(rows: list[list[Slot]], links: Sequence[Link]) -> int:
    place = {slot.id: index for row in rows for index, slot in enumerate(row)}
    layer = {slot.id: slot.layer for row in rows for slot in row}
    by_layer: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = {}
    for link in links:
        ends = (place[link.upper], link.upper_end), (place[link.lower], link.lower_end)
        by_layer.setdefault(layer[link.upper], []).append(ends)
    total = 0
    for ends_of_layer in by_layer.values():
        for index, (upper, lower) in enumerate(ends_of_layer):
            for other_upper, other_lower in ends_of_layer[index + 1 :]:
                total += (upper < other_upper and lower > other_lower) or (
                    upper > other_upper and lower < other_lower
                )
    return total


def _set_places(rows: list[list[Slot]], above: _Joined, below: _Joined) -> None:
    for row in rows:
        _settle(row, [0.0] * len(row))
    for sweep in range(2 * _SWEEPS):
        joined = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(row, [_wanted(slot, joined[slot.id]) for slot in row])
    for row in rows:
        _settle(row, [_wanted(slot, [*above[slot.id], *below[slot.id]]) for slot in row])


def _wanted(slot: Slot, joined: Sequence[tuple[Slot, float, float]]) -> float:
    """The place where the links of a slot would be as steep as they can."""
    if not joined:
        return slot.x
    return sum(other.x + end - own for other, end, own in joined) / len(joined)


def _settle(row: list[Slot], wanted: Sequence[float]) -> None:
    """Put the slots of a layer as near as possible to where they want to be, in order and apart.

    The squares of the distances are the least they can be: slots that would overlap are joined to
    a group, which takes the mean of what its members want.
    """
    offsets = []
    offset = 0.0
    for index, slot in enumerate(row):
        if index:
            before = row[index - 1]
            gap = LANE_GAP if before.is_lane and slot.is_lane else BOX_GAP
            offset += (before.width + slot.width) / 2 + gap
        offsets.append(offset)
    groups: list[tuple[float, int]] = []
    for want, start in zip(wanted, offsets, strict=True):
        total, size = want - start, 1
        while groups and groups[-1][0] / groups[-1][1] >= total / size:
            other_total, other_size = groups.pop()
            total, size = total + other_total, size + other_size
        groups.append((total, size))
    index = 0
    for total, size in groups:
        for slot in row[index : index + size]:
            slot.x = total / size + offsets[index]
            index += 1
