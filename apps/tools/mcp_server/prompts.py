"""Prompts over MCP: how to work with the tools, and a question with the passages that may answer it."""

from __future__ import annotations

from collections.abc import Mapping

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    EmbeddedResource,
    GetPromptResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

from apps.collections.models import Collection
from apps.collections.search import search_run
from apps.tools.mcp_server.caller import Caller
from apps.tools.toolset.direct_calls import offer_guard, offer_tools
from basics.errors import Invalid, Missing
from toolloop.prompt_templates import guidance_of, system_prompt

PASSAGES = 8
USE_TOOLS, ANSWER = "use_tools", "answer_from_documents"
_QUESTION = "Cite what your answer rests on by the URIs of the passages. When they do not answer the question, say so."
_PROMPTS = {
    USE_TOOLS: Prompt(
        name=USE_TOOLS,
        title="Work with the workspace's tools",
        description="How and when to use the tools of this workspace.",
        arguments=[PromptArgument(name="question", description="What the work is about.", required=False)],
    ),
    ANSWER: Prompt(
        name=ANSWER,
        title="Answer from the documents",
        description="A question, and the passages of the workspace's documents that answer it best.",
        arguments=[
            PromptArgument(name="question", description="What to answer.", required=True),
            PromptArgument(
                name="collection",
                description="Name of the collection to look in; all without it.",
                required=False,
            ),
        ],
    ),
}
_RIGHTS = {USE_TOOLS: "tool.run", ANSWER: "search.run"}


def prompt_page(caller: Caller) -> ListPromptsResult:
    """Return the prompts that the caller's rights suffice for."""
    shown = [p for name, p in _PROMPTS.items() if caller.actor.can(_RIGHTS[name])]
    return ListPromptsResult(prompts=shown)


def prompt_get(caller: Caller, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Return a prompt's messages.

    Raises:
        MCPError: there is no such prompt.
        Invalid, Denied, Missing: as the search has it.
    """
    if name not in _PROMPTS:
        message = f"There is no prompt {name!r}. There are: {', '.join(_PROMPTS)}."
        raise MCPError(INVALID_PARAMS, message, {"code": "unknown_prompt"})
    caller.actor.require(_RIGHTS[name])
    question = arguments.get("question", "").strip()
    if name == USE_TOOLS:
        return _use_tools(caller, question)
    return _answer(caller, question, arguments.get("collection", "").strip())


def _use_tools(caller: Caller, question: str) -> GetPromptResult:
    toolset = offer_tools(offer_guard(actor=caller.actor, collections=None))
    text = system_prompt(
        f"You work with the tools and documents of the workspace “{caller.tenant.name}”.",
        toolset,
        question=question,
        guidance=guidance_of(toolset),
    )
    parts = [text, question] if question else [text]
    return GetPromptResult(messages=[_says(part) for part in parts])


def _answer(caller: Caller, question: str, collection: str) -> GetPromptResult:
    if not question:
        raise Invalid("invalid", "Give the question.", data={"field": "question"})
    chosen = None
    if collection:
        caller.actor.require("collection.read")
        rows = Collection.objects.visible_to(caller.actor).select_related("space")
        chosen = list(rows.filter(name__iexact=collection))
        if not chosen:
            raise Missing("collection")
    found = search_run(
        tenant=caller.tenant, actor=caller.actor, collections=chosen, query=question, k=PASSAGES
    )
    passages = [
        PromptMessage(
            role="user",
            content=EmbeddedResource(
                resource=TextResourceContents(
                    uri=f"groundwork://chunks/{hit.chunk_id}",
                    mime_type="text/plain",
                    text=f"From {hit.document_name}:\n{hit.text}",
                )
            ),
        )
        for hit in found.hits
    ]
    return GetPromptResult(messages=[*passages, _says(f"{question}\n\n{_QUESTION}")])


def _says(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(text=text))
