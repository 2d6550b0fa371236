"""What the server keeps, out of documents."""

from __future__ import annotations

import json

from afl.kernel.model import Json
from afl.kernel.mongo.transaction import Document
from afl.kernel.mongo.values import to_time
from afl.server.store import AuditEntry, Job, Token, WebHook


def text_of(value: Json) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def token_of(found: Document) -> Token:
    return Token(
        found["_id"],
        found["name"],
        found["role"],
        found["tenant"],
        bytes(found["digest"]),
        to_time(found["created_at"]),
        to_time(found["expires_at"]),
        to_time(found["last_used_at"]),
    )


def entry_of(found: Document) -> AuditEntry:
    detail: dict[str, Json] = {}
    for each in found["details"]:
        detail |= json.loads(each)
    return AuditEntry(
        found["subject"],
        found["role"],
        found["tenant"],
        found["action"],
        found["target"],
        found["status"],
        detail,
        to_time(found["at"]),
        found["_id"],
    )


def hook_of(found: Document) -> WebHook:
    return WebHook(found["_id"], found["workflow"], found["program"], found["secret"])


def job_of(found: Document) -> Job:
    return Job(
        found["_id"],
        found["verb"],
        json.loads(found["form"]),
        found["by"],
        found["tenant"],
        found["state"],
        found["total"],
        found["done"],
        json.loads(found["failures"]),
        to_time(found["created_at"]),
        to_time(found["finished_at"]),
        found["cursor"],
    )
