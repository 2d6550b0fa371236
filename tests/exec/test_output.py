"""Output is cut into lines and kept in bounded memory."""

from __future__ import annotations

import pytest

from afl.exec.capture import Capture
from afl.exec.lines import LineSplitter
from afl.exec.model import Captured, exit_of


def split(parts: list[bytes], longest: int = 8) -> list[tuple[bytes, bool]]:
    splitter = LineSplitter(longest)
    found = [line for part in parts for line in splitter.feed(part)]
    return [*found, *splitter.close()]


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([], []),
        ([b"a\nb\n"], [(b"a", False), (b"b", False)]),
        ([b"a", b"b\nc"], [(b"ab", False), (b"c", False)]),
        ([b"\n\n"], [(b"", False), (b"", False)]),
        ([b"a\r\n"], [(b"a\r", False)]),
        ([b"12345678\n"], [(b"12345678", False)]),
        ([b"12345678", b"\n"], [(b"12345678", False)]),
        ([b"123456789\n"], [(b"12345678", True), (b"9", False)]),
        ([b"1234", b"5678", b"9"], [(b"12345678", True), (b"9", False)]),
        ([b"\xff\xfe\n\x00"], [(b"\xff\xfe", False), (b"\x00", False)]),
    ],
)
def test_lines(parts: list[bytes], lines: list[tuple[bytes, bool]]) -> None:
    assert split(parts) == lines


def test_however_it_is_read_the_lines_are_the_same() -> None:
    data = b"one\n\ntwo two two two\nthree" * 20
    whole = split([data])
    for size in (1, 2, 3, 7, 50):
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        assert split(parts) == whole
    assert b"".join(line if partial else line + b"\n" for line, partial in whole) == data + b"\n"


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_a_capture_keeps_the_beginning_and_the_end(size: int) -> None:
    data = bytes(range(256)) * 4
    capture = Capture(100)
    for at in range(0, len(data), size):
        capture.feed(data[at : at + size])
    assert capture.captured() == Captured(data[:50], data[-50:], len(data) - 100)


def test_what_fits_is_kept_whole() -> None:
    capture = Capture(10)
    capture.feed(b"0123456789")
    assert capture.captured().text == "0123456789"
    assert capture.captured().cut_bytes == 0


def test_text_says_what_was_cut_and_holds_nothing_that_a_store_refuses() -> None:
    assert (
        Captured(b"a\xff", b"\0b", 7).text
        == "a\N{REPLACEMENT CHARACTER}\n... 7 bytes cut ...\n\N{REPLACEMENT CHARACTER}b"
    )
    assert Captured(b"a\n\n b\nc", b"").last_lines(2) == [" b", "c"]


@pytest.mark.parametrize(
    ("status", "end"),
    [(0, (0, None)), (3 << 8, (3, None)), (9, (137, "SIGKILL")), (0x8F, (143, "SIGTERM"))],
)
def test_how_a_process_ended(status: int, end: tuple[int, str | None]) -> None:
    assert exit_of(status) == end
