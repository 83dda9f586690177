"""What a model call used, in tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls; ``input_total`` includes cached and cache-written tokens,
    ``output_total`` includes reasoning tokens. ``server_tools`` counts what the provider ran itself (searches, page reads, programs).
    ``cache_write_long`` is what of ``cache_write`` is kept for longer than usual, and costs more."""

    input_total: int = 0
    cached_read: int = 0
    cache_write: int = 0
    output_total: int = 0
    reasoning: int = 0
    requests: int = 0
    server_tools: int = 0
    cache_write_long: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_total + other.input_total,
            self.cached_read + other.cached_read,
            self.cache_write + other.cache_write,
            self.output_total + other.output_total,
            self.reasoning + other.reasoning,
            self.requests + other.requests,
            self.server_tools + other.server_tools,
            self.cache_write_long + other.cache_write_long,
        )

    def to_json(self) -> dict[str, int]:
        data = {
            "input_total": self.input_total,
            "cached_read": self.cached_read,
            "cache_write": self.cache_write,
            "output_total": self.output_total,
            "reasoning": self.reasoning,
            "requests": self.requests,
            "server_tools": self.server_tools,
        }
        if self.cache_write_long:
            data["cache_write_long"] = self.cache_write_long
        return data

    @classmethod
    def from_json(cls, data: dict[str, int]) -> Usage:
        return cls(**{k: int(data.get(k, 0)) for k in cls.__slots__})
