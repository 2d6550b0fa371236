"""What a runner tells over HTTP: `/health`, `/status` and `/metrics`, on this machine alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from afl.kernel.model import Json
from afl.runtime.worker import Worker

_HOST = "127.0.0.1"
_JSON = "application/json"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    content_type: str
    body: str


Pages = Mapping[str, Callable[[], Answer]]


class StatusServer:
    """Answers requests in threads of its own, from the first port that is free."""

    def __init__(self, pages: Pages, port: int, max_attempts: int) -> None:
        """Tries the ports from `port` on; 0 is any free one.

        Raises:
            OSError: none of the ports is free.
        """
        self._server = _bind(_handler_class(pages), port, max_attempts)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="afl-status", daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # two servers on one port would share its requests out by chance
    allow_reuse_address = False


def _bind(handler: type[BaseHTTPRequestHandler], port: int, max_attempts: int) -> _Server:
    tries = 1 if port == 0 else max(1, max_attempts)
    for attempt in range(tries):
        try:
            return _Server((_HOST, port + attempt), handler)
        except OSError as error:
            last = error
    raise OSError(
        last.errno, f"no port from {port} to {port + tries - 1} is free: {last.strerror}"
    ) from last


def _handler_class(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            answer = Answer(404, _JSON, '{"error":"not found"}') if page is None else page()
            body = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Who looks at a status is no news."""

    return Handler


def json_answer(value: Json, status: int = 200) -> Answer:
    return Answer(status, _JSON, json.dumps(value, indent=2) + "\n")


def metrics_answer(worker: Worker) -> Answer:
    """The counts of a worker in Prometheus' text format."""
    counters = worker.counters
    lines = [
        *_metric("afl_tasks_handled_total", "counter", "Tasks that ended here, by outcome."),
        *(
            f"afl_tasks_handled_total{_labels(facet=facet, outcome=outcome)} {number}"
            for (facet, outcome), number in sorted(counters.by_facet().items())
        ),
        *_metric("afl_tasks_in_flight", "gauge", "Handlers that run.", counters.in_flight),
        *_metric("afl_flows_in_hand", "gauge", "Runs in hand.", counters.flows_in_hand),
        *_metric(
            "afl_turns_total", "counter", "Turns of runs that were evaluated.", counters.turns
        ),
        *_metric("afl_claims_total", "counter", "Tasks that were claimed.", counters.claims),
        *_metric("afl_commits_total", "counter", "Commits that were taken.", counters.commits),
        *_metric(
            "afl_transactions_total",
            "counter",
            "Transactions that carried them.",
            counters.transactions,
        ),
        *_metric("afl_refused_total", "counter", "Commits that were refused.", counters.refused),
        *_metric(
            "afl_late_results_total",
            "counter",
            "Results nobody wanted any more.",
            counters.late_results,
        ),
        *_metric("afl_loop_errors_total", "counter", "Failures that a loop survived."),
        *(
            f"afl_loop_errors_total{_labels(loop=loop.name)} {loop.errors}"
            for loop in worker.health()
        ),
        *_metric("afl_loop_last_success_age_seconds", "gauge", "Since a loop last went well."),
        *(
            f"afl_loop_last_success_age_seconds{_labels(loop=loop.name)} {age:.3f}"
            for loop in worker.health()
            if (age := loop.age_seconds()) is not None
        ),
    ]
    return Answer(200, _METRICS, "\n".join(lines) + "\n")


def _metric(name: str, kind: str, help_: str, value: int | None = None) -> list[str]:
    head = [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
    return head if value is None else [*head, f"{name} {value}"]


def _labels(**labels: str) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
