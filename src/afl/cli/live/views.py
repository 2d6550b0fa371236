"""Where a run that goes on is shown: a terminal, which is redrawn, or lines that stay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from afl.cli.live.lines import Line
from afl.cli.terminal import Terminal
from afl.runtime.entities import Run
from afl.runtime.views import state_word

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_ENDED = ("done", "failed", "skipped")
_STYLES = {
    "queued": "dim",
    "running": "blue",
    "waiting": "yellow",
    "done": "green",
    "failed": "bold red",
    "skipped": "dim",
}
_KEPT_LINES = 4
"""Lines of a terminal that the tree leaves free."""


class View(Protocol):
    """Shows a run each time that it has changed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, run: Run, lines: Sequence[Line]) -> None: ...

    def tell(self, sentence: str) -> None:
        """Says what a run waits for that has not changed for a while."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def show(self, run: Run, lines: Sequence[Line]) -> None:
        pass

    def tell(self, sentence: str) -> None:
        pass


class Plain(Silent):
    """A line for each step that has ended, and for each new reason to wait."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told: set[str] = set()

    def show(self, run: Run, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.state in _ENDED and line.path not in self._told:
                self._told.add(line.path)
                self._terminal.say(line.text().strip())

    def tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._terminal.say(sentence)


class Drawn:
    """The tree on a terminal, redrawn in place."""

    def __init__(self, terminal: Terminal) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(
            file=sys.stderr, no_color=not terminal.colour_err, highlight=False, soft_wrap=False
        )
        self._console = console
        self._live: Live = Live(console=console, auto_refresh=False)
        self._body: list[Text] = []
        self._told = ""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, run: Run, lines: Sequence[Line]) -> None:
        from rich.text import Text

        room = max(3, self._console.size.height - _KEPT_LINES)
        title = Text(f"{run.workflow}  {state_word(run)}", style="bold", overflow="ellipsis")
        drawn = [
            Text(line.text(), style=_STYLES[line.state], overflow="ellipsis", no_wrap=True)
            for line in most_telling(lines, room)
        ]
        if len(drawn) < len(lines):
            drawn.append(Text(f"  and {len(lines) - len(drawn)} more", style="dim"))
        self._body, self._told = [title, *drawn], ""
        self._draw(self._body)

    def tell(self, sentence: str) -> None:
        from rich.text import Text

        if sentence != self._told:
            self._told = sentence
            self._draw([*self._body, Text(sentence, style="yellow")])

    def _draw(self, body: Sequence[Text]) -> None:
        from rich.console import Group

        self._live.update(Group(*body), refresh=True)


def most_telling(lines: Sequence[Line], room: int) -> list[Line]:
    """As many lines as fit: those that have ended well go first."""
    if len(lines) <= room:
        return list(lines)
    open_ = [line for line in lines if line.state not in ("done", "skipped")]
    kept = {line.path for line in open_[:room]}
    for line in reversed(lines):
        if len(kept) >= room:
            break
        kept.add(line.path)
    return [line for line in lines if line.path in kept]


def view_for(terminal: Terminal, *, quiet: bool = False) -> View:
    """The view that suits standard error."""
    if quiet:
        return Silent()
    return Drawn(terminal) if sys.stderr.isatty() else Plain(terminal)
