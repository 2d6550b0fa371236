"""Texts that would like to be code, in every field that can be filled: none of them ever runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from afl import App, Client
from afl.server.serving import open_backend
from afl.server.store import SavedFilter, WebHook
from afl.server.tokens import new_token
from tests.ui.conftest import browse, served

#: Each marks the window if it is ever run as code.
CORPUS = (
    "<script>window.__ran=1</script>",
    "<img src=x onerror=window.__ran=1>",
    '"><svg onload=window.__ran=1>',
    "'-window.__ran=1-'",
    "javascript:window.__ran=1",
    "[text](javascript:window.__ran=1)",
    "<a href=javascript:window.__ran=1>here</a>",
    "<iframe srcdoc='<script>parent.__ran=1</script>'></iframe>",
    "{{constructor.constructor('window.__ran=1')()}}",
    "${window.__ran=1}",
    "<math><mtext></table><mglyph><style><img src onerror=window.__ran=1>",
    "\x1b]8;;javascript:window.__ran=1\x07click\x1b]8;;\x07",
    "\u202egnp.exe <b onmouseover=window.__ran=1>",
    "</textarea><script>window.__ran=1</script>",
    "<style>@import 'javascript:window.__ran=1';</style>",
)
ALL = " ".join(CORPUS)

FLOW = """
/** <script>window.__ran=1</script> <img src=x onerror=window.__ran=1> */
namespace bad {
  event facet Say(text: String) => (text: String)
  event facet Fail(text: String) => (text: String)
  event facet Ask(text: String) => (text: String)
    with Human(group = "<img src=x onerror=window.__ran=1>")

  /** [text](javascript:window.__ran=1) <img src=x onerror=window.__ran=1> */
  workflow Good(text: String) => (text: String) andThen {
    said = Say(text = $.text)
    sys.log(text = said.text)
    yield Good(text = said.text)
  }
  workflow Broken(text: String) => (text: String) andThen {
    failed = Fail(text = $.text)
    yield Broken(text = failed.text)
  }
  workflow Asks(text: String) => (text: String) andThen {
    asked = Ask(text = $.text)
    yield Asks(text = asked.text)
  }
}
"""


@contextmanager
def _stage(database: str) -> Iterator[dict[str, str]]:
    app = App("<img src=x onerror=window.__ran=1>", database)

    @app.handler("bad.Say")
    def say(text: str) -> str:
        return text

    @app.handler("bad.Fail")
    def fail(text: str) -> str:
        raise ValueError(text)

    with app.client() as client:
        client.deploy(FLOW)
        with app.worker(slots=2):
            yield _filled(client, database)
    app.close()


def _filled(client: Client, database: str) -> dict[str, str]:
    labels = {f"label{number}": text for number, text in enumerate(CORPUS)}
    good = client.submit("bad.Good", {"text": ALL}, key=ALL, labels=labels)
    broken = client.submit("bad.Broken", {"text": ALL}, labels=labels)
    asks = client.submit("bad.Asks", {"text": ALL})
    good.result("60s")
    client.operations.wait(broken.id)
    canceled = client.submit("bad.Asks", {"text": ALL})
    canceled.cancel(reason=ALL)
    with open_backend(database) as backend:
        now = backend.services.persistence.now()
        for number, text in enumerate(CORPUS):
            name = f"{text} {number}"
            backend.store.save_view(SavedFilter(f"v{number}", name, "runs", text, True, "x", "*"))
            backend.store.add_hook(WebHook(name, text, text, "whsec_none"))
            if name.isprintable():
                backend.store.add_token(new_token(name[:100], "viewer", "default", now)[0])
            client.schedules.create(f"s{number}", "bad.Good", {"text": text}, cron="0 3 * * *")
    return {"good": good.id, "broken": broken.id, "asks": asks.id}


@pytest.mark.usefixtures("browser")
def test_nothing_that_is_shown_is_ever_run(
    empty_database: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with _stage(empty_database) as runs, served(empty_database, "--no-auth") as url:
        browse("hostile", url, tmp_path_factory.mktemp("shots"), runs)
