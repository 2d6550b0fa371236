from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

from afl.base.errors import ConfigError
from afl.kernel.model import Json
from afl.turns.mcp import connection
from afl.turns.mcp.client import McpPool
from afl.turns.mcp.config import McpServer
from afl.turns.mcp.content import ToolAnswer
from afl.turns.mcp.errors import (
    McpProtocolError,
    McpServerGone,
    McpTimeout,
    McpUnreachable,
    UnknownMcpTool,
)
from tests.turns.mcp.conftest import HttpProcess, is_alive, program

SHORT = timedelta(milliseconds=300)


async def _pid(pool: McpPool) -> int:
    answer = await pool.call_tool("t", "whoami", {}, key="k")
    return int(answer.content.split()[0])


def test_tools_are_listed_with_their_definitions(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            add = await pool.find_tool("t", "add")
            assert (add.server, add.description) == ("t", "Adds two numbers.")
            assert add.read_only is True
            assert add.destructive is None
            assert add.schema["required"] == ["a", "b"]
            with pytest.raises(UnknownMcpTool, match="no tool `subtract`"):
                await pool.find_tool("t", "subtract")

    asyncio.run(scene())


def test_a_call_answers_and_carries_its_key(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            assert await pool.call_tool("t", "add", {"a": 2, "b": 3}, key="k") == ToolAnswer("5")
            answer = await pool.call_tool("t", "my_key", {}, key="turn/1.0")
            assert answer.content.split()[0] == "turn/1.0"
            assert '"grams": 5' in (await pool.call_tool("t", "weigh", {}, key="k")).content

    asyncio.run(scene())


def test_an_error_of_the_tool_is_an_answer(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            answer = await pool.call_tool("t", "refuse", {}, key="k")
            assert answer.is_error
            assert "out of paper" in answer.content

    asyncio.run(scene())


def test_a_call_that_takes_too_long_is_given_up_and_others_go_on(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            before = await _pid(pool)
            with pytest.raises(McpTimeout, match=r"within 0\.3 s"):
                await pool.call_tool("t", "nap", {"seconds": 60}, key="k", timeout=SHORT)
            assert await _pid(pool) == before

    asyncio.run(scene())


def test_a_long_answer_is_cut(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}, max_result_bytes=1000) as pool:
            answer = await pool.call_tool("t", "long", {"size": 3_000_000}, key="k")
            assert answer.content.startswith("x" * 1000 + "\n[cut here")
            assert len(answer.content) < 1100

    asyncio.run(scene())


def test_an_answer_beyond_all_measure_is_refused(http: HttpProcess) -> None:
    async def scene() -> None:
        async with McpPool([McpServer("t", url=http.url)], {}) as pool:
            with pytest.raises(McpProtocolError):
                await pool.call_tool("t", "long", {"size": 20_000_000}, key="k")
            assert await pool.call_tool("t", "add", {"a": 2, "b": 3}, key="k") == ToolAnswer("5")

    asyncio.run(scene())


def test_calls_of_many_turns_run_at_once_on_one_connection(
    server: McpServer, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            meet: dict[str, Json] = {"path": str(tmp_path / "book"), "others": 20}
            calls = [pool.call_tool("t", "meet", dict(meet), key=str(n)) for n in range(20)]
            assert await asyncio.gather(*calls) == [ToolAnswer("met")] * 20
            assert len(set(await asyncio.gather(*(_pid(pool) for _ in range(20))))) == 1

    asyncio.run(scene())


def test_a_server_that_dies_in_a_call_is_started_again() -> None:
    async def scene() -> None:
        async with McpPool([program()], {}) as pool:
            before = await _pid(pool)
            with pytest.raises(McpServerGone, match="It said: the disk is full") as caught:
                await pool.call_tool("t", "die", {}, key="k")
            assert caught.value.retryable
            assert await _pid(pool) != before

    asyncio.run(scene())


def test_a_server_that_dies_takes_all_its_calls_with_it_and_the_next_ones_work() -> None:
    async def scene() -> None:
        async with McpPool([program()], {}) as pool:
            before = await _pid(pool)
            naps = [
                asyncio.create_task(pool.call_tool("t", "nap", {"seconds": 60}, key=str(n)))
                for n in range(3)
            ]
            # an answer to a later call shows that the naps have been sent
            await pool.call_tool("t", "add", {"a": 1, "b": 1}, key="k")
            os.kill(before, signal.SIGKILL)
            ends = await asyncio.gather(*naps, return_exceptions=True)
            assert [type(end) for end in ends] == [McpServerGone] * 3
            after = await asyncio.gather(*(_pid(pool) for _ in range(5)))
            assert len(set(after)) == 1
            assert before not in after

    asyncio.run(scene())


def test_a_server_that_died_unseen_is_started_again_without_an_error() -> None:
    async def scene() -> None:
        async with McpPool([program()], {}) as pool:
            before = await _pid(pool)
            os.kill(before, signal.SIGKILL)
            while pool._connections["t"].is_usable:
                await asyncio.sleep(0.01)
            assert await _pid(pool) != before

    asyncio.run(scene())


def test_a_server_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with McpPool([program()], {}) as pool:
            before = await _pid(pool)
            os.kill(before, signal.SIGSTOP)
            with pytest.raises(McpTimeout):
                await pool.call_tool("t", "add", {"a": 1, "b": 1}, key="k", timeout=SHORT)
            with monkeypatch.context() as patch:
                patch.setattr(connection, "OPEN_SECONDS", 0.3)
                with pytest.raises(McpUnreachable):
                    await pool.list_tools("t")
            assert await _pid(pool) != before
        assert not is_alive(before)

    asyncio.run(scene())


def test_an_http_server_that_is_down_is_unreachable_and_found_again(http: HttpProcess) -> None:
    async def scene() -> None:
        async with McpPool([McpServer("t", url=http.url)], {}) as pool:
            before = await _pid(pool)
            http.kill()
            with pytest.raises(McpUnreachable):
                await pool.call_tool("t", "add", {"a": 1, "b": 1}, key="k")
            with pytest.raises(McpUnreachable, match="cannot be reached at http"):
                await pool.list_tools("t")
            await asyncio.to_thread(http.start)
            assert await _pid(pool) != before

    asyncio.run(scene())


def test_an_http_server_that_is_killed_in_a_call_is_gone(http: HttpProcess, tmp_path: Path) -> None:
    async def scene() -> None:
        async with McpPool([McpServer("t", url=http.url)], {}) as pool:
            await pool.list_tools("t")
            book = tmp_path / "book"
            meet: dict[str, Json] = {"path": str(book), "others": 2}
            call = asyncio.create_task(pool.call_tool("t", "meet", meet, key="k"))
            while not book.exists():
                await asyncio.sleep(0.01)
            http.kill()
            with pytest.raises(McpServerGone):
                await call

    asyncio.run(scene())


def test_closing_leaves_no_process_and_ends_the_calls_under_way() -> None:
    async def scene() -> None:
        pool = McpPool([program()], {})
        pid = await _pid(pool)
        call = asyncio.create_task(pool.call_tool("t", "nap", {"seconds": 60}, key="k"))
        await pool.call_tool("t", "add", {"a": 1, "b": 1}, key="k")
        await pool.close()
        with pytest.raises(McpServerGone):
            await call
        assert not is_alive(pid)

    asyncio.run(scene())


def test_closing_ends_a_program_that_does_not_want_to_end() -> None:
    async def scene() -> None:
        pool = McpPool([program()], {})
        pid = await _pid(pool)
        with pytest.raises(McpTimeout):
            await pool.call_tool("t", "hang", {}, key="k", timeout=SHORT)
        began = time.monotonic()
        await pool.close()
        assert time.monotonic() - began < 10
        assert not is_alive(pid)

    asyncio.run(scene())


def test_a_loop_that_ends_without_closing_leaves_no_process() -> None:
    async def scene() -> int:
        return await _pid(McpPool([program()], {}))

    assert not is_alive(asyncio.run(scene()))


def test_a_cancelled_call_harms_no_other(server: McpServer) -> None:
    async def scene() -> None:
        async with McpPool([server], {}) as pool:
            before = await _pid(pool)
            other = asyncio.create_task(pool.call_tool("t", "nap", {"seconds": 0.3}, key="1"))
            call = asyncio.create_task(pool.call_tool("t", "nap", {"seconds": 60}, key="2"))
            await pool.call_tool("t", "add", {"a": 1, "b": 1}, key="k")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await other == ToolAnswer("rested")
            assert await _pid(pool) == before

    asyncio.run(scene())


def test_whoever_is_cancelled_while_it_opens_leaves_the_connection_to_the_others() -> None:
    async def scene() -> None:
        async with McpPool([program()], {}) as pool:
            first = asyncio.create_task(_pid(pool))
            second = asyncio.create_task(_pid(pool))
            await asyncio.sleep(0)
            first.cancel()
            assert await second == await _pid(pool)

    asyncio.run(scene())


def test_secrets_come_from_the_environment(http: HttpProcess) -> None:
    by_http = McpServer("h", url=http.url, headers={"X-Secret": "Bearer ${A_SECRET}"})
    environ = {"A_SECRET": "hush"}

    async def scene() -> None:
        by_program = program(env={"TEST_SECRET": "${A_SECRET}"})
        async with McpPool([by_program, by_http], environ) as pool:
            assert (await pool.call_tool("t", "whoami", {}, key="k")).content.endswith(" hush")
            answer = await pool.call_tool("h", "my_key", {}, key="k")
            assert answer.content == "k Bearer hush"
        async with McpPool([by_program], {}) as pool:
            with pytest.raises(ConfigError, match="variable A_SECRET, which is not set"):
                await pool.list_tools("t")

    asyncio.run(scene())


def test_only_allowed_tools_are_listed_and_called() -> None:
    async def scene() -> None:
        async with McpPool([program(tools=frozenset({"add"}))], {}) as pool:
            assert [tool.name for tool in await pool.list_tools("t")] == ["add"]
            with pytest.raises(UnknownMcpTool, match="does not name `nap`"):
                await pool.call_tool("t", "nap", {"seconds": 0}, key="k")
            with pytest.raises(UnknownMcpTool, match=r"add a \[mcp.u\]"):
                await pool.list_tools("u")

    asyncio.run(scene())


def test_a_program_that_cannot_start_says_why(tmp_path: Path) -> None:
    async def scene() -> None:
        missing = McpServer("t", command=str(tmp_path / "nothing"))
        async with McpPool([missing], {}) as pool:
            with pytest.raises(McpUnreachable, match="is not a program that can be run"):
                await pool.list_tools("t")
        broken = McpServer("t", command="sh", args=("-c", "echo no licence >&2; exit 1"))
        async with McpPool([broken], {}) as pool:
            with pytest.raises(McpUnreachable, match=r"did not start\. It said: no licence"):
                await pool.list_tools("t")

    asyncio.run(scene())


def test_a_program_that_never_speaks_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPEN_SECONDS", 0.3)

    async def scene() -> None:
        silent = McpServer("t", command="sleep", args=("600",))
        async with McpPool([silent], {}) as pool:
            with pytest.raises(McpUnreachable, match=r"not ready within 0\.3 s"):
                await pool.list_tools("t")

    asyncio.run(scene())


def test_closing_does_not_wait_for_a_server_that_is_being_opened(tmp_path: Path) -> None:
    book = tmp_path / "pid"
    silent = McpServer("t", command="sh", args=("-c", f"echo $$ > {book}; exec sleep 600"))

    async def scene() -> None:
        pool = McpPool([silent], {})
        listing = asyncio.create_task(pool.list_tools("t"))
        while not (book.exists() and book.read_text().strip()):
            await asyncio.sleep(0.01)
        await pool.close()
        with pytest.raises(McpUnreachable, match="closed before it was open"):
            await listing
        assert not is_alive(int(book.read_text()))

    asyncio.run(scene())


def test_a_url_that_is_no_mcp_server_is_told(http: HttpProcess) -> None:
    async def scene() -> None:
        async with McpPool([McpServer("t", url=http.url + "/nothing")], {}) as pool:
            with pytest.raises(McpProtocolError, match=r"HTTP 404.*Look at `url`"):
                await pool.list_tools("t")

    asyncio.run(scene())
