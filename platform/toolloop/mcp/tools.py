"""Make tools of what a server offers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

from toolloop.mcp import content
from toolloop.mcp.failures import McpError
from toolloop.mcp.listing import Offer
from toolloop.mcp.text import output_clean
from toolloop.tools.context import ToolError, ToolOutput
from toolloop.tools.tool import ApprovalRule, Tool, tool
from toolloop.tools.validation import problems_find

Approval = Literal["never", "side_effects", "always"]

LIST_RESOURCES, READ_RESOURCE = "list_resources", "read_resource"
LIST_PROMPTS, GET_PROMPT = "list_prompts", "get_prompt"
_TIMEOUT_MARGIN_S = 15.0  # Our own timeouts speak first: they say more, and tell the server.
_MAX_ERROR = 8_000


class Requester(Protocol):
    """What tools need of a server."""

    @property
    def name(self) -> str: ...

    async def request(
        self, send: Callable[[Any], Awaitable[Any]], *, check: Callable[[], None] | None = None
    ) -> Any: ...

    def refusal(self, name: str, fingerprint: str) -> str: ...

    async def resources(self) -> list[Any]: ...

    async def prompts(self) -> list[Any]: ...


def tool_make(
    server: Requester,
    offer: Offer,
    *,
    call_timeout_s: float,
    trust_hints: bool,
    approval: Approval,
    images: bool,
) -> Tool:
    """Make the tool of an offer.

    A call is sent only while the server still lists the very definition the tool was made of.
    """
    hints: Mapping[str, Any] = offer.definition.data.get("annotations") or {}
    read_only = trust_hints and hints.get("readOnlyHint") is True
    idempotent = read_only or (trust_hints and hints.get("idempotentHint") is True)
    own_name, fingerprint = offer.definition.name, offer.definition.fingerprint

    def check() -> None:
        refusal = server.refusal(offer.name, fingerprint)
        if refusal:
            raise ToolError(f"{offer.name} cannot be used: {refusal}.", "fatal")

    async def call(**arguments: Any) -> ToolOutput:
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(params=CallToolRequestParams(name=own_name, arguments=arguments or {}))
        with _told():
            # Not the SDK's call_tool: it checks the answer with the server's own regular expressions, in our event
            # loop.
            result = await server.request(
                lambda client: client.session.send_request(
                    request, _result_adapter(), request_read_timeout_seconds=call_timeout_s
                ),
                check=check,
            )
        if not isinstance(result, CallToolResult):
            raise ToolError(f"{offer.name} asks for input from a person, which cannot be given.", "fatal")
        output = content.output_of_result(result, images=images)
        if result.is_error:
            raise ToolError(output.content[:_MAX_ERROR])
        await _check_output(offer, result)
        return output

    needs_approval: ApprovalRule = approval == "always" or (approval == "side_effects" and not read_only)
    return Tool(
        name=offer.name,
        description=offer.description,
        parameters=offer.parameters,
        function=call,
        side_effects=not read_only,
        idempotent=idempotent,
        timeout_s=call_timeout_s + _TIMEOUT_MARGIN_S,
        context_parameter="",
        category="mcp",
        group=server.name,
        tags=("mcp", server.name),
        needs_approval=needs_approval,
    )


def _result_adapter() -> Any:
    from mcp.types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(CallToolResult | InputRequiredResult)
    return adapter


async def _check_output(offer: Offer, result: Any) -> None:
    """Refuse structured content that breaks the schema the server itself declared."""
    if offer.output_schema is None:
        return
    if result.structured_content is None:
        raise ToolError(f"{offer.name} did not return the structured output it declares.", "fatal")
    # A thread: the content may be megabytes.
    problems = await asyncio.to_thread(
        problems_find, result.structured_content, offer.output_schema, "its output"
    )
    if problems:
        raise ToolError(
            f"{offer.name} broke its own output schema: {'; '.join(problems)}"[:_MAX_ERROR], "fatal"
        )


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Tell the model of a server's failure as a tool's."""
    try:
        yield
    except McpError as error:
        lasting = error.kind in ("refused", "protocol")
        message = output_clean(error.message)[:_MAX_ERROR]
        raise ToolError(message, "fatal" if lasting else "non_fatal") from error


def resource_tools(server: Requester, *, call_timeout_s: float) -> list[Tool]:
    """Make the two tools by which a model finds and reads a server's resources."""

    @tool(
        name=f"{server.name}__{LIST_RESOURCES}",
        category="mcp",
        group=server.name,
        tags=("mcp", server.name),
        timeout_s=call_timeout_s + _TIMEOUT_MARGIN_S,
    )
    async def list_resources() -> ToolOutput:
        """List the documents and data that this server can be asked for, with their URIs."""
        with _told():
            found = await server.resources()
        text = content.listing_text(found, _resource_line)
        return ToolOutput(text, {"resources": [_dumped(item) for item in found]})

    @tool(
        name=f"{server.name}__{READ_RESOURCE}",
        category="mcp",
        group=server.name,
        tags=("mcp", server.name),
        timeout_s=call_timeout_s + _TIMEOUT_MARGIN_S,
    )
    async def read_resource(uri: str) -> ToolOutput:
        """Read one of the server's resources.

        Args:
            uri: as listed, or made from a listed template.
        """
        with _told():
            result = await server.request(
                lambda client: client.session.read_resource(uri, allow_input_required=True)
            )
        if not hasattr(result, "contents"):
            raise ToolError("The server asks for input from a person, which cannot be given.")
        return content.output_of_resource(result.contents)

    return [list_resources, read_resource]


def prompt_tools(server: Requester, *, call_timeout_s: float) -> list[Tool]:
    """Make the two tools by which a model finds and fills in a server's prompts."""

    @tool(
        name=f"{server.name}__{LIST_PROMPTS}",
        category="mcp",
        group=server.name,
        tags=("mcp", server.name),
        timeout_s=call_timeout_s + _TIMEOUT_MARGIN_S,
    )
    async def list_prompts() -> ToolOutput:
        """List the prompt templates this server has, with their arguments."""
        with _told():
            found = await server.prompts()
        text = content.listing_text(found, _prompt_line)
        return ToolOutput(text, {"prompts": [_dumped(item) for item in found]})

    @tool(
        name=f"{server.name}__{GET_PROMPT}",
        category="mcp",
        group=server.name,
        tags=("mcp", server.name),
        timeout_s=call_timeout_s + _TIMEOUT_MARGIN_S,
    )
    async def get_prompt(name: str, arguments: dict[str, str] | None = None) -> ToolOutput:
        """Get one of the server's prompt templates, filled in.

        Args:
            name: as listed.
            arguments: values for the template's arguments.
        """
        with _told():
            result = await server.request(
                lambda client: client.session.get_prompt(name, arguments or {}, allow_input_required=True)
            )
        if not hasattr(result, "messages"):
            raise ToolError("The server asks for input from a person, which cannot be given.")
        return content.output_of_prompt(result)

    return [list_prompts, get_prompt]


def _resource_line(item: Any) -> str:
    uri = getattr(item, "uri", None) or f"{item.uri_template} (a template)"
    return f"{uri}: {item.title or item.name}. {item.description or ''}".strip()


def _prompt_line(item: Any) -> str:
    arguments = ", ".join(f"{a.name}{'' if a.required else ' (optional)'}" for a in item.arguments or ())
    return f"{item.name}({arguments}): {item.description or item.title or ''}"


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
