"""A toolset that grows and shrinks while a run goes on: core tools, meta-tools, and what the session has loaded."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolloop.messages import ModelMessage, ToolResult
from toolloop.providers.base import ToolSpec
from toolloop.tools.catalog import Catalog
from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.meta_tools import META_TOOLS, Chooser, meta_tools_make
from toolloop.tools.session import Loaded, ToolSession
from toolloop.tools.specs import spec_compact, spec_tokens
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset


class DynamicToolset(Toolset):
    """What one run sees of a catalog.

    The loop asks ``specs`` before every model turn, so what a meta-tool loads in one turn is there in the next. Core tools
    and meta-tools come first and never change, then the loaded ones in the order of loading: a prompt cache keeps the
    part before the first change.

    Args:
        catalog: all tools that exist and that this actor may use (see ``allowed``).
        session: the conversation's active tools; changed by the meta-tools.
        core: always there, never unloaded. They need not be in the catalog.
        chooser: answers ``find_tools`` (a cheap model, say) instead of the catalog's own search.
        allowed: whether this run may see a catalog tool, by name; all when None.
        native: hand the whole catalog to providers that search tools by themselves, as deferred tools; there the model
            calls what it found at once, and the meta-tools are not shown. With any other provider nothing changes, so
            a run may change over. Sessions limit only what is loaded here, not what a provider finds.

    Raises:
        ToolDefinitionError: when a core tool takes the name of a meta-tool.
    """

    __slots__ = ("_allowed", "_deferred", "_fixed", "_native", "catalog", "session")

    def __init__(
        self,
        catalog: Catalog,
        session: ToolSession,
        core: Iterable[Tool] = (),
        *,
        chooser: Chooser | None = None,
        allowed: Callable[[str], bool] | None = None,
        native: bool = False,
    ) -> None:
        self.catalog, self.session, self._allowed = catalog, session, allowed
        core = tuple(core)
        super().__init__((*core, *meta_tools_make(self, chooser)))
        self._fixed = frozenset(self._by_name)
        self._native = native
        self._deferred: tuple[ToolSpec, ...] | None = None
        if native:
            self._specs = tuple(replace(spec, finder=spec.name in META_TOOLS) for spec in self._specs)
        # The rights of an actor may have shrunk since the session was stored.
        session.unload(n for n in session.active if n in self._fixed or not self.may_load(n))

    def may_load(self, name: str) -> bool:
        """Tell whether a tool exists in the catalog and this run may use it."""
        return name in self.catalog and (self._allowed is None or self._allowed(name))

    def is_fixed(self, name: str) -> bool:
        """Tell whether a tool is always there."""
        return name in self._fixed

    def load(self, names: Sequence[str]) -> Loaded:
        """Activate catalog tools for the next model turn."""
        known = [name for name in names if name not in self._fixed and self.may_load(name)]
        outcome = self.session.load(known, self._tokens)
        refused = dict(outcome.refused)
        for name in names:
            if name not in self._fixed and not self.may_load(name):
                refused[name] = self._unknown(name)
        fixed = tuple(name for name in dict.fromkeys(names) if name in self._fixed)
        return Loaded(outcome.loaded, (*outcome.present, *fixed), refused)

    def restore(self, history: Sequence[ModelMessage]) -> None:
        """Redo what the meta-tools did in a history, for a run that goes on after a crash with a fresh session."""
        for message in history:
            if not isinstance(message, ToolResult) or message.is_error:
                continue
            payload = message.payload if message.name in META_TOOLS else None
            if isinstance(payload, dict):
                self.session.unload(payload.get("unloaded", ()))
                self.load(payload.get("loaded", ()))

    def _tokens(self, name: str) -> tuple[int, int]:
        entry = self.catalog.entry(name)
        if entry is None:
            raise ToolDefinitionError(f"there is no tool {name!r} in the catalog")
        return entry.token_count, spec_tokens(spec_compact(entry.tool.spec()))

    def _unknown(self, name: str) -> str:
        names = [entry.name for entry in self.catalog if self.may_load(entry.name)]
        close = difflib.get_close_matches(name, names, n=1)
        return f"there is no such tool{f', did you mean {close[0]!r}?' if close else ''}"

    def get(self, name: str) -> Tool | None:
        """Return a core, meta or loaded tool, one that a provider may have found by itself, or None."""
        found = super().get(name)
        callable_now = self._native or self.session.is_active(name)
        if found is None and callable_now and self.may_load(name):
            found = self.catalog.get(name)
        return found

    def missing(self, name: str) -> str:
        """Say in words for the model why there is no such tool now, and what it can do."""
        if self.may_load(name):
            return (
                f"The tool {name!r} is not loaded. Load it with load_tools, then call it in your next turn."
            )
        return super().missing(name)

    def call_ended(self, name: str, *, is_error: bool) -> None:
        """Count the call in the session's analytics."""
        self.session.call_recorded(name, is_error=is_error)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return what a provider is told now, in compact form when the session's budget is tight."""
        compact = self.session.is_compact
        loaded = (tool.spec() for tool in self._loaded())
        shown = (*self._specs, *(spec_compact(spec) if compact else spec for spec in loaded))
        if not self._native:
            return shown
        active = frozenset(self.session.active)
        return (*shown, *(spec for spec in self._searched() if spec.name not in active))

    def _searched(self) -> tuple[ToolSpec, ...]:
        """Return the catalog as deferred tools, in its own order; read once, as it needs every schema."""
        if self._deferred is None:
            names = [e.name for e in self.catalog if e.name not in self._fixed]
            tools = (self.catalog.get(name) for name in names if self.may_load(name))
            self._deferred = tuple(replace(tool.spec(), deferred=True) for tool in tools if tool is not None)
        return self._deferred

    def names(self) -> tuple[str, ...]:
        """Return the names of the tools that can be called now."""
        return (*self._by_name, *(tool.name for tool in self._loaded()))

    def _loaded(self) -> Iterator[Tool]:
        for name in self.session.active:
            tool = self.catalog.get(name) if self.may_load(name) else None
            if tool is not None:
                yield tool

    def __iter__(self) -> Iterator[Tool]:
        return iter((*self._by_name.values(), *self._loaded()))

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def token_report(self) -> dict[str, Any]:
        """Return estimated tokens: of the next request's declarations, of the whole catalog, and what is saved."""
        now = sum(spec_tokens(spec) for spec in self.specs() if not spec.deferred)
        everything = self.catalog.token_count()
        return {"now": now, "catalog": everything, "saved": max(0, everything - now)}
