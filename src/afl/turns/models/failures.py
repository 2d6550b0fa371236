"""What a provider's failure means for a turn: ask again later, or do not."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from pydantic_ai import exceptions as theirs

from afl.turns.errors import ModelBusy, ModelFailure, ModelRefused

_BUSY_STATUSES = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_LONGEST_QUOTE = 500


def failure_of(error: Exception, name: str, key: str) -> ModelFailure:
    """The failure of the model `name`, whose key is set by `key`."""
    said = _quote(error)
    match error:
        case theirs.ModelQuotaExceededError():
            return ModelRefused(
                f"{name}: the account has no credit left. Raise its limit or add credit at the "
                f"provider, then run it again. {said}"
            )
        case theirs.ModelHTTPError():
            return _of_status(error, name, key, said)
        case theirs.ModelRequestRejectedError() | theirs.UserError():
            return ModelRefused(f"{name}: the request is not possible with this model. {said}")
        case theirs.ModelAPIError():
            return ModelBusy(f"{name} did not answer: {said}", after=_after(error), is_outage=True)
        case theirs.UnexpectedModelBehavior():
            return ModelBusy(f"{name} gave an answer that cannot be read: {said}")
        case _:
            return ModelRefused(
                f"{name}: asking it failed with {type(error).__name__}, which says nothing about "
                f"the model. Look at the cause. {said}"
            )


def cut_off(name: str) -> ModelBusy:
    """The failure of an answer that just ended, without the provider's word that it is whole."""
    return ModelBusy(f"{name}: the answer was cut off in the middle.", is_outage=True)


def _of_status(error: theirs.ModelHTTPError, name: str, key: str, said: str) -> ModelFailure:
    status = error.status_code
    if status in _BUSY_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # a provider that limits us is well: it says so, and when to come back
        is_outage = status == HTTPStatus.REQUEST_TIMEOUT or status not in _BUSY_STATUSES
        return ModelBusy(
            f"{name} is busy ({status}). {said}", after=_after(error), is_outage=is_outage
        )
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            advice = f"the provider does not accept the key. Check {key} and what it may do"
        case HTTPStatus.NOT_FOUND:
            advice = "the provider has no such model. Check its name and the base URL"
            if error.suggested_model_id:
                advice += f"; did you mean {error.suggested_model_id}?"
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            advice = "the request is too large. Give it less context or shorter tool answers"
        case _ if isinstance(error, theirs.ModelContextWindowExceededError):
            advice = "the request is longer than the model can read. Give it less context"
        case _:
            advice = "the provider does not take this request. Correct what it complains about"
    return ModelRefused(f"{name}: {advice} ({status}). {said}")


def _after(error: theirs.ModelAPIError) -> timedelta | None:
    seconds = error.retry_after
    if seconds is None and isinstance(error, theirs.ModelHTTPError):
        # pydantic-ai reads whole seconds and dates; some gateways send fractions
        seconds = _fraction((error.headers or {}).get("retry-after"))
    return None if seconds is None else timedelta(seconds=seconds)


def _fraction(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _quote(error: Exception) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    text = message if isinstance(message, str) else str(error)
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
