"""Tools that call an HTTP API as its OpenAPI document describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apps.tools.connectors.base import IN_DB, FoundTool, SourceError
from apps.tools.connectors.http import HIDDEN, RequestFailed, SourceReply, request_send
from apps.tools.connectors.openapi.operations import is_json
from apps.tools.connectors.openapi.parameters import CONTEXT
from apps.tools.connectors.openapi.requests import Unwritable, request_build
from apps.tools.connectors.pictures import pictures_cleaned
from apps.tools.connectors.secrets import source_now
from apps.tools.connectors.version_tool import version_tool
from basics.texts import english, kept
from toolloop.errors import MediaRefused
from toolloop.media import Media, media_type_of
from toolloop.media_types import IMAGES
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput

if TYPE_CHECKING:
    from apps.tools.models import ToolSource, ToolVersion

_MAX_ERROR = 2_000
_TEXTS = (
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/javascript",
    "application/x-ndjson",
)


def tools_make(source: ToolSource, versions: Sequence[ToolVersion]) -> Iterator[Tool]:
    """Give a tool for each version; it reads its secrets and the network when it is called."""
    for version in versions:
        function = _function(source, FoundTool.from_json(version.spec))
        yield version_tool(source, version, function, context_parameter=CONTEXT)


def _function(source: ToolSource, found: FoundTool) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        context: ToolContext = arguments.pop(CONTEXT)
        return await _call(source, found, arguments, context)

    return call


async def _call(
    source: ToolSource, found: FoundTool, arguments: Mapping[str, Any], context: ToolContext
) -> Any:
    wire = found.wire
    try:
        source, secrets, policy = await context.data[IN_DB](source_now, source.tenant_id, source.pk)
    except SourceError as error:
        raise ToolError(english(kept(error.message)), severity="fatal") from error
    base = str(wire.get("server") or source.url).rstrip("/")
    if not base:
        raise ToolError(
            "The address of this API is not known: an admin must enter it in the source's settings.",
            severity="fatal",
        )
    try:
        request = request_build(wire, base, arguments)
        answer = await request_send(source, request, [] if wire.get("public") else secrets, policy)
    except Unwritable as error:
        raise ToolError(str(error)) from error
    except RequestFailed as error:
        text = english(kept(error.message))  # a model reads it, whatever the language of who asked
        if found.side_effects and error.may_have_arrived:
            text += " It may have been done all the same: check before you repeat it."
        raise ToolError(text) from None
    result = _result(answer, f"{wire['method']} {wire['path']}")
    return await pictures_cleaned(result) if isinstance(result, ToolOutput) else result


def _result(answer: SourceReply, what: str) -> Any:
    if answer.location or 300 <= answer.status < 400:
        raise ToolError(
            f"{what} was answered with a redirect (status {answer.status}) to {answer.location or 'nowhere'}, which is not "
            "followed. If the API has moved, an admin must change the source's address.",
            severity="fatal",
        )
    if answer.status >= 400:
        raise ToolError(_refusal(answer, what))
    if not answer.body:
        return f"Done (status {answer.status}); the answer has no content."
    if is_json(answer.media_type):
        return _json(answer, what)
    if media_type_of(answer.body) in IMAGES:  # by its bytes, whatever the server calls it
        try:
            return ToolOutput("The answer is a picture.", parts=(Media.from_bytes(answer.body),))
        except MediaRefused as refused:
            raise ToolError(refused.message) from refused
    text = _text(answer)
    if text is None:
        kind = answer.media_type or "an unnamed kind"
        return ToolOutput(
            f"Done (status {answer.status}). The answer is {len(answer.body):,} bytes of {kind}, which isn't text and can't be shown.",
            {"status": answer.status, "media_type": answer.media_type, "bytes": len(answer.body)},
        )
    return text


def _json(answer: SourceReply, what: str) -> Any:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        text = _text(answer) or ""
        if HIDDEN in text:  # hiding a number that is a secret leaves no JSON
            return text
        raise ToolError(
            f"{what} was answered with status {answer.status} and something that calls itself JSON and is not: "
            f"{text[:_MAX_ERROR]}"
        ) from None
    if value is None or isinstance(value, str):
        return ToolOutput(json.dumps(value, ensure_ascii=False), value)
    return value


def _refusal(answer: SourceReply, what: str) -> str:
    text = _text(answer)
    body = " ".join((text or "").split())
    if len(body) > _MAX_ERROR:
        body = f"{body[:_MAX_ERROR]} [... cut ...]"
    hints = {
        401: " The source's credentials were not accepted: an admin must check them.",
        403: " The source's credentials may not be enough for this: an admin can check them.",
        404: " Check the ids in the arguments.",
        429: " Too many calls: wait before the next one.",
    }
    said = f" It says: {body}" if body else ""
    return f"{what} failed with status {answer.status}.{hints.get(answer.status, '')}{said}"


def _text(answer: SourceReply) -> str | None:
    """Return the body as text, None when it is none."""
    kind = answer.media_type
    if kind and not (kind.startswith("text/") or is_json(kind) or kind.endswith("+xml") or kind in _TEXTS):
        return None
    try:
        text = answer.body.decode(answer.charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        if not kind:
            return None
        text = answer.body.decode("utf-8", "replace")
    return None if not kind and "\0" in text else text
