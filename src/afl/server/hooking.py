"""Signed web hooks: checks who calls, and starts one run for each delivery.

Two ways of signing are known: the one of the Standard Webhooks specification, with an id and a time
in what is signed, and GitHub's, over the body alone.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from afl.kernel.model import Json
from afl.runtime.submitting import refuse_unknown_workflow
from afl.server.backend import Backend
from afl.server.errors import BadForm, Missing, NotSignedIn, Taken
from afl.server.store import WebHook

#: The label of runs that a web hook has started.
LABEL = "afl.hook"
_PREFIX = "whsec_"
_SECRET_BYTES = 32
#: How far the clock of the sender may be off; what is older may have been recorded and sent again.
_TOLERANCE = timedelta(minutes=5)
#: The parameter that takes the whole body.
_WHOLE = "payload"


class UnknownHook(Missing):
    """There is no such web hook."""

    code = "server.unknown_hook"


class HookTaken(Taken):
    """There is a web hook of that name already."""

    code = "server.hook_taken"


class BadSignature(NotSignedIn):
    """The call is not signed with the secret of this web hook."""

    code = "server.bad_signature"


class BadDelivery(BadForm):
    """What was delivered is not a JSON object, or has no id."""

    code = "server.bad_delivery"


def new_secret() -> str:
    """A secret as the Standard Webhooks specification writes it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def delivery_id(
    hook: WebHook, headers: Mapping[str, str], body: bytes, now: datetime | None = None
) -> str:
    """The id of a delivery that is signed as it should be.

    Raises:
        BadSignature: it is not, or was signed too long ago.
        BadDelivery: it has no id.
    """
    now = now or datetime.now(UTC)
    if "webhook-signature" in headers:
        delivery, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        signed = b".".join((delivery.encode(), stamp.encode(), body))
        expected = base64.b64encode(_mac(hook.secret, signed)).decode()
        given = [each.partition(",")[2] for each in headers["webhook-signature"].split()]
        is_signed = any(_same(each, expected) for each in given) and _is_fresh(stamp, now)
    else:
        delivery = headers.get("x-github-delivery", "")
        expected = "sha256=" + _mac(hook.secret, body, plain=True).hex()
        is_signed = _same(headers.get("x-hub-signature-256", ""), expected)
    if not is_signed:
        raise BadSignature(
            f"The call of web hook {hook.name} is not signed with its secret, or was signed too "
            "long ago. Send webhook-id, webhook-timestamp and webhook-signature."
        )
    if not delivery:
        raise BadDelivery("The delivery has no id. Send webhook-id, another for each delivery.")
    return delivery


def start_run(backend: Backend, hook: WebHook, delivery: str, body: bytes) -> str:
    """Starts the run of a delivery, or finds the one that it had started. Answers its id.

    A workflow with a parameter `payload` gets the whole body there; another one gets its fields.
    """
    try:
        told: Json = json.loads(body or b"{}")
    except ValueError as error:
        raise BadDelivery(f"The body is not JSON: {error}.") from error
    operations = backend.client.operations
    plan = operations.evaluator.plans.get(operations.program(hook.program))
    refuse_unknown_workflow(plan, hook.workflow)
    if any(each.name == _WHOLE for each in plan.facet(hook.workflow).facet.params):
        inputs: dict[str, Json] = {_WHOLE: told}
    elif isinstance(told, dict):
        inputs = told
    else:
        raise BadDelivery(
            f"The body is not a JSON object, and {hook.workflow} has no parameter `{_WHOLE}` that "
            "could take it."
        )
    run = operations.submit(
        hook.workflow,
        inputs,
        program=hook.program,
        key=f"hook:{hook.name}:{delivery}",
        labels={LABEL: hook.name},
    )
    return run.id


def _mac(secret: str, signed: bytes, *, plain: bool = False) -> bytes:
    """GitHub takes the text of a secret as the key, the specification what stands in it."""
    key = secret.encode()
    if not plain:
        with suppress(binascii.Error):
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    return hmac.digest(key, signed, "sha256")


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _is_fresh(stamp: str, now: datetime) -> bool:
    try:
        at = datetime.fromtimestamp(int(stamp), UTC)
    except (ValueError, OverflowError, OSError):
        return False
    return abs(now - at) <= _TOLERANCE
