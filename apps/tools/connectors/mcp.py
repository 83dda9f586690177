"""Tools of MCP servers: found, accepted in the form in which the server described them, and called in that form.

A server describes its own tools, and a description is an instruction to the model. So what models see is what somebody
accepted; a tool that the server describes differently today keeps its accepted form until the new one is accepted. What a
server says of its tools' harmlessness counts only where the workspace says that it trusts it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.tools.connectors.base import IN_DB, FoundTool, SourceError, SourceKind
from apps.tools.connectors.http import Redactor
from apps.tools.connectors.mcp_sessions import CALL_SECONDS, command_refused, server_make, session
from apps.tools.connectors.pictures import pictures_cleaned
from apps.tools.connectors.secrets import SourceSecret, secrets_read, source_now
from apps.tools.connectors.version_tool import version_tool
from apps.tools.models import ToolSource, ToolVersion
from basics.errors import Invalid
from basics.net_policy import AddressRefused, NetPolicy, url_check
from basics.texts import english, kept, number_told
from basics.texts import gettext as _
from tenancy.database.waiting import loop_run
from tenancy.outgoing import outgoing_policy
from toolloop.mcp import McpError, McpServer
from toolloop.mcp.drift import Definition
from toolloop.mcp.listing import Offer, listing_read
from toolloop.mcp.text import tool_name
from toolloop.mcp.tools import tool_make
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput

READ_SECONDS = 60.0
MAX_STATED = 500
_CONTEXT = "$context"  # no server can name an argument so
_SETTINGS = frozenset({"command", "trust_hints", "read_only", "skipped"})


def source_check(source: ToolSource) -> None:
    """Look at the fields of an MCP source.

    ``settings`` may hold ``command`` (a name that the operator allows, for a server that is a program), ``trust_hints``
    (believe what the server says of side effects) and ``read_only`` (names of its tools that are known to change nothing).

    Raises:
        Invalid: neither an address nor a command, both, or one that may not be used.
    """
    given = source.settings
    unknown = sorted(set(given) - _SETTINGS)
    if unknown:
        raise _invalid(
            "settings",
            _("“%(name)s” is unknown here; known are command, trust_hints and read_only.")
            % {"name": unknown[0][:64]},
        )
    command = given.get("command", "")
    if not isinstance(command, str) or not isinstance(given.get("trust_hints", False), bool):
        raise _invalid("settings", _("command must be a name, and trust_hints true or false."))
    read_only = given.get("read_only", [])
    if (
        not isinstance(read_only, list)
        or len(read_only) > MAX_STATED
        or not all(isinstance(n, str) for n in read_only)
    ):
        raise _invalid(
            "settings",
            _("read_only must be a list of at most %(most)s of the server's tool names.")
            % {"most": MAX_STATED},
        )
    for field in ("document_url", "document"):
        if getattr(source, field):
            raise _invalid(field, _("An MCP server has no document. Leave this empty."))
    if bool(source.url) == bool(command):
        raise _invalid(
            "url", _("Give either the address of the MCP server or the command that starts it, not both.")
        )
    if command and command not in settings.MCP_COMMANDS:
        raise _invalid("settings", command_refused(command))
    if source.url:
        try:
            url = url_check(source.url, outgoing_policy(source.tenant_id))
        except AddressRefused as error:
            raise _invalid("url", error.message) from error
        if url.fragment:
            raise _invalid("url", _("The address of an MCP server can't contain a #."))


def source_read(source: ToolSource) -> Sequence[FoundTool]:
    """Connect to a source's server and return its tools; what cannot be used is told in ``settings["skipped"]``.

    Raises:
        SourceError: it cannot be reached or used.
    """
    secrets = secrets_read(source.tenant_id, source.pk)
    policy = outgoing_policy(source.tenant_id)
    hide = Redactor(secrets)
    try:
        definitions, problems = loop_run(_listed(source, secrets, policy))
    except TimeoutError as error:
        text = _("The MCP server didn't list its tools within %(seconds)s s.")
        raise SourceError(text % {"seconds": number_told(READ_SECONDS, None)}) from error
    except McpError as error:
        raise SourceError(hide.text(error.message)) from error
    clean = [Definition(json.loads(hide.text(json.dumps(d.data)))) for d in definitions]
    offers = listing_read(source.name, clean, None).offers.values()
    source.settings = {
        **{k: v for k, v in source.settings.items() if k != "skipped"},
        **({"skipped": [{"why": hide.text(problem)} for problem in problems]} if problems else {}),
    }
    return [_found(source, offer) for offer in offers]


async def _listed(
    source: ToolSource, secrets: Sequence[SourceSecret], policy: NetPolicy
) -> tuple[list[Definition], Sequence[str]]:
    async with asyncio.timeout(READ_SECONDS), server_make(source, secrets, policy) as server:
        tools = server.snapshot()["tools"].values()
        return [Definition(tool["definition"]) for tool in tools], server.drift.problems


def _found(source: ToolSource, offer: Offer) -> FoundTool:
    data = offer.definition.data
    hints: Mapping[str, Any] = data.get("annotations") or {}
    trusted = source.settings.get("trust_hints") is True
    changes_nothing = offer.definition.name in source.settings.get("read_only", ()) or (
        trusted and _says_read_only(offer.definition)
    )
    return FoundTool(
        name=tool_name(source.name, offer.definition.name).replace("__", "_", 1),
        title=str(data.get("title") or hints.get("title") or "")[:120],
        description=offer.description,
        parameters=offer.parameters,
        returns=offer.output_schema or {},
        category="mcp",
        side_effects=not changes_nothing,
        idempotent=changes_nothing or (trusted and hints.get("idempotentHint") is True),
        wire={"definition": dict(data)},
    )


def _says_read_only(definition: Definition) -> bool:
    hints: Mapping[str, Any] = definition.data.get("annotations") or {}
    return hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True


def tools_make(source: ToolSource, versions: Sequence[ToolVersion]) -> Iterable[Tool]:
    """Return the tools of accepted versions."""
    return [_tool(source, version) for version in versions]


def _tool(source: ToolSource, version: ToolVersion) -> Tool:
    async def call(**arguments: Any) -> ToolOutput:
        context: ToolContext = arguments.pop(_CONTEXT)
        hide = Redactor(())
        try:
            now, secrets, policy = await context.data[IN_DB](source_now, source.tenant_id, source.pk)
            hide = Redactor(secrets)
            async with session(now, secrets, policy) as server:
                output: ToolOutput = await _accepted(server, now, version).function(**arguments)
        except (McpError, SourceError) as error:
            raise ToolError(english(kept(hide.text(error.message)))) from error
        except ToolError as error:
            raise ToolError(hide.text(error.message), error.severity) from error
        payload = None if output.payload is None else json.loads(hide.text(json.dumps(output.payload)))
        return await pictures_cleaned(ToolOutput(hide.text(output.content), payload, output.parts))

    return version_tool(source, version, call, timeout_s=CALL_SECONDS + 15, context_parameter=_CONTEXT)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """A connected server, with the rule of what may be called: what was accepted and is still there."""

    server: McpServer
    source: ToolSource
    is_read_only: bool
    definition: Definition

    @property
    def name(self) -> str:
        return self.server.name

    async def request(
        self, send: Callable[[Any], Awaitable[Any]], *, check: Callable[[], None] | None = None
    ) -> Any:
        return await self.server.request(send, check=check)

    def refusal(self, name: str, fingerprint: str) -> str:
        listed = self.server.definition(self.definition.name)
        if listed is None:
            return "the server no longer lists it"
        stated = self.definition.name in self.source.settings.get("read_only", ())
        if self.is_read_only and not stated and not _says_read_only(listed):
            return "the server says now that it changes something; an admin must refresh the source and look"
        return ""

    async def resources(self) -> list[Any]:
        return []

    async def prompts(self) -> list[Any]:
        return []


def _accepted(server: McpServer, source: ToolSource, version: ToolVersion) -> Tool:
    spec = FoundTool.from_json(version.spec)
    definition = Definition(spec.wire["definition"])
    offer = Offer(spec.name, definition, spec.description, spec.parameters, spec.returns or None)
    return tool_make(
        _Accepted(server, source, not spec.side_effects, definition),
        offer,
        call_timeout_s=CALL_SECONDS,
        trust_hints=False,
        approval="never",
        images=True,
    )


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"fields": {field: [message]}})


KIND = SourceKind("mcp", source_check, source_read, tools_make)
