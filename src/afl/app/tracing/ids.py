"""The ids of traces and spans, which follow from what they are about."""

from __future__ import annotations

from hashlib import sha256

from opentelemetry.trace import SpanContext, TraceFlags

from afl.kernel.working.task_fields import trace_id

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def span_id(run: str, path: str = "") -> int:
    """The span of a step of a run; with no path, that of the run itself."""
    return int.from_bytes(sha256(f"{run}:{path}".encode()).digest()[:8], "big") or 1


def span_context(root: str, run: str, path: str = "") -> SpanContext:
    """Where the span of a step is, for its children. `root` is the run that all began with."""
    return SpanContext(trace_id(root), span_id(run, path), is_remote=True, trace_flags=_SAMPLED)
