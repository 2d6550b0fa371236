"""What `afl dev` tells: lines for people on standard error, or JSON lines as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from afl import __version__
from afl.cli.dev.session import Served
from afl.cli.running.watching import Change, say_change
from afl.cli.terminal import Terminal
from afl.lang.diagnostics.render_json import to_json

_WIDTH = 10


@dataclass(frozen=True, slots=True)
class Banner:
    """What was found when everything had started."""

    url: str
    database: str
    #: the URL for other commands; None if others cannot reach it
    database_url: str | None
    sources: Sequence[str]
    modules: Sequence[str]
    #: the name and the address of what is used beside the database
    beside: Sequence[tuple[str, str]]
    demo: str | None
    #: what is missing, each with what to do about it
    missing: Sequence[str]


class Talk:
    """Tells what a session does. Nothing is said of what is served before the banner is out."""

    def __init__(self, terminal: Terminal, *, as_json: bool) -> None:
        self._terminal = terminal
        self._as_json = as_json
        self._started = False

    def started(self, banner: Banner, served: Served | None) -> None:
        self._started = True
        if self._as_json:
            told = asdict(banner)
            self._json("started", **told, served=None if served is None else asdict(served))
            return
        self._terminal.say(f"AgentFlow {__version__} at {banner.url}\n")
        workflows = ", ".join(served.workflows) if served is not None else ""
        names = ", ".join(f"{name}.py" for name in banner.modules)
        self._line("flows", workflows or f"nothing to run in {', '.join(banner.sources)} yet")
        self._line("handlers", names or "none: handlers.py would be served")
        if served is not None:
            self._offer(served)
        self._line("database", banner.database)
        for name, address in banner.beside:
            self._line(name, address)
        if banner.demo is not None:
            self._line("demo", banner.demo)
        for each in banner.missing:
            self._line("missing", each)
        self._terminal.say("")
        if banner.database_url is not None:
            self._terminal.help(
                f"`export AFL_DATABASE_URL='{banner.database_url}'` lets other commands work on it"
            )
        if served is not None and served.workflows:
            self._terminal.help(
                f"`afl submit {served.workflows[0]}` starts a run, as the page does"
            )
        self._terminal.help("save a file to see it reloaded; Ctrl-C stops everything")

    def changed(self, change: Change) -> None:
        if self._as_json:
            if change.diagnostics:
                self._json("diagnostics", **to_json(change.diagnostics))
            return
        say_change(change, self._terminal)

    def broken(self, error: str) -> None:
        if self._as_json:
            self._json("broken", error=error)
        else:
            self._terminal.error(f"the handlers cannot be served\n{error}")

    def mended(self) -> None:
        if self._as_json:
            self._json("mended")

    def served(self, served: Served) -> None:
        if not self._started:
            return
        if self._as_json:
            self._json("reloaded", served=asdict(served))
            return
        self._terminal.say(f"reloaded: {', '.join(served.workflows) or 'no workflows'}")
        self._offer(served)

    def stopping(self) -> None:
        if self._as_json:
            self._json("stopping")
        else:
            self._terminal.say("stopping: handlers finish first")

    def stopped(self, finished: bool) -> None:
        if self._as_json:
            self._json("stopped", finished=finished)
        elif finished:
            self._terminal.say("stopped")
        else:
            self._terminal.say("stopped: what was not finished goes on with the next start")

    def _offer(self, served: Served) -> None:
        offer = served.offer
        if self._started and offer.facets:
            self._line("serves", ", ".join(offer.facets))
        if offer.models:
            self._line("models", ", ".join(offer.models))
        if offer.unserved:
            self._line("but not", ", ".join(offer.unserved))

    def _line(self, name: str, text: str) -> None:
        self._terminal.say(f"  {name:<{_WIDTH}}{text}")

    def _json(self, event: str, **values: object) -> None:
        line = {"version": 1, "event": event, **values}
        self._terminal.data_now(json.dumps(line, ensure_ascii=False) + "\n")
