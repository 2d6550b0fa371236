"""Asking one model after another until one of them answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from afl.turns.errors import ModelBusy, ModelRefused, ProviderDown
from afl.turns.model import ModelRequest, Reply
from afl.turns.ports import Listener, Models


async def ask_first(
    models: Models, names: Sequence[str], request: ModelRequest, listener: Listener | None = None
) -> Reply:
    """The answer of the first model that gives one.

    If none does, the last failure is raised. Busy beats refused: as long as one of them may answer
    later, it is worth waiting, and no longer than the first of them asks for. `ProviderDown` means
    that none of those was asked. The listener hears the pieces of every attempt, also of one that
    broke off, and `again` before the next.
    """
    busy: list[ModelBusy] = []
    refused = ModelRefused("There is no model to ask: name one in the brief.")
    for at, name in enumerate(names):
        if at and listener is not None:
            listener("again", "")
        try:
            # in a thread: the first model of a provider imports its library, which takes seconds
            model = await asyncio.to_thread(models.find, name)
            return await model.ask(request, listener)
        except ModelBusy as failure:
            busy.append(failure)
        except ModelRefused as failure:
            refused = failure
    if not busy:
        raise refused
    waits = [failure.after for failure in busy if failure.after is not None]
    down = [failure for failure in busy if isinstance(failure, ProviderDown)]
    if len(down) == len(busy):
        first = min(down, key=lambda failure: failure.after or timedelta())
        raise ProviderDown(first.message, breaker=first.breaker, after=min(waits)) from first
    raise ModelBusy(busy[-1].message, after=min(waits, default=None)) from busy[-1]
