"""Tells when something in a project may have changed: at once with the extra `dev-server`, else by
looking every second."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from types import ModuleType

from afl.cli.dev.project import Project

_log = logging.getLogger("afl.dev")
#: How often to look without a word from the system, and with it, in case that one was lost.
_POLL_SECONDS, _LOOK_SECONDS = 1.0, 5.0
#: Editors write a file in several steps; what comes within this time is one change.
_SETTLE_MS = 100


class Changes:
    """Calls a function after every change, from `start` to `stop`, in a thread of its own."""

    def __init__(self, project: Project, look: Callable[[], None]) -> None:
        self._project = project
        self._look = look
        self._stop = Event()
        self._changed = Event()
        #: set when there are other folders to watch
        self._others = Event()
        self._watchfiles = _watchfiles()
        self._seconds = _POLL_SECONDS if self._watchfiles is None else _LOOK_SECONDS
        self._threads: list[Thread] = []

    @property
    def is_told(self) -> bool:
        """Whether the system tells of changes."""
        return self._watchfiles is not None

    def start(self) -> None:
        self._begin(self._wait, "afl-dev-look")
        if self._watchfiles is not None:
            # to watch all of the project would be to watch the files of the database too
            self._begin(self._watch_top, "afl-dev-top")
            self._begin(self._watch_below, "afl-dev-below")

    def stop(self) -> None:
        for event in (self._stop, self._others, self._changed):
            event.set()
        for thread in self._threads:
            thread.join()

    def _begin(self, target: Callable[[], None], name: str) -> None:
        thread = Thread(target=target, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _wait(self) -> None:
        while True:
            self._changed.wait(self._seconds)
            if self._stop.is_set():
                return
            self._changed.clear()
            try:
                self._look()
            except Exception:  # noqa: BLE001 - one look that fails must not be the last
                _log.exception("the project could not be looked at")

    def _watch_top(self) -> None:
        known = self._project.folders()

        def tell() -> None:
            nonlocal known
            if (found := self._project.folders()) != known:
                known = found
                self._others.set()

        self._watch((self._project.folder,), self._stop, tell, recursive=False)

    def _watch_below(self) -> None:
        while not self._stop.is_set():
            self._others.clear()
            folders = self._project.folders()
            if folders and not self._stop.is_set():
                self._watch(folders, self._others, lambda: None, recursive=True)
            self._others.wait()
            self._changed.set()

    def _watch(
        self, folders: tuple[Path, ...], stop: Event, tell: Callable[[], None], *, recursive: bool
    ) -> None:
        assert self._watchfiles is not None
        try:
            for _ in self._watchfiles.watch(
                *folders,
                stop_event=stop,
                recursive=recursive,
                debounce=_SETTLE_MS,
                raise_interrupt=False,
            ):
                self._changed.set()
                tell()
        except (OSError, RuntimeError):
            # a folder that went away, or more of them than the system can watch
            self._seconds = _POLL_SECONDS


def _watchfiles() -> ModuleType | None:
    try:
        return import_module("watchfiles")
    except ModuleNotFoundError:
        return None
