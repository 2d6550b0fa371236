from __future__ import annotations

import httpx2
import pytest
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

from afl.turns.mcp.config import McpServer
from afl.turns.mcp.errors import McpError, McpProtocolError, McpServerGone, McpUnreachable
from afl.turns.mcp.http import HttpReport
from afl.turns.mcp.trouble import not_opened, of_call

SERVER = McpServer("t", url="http://h/mcp")
CLOSED = MCPError(CONNECTION_CLOSED, "Connection closed")
REFUSED = MCPError(INVALID_REQUEST, "no")


@pytest.mark.parametrize(
    ("error", "report", "kind"),
    [
        (CLOSED, HttpReport(), McpServerGone),
        (BrokenPipeError(), HttpReport(), McpServerGone),
        (REFUSED, HttpReport(error=httpx2.ReadError("reset")), McpServerGone),
        (REFUSED, HttpReport(error=httpx2.ConnectError("refused")), McpUnreachable),
        (REFUSED, HttpReport(status=502), McpServerGone),
        (REFUSED, HttpReport(status=503), McpServerGone),
        (REFUSED, HttpReport(status=429), McpUnreachable),
        (REFUSED, HttpReport(status=404), McpUnreachable),
        (MCPError(METHOD_NOT_FOUND, "?"), HttpReport(status=404), McpProtocolError),
        (MCPError(INVALID_PARAMS, "?"), HttpReport(status=400), McpProtocolError),
        (REFUSED, HttpReport(status=401), McpProtocolError),
        (REFUSED, HttpReport(status=200), McpProtocolError),
        (MCPError(CONNECTION_CLOSED, "SSE stream failed: x"), HttpReport(), McpProtocolError),
        (RuntimeError("Invalid structured content"), HttpReport(status=200), McpProtocolError),
    ],
)
def test_an_error_tells_whether_the_call_may_have_been_done(
    error: Exception, report: HttpReport, kind: type[McpError]
) -> None:
    assert type(of_call(SERVER, error, report, "gone")) is kind


def test_a_server_that_wants_other_credentials_says_where_to_look() -> None:
    error = not_opened(SERVER, REFUSED, HttpReport(status=403), "")
    assert isinstance(error, McpProtocolError)
    assert "HTTP 403" in error.message
    assert "`headers` in [mcp.t]" in error.message
