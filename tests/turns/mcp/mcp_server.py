"""A real MCP server for the tests: `mcp_server.py stdio`, or `mcp_server.py http PORT`.

`mcp_server.py sessions PORT` speaks only the older protocol, with sessions that end with it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Literal

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("tests")


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool(structured_output=False)
def refuse() -> str:
    """Always says no."""
    raise ToolError("out of paper")


@server.tool(structured_output=False)
async def nap(seconds: float) -> str:
    """Answers later."""
    await anyio.sleep(seconds)
    return "rested"


@server.tool(annotations=ToolAnnotations(destructive_hint=True), structured_output=False)
def die() -> str:
    """Ends the server in the middle of the call."""
    print("the disk is full", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(structured_output=False)
def long(size: int) -> str:
    """Answers with a long text."""
    return "x" * size


@server.tool()
def weigh() -> dict[str, int]:
    """Answers with a structure."""
    return {"grams": 5}


@server.tool(structured_output=False)
def whoami() -> str:
    """Tells the process, and the secret that it was given."""
    return f"{os.getpid()} {os.environ.get('TEST_SECRET', 'none')}"


@server.tool(structured_output=False)
def my_key(context: Context) -> str:
    """Tells the metadata of the call, and the header with the secret."""
    meta = dict(context.request_context.meta or {})
    headers = context.headers or {}
    return f"{meta.get('afl/idempotencyKey')} {headers.get('x-secret', 'none')}"


@server.tool(structured_output=False)
def hang() -> str:
    """Blocks the whole server."""
    time.sleep(600)
    return "never"


@server.tool(structured_output=False)
async def meet(path: str, others: int) -> str:
    """Answers when so many calls are there at once."""
    with Path(path).open("a") as book:
        book.write("here\n")
    while len(Path(path).read_text().splitlines()) < others:
        await anyio.sleep(0.01)
    return "met"


def _older(app: ASGIApp) -> ASGIApp:
    """An application that does not know the protocol without sessions."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version", b"") > b"2026":
            await PlainTextResponse("unknown version", 400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer


def main(transport: Literal["stdio", "http", "sessions"], *rest: str) -> None:
    shaped = os.environ.get("TEST_SHAPE")
    if shaped is not None and Path(shaped).exists():
        text = Path(shaped).read_text(encoding="utf-8")
        server.add_tool(lambda: "shaped", name="shaped", description=text)
    if transport == "http":
        server.run("streamable-http", port=int(rest[0]))
    elif transport == "sessions":
        uvicorn.run(_older(server.streamable_http_app()), port=int(rest[0]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
