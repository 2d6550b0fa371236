"""A program that speaks the older protocol, with a handshake, by hand: a line, an answer.

Calling its only tool changes the tool's description, which it tells.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    calls = 0
    for line in sys.stdin:
        message = json.loads(line)
        result: dict[str, Any]
        match message:
            case {"method": "initialize", "params": {"protocolVersion": version}}:
                result = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "older", "version": "1"},
                }
            case {"method": "tools/list"}:
                tool = {"name": "count", "description": f"Called {calls} times."}
                result = {"tools": [tool | {"inputSchema": {"type": "object"}}]}
            case {"method": "tools/call"}:
                calls += 1
                _say({"method": "notifications/tools/list_changed"})
                result = {"content": [{"type": "text", "text": str(calls)}]}
            case {"id": id}:
                _say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
                continue
            case _:
                continue
        _say({"id": message["id"], "result": result})


def _say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


main()
