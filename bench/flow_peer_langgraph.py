"""LangGraph on the flows of `bench.flow`: URL.

Runs in an environment of its own (see `flow_peers`). A step is a node. The checkpointer is that for
PostgreSQL on a pool of connections, with the settings of its documentation; `durability="sync"`
stores every step before the next one begins. The synchronous interface, which is its faster one,
with a thread for each client. Steps at once are sent to one node, as its documentation has it.
"""

from __future__ import annotations

import asyncio
import operator
import sys
from importlib.metadata import version
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.checkpoint.postgres import PostgresSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]
from langgraph.types import Send  # type: ignore[import-not-found]
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from bench.flow_side import FAN, SEQUENCE, STEPS, serve

_CONNECTIONS = 18


class InSequence(TypedDict):
    n: int


class AtOnce(TypedDict):
    items: list[int]
    results: Annotated[list[int], operator.add]


def step(state: InSequence) -> InSequence:
    return {"n": state["n"] + 1}


def step_at_once(state: InSequence) -> dict[str, list[int]]:
    return {"results": [state["n"] + 1]}


def sequence(saver: PostgresSaver) -> Any:  # noqa: ANN401 - a type of LangGraph
    graph = StateGraph(InSequence)
    names = [f"step{number}" for number in range(STEPS[SEQUENCE])]
    for name in names:
        graph.add_node(name, step)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph.compile(checkpointer=saver)


def fan(saver: PostgresSaver) -> Any:  # noqa: ANN401 - a type of LangGraph
    graph = StateGraph(AtOnce)
    graph.add_node("step", step_at_once)
    graph.add_conditional_edges(
        START, lambda state: [Send("step", {"n": n}) for n in state["items"]], ["step"]
    )
    graph.add_edge("step", END)
    return graph.compile(checkpointer=saver)


class LangGraph:
    def __init__(self, saver: PostgresSaver) -> None:
        self._sequence, self._fan = sequence(saver), fan(saver)

    async def flow(self, shape: str, client: int) -> int:
        return await asyncio.to_thread(self._fan_out if shape == FAN else self._in_sequence)

    def _in_sequence(self) -> int:
        return int(self._run(self._sequence, {"n": 0})["n"])

    def _fan_out(self) -> int:
        given = {"items": list(range(STEPS[FAN])), "results": []}
        return sum(self._run(self._fan, given)["results"])

    def _run(self, graph: Any, given: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - see above
        thread = {"configurable": {"thread_id": uuid4().hex}}
        result: dict[str, Any] = graph.invoke(given, thread, durability="sync")
        return result


def main(url: str) -> None:
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(url, min_size=1, max_size=_CONNECTIONS, kwargs=settings) as pool:
        saver = PostgresSaver(pool)
        saver.setup()
        asyncio.run(serve(LangGraph(saver), f"langgraph {version('langgraph')}"))


if __name__ == "__main__":
    main(sys.argv[1])
