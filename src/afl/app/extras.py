"""Parts that need an extra: they are loaded when somebody wants them."""

from __future__ import annotations

import importlib
import types

from afl.app.errors import ExtraMissing


def agents_part(module: str) -> types.ModuleType:
    """A module that needs the extra `agents`.

    Raises:
        ExtraMissing: it is not installed; the message says how to.
    """
    return extra_part(module, "agents", "Agents need")


def mail_part(module: str) -> types.ModuleType:
    """A module that needs the extra `redis`, on whatever the mailboxes are.

    Raises:
        ExtraMissing: it is not installed; the message says how to.
    """
    return extra_part(module, "redis", "Mailboxes and breakers need")


def extra_part(module: str, extra: str, who: str) -> types.ModuleType:
    """A module that needs an extra; `who` begins the sentence that says so."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"{who} {error.name}, which is not installed: `pip install 'afl-agentflow[{extra}]'`."
        ) from error
