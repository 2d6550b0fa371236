"""One cluster: its layers, and the lanes of every edge that touches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from afl.cli.graph.coordinates import arrange
from afl.cli.graph.geometry import Box, Lane, Link, Slot
from afl.cli.graph.layers import layers
from afl.cli.graph.metrics import LANE_WIDTH, LAYER_GAP, PADDING, TITLE_HEIGHT, title_width
from afl.cli.graph.model import Cluster

#: How far apart the ends of edges are that meet one border, and how much of it they may take.
_PORT_GAP = 28.0
_PORT_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Traffic:
    """The edges of a cluster by index: between its items, into one of them, and out of one."""

    inner: list[tuple[int, str, str]] = field(default_factory=list)
    entering: list[tuple[int, str]] = field(default_factory=list)
    leaving: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Inside:
    """A cluster that has been laid out, in coordinates of its own.

    The ports are where edges that go on outside cross its upper and lower border.
    """

    width: float = 0.0
    height: float = 0.0
    boxes: dict[str, Box] = field(default_factory=dict)
    lanes: dict[int, list[Lane]] = field(default_factory=dict)
    top_ports: dict[int, float] = field(default_factory=dict)
    bottom_ports: dict[int, float] = field(default_factory=dict)

    def port(self, edge: int, *, top: bool) -> float | None:
        """Where an edge crosses the border, from the middle; None if it ends there."""
        x = (self.top_ports if top else self.bottom_ports).get(edge)
        return None if x is None else x - self.width / 2


@dataclass(frozen=True, slots=True)
class _Chain:
    """The slots that an edge goes through in this cluster."""

    edge: int
    slots: list[Slot]
    enters: bool = False
    leaves: bool = False

    def ends(self) -> Iterator[tuple[Slot, Slot, bool]]:
        """The items that it joins, each with the slot next to it and whether it meets its top."""
        if not self.enters:
            yield self.slots[0], self.slots[min(1, len(self.slots) - 1)], False
        if not self.leaves:
            yield self.slots[-1], self.slots[max(0, len(self.slots) - 2)], True


def lay_out_level(
    cluster: Cluster,
    traffic: Traffic,
    sizes: Mapping[str, tuple[float, float]],
    insides: Mapping[str, Inside],
) -> Inside:
    """Lay out a cluster whose items have these sizes; `insides` are its clusters."""
    return _Level(cluster, traffic, sizes, insides).lay_out()


class _Level:
    def __init__(
        self,
        cluster: Cluster,
        traffic: Traffic,
        sizes: Mapping[str, tuple[float, float]],
        insides: Mapping[str, Inside],
    ) -> None:
        self._cluster = cluster
        self._insides = insides
        ids = [item.id for item in cluster.items]
        depth = layers(ids, [(source, target) for _, source, target in traffic.inner])
        self._slots = {id: Slot(id, depth[id], *sizes[id]) for id in ids}
        self._rows: list[list[Slot]] = [[] for _ in range(max(depth.values()) + 1)]
        for slot in self._slots.values():
            self._rows[slot.layer].append(slot)
        self._chains = [*self._make_chains(traffic)]

    def lay_out(self) -> Inside:
        """Order and places of the slots, then boxes and lanes."""
        links = [link for chain in self._chains for link in self._links(chain)]
        self._rows = arrange(self._rows, links)
        every = [slot for row in self._rows for slot in row]
        left = min(slot.x - slot.width / 2 for slot in every)
        right = max(slot.x + slot.width / 2 for slot in every)
        width = max(right - left, title_width(self._cluster)) + 2 * PADDING
        for slot in every:
            slot.x += (width - right - left) / 2
        tops, bottoms = self._stack()
        inside = Inside(width, bottoms[-1] + PADDING)
        for id, slot in self._slots.items():
            x = slot.x - slot.width / 2
            inside.boxes[id] = Box(x, tops[slot.layer], slot.width, slot.height)
        self._route(inside, tops, bottoms)
        return inside

    def _make_chains(self, traffic: Traffic) -> Iterator[_Chain]:
        slots = self._slots
        for edge, source, target in traffic.inner:
            between = self._lanes(edge, slots[source].layer + 1, slots[target].layer)
            yield _Chain(edge, [slots[source], *between, slots[target]])
        for edge, target in traffic.entering:
            before = self._lanes(edge, 0, slots[target].layer)
            yield _Chain(edge, [*before, slots[target]], enters=True)
        for edge, source in traffic.leaving:
            after = self._lanes(edge, slots[source].layer + 1, len(self._rows))
            yield _Chain(edge, [slots[source], *after], leaves=True)

    def _lanes(self, edge: int, start: int, end: int) -> list[Slot]:
        made = [
            Slot(f"lane {edge} {layer}", layer, LANE_WIDTH, is_lane=True)
            for layer in range(start, end)
        ]
        for slot in made:
            self._rows[slot.layer].append(slot)
        return made

    def _links(self, chain: _Chain) -> Iterator[Link]:
        for upper, lower in zip(chain.slots, chain.slots[1:], strict=False):
            yield Link(
                upper.id,
                lower.id,
                self._port(upper, chain.edge, top=False) or 0.0,
                self._port(lower, chain.edge, top=True) or 0.0,
            )

    def _port(self, slot: Slot, edge: int, *, top: bool) -> float | None:
        inside = self._insides.get(slot.id)
        return None if inside is None else inside.port(edge, top=top)

    def _stack(self) -> tuple[list[float], list[float]]:
        """Top and bottom of each layer."""
        tops, bottoms = [], []
        position = float(TITLE_HEIGHT + PADDING)
        for row in self._rows:
            tops.append(position)
            position += max(slot.height for slot in row)
            bottoms.append(position)
            position += LAYER_GAP
        return tops, bottoms

    def _route(self, inside: Inside, tops: list[float], bottoms: list[float]) -> None:
        ports = self._spread_ports()
        for chain in self._chains:
            edge = chain.edge
            lanes = []
            for position, slot in enumerate(chain.slots):
                top, bottom = tops[slot.layer], bottoms[slot.layer]
                if slot.is_lane:
                    lanes.append(Lane(slot.x, top, bottom))
                elif position == 0 and not chain.enters:
                    # past its lower neighbours of the same layer, then it may bend
                    lanes.append(Lane(ports[edge, slot.id, False], top + slot.height, bottom))
                else:
                    lanes.append(Lane(ports[edge, slot.id, True], top, top))
            if chain.enters:
                inside.top_ports[edge] = lanes[0].x
                lanes.insert(0, Lane(lanes[0].x, 0.0, tops[0]))
            if chain.leaves:
                inside.bottom_ports[edge] = lanes[-1].x
                lanes.append(Lane(lanes[-1].x, bottoms[-1], inside.height))
            inside.lanes[edge] = lanes

    def _spread_ports(self) -> dict[tuple[int, str, bool], float]:
        """Where each edge meets its items: side by side, in the order of the other ends."""
        ports: dict[tuple[int, str, bool], float] = {}
        meeting: dict[tuple[str, bool], list[tuple[float, int]]] = {}
        for chain in self._chains:
            for slot, near, top in chain.ends():
                fixed = self._port(slot, chain.edge, top=top)
                if fixed is not None:
                    ports[chain.edge, slot.id, top] = slot.x + fixed
                else:
                    meeting.setdefault((slot.id, top), []).append((near.x, chain.edge))
        for (id, top), ends in meeting.items():
            slot = self._slots[id]
            room = min(slot.width * _PORT_SHARE, _PORT_GAP * len(ends))
            for position, (_, edge) in enumerate(sorted(ends)):
                share = (position + 0.5) / len(ends) - 0.5
                ports[edge, id, top] = slot.x + share * room
        return ports
