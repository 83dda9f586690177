"""Tools that a provider runs itself: search of the web and of files stored there, reading pages, running programs.

The loop neither runs nor approves these calls; it sees them as part of the turn. What the answer rests on comes back as
``Turn.citations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolloop.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class WebSearch:
    """Let the model search the web. What the provider cannot do of it is refused before anything is sent.

    Attributes:
        allowed_domains: only these, all when empty.
        blocked_domains: all but these; not together with ``allowed_domains``.
        max_uses: searches in one model turn, None leaves it to the provider.
        country: two-letter code of where the user is, "" for unknown.
        context_size: how much of what is found goes to the model, "" for the provider's default.
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    country: str = ""
    context_size: Literal["", "low", "medium", "high"] = ""

    def __post_init__(self) -> None:
        if self.allowed_domains and self.blocked_domains:
            raise ConfigurationError("WebSearch takes allowed_domains or blocked_domains, not both")
        if self.max_uses is not None and self.max_uses < 1:
            raise ConfigurationError("WebSearch.max_uses must be at least 1")


@dataclass(frozen=True, slots=True)
class FileSearch:
    """Let the model search files stored at the provider.

    Attributes:
        stores: ids of the vector stores (OpenAI), collections (xAI) or file search stores (Gemini).
        max_results: passages per search, None leaves it to the provider.
    """

    stores: tuple[str, ...]
    max_results: int | None = None

    def __post_init__(self) -> None:
        if not self.stores:
            raise ConfigurationError("FileSearch needs at least one store")


@dataclass(frozen=True, slots=True)
class WebFetch:
    """Let the model read pages whose address stands in the conversation.

    Whoever can write into the conversation (a document that is quoted, a tool) can name an address with what was said in
    it: give ``allowed_domains`` wherever that matters.

    Attributes:
        allowed_domains: only these, all when empty.
        blocked_domains: all but these; not together with ``allowed_domains``.
        max_uses: pages in one model turn, None leaves it to the provider.
        max_tokens: of one page's text that goes to the model, about; None for the provider's default.
    """

    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.allowed_domains and self.blocked_domains:
            raise ConfigurationError("WebFetch takes allowed_domains or blocked_domains, not both")
        for name in ("max_uses", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"WebFetch.{name} must be at least 1")


@dataclass(frozen=True, slots=True)
class CodeExecution:
    """Let the model run programs in the provider's own sandbox, which reaches neither this machine nor our tools.

    For programs that call tools see ``toolloop.code_mode``. Files that a program makes stay at the provider.
    """


ServerTool = WebSearch | FileSearch | WebFetch | CodeExecution
