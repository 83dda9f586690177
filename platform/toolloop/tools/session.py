"""Which tools of a catalog one conversation has loaded, within which limits, and what it did with them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolloop.errors import ConfigurationError

PRESSURE = 0.75
"""Share of the token budget above which schemas are sent in their compact form."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of a wish to load tools.

    Attributes:
        loaded: newly active.
        present: active before.
        refused: why each of the others is not active, in words for the model.
    """

    loaded: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ToolSession:
    """The active tools of one conversation.

    Attributes:
        max_tools: tools active at once.
        token_budget: tokens that their declarations may take, None for no budget.
        auto_compact: send compact schemas once ``PRESSURE`` of the budget is used; they count for about half, so more
            tools fit.
        session_id: for the application's own records.
        metadata: JSON values of the application.
    """

    max_tools: int = 50
    token_budget: int | None = None
    auto_compact: bool = True
    session_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    metadata: dict[str, Any] = field(default_factory=dict)
    _full: dict[str, int] = field(default_factory=dict)
    _compact: dict[str, int] = field(default_factory=dict)
    _stats: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_tools < 1:
            raise ConfigurationError("ToolSession.max_tools must be at least 1")
        if self.token_budget is not None and self.token_budget < 1:
            raise ConfigurationError("ToolSession.token_budget must be at least 1, or None")

    @property
    def active(self) -> tuple[str, ...]:
        """Return the names of the active tools in the order in which they were loaded."""
        return tuple(self._full)

    def is_active(self, name: str) -> bool:
        """Tell whether a tool is active."""
        return name in self._full

    @property
    def is_compact(self) -> bool:
        """Tell whether schemas go out in their compact form now."""
        return (
            self.auto_compact
            and self.token_budget is not None
            and sum(self._full.values()) > PRESSURE * self.token_budget
        )

    @property
    def tokens_used(self) -> int:
        """Return the estimated tokens of the active tools' declarations, in the form in which they go out."""
        return sum((self._compact if self.is_compact else self._full).values())

    @property
    def tokens_left(self) -> int | None:
        """Return what is left of the budget, None when there is none."""
        return None if self.token_budget is None else max(0, self.token_budget - self.tokens_used)

    def load(self, names: Iterable[str], tokens: Callable[[str], tuple[int, int]]) -> Loaded:
        """Activate tools as far as the limits allow, in the given order.

        Args:
            names: tools that exist.
            tokens: estimated tokens of a tool's full and of its compact declaration.
        """
        loaded: list[str] = []
        present: list[str] = []
        refused: dict[str, str] = {}
        for name in dict.fromkeys(names):
            if name in self._full:
                present.append(name)
                continue
            if len(self._full) >= self.max_tools:
                refused[name] = f"{self.max_tools} tools are active, which is the maximum: unload some"
                continue
            self._full[name], self._compact[name] = tokens(name)
            if self.token_budget is not None and self.tokens_used > self.token_budget:
                del self._full[name], self._compact[name]
                refused[name] = (
                    f"it does not fit the budget of {self.token_budget} tokens, of which {self.tokens_used} are used: "
                    "unload some"
                )
                continue
            self._count(name, "loads")
            loaded.append(name)
        return Loaded(tuple(loaded), tuple(present), refused)

    def unload(self, names: Iterable[str]) -> tuple[str, ...]:
        """Deactivate tools; return those that were active."""
        gone = [name for name in dict.fromkeys(names) if name in self._full]
        for name in gone:
            del self._full[name], self._compact[name]
            self._count(name, "unloads")
        return tuple(gone)

    def call_recorded(self, name: str, *, is_error: bool = False) -> None:
        """Count a call of a tool."""
        self._count(name, "calls")
        if is_error:
            self._count(name, "errors")

    def analytics(self) -> dict[str, dict[str, int]]:
        """Return per tool how often it was loaded, unloaded and called, and how many calls failed."""
        return {
            name: {"loads": 0, "unloads": 0, "calls": 0, "errors": 0, **stats}
            for name, stats in self._stats.items()
        }

    def analytics_reset(self) -> None:
        """Forget what was counted."""
        self._stats.clear()

    def _count(self, name: str, what: str) -> None:
        stats = self._stats.setdefault(name, {})
        stats[what] = stats.get(what, 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON values."""
        return {
            "session_id": self.session_id,
            "max_tools": self.max_tools,
            "token_budget": self.token_budget,
            "auto_compact": self.auto_compact,
            "metadata": dict(self.metadata),
            "active": [
                {"name": name, "tokens": self._full[name], "compact_tokens": self._compact[name]}
                for name in self._full
            ],
            "stats": {name: dict(stats) for name, stats in self._stats.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolSession:
        """Rebuild the session that ``to_dict`` wrote."""
        session = cls(
            max_tools=data["max_tools"],
            token_budget=data.get("token_budget"),
            auto_compact=data.get("auto_compact", True),
            session_id=data["session_id"],
            metadata=dict(data.get("metadata", {})),
        )
        for item in data.get("active", ()):
            session._full[item["name"]] = int(item["tokens"])
            session._compact[item["name"]] = int(item["compact_tokens"])
        session._stats = {name: dict(stats) for name, stats in data.get("stats", {}).items()}
        return session
