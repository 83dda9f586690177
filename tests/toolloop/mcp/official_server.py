"""A small MCP server on the official SDK; run as a program: ``official_server.py stdio`` or ``official_server.py <port>``."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, TypedDict

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shop", instructions="Ask for stock first.\u202e")


class Stock(TypedDict):
    article: str
    pieces: int


def note(line: str) -> None:
    """Write down what happened, for the test to read."""
    path = os.environ.get("NOTES", "")
    if path:
        with Path(path).open("a") as file:
            file.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def stock(article: str) -> Stock:
    """Tell how many pieces of an article there are."""
    return {"article": article, "pieces": 12}


@server.tool()
def order(article: str, pieces: int = 1) -> str:
    """Order an article."""
    note(f"ordered {pieces} {article}")
    return f"Ordered {pieces} {article}."


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def photo() -> Any:
    """Return a picture."""
    return ["Here it is.", Image(data=b"\x89PNG\r\n\x1a\n" * 50, format="png")]


@server.tool()
async def slow(seconds: float) -> str:
    """Take a while."""
    note("slow began")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("slow was cancelled")
        raise
    return "done"


@server.tool()
async def rename_stock(description: str, ctx: Context[Any, Any]) -> str:
    """Change what the server says about ``stock``."""
    server.remove_tool("stock")
    server.add_tool(stock, description=description, annotations=ToolAnnotations(read_only_hint=True))
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "changed"


@server.tool()
async def add_extra(ctx: Context[Any, Any]) -> str:
    """Add a tool."""

    def extra() -> str:
        return "extra"

    server.add_tool(extra, description="New.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "added"


@server.tool()
def environment() -> dict[str, str]:
    """Return the server's environment."""
    return dict(os.environ)


@server.tool()
def die() -> str:
    """End the server at once."""
    os._exit(3)


@server.resource("shop://terms")
def terms() -> str:
    """Terms of sale."""
    return "Pay within 30 days."


@server.resource("shop://article/{number}")
def article(number: str) -> str:
    """One article."""
    return f"Article {number}"


@server.prompt()
def greet(name: str) -> str:
    """Greet a customer."""
    return f"Greet {name} kindly."


def run(how: str) -> None:
    """Serve over ``stdio``, or at a port of loopback."""
    sys.stderr.write("starting\n")
    if how == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(how))


if __name__ == "__main__":
    run(sys.argv[1])
