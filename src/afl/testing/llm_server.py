"""A server on this machine that speaks the APIs of Anthropic and OpenAI, for tests.

`LoopbackLLM` answers the Messages API (`/v1/messages`) and the chat-completions API
(`/v1/chat/completions`), whole or streamed, by a function from the request to an answer. The real
clients talk to it over a real socket, so it can also fail like a provider: by status, by silence,
by closing the connection before, in or after the first words. It keeps every request as it came.

    with LoopbackLLM(lambda asked: Said("Hello.")) as server:
        registry = Registry(ModelConfig(anthropic_url=server.url, anthropic_key="any"))
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any, Self, cast

_MESSAGES = "/v1/messages"
_CHAT = "/v1/chat/completions"
_CHUNKED, _TO_THE_END = ("transfer-encoding", "chunked"), ("connection", "close")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    path: str
    #: names in lower case
    headers: dict[str, str]
    body: bytes
    #: the port of the client: one for each connection
    port: int = 0

    @property
    def json(self) -> dict[str, Any]:
        """The body, parsed."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    @property
    def is_streamed(self) -> bool:
        return bool(self.json.get("stream"))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls; the arguments go out as they are written."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer of the model. Input tokens are all of them, those of the cache among them."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    signature: str = "signed"
    #: None is: as the answer looks; otherwise in the words of the API
    stop: str | None = None
    input_tokens: int = 10
    output_tokens: int = 5
    cache_read: int = 0
    cache_write: int = 0
    delay_seconds: float = 0.0
    #: the connection is closed after so many events of a stream
    cut_after: int | None = None
    #: a cut looks like a proper end of the body
    politely: bool = False
    #: what is said in the stream before it is cut
    last_words: Failed | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An error of the provider."""

    status: int
    message: str = "no"
    #: the type of the error, in the words of the API
    type: str = "api_error"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is closed without a word."""


Outcome = Said | Failed | Cut


class LoopbackLLM:
    """A provider of models on a free port of 127.0.0.1, for as long as it is entered."""

    def __init__(self, answer: Callable[[Asked], Outcome]) -> None:
        self._answer = answer
        self._closing = threading.Event()
        #: what was asked so far, in order
        self.requests: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.models = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL that Anthropic's client takes."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def openai_url(self) -> str:
        """The base URL that OpenAI's client takes."""
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, asked: Asked) -> Outcome:
        """Notes the request and decides the answer; slow answers end early when the server does."""
        self.requests.append(asked)
        outcome = self._answer(asked)
        if isinstance(outcome, Said) and outcome.delay_seconds:
            self._closing.wait(outcome.delay_seconds)
        return outcome


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    models: LoopbackLLM

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients leave when they like; everything else is a mistake of the test."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(cast("socket", request), client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `requests`, not a log."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path.partition("?")[0], headers, body, self.client_address[1])
        if asked.path in (_MESSAGES, _CHAT):
            self._answer(asked, self.server.models.serve(asked))
        else:
            self._answer(asked, Failed(404, f"no such path: {self.path}", "not_found_error"))

    def _answer(self, asked: Asked, outcome: Outcome) -> None:
        match outcome:
            case Failed():
                self._send(outcome.status, _error(asked, outcome), outcome.headers)
            case Cut():
                self.close_connection = True
            case Said() if asked.is_streamed:
                self._stream(asked, outcome)
            case Said():
                make = _message if asked.path == _MESSAGES else _completion
                self._send(
                    200, make(outcome, asked.json["model"]), {}, outcome.cut_after is not None
                )

    def _send(self, status: int, body: object, headers: dict[str, str], half: bool = False) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)
        self.close_connection = self.close_connection or half

    def _stream(self, asked: Asked, said: Said) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        is_chunked = not said.politely
        self.send_header(*(_CHUNKED if is_chunked else _TO_THE_END))
        self.end_headers()
        for event in _events(asked, said):
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if is_chunked else data)
        if said.cut_after is not None:
            self.close_connection = True
        elif is_chunked:
            self.wfile.write(b"0\r\n\r\n")


def _events(asked: Asked, said: Said) -> Iterator[str]:
    model = asked.json["model"]
    is_chat = asked.path == _CHAT
    events = _completion_chunks(said, model) if is_chat else _message_events(said, model)
    last = [] if said.last_words is None else [_error(asked, said.last_words)]
    for event in [*itertools.islice(events, said.cut_after), *last]:
        name = "" if is_chat else f"event: {event['type']}\n"
        yield f"{name}data: {json.dumps(event)}\n\n"
    if is_chat and said.cut_after is None:
        yield "data: [DONE]\n\n"


def _error(asked: Asked, failed: Failed) -> dict[str, Any]:
    error = {"type": failed.type, "message": failed.message}
    if asked.path == _CHAT:
        return {"error": {**error, "param": None, "code": failed.code}}
    return {"type": "error", "error": error}


# The Messages API


def _message(said: Said, model: str) -> dict[str, object]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block for block, _ in _blocks(said)],
        "stop_reason": said.stop or ("tool_use" if said.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.input_tokens - said.cache_read - said.cache_write,
            "output_tokens": said.output_tokens,
            "cache_read_input_tokens": said.cache_read,
            "cache_creation_input_tokens": said.cache_write,
        },
    }


def _blocks(said: Said) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    """Each block of content, and the pieces in which it is streamed."""
    if said.thinking:
        block = {"type": "thinking", "thinking": said.thinking, "signature": said.signature}
        pieces = [{"type": "thinking_delta", "thinking": piece} for piece in _halves(said.thinking)]
        yield block, [*pieces, {"type": "signature_delta", "signature": said.signature}]
    if said.text:
        pieces = [{"type": "text_delta", "text": piece} for piece in _halves(said.text)]
        yield {"type": "text", "text": said.text}, pieces
    for call in said.calls:
        pieces = [
            {"type": "input_json_delta", "partial_json": piece} for piece in _halves(call.arguments)
        ]
        block = {"type": "tool_use", "id": call.id, "name": call.name}
        yield {**block, "input": _parsed(call.arguments)}, pieces


def _message_events(said: Said, model: str) -> Iterator[dict[str, Any]]:
    message = _message(said, model)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    opening = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": opening}
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    for index, (block, pieces) in enumerate(_blocks(said)):
        start = {key: empty.get(key, value) for key, value in block.items()}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": index, "delta": piece}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": said.output_tokens}}
    yield {"type": "message_stop"}


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:  # a whole answer cannot carry what is no JSON; a stream can
        return {}


# The chat-completions API


def _completion(said: Said, model: str) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": said.text or None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.calls:
        message["tool_calls"] = [_tool_call(call, call.arguments) for call in said.calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(said)}
    return {**_head("chat.completion", model), "choices": [choice], "usage": _usage(said)}


def _completion_chunks(said: Said, model: str) -> Iterator[dict[str, Any]]:
    head = _head("chat.completion.chunk", model)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant"})
    for piece in _halves(said.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in _halves(said.text):
        yield chunk({"content": piece})
    for index, call in enumerate(said.calls):
        yield chunk({"tool_calls": [{"index": index, **_tool_call(call, "")}]})
        for piece in _halves(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(said))
    yield {**head, "choices": [], "usage": _usage(said)}


def _head(kind: str, model: str) -> dict[str, object]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _finish(said: Said) -> str:
    return said.stop or ("tool_calls" if said.calls else "stop")


def _tool_call(call: ToolCall, arguments: str) -> dict[str, object]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(said: Said) -> dict[str, object]:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cache_read},
    }


def _halves(text: str) -> list[str]:
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]
