"""`afl doc`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afl.cli import exit_codes
from afl.cli.catalogue.markdown import to_pages
from afl.cli.catalogue.model import build_catalogue
from afl.ir.doc_comments import read_doc
from afl.lang.api import compile_sources
from tests.architecture.markdown import links
from tests.cli.programs import EVERYTHING, GOOD, UNKNOWN_TYPE
from tests.cli.runner import run

TWO_NAMESPACES = """\
/** Things for sale. */
namespace stock {
  /** A thing. */
  schema Thing { name: String, tags: {String: [String?]} = #{}, next: Thing? = null }
  enum Colour { red, green }
}

namespace shop {
  event facet Find(colour: stock.Colour = red, words: [String] = ["a|b", "c`d"])
    => (thing: stock.Thing?, all: [stock.Thing])
}

/** More of the shop. */
namespace shop {
  facet Box(thing: stock.Thing)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flow.afl"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


def _pages(text: str) -> dict[str, str]:
    compilation = compile_sources([("flow.afl", text)])
    assert compilation.program is not None
    return to_pages(build_catalogue(compilation.program, compilation.files))


def test_a_facet() -> None:
    page = run("doc", "-", input=GOOD).stdout
    start = page.index('<a id="demo.Greet"></a>')
    assert page[start:] == (
        '<a id="demo.Greet"></a>\n'
        "\n"
        "#### Greet\n"
        "\n"
        "Makes a greeting.\n"
        "\n"
        "```afl\n"
        "event facet Greet(name: String, times: Int = 1) => (text: String)"
        " with Retry(max_attempts = 2)\n"
        "```\n"
        "\n"
        "| parameter | type | default | meaning |\n"
        "|---|---|---|---|\n"
        "| `name` | String |  | who is greeted |\n"
        "| `times` | Int | `1` |  |\n"
        "\n"
        "| return | type | meaning |\n"
        "|---|---|---|\n"
        "| `text` | String | the greeting |\n"
        "\n"
        "Policies: `Retry(max_attempts = 2)`.\n"
        "\n"
        "Used by [`Hello`](#demo.Hello).\n"
        "\n"
        "Declared in `<stdin>:8`.\n"
    )


def test_the_index_says_what_a_namespace_is_for() -> None:
    page = run("doc", "-", input=GOOD).stdout
    assert page.startswith(
        "# Catalogue\n"
        "\n"
        "| namespace | what it is for |\n"
        "|---|---|\n"
        "| [demo](#demo) | Says hello. |\n"
    )


def test_every_kind_has_its_section(file: Path) -> None:
    page = run("doc", file).stdout
    titles = [line[4:] for line in page.splitlines() if line.startswith("### ")]
    assert titles == ["Workflows", "Event facets", "Facets", "Schemas", "Enums", "Schedules"]
    assert "Served by a prompt." in page
    assert "Its tools are [`Load`](#shop.Load)." in page
    assert "Used by [`nightly`](#shop.nightly), [`often`](#shop.often)." in page
    assert 'schedule nightly = Order(id = "1") cron "0 2 * * *" zone "Europe/Berlin"' in page
    assert 'schedule often = Order(id = "2") every 15m' in page
    assert "with Retry(delay = 1m30s)" in page


def test_pages_link_to_each_other() -> None:
    pages = _pages(TWO_NAMESPACES)
    assert list(pages) == ["index.md", "shop.md", "stock.md"]
    shop = pages["shop.md"]
    assert "| `colour` | [`stock.Colour`](stock.md#stock.Colour) | `red` |" in shop
    assert "| `thing` | [`stock.Thing`](stock.md#stock.Thing)? |" in shop
    assert "| `all` | \\[[`stock.Thing`](stock.md#stock.Thing)\\] |" in shop
    assert '`` ["a\\|b", "c`d"] ``' in shop
    assert (
        "Used by [`shop.Box`](shop.md#shop.Box), [`shop.Find`](shop.md#shop.Find)."
        in (pages["stock.md"])
    )
    assert "| `tags` | \\{String: \\[String?\\]\\} | `#{}` |" in pages["stock.md"]
    assert "More of the shop." in shop


@pytest.mark.parametrize("text", [EVERYTHING, TWO_NAMESPACES])
def test_every_link_leads_somewhere(text: str) -> None:
    pages = _pages(text)
    for name, page in pages.items():
        for link in links(page):
            target, _, anchor = link.target.partition("#")
            assert not anchor or f'<a id="{anchor}"></a>' in pages[target or name], link
    document = run("doc", "-", input=text).stdout
    for link in links(document):
        assert f'<a id="{link.target.removeprefix("#")}"></a>' in document


def test_a_folder(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "catalogue"
    result = run("doc", file, "-o", folder)
    assert result.exit_code == exit_codes.OK
    assert result.stdout == ""
    assert result.stderr == f"wrote 2 pages to {folder}; start with index.md\n"
    assert sorted(path.name for path in folder.iterdir()) == ["index.md", "shop.md"]
    first = (folder / "shop.md").read_text(encoding="utf-8")
    assert run("doc", file, "-o", folder).exit_code == exit_codes.OK
    assert (folder / "shop.md").read_text(encoding="utf-8") == first


def test_a_folder_that_cannot_be_made(file: Path) -> None:
    result = run("doc", file, "-o", file / "out")
    assert result.exit_code == exit_codes.UNREADABLE
    assert "error: cannot make the folder" in result.stderr


def test_json(file: Path) -> None:
    result = run("doc", file, "--json")
    assert result.stderr == ""
    (shop,) = json.loads(result.stdout)["namespaces"]
    assert shop["name"] == "shop"
    assert [each["name"] for each in shop["workflows"]] == ["shop.Order", "shop.Sub"]
    charge = next(each for each in shop["event_facets"] if each["name"] == "shop.Charge")
    assert charge["params"] == [{"name": "total", "type": "Double", "default": None, "doc": ""}]
    assert charge["policies"] == ["Retry(delay = 1m30s)", "Effect(kind = keyed)"]
    assert charge["used_by"] == ["shop.Order"]


def test_wrong_programs_and_options(file: Path) -> None:
    result = run("doc", "-", input=UNKNOWN_TYPE)
    assert (result.exit_code, result.stdout) == (exit_codes.FAILED, "")
    assert "error[AFL1007]" in result.stderr
    assert run("doc", file, "--json", "-o", "x").exit_code == exit_codes.USAGE


def test_nothing_declared() -> None:
    assert run("doc", "-", input="").stdout == "# Catalogue\n\nNothing is declared.\n"


def test_doc_comments() -> None:
    doc = read_doc(
        "Makes a thing.\nIn two lines.\n\nMore.\n"
        "@param a first\n  and more\n@returns b - second\n\nEnd."
    )
    assert doc.text == "Makes a thing.\nIn two lines.\n\nMore.\n\nEnd."
    assert doc.summary == "Makes a thing. In two lines."
    assert doc.params == {"a": "first and more"}
    assert doc.returns == {"b": "second"}
