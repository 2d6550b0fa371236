"""Every code block in the documentation runs, and does what the page says."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from time import monotonic

import pytest

from tests.architecture.doc_runner import missing_server, run_page
from tests.architecture.markdown import documentation_pages
from tests.architecture.repository import relative
from tests.kernel.postgres.databases import server_is_there
from tests.messaging.redis_servers import needs_redis_server

needs_postgres = pytest.mark.skipif(not server_is_there(), reason="no PostgreSQL")


@pytest.mark.parametrize("page", documentation_pages(), ids=relative)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if missing := missing_server(text):
        pytest.skip(missing)
    problems = run_page(relative(page), text, tmp_path)
    assert not problems, "\n".join(problems)


def _problems(tmp_path: Path, page: str) -> list[str]:
    return run_page("page.md", dedent(page), tmp_path)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```python\n1 / 0\n```", "page.md:1: the Python code raises ZeroDivisionError"),
        ("```python\nf(\n```", "page.md:1: the Python code raises SyntaxError"),
        ("```json\n{]\n```", "page.md:1: the JSON does not parse"),
        ("```toml\na = \n```", "page.md:1: the TOML does not parse"),
        ("```mermaid\nA --> B\n```", "page.md:1: a diagram starts with its kind"),
        ("```mermaid\n```", "page.md:1: a diagram starts with its kind"),
        ("```ruby\n1\n```", "page.md:1: 'ruby' is not a language of these docs"),
        ("```\n1\n```", "page.md:1: '' is not a language of these docs"),
        ("text\n\n    indented\n", "page.md:3: '' is not a language of these docs"),
        ("```sh\nmake\n```", "page.md:1: 'make' is no command"),
        ("```sh\n$ false\n```", "page.md:1: 'false' ends with status 1"),
        ("```sh\n$ exit 3\n$ true\n```", "page.md:1: 'exit 3' ends the shell"),
        ("```console\n$ echo a\nb\n```", "page.md:1: 'echo a' prints\na\nbut the page shows\nb"),
        ("```console\n$ printf 'a\\nb\\n'\na\n```", "but the page shows\na"),
        ("```console\n$ printf 'a\\nb\\n'\n...\nc\n```", "but the page shows\n...\nc"),
        ("```console\n$ echo a b\na…c\n```", "but the page shows\na…c"),
        ("```console\n$ printf 'a\\nb\\n'\na…b\n```", "but the page shows\na…b"),
        ("```sh\n$ test -v AFL_DATABASE_URL\n```", "ends with status 1"),
        ("```sh no-run\n$ false\n```", "page.md:1: `no-run` needs a reason"),
    ],
)
def test_a_block_that_is_wrong_is_reported(tmp_path: Path, page: str, problem: str) -> None:
    problems = _problems(tmp_path, page)
    assert len(problems) == 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    "page",
    [
        "```text\n!?\n```",
        "```mermaid\nflowchart LR\n  a --> b\n```",
        "```sh no-run needs a network\n$ false\n```",
        "```ruby no-run another language\n1\n```",
        "```console\n$ echo a\na\n$ echo b\n```",
        "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n```",
        "```console\n$ echo no; false\nno\n$ echo $?\n1\n```",
        "```console\n$ printf x\nx\n$ echo a \\\n  b\na b\n```",
        "```console\n$ echo problem >&2\nproblem\n```",
        "```console\n$ echo run $RANDOM is done\nrun … is done\n```",
        "```console\n$ read line; echo $?\n1\n```",
        "```sh\n$ name=a\n```\n```console\n$ echo $name\na\n```",
        "```sh\n$ sleep 100 > log 2>&1 &\n$ sleeper=$!\n```\n```sh\n$ kill -9 $sleeper\n```",
    ],
)
def test_a_block_that_is_right_is_accepted(tmp_path: Path, page: str) -> None:
    assert _problems(tmp_path, page) == []


def test_the_blocks_of_a_page_share_names_files_and_the_directory(tmp_path: Path) -> None:
    page = """
    <!-- file: lib/value.py -->
    ```python
    VALUE = 42
    ```
    ```sh
    $ cd lib
    $ ls
    value.py
    ```
    ```python
    from pathlib import Path
    assert VALUE == 42
    Path("out.txt").write_text("done")
    ```
    ```console
    $ cat out.txt
    done
    ```
    """
    assert _problems(tmp_path, page) == []


def test_what_runs_in_the_background_ends_with_the_page(tmp_path: Path) -> None:
    page = "```sh\n$ sleep 100 > log 2>&1 &\n$ echo $! > sleeper\n```"
    assert _problems(tmp_path, page) == []
    sleeper = Path("/proc", (tmp_path / "sleeper").read_text().strip())
    deadline = monotonic() + 10
    while _lives(sleeper):
        assert monotonic() < deadline


def _lives(process: Path) -> bool:
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@needs_postgres
def test_a_page_may_have_a_database(tmp_path: Path) -> None:
    page = """
    <!-- database -->
    ```console
    $ afl db migrate
    ...
    … migrations applied
    ```
    ```python
    from afl import Client
    with Client.from_env() as client:
        assert client.runs() == []
    ```
    """
    assert _problems(tmp_path, page) == []
    assert "AFL_DATABASE_URL" not in os.environ


@needs_redis_server
def test_a_page_may_have_a_redis(tmp_path: Path) -> None:
    page = """
    <!-- redis -->
    ```console
    $ afl mail send reviewer --id hello-1
    hello-1
    ...
    ```
    ```python
    import os
    from redis import Redis
    with Redis.from_url(os.environ["AFL_REDIS_URL"]) as redis:
        assert redis.hget("ao:meta:reviewer:default", "sent") == b"1"
    ```
    """
    assert _problems(tmp_path, page) == []
    assert "AFL_REDIS_URL" not in os.environ


def test_a_file_comment_names_only_the_block_right_after_it(tmp_path: Path) -> None:
    page = "<!-- file: a.py -->\n\nSome words.\n\n```python\nx = 1\n```\n"
    assert _problems(tmp_path, page) == []
    assert not (tmp_path / "a.py").exists()


def test_the_afl_command_is_the_one_of_this_environment(tmp_path: Path) -> None:
    afl = Path(sys.executable).with_name("afl")
    assert shutil.which("afl", path=str(afl.parent)) == str(afl)
    assert _problems(tmp_path, f"```console\n$ command -v afl\n{afl}\n```") == []


GOOD = "namespace demo {\n  event facet Greet(name: String) => (text: String)\n}\n"
BAD = "namespace demo {\n  event facet Greet(name: Strin) => (text: String)\n}\n"


def test_afl_blocks_are_checked(tmp_path: Path) -> None:
    assert _problems(tmp_path, f"```afl\n{GOOD}```") == []
    problems = _problems(tmp_path, f"```afl\n{BAD}```")
    assert len(problems) == 1
    assert "the program does not check clean" in problems[0]


def test_wrong_afl_blocks_must_be_wrong(tmp_path: Path) -> None:
    assert _problems(tmp_path, f"```afl wrong\n{BAD}```") == []
    assert "should have a finding" in _problems(tmp_path, f"```afl wrong\n{GOOD}```")[0]
    assert "should have ['AFL9999']" in _problems(tmp_path, f"```afl wrong AFL9999\n{BAD}```")[0]


def test_afl_fragments_are_not_checked(tmp_path: Path) -> None:
    assert _problems(tmp_path, "```afl fragment\nx = F(\n```") == []
