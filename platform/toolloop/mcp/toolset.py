"""Tools of one's own and of MCP servers in one toolset that follows what the servers offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from toolloop.providers.base import ToolSpec
from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset, ToolSource


class McpToolset(Toolset):
    """What a run sees: the core tools first, then those that each server offers now.

    The loop asks before every model turn, so a tool that is withheld in the middle of a run is gone from the next turn.

    Args:
        servers: connected servers.
        core: tools that are always there.
        keep: which tools of the servers a run may see; all when None.

    Raises:
        ToolDefinitionError: two servers have one name, or a core tool has the name of a server's tool.
    """

    __slots__ = ("_keep", "_servers")

    def __init__(
        self,
        servers: Iterable[ToolSource],
        core: Iterable[Tool] = (),
        *,
        keep: Callable[[Tool], bool] | None = None,
    ) -> None:
        super().__init__(core)
        self._keep = keep
        self._servers: dict[str, ToolSource] = {}
        for server in servers:
            if server.name in self._servers:
                raise ToolDefinitionError(f"two MCP servers are named {server.name!r}: rename one")
            self._servers[server.name] = server
        # A prefix holds no "__" of its own, so that only core tools can collide.
        for name in self._by_name:
            if name.partition("__")[0] in self._servers:
                raise ToolDefinitionError(
                    f"the tool {name!r} has a name that belongs to an MCP server: rename it"
                )

    def _offered(self) -> Iterator[Tool]:
        for server in self._servers.values():
            for tool in server.tools:
                if self._keep is None or self._keep(tool):
                    yield tool

    def filtered(self, predicate: Callable[[Tool], bool]) -> McpToolset:
        """Return a toolset of those tools, of now and later, for which ``predicate`` is true."""
        before = self._keep

        def keep(tool: Tool) -> bool:
            return (before is None or before(tool)) and predicate(tool)

        own = (tool for tool in self._by_name.values() if predicate(tool))
        return McpToolset(self._servers.values(), own, keep=keep)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name; a withheld one as well, whose call says why it is refused."""
        found = super().get(name)
        if found is None:
            server = self._servers.get(name.partition("__")[0])
            found = server.tool(name) if server is not None else None
            if found is not None and self._keep is not None and not self._keep(found):
                return None
        return found

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what a provider is told now; withheld tools are not in it."""
        return (*self._specs, *(tool.spec() for tool in self._offered()))

    def names(self) -> tuple[str, ...]:
        """Return the names of the tools that are offered now."""
        return tuple(tool.name for tool in self)

    def __iter__(self) -> Iterator[Tool]:
        yield from self._by_name.values()
        yield from self._offered()

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()
