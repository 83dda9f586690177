"""What every adapter needs: lazy SDK import, ids, arguments, deadlines, and a history cut into exchanges."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import math
import re
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from toolloop.errors import ConfigurationError, ProviderUnavailable
from toolloop.interrupts import Interrupted, Interrupter
from toolloop.messages import ToolCall
from toolloop.providers.base import ModelRequest, ResponseSchema

CONNECT_TIMEOUT_S: Final = 10.0

_T = TypeVar("_T")
# What the SDKs write as well: UTF-8 as it is, no blanks, no NaN.
_BODY: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=lambda value: dict(value)
)
_ARGUMENTS: Final = json.JSONEncoder(ensure_ascii=False)
_WIRE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Keywords that strict modes are known to accept; a schema with any other is sent as not strict.
_STRICT_KEYWORDS: Final = frozenset(
    {
        "type",
        "title",
        "description",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
    }
)
# Strict modes refuse a schema that takes anything.
_SAYS_WHAT: Final = frozenset({"type", "enum", "const", "anyOf", "$ref"})


def import_sdk(module: str, package: str) -> ModuleType:
    """Import a provider's SDK when it is first needed.

    Raises:
        ConfigurationError: when the package is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            f"The package {package!r} is needed for this provider and is not installed "
            f"(missing module: {exc.name}). Install it with: pip install {package}"
        ) from exc


def require_key(provider: str, api_key: str) -> str:
    """Return the key without surrounding blanks; raise ConfigurationError when there is none."""
    key = api_key.strip()
    if not key:
        raise ConfigurationError(f"Provider {provider!r} needs an API key.")
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError(
            f"The API key of provider {provider!r} contains characters that can't be sent; copy it again."
        )
    return key


@lru_cache(maxsize=256)
def checked_base_url(url: str) -> str:
    """Return a base URL without trailing slash; raise ConfigurationError unless it is http(s) with a host."""
    import httpx2  # it reads the URL in the end, and more strictly

    cleaned = url.strip().rstrip("/")
    try:
        parts = urlsplit(cleaned)
        _ = parts.port, httpx2.URL(cleaned)
    except (ValueError, httpx2.InvalidURL) as exc:
        raise ConfigurationError(f"Base URL {cleaned!r} cannot be read: {exc}") from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            f"Base URL {cleaned!r} must begin with http:// or https:// and contain a host."
        )
    return cleaned


def digest(value: str, length: int = 32) -> str:
    """Hash an identifier before it leaves the house, so that a provider cannot read it."""
    return hashlib.sha256(value.encode()).hexdigest()[:length]


def account_of(provider: str, base_url: str, api_key: str) -> str:
    """Name an account without revealing its key: native turns are echoed only to the account that wrote them."""
    return digest(f"{provider}\n{base_url}\n{api_key}", 16)


def new_call_id() -> str:
    """Make an id for a call that came without one; it is stored with the turn, so replays keep it."""
    return f"call_{uuid.uuid4().hex[:24]}"


def wire_id(call_id: str) -> str:
    """Return the id if every provider accepts its form, else a stable replacement of 29 characters."""
    return call_id if _WIRE_ID.fullmatch(call_id) else f"call_{digest(call_id, 24)}"


def parse_arguments(raw: str) -> tuple[dict[str, Any] | None, str]:
    """Parse the arguments a model wrote.

    Returns:
        The arguments and "", or None and what is wrong with them, worded for the model. Nothing at all counts as
        an empty object, which is how several servers write a call without arguments.
    """
    if not raw.strip():
        return {}, ""
    try:
        value = json.loads(raw, parse_constant=_not_json, parse_float=_finite)
    except ValueError as exc:
        return None, f"the arguments are not valid JSON: {exc}"
    except RecursionError:
        return None, "the arguments are nested too deeply"
    if not isinstance(value, dict):
        return None, f"the arguments must be a JSON object, not {_json_type(value)}"
    return value, ""


def _not_json(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def raw_arguments(value: object) -> str:
    """Return arguments as the text they should have come as; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def make_call(call_id: str, name: str, raw: str) -> ToolCall:
    """Build a ToolCall from what came over the wire; ``problem`` is set when it cannot be executed."""
    arguments, problem = parse_arguments(raw)
    if not name:
        problem = problem or "the call names no tool"
    return ToolCall(call_id or new_call_id(), name, arguments, raw, problem)


def is_strict_schema(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema meets the strict modes: closed objects, every property required, known keywords only."""
    if not set(schema) <= _STRICT_KEYWORDS or not _SAYS_WHAT & set(schema):
        return False
    if "object" in _as_list(schema.get("type")) or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(properties) != set(schema.get("required", ())):
            return False
    children: list[Any] = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", ()),
    ]
    if "items" in schema:
        children.append(schema["items"])
    return all(isinstance(child, Mapping) and is_strict_schema(child) for child in children)


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema's definitions refer to each other in a circle, or to the root."""
    definitions = schema.get("$defs", {})
    refers = {name: _references(value) for name, value in definitions.items()}
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    if "#" in _references(rest) or any("#" in found for found in refers.values()):
        return True
    for start in refers:
        seen, waiting = set[str](), list(refers[start])
        while waiting:
            name = waiting.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                waiting += refers.get(name, ())
    return False


def _references(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        found = {name for item in value.values() for name in _references(item)}
        reference = value.get("$ref")
        if isinstance(reference, str):
            found.add(reference.removeprefix("#/$defs/"))
        return found
    if isinstance(value, list | tuple):
        return {name for item in value for name in _references(item)}
    return set()


def json_body(body: dict[str, Any] | list[Any]) -> bytes:
    """Encode a request once: given a dict, an SDK copies it first, which costs more than a long history's encoding.

    Raises:
        UnicodeEncodeError: for half a surrogate pair.
    """
    from pydantic_core import to_json  # every SDK has loaded it; four times as fast as json

    try:
        return to_json(body, inf_nan_mode="null", fallback=dict)
    except ValueError:
        # Deeper than it goes (255 levels), or text that cannot be sent, about which json says more.
        return _BODY.encode(body).encode()


def schema_fields(wanted: ResponseSchema) -> dict[str, Any]:
    """Return a response schema as both wires of OpenAI write it."""
    return {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}


def options_sent(request: ModelRequest, **fields: str) -> dict[str, Any]:
    """Return fields of a request's body for those of its options that are given.

    Args:
        fields: field of the body -> name of the option.
    """
    given = {field: request.options.get(name) for field, name in fields.items()}
    return {field: value for field, value in given.items() if value is not None}


def one_call_only(request: ModelRequest) -> bool:
    """Tell whether a turn may make one call at most."""
    return request.options.get("parallel_tool_calls") is False


def mapping(value: object) -> dict[str, Any]:
    """Return a JSON object as it is and anything else, None above all, as an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; anything else counts as an empty list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    """Return a string and anything else as ""; half a surrogate pair, which no UTF-8 can hold, becomes "?"."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def number(value: object) -> int:
    """Return a token count as an int; None, booleans and nonsense count as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value))


class Until(AsyncIterator[_T]):
    """Iterate a stream until it ends or the event loop's clock passes ``deadline``.

    The timeout strikes only while the next item is awaited, never in the consumer's own code between two items. A
    class and no generator, so that an abandoned iteration leaves nothing for the garbage collector to close; one timer
    for all items, because one for each costs more than reading a delta. ``close`` takes the timer back.
    """

    def __init__(self, source: AsyncIterator[_T], deadline: float) -> None:
        self._source = source
        self._deadline = deadline
        self._clock = Interrupter(None)
        self._clock.deadline_set(deadline)

    async def __anext__(self) -> _T:
        try:
            if not self._clock.cause:
                return await self._clock.run(self._source.__anext__)
            # Too late to wait, but what has come already counts.
            async with asyncio.timeout_at(self._deadline):
                return await anext(self._source)
        except (Interrupted, TimeoutError):
            raise timed_out() from None

    def close(self) -> None:
        """Forget the deadline."""
        self._clock.close()


def timed_out() -> ProviderUnavailable:
    """Return the error for a call that used up its time."""
    return ProviderUnavailable(
        "The model did not finish within the time allowed for this call.", code="provider_timeout"
    )


def cut_stream(provider: str) -> ProviderUnavailable:
    """Return the error for a stream that ended before the provider said so."""
    return ProviderUnavailable(f"The answer of {provider} ended before it was complete.", code="stream_cut")


def arguments_json(call: ToolCall) -> str:
    """Return a call's arguments as a JSON object; "{}" when the model wrote something else."""
    return _ARGUMENTS.encode(call.arguments or {})


def joined(*pieces: str, separator: str = ": ") -> str:
    """Join the pieces that are not empty."""
    return separator.join(piece for piece in pieces if piece)


def _as_list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else (value,)


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "a number"
