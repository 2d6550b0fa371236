"""`ToolRegistry`: handlers by facet name, as the agent specification has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from afl.runtime.handler_table import HandlerTable, on_params

Tool = Callable[[dict[str, Any]], Any]


class ToolRegistry:
    """Handlers by qualified name, else by short name, else the default handler."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._default: Tool | None = None

    def register(self, facet_name: str, handler: Tool) -> None:
        """Serves a facet, by its qualified name or its short one."""
        self._tools[facet_name] = handler

    def set_default_handler(self, handler: Tool) -> None:
        """Serves what has no handler of its own."""
        self._default = handler

    def update(self, other: ToolRegistry) -> None:
        """Takes over the handlers of another registry, its default included."""
        self._tools.update(other._tools)
        self._default = other._default or self._default

    def names(self) -> list[str]:
        """The registered names."""
        return list(self._tools)

    def has_handler(self, facet_name: str) -> bool:
        """Whether somebody serves this facet."""
        return self._find(facet_name) is not None

    def handle(self, facet_name: str, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - the tool's
        """What the handler of a facet answers; None if there is no handler."""
        tool = self._find(facet_name)
        return None if tool is None else tool(payload)

    def table(self) -> HandlerTable:
        """The handlers for a worker."""
        table = HandlerTable()
        for name, tool in self._tools.items():
            table.register(name, on_params(tool))
        if self._default is not None:
            table.set_default(on_params(self._default))
        return table

    def _find(self, facet_name: str) -> Tool | None:
        short = facet_name.rpartition(".")[2]
        return self._tools.get(facet_name) or self._tools.get(short) or self._default
