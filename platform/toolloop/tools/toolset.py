"""The tools one run may use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from toolloop.messages import ModelMessage
from toolloop.providers.base import ToolSpec
from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.tool import Tool


@runtime_checkable
class ToolSource(Protocol):
    """What offers other tools from one moment to the next: an MCP server.

    Attributes:
        name: what the names of its tools begin with, before ``__``.
    """

    name: str

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are offered now."""

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name, also one that was offered and is withheld now."""


class Toolset:
    """An immutable, ordered set of tools with unique names.

    The order is the order in which providers see the tools; keep it stable, so that prompt caches hit.

    Attributes:
        withheld: tells of a name that is not in the set why it may not be called, "" where there is no such tool at all.
            A model that was offered a tool before learns so that it was taken away, and not that it never was.

    Raises:
        ToolDefinitionError: when two tools have one name.
    """

    __slots__ = ("_by_name", "_specs", "withheld")

    def __init__(self, tools: Iterable[Tool] = (), *, withheld: Callable[[str], str] | None = None) -> None:
        self._by_name: dict[str, Tool] = {}
        self.withheld: Callable[[str], str] = withheld or _nothing
        for tool in tools:
            if tool.name in self._by_name:
                raise ToolDefinitionError(f"two tools are named {tool.name!r}: rename one")
            self._by_name[tool.name] = tool
        self._specs = tuple(tool.spec() for tool in self._by_name.values())

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, or None."""
        return self._by_name.get(name)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what a provider is told; the loop asks before every model turn."""
        return self._specs

    def names(self) -> tuple[str, ...]:
        """Return the names in order."""
        return tuple(self._by_name)

    def missing(self, name: str) -> str:
        """Say in words for the model that there is no such tool, and which there are."""
        names = self.names()
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        shown = ", ".join(names[:40]) or "none"
        return f"There is no tool {name!r}. {hint}Available: {shown}."

    def call_ended(self, name: str, *, is_error: bool) -> None:
        """Take note that a call ended; toolsets that keep figures override this."""

    def restore(self, history: Sequence[ModelMessage]) -> None:
        """Take up what the calls of a history changed about the tools; toolsets that change override this."""

    def filtered(self, predicate: Callable[[Tool], bool]) -> Toolset:
        """Return a toolset of those tools for which ``predicate`` is true."""
        return Toolset((tool for tool in self if predicate(tool)), withheld=self.withheld)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name


def _nothing(name: str) -> str:
    return ""
