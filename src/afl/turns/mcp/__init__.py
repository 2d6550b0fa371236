"""Tools of turns that MCP servers offer: this is the client. Needs the extra `agents`.

A call of such a tool is a task named `mcp:<server>`, so it outlives the turn's worker and the
server. A tool is used only as somebody has agreed to it: its definition is pinned by hash at first
use, and a changed one is refused until it is trusted again. What a server says is never trusted:
texts are cut and cleaned, schemas checked, answers marked as coming from outside.

`config` reads which servers there are; `client` is connected to them (`connection` is one of the
connections, each owned by one asyncio task); `pinning`, `tools`, `content` are pure; `serving` is
what a worker runs for a claimed task. Entry points: `client.McpPool`, `tools.call_spec`,
`serving.McpServing`. May import: turns' contract (model, ports, errors), kernel, base.
"""
