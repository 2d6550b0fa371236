"""Pictures are made small without being changed to the eye."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.ui.png import quantise

WIDTH, HEIGHT = 40, 30


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png(rows: list[bytes], colour: int) -> bytes:
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, colour, 0, 0, 0)
    packed = zlib.compress(b"".join(rows))
    parts = (_chunk(b"IHDR", head), _chunk(b"IDAT", packed), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _pixels(data: bytes) -> list[tuple[int, int, int]]:
    """The colours of a picture with a palette, row by row."""
    at, palette, packed = 8, b"", b""
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        palette = body if kind == b"PLTE" else palette
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    assert len(palette) <= 3 * 256
    raw = zlib.decompress(packed)
    numbers = [n for y in range(HEIGHT) for n in raw[y * (WIDTH + 1) + 1 : (y + 1) * (WIDTH + 1)]]
    return [(palette[3 * n], palette[3 * n + 1], palette[3 * n + 2]) for n in numbers]


@pytest.mark.parametrize("kind", range(5))
def test_few_colours_stay_as_they_are(tmp_path: Path, kind: int) -> None:
    """Whatever way the rows were made easier to compress."""
    flat = [[(20 * (x % 5), 7 * (y % 9), 200) for x in range(WIDTH)] for y in range(HEIGHT)]
    rows, above = [], bytes(WIDTH * 3)
    for line in flat:
        row = bytes(part for pixel in line for part in pixel)
        rows.append(bytes([kind]) + _filtered(kind, row, above))
        above = row
    path = tmp_path / "few.png"
    path.write_bytes(_png(rows, 2))
    quantise(path)
    assert _pixels(path.read_bytes()) == [pixel for line in flat for pixel in line]


def test_of_many_colours_the_rare_become_near_ones(tmp_path: Path) -> None:
    flat = [(x * 6, y * 8, (x + y) % 3) for y in range(HEIGHT) for x in range(WIDTH)]
    rows = [
        b"\0" + b"".join(bytes((*flat[y * WIDTH + x], 255)) for x in range(WIDTH))
        for y in range(HEIGHT)
    ]
    path = tmp_path / "many.png"
    path.write_bytes(_png(rows, 6))
    quantise(path)
    seen = _pixels(path.read_bytes())
    assert len(set(flat)) > 256 >= len(set(seen))
    assert len(seen) == len(flat)
    assert set(seen) <= set(flat)


def test_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.png"
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match="no PNG"):
        quantise(path)


def _filtered(kind: int, row: bytes, above: bytes) -> bytes:
    made = bytearray()
    for at, value in enumerate(row):
        left = row[at - 3] if at >= 3 else 0
        corner = above[at - 3] if at >= 3 else 0
        guesses = [(abs(above[at] - corner), left), (abs(left - corner), above[at])]
        guesses.append((abs(left + above[at] - 2 * corner), corner))
        paeth = min(guesses, key=lambda each: each[0])[1]
        guess = (0, left, above[at], (left + above[at]) // 2, paeth)[kind]
        made.append((value - guess) & 0xFF)
    return bytes(made)
