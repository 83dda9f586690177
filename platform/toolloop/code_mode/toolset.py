"""The toolset of a run in which programs call the tools."""

from __future__ import annotations

from collections.abc import Iterable

from toolloop.providers.base import ToolSpec
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset


class CodeToolset(Toolset):
    """A toolset whose tools are called by programs: a model sees only ``execute_tools`` and what is shown beside it."""

    __slots__ = ("_shown",)

    def __init__(self, shown: Iterable[Tool], inner: Iterable[Tool]) -> None:
        shown = list(shown)
        self._shown = tuple(tool.spec() for tool in shown)
        super().__init__([*shown, *inner])

    def specs(self) -> tuple[ToolSpec, ...]:
        """See ``Toolset``."""
        return self._shown
