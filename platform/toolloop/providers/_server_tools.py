"""Tools that providers run themselves, and deferred ones that providers find, in the form of each wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolloop.errors import UnsupportedFeature
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile
from toolloop.server_tools import CodeExecution, FileSearch, WebFetch, WebSearch

_NEEDS: Final[Mapping[type, tuple[str, str]]] = {
    WebSearch: ("web_search", "search the web"),
    FileSearch: ("file_search", "search files stored at the provider"),
    WebFetch: ("web_fetch", "read pages of the web"),
    CodeExecution: ("code_execution", "run programs"),
}
"""The profile's field that a server tool needs, and what a model without it cannot do."""


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
        capability, what = _NEEDS[type(tool)]
        if not getattr(profile, capability):
            raise UnsupportedFeature(f"The model {request.model!r} of {provider} cannot {what} by itself.")


def responses_server_tools(
    request: ModelRequest, *, blocking: str | None, container: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return server tools as the Responses API takes them.

    Args:
        request: its ``server_tools``.
        blocking: name of the filter that excludes domains, None where there is none.
        container: what an entry that runs programs must say of where.
    """
    tools: list[dict[str, Any]] = []
    for tool in request.server_tools:
        if isinstance(tool, FileSearch):
            entry: dict[str, Any] = {"type": "file_search", "vector_store_ids": list(tool.stores)}
            if tool.max_results is not None:
                entry["max_num_results"] = tool.max_results
            tools.append(entry)
            continue
        if isinstance(tool, CodeExecution):
            tools.append({"type": "code_interpreter", **container})
            continue
        if isinstance(tool, WebFetch):  # no profile of these has it: see ``server_tools_check``
            raise _cannot("the Responses API", "read pages without searching: use WebSearch")
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

    The plain web search and the plain reading of pages: later versions filter what they find by programs of the model's,
    which not every model writes and which are not covered by zero data retention.
    """
    tools: list[dict[str, Any]] = []
    for tool in request.server_tools:
        if isinstance(tool, FileSearch):
            raise _cannot("anthropic", "search stored files")
        if isinstance(tool, CodeExecution):
            tools.append({"type": "code_execution_20250825", "name": "code_execution"})
            continue
        if isinstance(tool, WebSearch) and tool.context_size:
            raise _cannot("anthropic", "choose how much of what is found goes to the model")
        entry: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
        if isinstance(tool, WebFetch):
            entry = {"type": "web_fetch_20250910", "name": "web_fetch", "citations": {"enabled": True}}
            if tool.max_tokens is not None:
                entry["max_content_tokens"] = tool.max_tokens
        if tool.max_uses is not None:
            entry["max_uses"] = tool.max_uses
        if tool.allowed_domains:
            entry["allowed_domains"] = list(tool.allowed_domains)
        if tool.blocked_domains:
            entry["blocked_domains"] = list(tool.blocked_domains)
        if isinstance(tool, WebSearch) and tool.country:
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
        if isinstance(tool, CodeExecution):
            tools.append({"codeExecution": {}})
            continue
        if isinstance(tool, WebFetch):
            if tool != WebFetch():
                raise _cannot("google", "restrict which pages it reads: leave WebFetch's fields empty")
            tools.append({"urlContext": {}})
            continue
        if tool != WebSearch():
            raise _cannot("google", "restrict its web search: leave WebSearch's fields empty")
        tools.append({"googleSearch": {}})
    return [] if request.tool_choice == "none" else tools


def _cannot(provider: str, what: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{provider} cannot {what}.")
