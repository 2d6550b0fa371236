"""What the commands on agents share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import click

from afl.app.extras import agents_part
from afl.cli.running.connection import connected
from afl.kernel.model import Json
from afl.turns.model import Deliverable

if TYPE_CHECKING:
    from afl.app.agents import Agents

tenant_option = click.option(
    "--tenant", default="default", show_default=True, metavar="NAME", help="Whose they are."
)
agent_argument = click.argument("agent", metavar="AGENT")


@contextmanager
def agents_on(database: str | None, tenant: str, *, rings: bool = False) -> Iterator[Agents]:
    """The agents of the database that is meant; closed afterwards."""
    with connected(database, rings=rings) as services:
        yield cast("Agents", agents_part("afl.app.agents").Agents(services, tenant))


def deliverable_json(deliverable: Deliverable) -> dict[str, Json]:
    """What a turn delivers, as JSON."""
    return {
        "ending": deliverable.ending.value,
        "partial": deliverable.partial,
        "fields": deliverable.fields,
        "message": deliverable.message,
    }
