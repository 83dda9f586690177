"""Tools that providers run themselves, and deferred ones that providers find, in the form of each wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolloop.errors import UnsupportedFeature
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile
from toolloop.server_tools import FileSearch, WebSearch


def tools_offered(request: ModelRequest, profile: Profile) -> tuple[Sequence[ToolSpec], bool]:
    """Return the tools to declare, and whether the provider's own tool search has to find some of them.

    Without such a search, deferred tools are left out and the finders among the others load them; with it, the finders
    are left out.
    """
    if not any(spec.deferred for spec in request.tools):
        return request.tools, False
    if profile.deferred_tools:
        return [spec for spec in request.tools if not spec.finder], True
    return [spec for spec in request.tools if not spec.deferred], False


def server_tools_check(request: ModelRequest, profile: Profile, provider: str) -> None:
    """Refuse server tools that the model does not have; raises UnsupportedFeature before anything is sent."""
    for tool in request.server_tools:
        able = profile.web_search if isinstance(tool, WebSearch) else profile.file_search
        if not able:
            what = "the web" if isinstance(tool, WebSearch) else "files stored at the provider"
            raise UnsupportedFeature(
                f"The model {request.model!r} of {provider} cannot search {what} by itself."
            )


def responses_server_tools(request: ModelRequest, *, blocking: str | None) -> list[dict[str, Any]]:
    """Return server tools as the Responses API takes them.

    Args:
        request: its ``server_tools``.
        blocking: name of the filter that excludes domains, None where there is none.
    """
    tools: list[dict[str, Any]] = []
    for tool in request.server_tools:
        if isinstance(tool, FileSearch):
            entry: dict[str, Any] = {"type": "file_search", "vector_store_ids": list(tool.stores)}
            if tool.max_results is not None:
                entry["max_num_results"] = tool.max_results
            tools.append(entry)
            continue
        entry = {"type": "web_search"}
        if tool.allowed_domains:
            entry["filters"] = {"allowed_domains": list(tool.allowed_domains)}
        if tool.blocked_domains:
            if blocking is None:
                raise _cannot("openai", "leave out domains: name the allowed ones")
            entry["filters"] = {blocking: list(tool.blocked_domains)}
        if tool.context_size:
            entry["search_context_size"] = tool.context_size
        if tool.country:
            entry["user_location"] = {"type": "approximate", "country": tool.country}
        tools.append(entry)
    return tools


def responses_max_uses(request: ModelRequest) -> int | None:
    """Return the one limit of server tool calls that a response of this API can have."""
    uses = [tool.max_uses for tool in request.server_tools if isinstance(tool, WebSearch)]
    return next((count for count in uses if count is not None), None)


def anthropic_server_tools(request: ModelRequest) -> list[dict[str, Any]]:
    """Return server tools as the Messages API takes them.

    The plain web search: later versions filter what they find by programs of the model's, which not every model
    writes and which are not covered by zero data retention.
    """
    tools: list[dict[str, Any]] = []
    for tool in request.server_tools:
        if isinstance(tool, FileSearch):
            raise _cannot("anthropic", "search stored files")
        if tool.context_size:
            raise _cannot("anthropic", "choose how much of what is found goes to the model")
        entry: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
        if tool.max_uses is not None:
            entry["max_uses"] = tool.max_uses
        if tool.allowed_domains:
            entry["allowed_domains"] = list(tool.allowed_domains)
        if tool.blocked_domains:
            entry["blocked_domains"] = list(tool.blocked_domains)
        if tool.country:
            entry["user_location"] = {"type": "approximate", "country": tool.country}
        tools.append(entry)
    return tools


def gemini_server_tools(request: ModelRequest) -> list[dict[str, Any]]:
    """Return server tools as Gemini takes them; none when no tool may be called, which cannot be said otherwise."""
    tools: list[dict[str, Any]] = []
    for tool in request.server_tools:
        if isinstance(tool, FileSearch):
            entry: dict[str, Any] = {"fileSearchStoreNames": list(tool.stores)}
            if tool.max_results is not None:
                entry["topK"] = tool.max_results
            tools.append({"fileSearch": entry})
            continue
        if tool != WebSearch():
            raise _cannot("google", "restrict its web search: leave WebSearch's fields empty")
        tools.append({"googleSearch": {}})
    return [] if request.tool_choice == "none" else tools


def _cannot(provider: str, what: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{provider} cannot {what}.")
