"""The OpenAPI document, from which the types of the dashboard are made.

python -m afl.server.openapi > ui/openapi.json
"""

from __future__ import annotations

import json
import sys

from afl.app.client import Client
from afl.app.services import connect
from afl.base.settings import Settings
from afl.server.application import create_app
from afl.server.backend import Backend
from afl.server.memory_store import MemoryServerStore


def document() -> str:
    """The document as it is stored: sorted, so that it changes only with the API."""
    with connect("memory:") as services:
        backend = Backend(services, Client(services=services), MemoryServerStore(), Settings())
        return json.dumps(create_app(backend).openapi(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
