"""An MCP server with one tool. Whoever uses it starts it, and talks to it on stdin and stdout."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("style")


# A tool that only reads may be called again when an answer is lost.
@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def check(text: str) -> str:
    """Finds blanks at the ends of lines, tabs, and lines of more than 100 characters."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line != line.rstrip():
            found.append(f"line {number}: blanks at the end")
        if "\t" in line:
            found.append(f"line {number}: a tab")
        if len(line) > 100:
            found.append(f"line {number}: {len(line)} characters")
    return "\n".join(found) or "nothing to complain about"


if __name__ == "__main__":
    server.run("stdio")
