"""`afl explain`."""

from __future__ import annotations

from importlib.resources import files

import click

from afl.cli.errors import CommandError
from afl.cli.framework import Command
from afl.cli.terminal import Terminal
from afl.lang.diagnostics.codes import CODES, Code
from afl.lang.diagnostics.page import Page, Program, parse_page
from afl.lang.diagnostics.suggest import nearest

#: The first digits of a code and what such codes are about.
GROUPS = {
    "AFL00": "characters and words",
    "AFL01": "syntax",
    "AFL10": "names",
    "AFL20": "calls and types",
    "AFL30": "blocks and data flow",
    "AFL40": "policies, prompts, scripts and schedules",
    "AFL50": "pipelines",
    "AFL90": "documentation",
}
_PREFIX = "AFL"


@click.command("explain", cls=Command)
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def command(terminal: Terminal, code: str | None, as_json: bool) -> None:
    """Explain a diagnostic code.

    Shows a wrong example, its message, the remedy and the reason. Without CODE all codes are
    listed. Upper and lower case are the same, and AFL may be left out.
    """
    if code is None:
        if as_json:
            terminal.json(_to_json([_entry(each) for each in CODES.values()]))
        else:
            _list(terminal)
        return
    known = _find(code)
    text = _page_text(known)
    if as_json:
        terminal.json(_to_json([{**_entry(known), "page": _page(parse_page(text), text)}]))
    elif terminal.colour_out:
        _show(text, terminal)
    else:
        terminal.data(text)


def _find(code: str) -> Code:
    wanted = code.upper()
    if not wanted.startswith(_PREFIX):
        wanted = _PREFIX + wanted
    if wanted in CODES:
        return CODES[wanted]
    guess = nearest(wanted, CODES)
    raise CommandError(
        f"there is no diagnostic code {code}",
        help=f"did you mean `afl explain {guess}`?" if guess else "`afl explain` lists all codes",
    )


def _page_text(code: Code) -> str:
    page = files("afl.lang.diagnostics").joinpath("pages", f"{code.id}.md")
    try:
        return page.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CommandError(
            f"the page of {code.id} ({code.title}) is missing from this installation",
            help="install AgentFlow again",
        ) from error


def _list(terminal: Terminal) -> None:
    parts = []
    for prefix, title in GROUPS.items():
        rows = [
            f"  {code.id}  {code.severity.value:<7}  {code.title}"
            for code in CODES.values()
            if code.id.startswith(prefix)
        ]
        parts.append("\n".join([title, *rows]))
    terminal.data("\n\n".join(parts) + "\n")
    terminal.help("`afl explain CODE` shows an example, the remedy and the reason")


def _show(text: str, terminal: Terminal) -> None:
    # rich takes longer to load than everything else; only a terminal needs it
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(force_terminal=True, width=min(terminal.width, 100), highlight=False)
    with console.capture() as captured:
        console.print(Markdown(text, code_theme="ansi_dark"))
    terminal.data(captured.get())


def _to_json(codes: list[dict[str, object]]) -> dict[str, object]:
    return {"version": 1, "codes": codes}


def _entry(code: Code) -> dict[str, object]:
    return {
        "code": code.id,
        "title": code.title,
        "severity": code.severity.value,
        "group": GROUPS[code.id[: len(_PREFIX) + 2]],
    }


def _page(page: Page, text: str) -> dict[str, object]:
    return {
        "summary": page.summary,
        "wrong": [_program(program) for program in page.wrong],
        "message": page.message,
        "right": [_program(program) for program in page.right],
        "why": page.why,
        "markdown": text,
    }


def _program(program: Program) -> list[dict[str, str]]:
    return [{"file": name, "text": text} for name, text in program]
