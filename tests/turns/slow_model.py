"""A provider that speaks as slowly as a test wants, over a real socket, in OpenAI's words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "slow"}
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@contextmanager
def slow_model(words: Sequence[str], result: str, before: Callable[[int], None]) -> Iterator[str]:
    """The name of a model that says some words one by one and then hands in a result.

    Args:
        result: the arguments of `submit_result`, as the model writes them.
        before: called before each word with its number; it may take its time.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in _events(words, result, before):
                self.wfile.write(f"data: {event}\n\n".encode())
                self.wfile.flush()
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"openai@http://127.0.0.1:{server.server_address[1]}/v1:slow"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _events(words: Sequence[str], result: str, before: Callable[[int], None]) -> Iterator[str]:
    yield _chunk({"role": "assistant"})
    for number, word in enumerate(words):
        before(number)
        yield _chunk({"content": word})
    call = {"index": 0, "id": "call_1", "type": "function"}
    yield _chunk({"tool_calls": [{**call, "function": {"name": "submit_result", "arguments": ""}}]})
    for part in (result[:9], result[9:]):
        yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    yield _chunk({}, "tool_calls")
    yield json.dumps({**_HEAD, "choices": [], "usage": _USAGE})
    yield "[DONE]"


def _chunk(delta: dict[str, object], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({**_HEAD, "choices": [choice]})
