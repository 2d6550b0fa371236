"""Two workers of the review example as processes, and all that they talk to but the database: a
provider of models, an MCP server for each worker, and the sink."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from afl.testing.llm_server import Asked, LoopbackLLM, Said, ToolCall
from tests.chaos.review_fuse import Fuse
from tests.chaos.review_handlers import EXAMPLE
from tests.chaos.sink import REPOSITORY, Sink
from tests.cli.runner import plain_environment

LEASE_SECONDS = 2.0
_START_SECONDS = 90.0


def scripted_provider() -> LoopbackLLM:
    """A provider that says what the script of the example says. Which reply is next follows from
    the request alone."""
    script = json.loads((EXAMPLE / "replies.json").read_text(encoding="utf-8"))
    replies = [_said(number, reply) for number, reply in enumerate(script["replies"])]

    def answer(asked: Asked) -> Said:
        said: list[str] = [message["role"] for message in asked.json["messages"]]
        return replies[said.count("assistant")]

    return LoopbackLLM(answer)


def _said(number: int, reply: dict[str, object]) -> Said:
    calls, usage = reply["calls"], reply["usage"]
    assert isinstance(calls, list)
    assert isinstance(usage, dict)
    return Said(
        text=str(reply.get("text", "")),
        calls=tuple(
            ToolCall(call["name"], json.dumps(call["arguments"]), f"call_{number}_{index}")
            for index, call in enumerate(calls)
        ),
        input_tokens=usage["input"],
        output_tokens=usage["output"],
    )


@dataclass(slots=True)
class Member:
    process: subprocess.Popen[str]
    log: Path


class ReviewFleet:
    """Two workers; one that has died is replaced by `tend`."""

    def __init__(self, url: str, folder: Path, size: int = 2) -> None:
        self.fuse = Fuse(folder / "fuse.json")
        self.fuse.arm(0)
        self.records = folder / "sink.jsonl"
        self.deaths = 0
        self._folder = folder
        self._started = 0
        self._stack = ExitStack()
        self._sink = self._stack.enter_context(closing(Sink(self.records)))
        self.provider = self._stack.enter_context(scripted_provider())
        servers = folder / "mcp.toml"
        servers.write_text(
            f"[mcp.style]\ncommand = {json.dumps(sys.executable)}\n"
            f'args = ["-m", "tests.chaos.review_mcp", "{self._sink.port}"]\n',
            encoding="utf-8",
        )
        self._environment = {
            **plain_environment(),
            "AFL_DATABASE_URL": url,
            "AFL_MODEL": f"openai@{self.provider.openai_url}:reviewer",
            "AFL_MCP": str(servers),
        }
        self._members = [self._start() for _ in range(size)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.process.kill()
            member.process.wait()
        self._stack.close()

    def tend(self) -> None:
        """Starts a worker in the place of one that has died."""
        for index, member in enumerate(self._members):
            if member.process.poll() is not None:
                if member.process.returncode != -9:
                    raise RuntimeError(f"a worker ended by itself: {self._last_words(member)}")
                self.deaths += 1
                self._members[index] = self._start()

    def wait_until_ready(self) -> None:
        """Waits until every worker serves."""
        end = time.monotonic() + _START_SECONDS
        for member in self._members:
            while '"started"' not in member.log.read_text(encoding="utf-8"):
                if member.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"a worker did not start: {self._last_words(member)}")
                time.sleep(0.05)

    def _start(self) -> Member:
        self._started += 1
        log = self._folder / f"worker-{self._started}.log"
        options = ("--lease", f"{LEASE_SECONDS:g}s", "--list", "default", "--list", "ci", "--json")
        fixed = ("-m", "tests.chaos.review_worker", str(self._folder / "fuse.json"))
        handlers = ("--handlers", "tests.chaos.review_handlers")
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, *fixed, str(self._sink.port), *handlers, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
                env=self._environment,
                start_new_session=True,
                text=True,
            )
        return Member(process, log)

    @staticmethod
    def _last_words(member: Member) -> str:
        return member.log.read_text(encoding="utf-8", errors="replace")[-2000:]
