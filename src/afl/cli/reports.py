"""Diagnostics in the formats of `afl check`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

from afl import __version__
from afl.cli.github import render_github
from afl.cli.terminal import Terminal
from afl.lang.diagnostics.model import Applicability, Diagnostic
from afl.lang.diagnostics.render_concise import render_concise
from afl.lang.diagnostics.render_human import render_human, summary
from afl.lang.diagnostics.render_json import to_json
from afl.lang.diagnostics.render_sarif import to_sarif


class Format(StrEnum):
    """How diagnostics are written."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"

    @property
    def for_machines(self) -> bool:
        """Whether talk beside the data would only disturb."""
        return self in (Format.JSON, Format.SARIF)


def render(diagnostics: Sequence[Diagnostic], format: Format, terminal: Terminal) -> str:
    """The diagnostics as text that ends with a line break; no text if there is nothing to say."""
    match format:
        case Format.FULL:
            text = render_human(diagnostics, width=terminal.width, colour=terminal.colour_out)
        case Format.CONCISE:
            text = render_concise(diagnostics)
        case Format.GITHUB:
            text = render_github(diagnostics)
        case Format.JSON:
            text = json.dumps(to_json(diagnostics), indent=2, ensure_ascii=False)
        case Format.SARIF:
            text = json.dumps(
                to_sarif(diagnostics, version=__version__), indent=2, ensure_ascii=False
            )
    return f"{text}\n" if text else ""


def say_diagnostics(diagnostics: Sequence[Diagnostic], files: int, terminal: Terminal) -> None:
    """Diagnostics as talk, for a command whose data is something else."""
    if diagnostics:
        text = render_human(diagnostics, width=terminal.width, colour=terminal.colour_err)
        terminal.say(f"{text}\n")
    say_summary(diagnostics, files, terminal)


def say_summary(diagnostics: Sequence[Diagnostic], files: int, terminal: Terminal) -> None:
    """How many problems there are, and the commands that help with them."""
    terminal.say(summary(diagnostics, files))
    if not diagnostics:
        return
    fixable = sum(_is_fixable(diagnostic) for diagnostic in diagnostics)
    if fixable:
        terminal.help(f"`afl check --fix` mends {fixable} of them")
    worst = next((each for each in diagnostics if each.is_error), diagnostics[0])
    terminal.help(f"`afl explain {worst.code}` shows an example, the remedy and the reason")


def _is_fixable(diagnostic: Diagnostic) -> bool:
    return any(
        suggestion.edits and suggestion.applicability is Applicability.SAFE
        for suggestion in diagnostic.suggestions
    )
