"""What browsers report of themselves."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from afl.server.headers import CspReports

router = APIRouter(tags=["reports"], include_in_schema=False)


@router.post("/csp-report", status_code=204)
def csp_report(request: Request) -> Response:
    """Counts that something in a page was against the content security policy.

    It is open: browsers send no token with it. What it says is not read, for anybody may say it.
    """
    reports: CspReports = request.app.state.csp_reports
    reports.add()
    return Response(status_code=204)
