"""All parts of `afl dev` in one process: a database, a worker, the server, and a look at the files.

Needs the extra `server`; the command loads it when it is called.
"""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from afl.app import migrating
from afl.app.errors import ExtraMissing
from afl.app.log_keeping import keep_logs
from afl.app.services import connect
from afl.app.tracing_use import traced_if_wanted
from afl.base.settings import LogFormat, Settings, environment, provide
from afl.cli.dev.changes import Changes
from afl.cli.dev.project import STATE, Project
from afl.cli.dev.serving import Serving
from afl.cli.dev.session import Session
from afl.cli.dev.talk import Banner, Talk
from afl.cli.errors import CommandError
from afl.cli.running.connection import refusals
from afl.cli.running.logs import process_logs
from afl.cli.terminal import Terminal
from afl.server.application import create_app
from afl.server.dev_state import DevState
from afl.server.serving import open_backend, run_server

HOST = "127.0.0.1"
_MEMORY = "memory:afl-dev"


@dataclass(frozen=True, slots=True)
class Wish:
    """How a project is to be run."""

    port: int
    #: the URL of a database; None for one of the project's own
    database: str | None = None
    memory: bool = False
    browser: bool = True
    demo: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """Where everything is kept: in words, and for other commands."""

    url: str
    told: str
    is_memory: bool = False


def run(wish: Wish, terminal: Terminal, *, as_json: bool) -> None:
    """Runs the project of the current folder until it is told to stop."""
    given = Settings.load()
    # whoever reads lines as JSON is not to find others between them
    talk = Talk(terminal, as_json=as_json or given.log_format is LogFormat.JSON)
    project = Project(Path.cwd())
    with (
        refusals(),
        terminal.others_talk(),
        process_logs("dev", given),
        _place(wish, project) as place,
    ):
        # for handlers that use `Client.from_env()`, as they would beside a worker
        provide("AFL_DATABASE_URL", place.url)
        settings = Settings.load()
        state = DevState()
        with ExitStack() as stack:
            services = stack.enter_context(connect(place.url, settings))
            stack.enter_context(traced_if_wanted(services, "afl-dev", environment()))
            logs = None
            if not place.is_memory:
                spool = str(project.folder / STATE / "spool")
                logs = stack.enter_context(
                    keep_logs(place.url, services, settings, spool, "afl-dev")
                )
            backend = stack.enter_context(open_backend(place.url, settings, auth=False))
            serving = Serving(services, settings, logs)
            session = Session(project, services, serving, state, talk)
            changes = Changes(project, partial(_look, session, serving))
            finished = False
            try:
                session.look()
                demo = session.demo() if wish.demo else None
                changes.start()
                missing = _missing(wish, given, changes, session)

                def started(url: str) -> None:
                    named = None if demo is None else f"a run of {demo.workflow}: {demo.id}"
                    talk.started(
                        _banner(url, place, project, settings, named, missing), session.now
                    )
                    if wish.browser and sys.stderr.isatty():
                        webbrowser.open(url)

                app = create_app(replace(backend, dev=state))
                run_server(app, HOST, wish.port, on_started=started)
                talk.stopping()
            finally:
                changes.stop()
                finished = serving.stop()
            talk.stopped(finished)


@contextmanager
def _place(wish: Wish, project: Project) -> Iterator[_Place]:
    if wish.memory:
        yield _Place(_MEMORY, "this process's memory: it is gone when this ends", is_memory=True)
    elif wish.database is not None:
        migrating.migrate(wish.database)
        yield _Place(wish.database, _without_secrets(wish.database))
    else:
        # not every system has what it needs
        from afl.app.embedded_postgres import EmbeddedPostgres

        try:
            server = EmbeddedPostgres(project.folder / STATE / "postgres")
        except ExtraMissing as error:
            raise CommandError(
                f"there is no database: {error.message}",
                help="`afl dev --memory` needs none, and forgets everything when it ends",
            ) from error
        with server:
            url = server.start()
            migrating.migrate(url)
            inside = server.folder.is_relative_to(project.folder)
            shown = server.folder.relative_to(project.folder) if inside else server.folder
            yield _Place(url, f"a PostgreSQL of its own in {shown}")


def _look(session: Session, serving: Serving) -> None:
    session.look()
    if serving.was_asked():
        # to drain the worker is to end it, as for `afl worker`
        os.kill(os.getpid(), signal.SIGTERM)


def _missing(wish: Wish, given: Settings, changes: Changes, session: Session) -> list[str]:
    found = [] if session.now is None else [*session.now.offer.missing]
    if session.now is None:
        found.append("a flow that compiles: `afl init . --force` writes one to begin with")
    if not changes.is_told:
        found.append(
            "watchfiles: files are looked at once a second; "
            "`pip install 'afl-agentflow[dev-server]'` has the system tell"
        )
    if wish.database is None and given.database_url is not None:
        found.append(
            'AFL_DATABASE_URL is set and not used: `--database "$AFL_DATABASE_URL"` uses it'
        )
    return found


def _banner(
    url: str,
    place: _Place,
    project: Project,
    settings: Settings,
    demo: str | None,
    missing: list[str],
) -> Banner:
    redis = _shown(settings.redis_url, "none: mailboxes are in the database; AFL_REDIS_URL")
    nats = _shown(settings.nats_url, "none: workers hear through the database; AFL_NATS_URL")
    return Banner(
        url,
        place.told,
        None if place.is_memory else place.url,
        project.sources(),
        project.modules(),
        (("redis", redis), ("nats", nats)),
        demo,
        missing,
    )


def _shown(url: str | None, without: str) -> str:
    return without if url is None else _without_secrets(url)


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
