"""Makes pictures of pages small: a palette of at most 256 colours, without anything but Python.

Pages have few colours beside the shades of their letters, so those that are there most often are
kept, and each other one becomes the nearest of them.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = 256
#: The bytes of a pixel, by the kind of colour.
_DEPTHS = {2: 3, 6: 4}

Colour = tuple[int, int, int]


def quantise(path: Path) -> None:
    """Writes a picture of 8 bits for each colour anew, with a palette."""
    width, height, depth, rows = _read(path.read_bytes())
    pixels = [
        [(row[at], row[at + 1], row[at + 2]) for at in range(0, width * depth, depth)]
        for row in rows
    ]
    palette = _palette(Counter(pixel for row in pixels for pixel in row))
    path.write_bytes(_written(width, height, pixels, palette))


def _palette(counts: Counter[Colour]) -> dict[Colour, int]:
    """The number that each colour of a picture becomes; the kept ones come first."""
    kept = [colour for colour, _ in counts.most_common(_COLOURS)]
    numbers = {colour: number for number, colour in enumerate(kept)}
    for colour in counts:
        if colour not in numbers:
            numbers[colour] = min(range(len(kept)), key=lambda at: _distance(kept[at], colour))
    return numbers


def _distance(one: Colour, other: Colour) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _read(data: bytes) -> tuple[int, int, int, list[bytearray]]:
    """Width, height, bytes of a pixel and the rows of a picture."""
    packed = bytearray()
    width = height = depth = 0
    for kind, body in _chunks(data):
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            if bits != 8 or colour not in _DEPTHS or interlace:
                raise ValueError("only pictures of 8 bits for each colour can be read")
            depth = _DEPTHS[colour]
        elif kind == b"IDAT":
            packed += body
    raw = zlib.decompress(packed)
    rows: list[bytearray] = []
    above = bytearray(width * depth)
    size = width * depth + 1
    for start in range(0, len(raw), size):
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + size]), above, depth)
        rows.append(above)
    return width, height, depth, rows


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not data.startswith(_SIGNATURE):
        raise ValueError("this is no PNG")
    at = len(_SIGNATURE)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def _unfiltered(kind: int, row: bytearray, above: bytearray, depth: int) -> bytearray:
    """A row as it was before it was made easier to compress."""
    for at in range(len(row) if kind else 0):
        left = row[at - depth] if at >= depth else 0
        corner = above[at - depth] if at >= depth else 0
        guess = (left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))
        row[at] = (row[at] + guess[kind - 1]) & 0xFF
    return row


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    nearest = min(abs(guess - left), abs(guess - above), abs(guess - corner))
    if nearest == abs(guess - left):
        return left
    return above if nearest == abs(guess - above) else corner


def _written(
    width: int, height: int, pixels: list[list[Colour]], numbers: dict[Colour, int]
) -> bytes:
    kept = list(numbers)[: max(numbers.values()) + 1]
    rows = b"".join(b"\0" + bytes(numbers[pixel] for pixel in row) for row in pixels)
    return _SIGNATURE + b"".join(
        _chunk(kind, body)
        for kind, body in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            (b"PLTE", b"".join(bytes(colour) for colour in kept)),
            (b"IDAT", zlib.compress(rows, 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
