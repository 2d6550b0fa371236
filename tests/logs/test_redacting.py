"""Secrets are taken out of lines, also where a line was cut in the middle of one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afl.logs.redacting import MARK, LineRedactor, Redactor

SECRET = b"hunter2-and-more"


def test_a_named_value_is_never_shown() -> None:
    redactor = Redactor(["hunter2-and-more", "short", "hunter2-and-more-still"])
    assert redactor.redacted(b"a hunter2-and-more b") == b"a " + MARK + b" b"
    # the longer one first, or its end would be left
    assert redactor.redacted(b"hunter2-and-more-still") == MARK
    # a word of five letters is in every other line
    assert redactor.redacted(b"in short") == b"in short"


def test_every_line_of_a_value_with_lines_is_a_secret() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n"
    redactor = Redactor([key], forms=False)
    assert [redactor.redacted(line.encode()) for line in key.splitlines()] == [MARK] * 4


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"key sk-ant-abcdefghijklmnop0123 used", b"key sk-[redacted] used"),
        (b"ghp_abcdefghijklmnopqrstuvwxyz012345", b"ghp_[redacted]"),
        (b"Authorization: Bearer abc.def.ghi", b"Authorization: Bearer [redacted]"),
        (b"postgresql://afl:secret@host/db", b"postgresql://afl:[redacted]@host/db"),
        (b"https://example.org/a:b@c", b"https://example.org/a:b@c"),
        (b"a task-list of high things", b"a task-list of high things"),
    ],
)
def test_what_has_the_form_of_a_secret_is_not_shown(line: bytes, shown: bytes) -> None:
    assert Redactor().redacted(line) == shown


def split(text: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"ab", b"a", b"b", b"x", b"abab", b"ababab"]), max_size=12),
    st.lists(st.integers(0, 40), max_size=5),
)
def test_a_secret_that_is_cut_is_not_shown(words: list[bytes], cuts: list[int]) -> None:
    secrets = ["ababab", "bababax"]
    redactor = LineRedactor(Redactor(secrets, forms=False))
    *parts, last = split(b"".join(words), cuts)
    shown = b"".join(redactor.redacted(part, partial=True) for part in parts)
    shown += redactor.redacted(last, partial=False)
    assert not redactor.holds
    assert all(secret.encode() not in shown for secret in secrets)


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_lines_without_secrets_come_out_as_they_went_in(cuts: list[int]) -> None:
    redactor = LineRedactor(Redactor([SECRET.decode()]))
    text = b"nothing to see here, hunter2-and-less, and then hunter2-and"
    *parts, last = split(text, cuts)
    shown = [redactor.redacted(part, partial=True) for part in parts]
    assert b"".join([*shown, redactor.redacted(last, partial=False)]) == text


def test_a_secret_of_one_letter_does_not_make_memory_grow() -> None:
    redactor = LineRedactor(Redactor(["aaaaaaaa"], forms=False))
    out = sum(len(redactor.redacted(b"a" * 60_000, partial=True)) for _ in range(20))
    assert out > 0
