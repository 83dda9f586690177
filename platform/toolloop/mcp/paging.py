"""Follow a server's lists page by page, to an end that comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolloop.mcp.failures import McpError

_MAX_PAGES = 100


async def pages_fetch(
    fetch: Callable[..., Awaitable[Any]], key: str, *, server: str, limit: int
) -> list[Any]:
    """Return the items of all pages.

    Args:
        fetch: asks for a page, given the SDK's parameters.
        key: attribute of a page that holds its items.
        server: its name, for errors.
        limit: items there may be.

    Raises:
        McpError: there are more, or the pages have no end.
    """
    from mcp.types import PaginatedRequestParams

    found: list[Any] = []
    cursor, seen = None, set()
    for _ in range(_MAX_PAGES):
        page = await fetch(params=PaginatedRequestParams(cursor=cursor))
        found += getattr(page, key)
        if len(found) > limit:
            raise McpError(
                f"MCP server {server!r} lists more than {limit} {key}: raise max_tools if that is right",
                "refused",
            )
        cursor = page.next_cursor
        if not cursor:
            return found
        if cursor in seen:
            break
        seen.add(cursor)
    raise McpError(f"MCP server {server!r} lists its {key} in endless pages", "protocol")
