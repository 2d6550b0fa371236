"""A worker that gets stuck after it has sent a message, and before that is in the store: it waits
to be killed. `python -m tests.app.mail_process DATABASE`."""

from __future__ import annotations

import asyncio
import sys
import time

from afl import App
from afl.app.mailroom import Mailroom
from afl.messaging.models import AgentMessage


def main() -> None:
    send = Mailroom._send

    async def stuck(self: Mailroom, message: AgentMessage) -> str:
        await send(self, message)
        print("sent", flush=True)
        await asyncio.Event().wait()
        raise AssertionError

    Mailroom._send = stuck  # type: ignore[method-assign]
    with App("post", sys.argv[1]).worker(lease="1s"):
        time.sleep(600)


if __name__ == "__main__":
    main()
