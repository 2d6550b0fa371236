from __future__ import annotations

import pytest

from afl.base import errors
from afl.base.errors import AflError


def _all_errors() -> list[type[AflError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, AflError)]


@pytest.mark.parametrize("kind", _all_errors())
def test_the_docstring_is_the_default_message(kind: type[AflError]) -> None:
    error = kind()
    assert error.message == str(error) == kind.__doc__


def test_a_given_message_wins() -> None:
    assert AflError("The disk is full.").message == "The disk is full."


def test_a_long_docstring_loses_its_indentation() -> None:
    class LongError(AflError):
        """First line.

        Second paragraph.
        """

    assert LongError().message == "First line.\n\nSecond paragraph."


def test_every_code_is_used_once() -> None:
    codes = [kind.code for kind in _all_errors()]
    assert len(set(codes)) == len(codes)


def test_the_tree_at_the_top_of_the_module_is_the_real_one() -> None:
    drawn = {
        line.split()[1 if line.lstrip()[0] in "├└" else 0]
        for line in (errors.__doc__ or "").split("\n\n")[1].splitlines()
    }
    assert drawn == {kind.__name__ for kind in _all_errors()}
