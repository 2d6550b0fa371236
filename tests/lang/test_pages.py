"""Every code has a page; its wrong examples have that mistake only, its right ones have none."""

from __future__ import annotations

import pytest

from afl.lang.diagnostics.codes import CODES
from afl.lang.diagnostics.page import Page, parse_page
from tests.lang.code_pages import BUILT, FOLDER, diagnose, findings, message_of, path_of


def _page(code: str) -> Page:
    return parse_page(path_of(code).read_text(encoding="utf-8"))


def test_every_page_belongs_to_a_code() -> None:
    pages = {path.stem for path in FOLDER.iterdir()}
    assert pages - set(CODES) == set()


@pytest.mark.parametrize("code", CODES)
def test_the_page_exists_under_its_title(code: str) -> None:
    page = _page(code)
    assert (page.code, page.title) == (code, CODES[code].title)
    assert bool(page.wrong) != (code in BUILT), "a wrong program is either shown or built"


@pytest.mark.parametrize("code", CODES)
def test_wrong_programs_have_this_mistake_and_no_other(code: str) -> None:
    for found in findings(_page(code)):
        assert {diagnostic.code for diagnostic in found} == {code}


@pytest.mark.parametrize("code", CODES)
def test_right_programs_have_no_mistake(code: str) -> None:
    for program in _page(code).right:
        assert diagnose(program) == []


@pytest.mark.parametrize("code", CODES)
def test_the_message_is_the_real_one(code: str) -> None:
    page = _page(code)
    assert page.message == message_of(page), "`python -m tests.lang.write_messages` writes it anew"
