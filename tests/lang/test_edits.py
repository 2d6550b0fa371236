from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afl.lang.diagnostics.edits import apply_edits, apply_safe, split_overlaps
from afl.lang.diagnostics.model import Applicability, Diagnostic, Edit, Label, Suggestion
from afl.lang.diagnostics.places import bounds
from afl.lang.source import Source
from tests.lang.diagnostic_samples import error

_SOURCE = Source("flow.afl", "0123456789")


def _edit(start: int, end: int, replacement: str, source: Source = _SOURCE) -> Edit:
    return Edit(source.span(start, end), replacement)


def _offer(*edits: Edit, applicability: Applicability = Applicability.SAFE) -> Diagnostic:
    suggestion = Suggestion("change it", edits, applicability)
    return error(Label(_SOURCE.span(0, 0)), suggestions=(suggestion,))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], "0123456789"),
        ([(2, 4, "x")], "01x456789"),
        ([(8, 9, "b"), (2, 2, "a")], "01a234567b9"),
        ([(2, 4, ""), (4, 6, "x")], "01x6789"),
        ([(2, 2, "<"), (2, 4, "x"), (4, 4, ">")], "01<x>456789"),
        ([(10, 10, "x")], "0123456789x"),
        ([(10, 99, "x")], "0123456789x"),
    ],
)
def test_apply(edits: list[tuple[int, int, str]], expected: str) -> None:
    assert apply_edits(_SOURCE.text, [_edit(*edit) for edit in edits]) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, 5, "x"), (4, 7, "y")),
        ((4, 7, "x"), (2, 5, "y")),
        ((2, 9, "x"), (4, 5, "y")),
        ((4, 5, "x"), (2, 9, "y")),
        ((2, 9, "x"), (4, 4, "y")),
        ((4, 4, "x"), (2, 9, "y")),
        ((2, 5, "x"), (2, 5, "x")),
        ((4, 4, "x"), (4, 4, "y")),
    ],
)
def test_of_two_that_overlap_the_first_wins(
    first: tuple[int, int, str], second: tuple[int, int, str]
) -> None:
    one, two = _edit(*first), _edit(*second)
    assert split_overlaps([one, two]) == ([one], [two])
    assert apply_edits(_SOURCE.text, [one, two]) == apply_edits(_SOURCE.text, [one])


def test_safe_suggestions_are_applied_and_counted() -> None:
    found = [_offer(_edit(0, 1, "a")), _offer(_edit(9, 10, "b"), _edit(3, 3, "c"))]
    assert apply_safe(_SOURCE, found) == ("a12c345678b", 2)


def test_only_safe_suggestions_are_applied() -> None:
    found = [_offer(_edit(0, 1, "a"), applicability=Applicability.MAYBE), _offer()]
    assert apply_safe(_SOURCE, found) == (_SOURCE.text, 0)


def test_a_suggestion_is_applied_as_a_whole_or_not_at_all() -> None:
    found = [_offer(_edit(0, 2, "a")), _offer(_edit(1, 3, "b"), _edit(8, 9, "c"))]
    assert apply_safe(_SOURCE, found) == ("a23456789", 1)


def test_a_suggestion_that_overlaps_itself_is_left_out() -> None:
    assert apply_safe(_SOURCE, [_offer(_edit(0, 2, "a"), _edit(1, 3, "b"))]) == (_SOURCE.text, 0)


def test_suggestions_are_alternatives() -> None:
    first, second = (Suggestion("", (_edit(n, n, "x"),), Applicability.SAFE) for n in (1, 2))
    found = error(Label(_SOURCE.span(0, 0)), suggestions=(first, second))
    assert apply_safe(_SOURCE, [found]) == ("0x123456789", 1)


def test_other_files_are_left_alone() -> None:
    twin = Source("other.afl", _SOURCE.text)
    found = [_offer(_edit(0, 1, "a", twin)), _offer(_edit(1, 2, "b"), _edit(1, 2, "b", twin))]
    assert apply_safe(_SOURCE, found) == (_SOURCE.text, 0)


_EDITS = st.lists(
    st.builds(_edit, st.integers(-2, 12), st.integers(-2, 12), st.sampled_from(["", "x", "yy"]))
)


@given(_EDITS)
def test_kept_edits_never_overlap(edits: list[Edit]) -> None:
    kept, ignored = split_overlaps(edits)
    assert len(kept) + len(ignored) == len(edits)
    touched = [offset for edit in kept for offset in range(*bounds(edit.span))]
    assert len(touched) == len(set(touched))
    result = apply_edits(_SOURCE.text, edits)
    added = sum(len(edit.replacement) for edit in kept)
    assert len(result) == len(_SOURCE.text) - len(touched) + added


@given(st.lists(st.lists(_EDITS.filter(bool).map(lambda edits: edits[0]), max_size=3)))
def test_whatever_is_offered_safe_fixes_apply(offers: list[list[Edit]]) -> None:
    text, count = apply_safe(_SOURCE, [_offer(*edits) for edits in offers])
    assert count <= sum(bool(edits) for edits in offers)
    assert count or text == _SOURCE.text
