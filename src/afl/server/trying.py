"""Trying a workflow out: in a process of its own, which is given up when it takes too long."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from threading import BoundedSemaphore

from afl.app.remote.errors import error_of
from afl.server.models.base import JsonMap
from afl.server.models.system import TryForm, TryResult
from afl.server.program_views.try_process import SECONDS, STOPPED

log = logging.getLogger(__name__)

_MODULE = "afl.server.program_views.try_process"
#: How many are tried at once, and how long others wait for their turn.
_AT_ONCE, _PATIENCE_SECONDS = 2, 30.0
#: How much longer than its own limit the process may take, to start and to tell.
_SLACK_SECONDS = 20.0

_places = BoundedSemaphore(_AT_ONCE)


def try_out(form: TryForm) -> TryResult:
    """What becomes of a run of the workflow, with stubs for all that is outside.

    Raises:
        BadProgram: the files do not compile. UnknownFacet: they have no such workflow.
        BadInputs: it does not take these inputs, or a facet cannot answer as it is stubbed.
    """
    if not _places.acquire(timeout=_PATIENCE_SECONDS):
        return _stopped("Others are trying workflows here. Try again in a moment.")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-s", "-m", _MODULE],
            input=form.model_dump_json().encode(),
            capture_output=True,
            timeout=SECONDS + _SLACK_SECONDS,
            check=False,
            # what this process imports, and nothing else of its surroundings
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except subprocess.TimeoutExpired:
        return _stopped(f"It was stopped after {SECONDS + _SLACK_SECONDS:g} s.")
    finally:
        _places.release()
    if done.returncode != 0:
        errors = done.stderr.decode(errors="replace")
        if done.returncode < 0 or "MemoryError" in errors:
            return _stopped("It was stopped: it needs more memory than it may have.")
        log.error("a workflow could not be tried: %s", errors)
        return _stopped("It could not be tried. The log of the server says why.")
    answer = json.loads(done.stdout)
    if "code" in answer:
        raise error_of(answer["code"], answer["message"])
    return TryResult.model_validate(answer)


def _stopped(message: str) -> TryResult:
    error: JsonMap = {"type": "TakesTooLong", "message": message}
    return TryResult(state=STOPPED, outputs=None, error=error, steps=[])
