"""Hide secrets among the arguments of calls, for whoever looks at them: logs, exports, events, traces.

A value is secret when its name says so, or when the tool's JSON Schema does (``format: password``, ``writeOnly``). What
runs a call needs the true values; nothing here changes them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

MASK = "••••••"
_WORDS = tuple(
    """
    password passwd passphrase pwd secret token apikey authorization credential credentials privatekey
    accesskey clientsecret cookie bearer otp pin cvv cvc
""".split()
)
# Counts of model tokens and cursors of pages look like secrets by their last word, and are none.
_PLAIN = frozenset(
    {
        "max_tokens",
        "min_tokens",
        "total_tokens",
        "input_tokens",
        "output_tokens",
        "tokens",
        "page_token",
        "next_page_token",
        "token_count",
        "token_limit",
        "max_output_tokens",
    }
)
_JSON_PAIR = re.compile(r'("(?P<name>[^"\\]{1,80})"\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*"?|[^",{}\[\]\s]+)')
_MOST_DEPTH = 60
_NO_SCHEMA: Mapping[str, Any] = {}


def is_secret_name(name: str) -> bool:
    """Tell whether an argument's name says that its value is secret: ``apiKey``, ``db_password``, ``X-Auth-Token``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    words = re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_").lower()
    if words in _PLAIN:
        return False
    parts = words.split("_")
    pairs = {a + b for a, b in itertools.pairwise(parts)}
    return any(word in _WORDS for word in (*parts, *pairs, words.replace("_", "")))


def masked(value: Any, schema: Mapping[str, Any] | None = None) -> Any:
    """Return a JSON value with its secrets replaced by ``MASK``; the very same object when it holds none.

    Args:
        value: a call's arguments, or a text that was meant to be JSON and is none.
        schema: JSON Schema of the arguments, as far as it is known.
    """
    if isinstance(value, str):
        return _text_masked(value, schema=schema or {})
    return _masked(value, schema or {}, schema or {}, 0)


def unmasked(edited: Any, original: Any) -> Any:
    """Return what somebody made of masked arguments, with the true value wherever the mask was left as it is."""
    if edited == MASK:
        return original
    if isinstance(edited, Mapping) and isinstance(original, Mapping):
        return {k: unmasked(v, original.get(k, v)) for k, v in edited.items()}
    if isinstance(edited, list) and isinstance(original, list):
        rest = edited[len(original) :]
        return [unmasked(a, b) for a, b in zip(edited, original, strict=False)] + rest
    return edited


def _masked(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    if depth > _MOST_DEPTH:
        return MASK
    known = _schemas(schema, root)
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for name, inner in value.items():
            inside = [p for s in known if (p := _property(s, name)) is not None]
            if _holds(inner) and (is_secret_name(name) or any(_is_secret(s, root) for s in inside)):
                found[name] = MASK
            else:
                found[name] = _masked(inner, {"anyOf": inside}, root, depth + 1)
        return found if any(found[k] is not value[k] for k in found) else value
    if isinstance(value, list):
        inside = [s["items"] for s in known if isinstance(s.get("items"), Mapping)]
        items = {"anyOf": inside}
        made = [
            MASK
            if _holds(inner) and any(_is_secret(s, root) for s in inside)
            else _masked(inner, items, root, depth + 1)
            for inner in value
        ]
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return _text_masked(value, depth + 1)  # JSON in JSON: a provider's own form of a call.
    return value


def _holds(value: Any) -> bool:
    """Tell whether there is something to hide."""
    return value is not None and value != "" and not isinstance(value, bool)


def _is_secret(schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    return any(s.get("format") == "password" or s.get("writeOnly") is True for s in _schemas(schema, root))


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, Mapping) else None
    if not isinstance(found, Mapping):
        found = schema.get("additionalProperties")
    return found if isinstance(found, Mapping) else None


def _schemas(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a schema with all that it refers to and combines, each once: it may refer to itself."""
    found: dict[int, Mapping[str, Any]] = {}
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Mapping) or id(one) in found:
            continue
        found[id(one)] = one
        reference = one.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            waiting.append(_target(reference, root))
        for key in ("anyOf", "oneOf", "allOf"):
            options = one.get(key)
            waiting += options if isinstance(options, list) else []
    return list(found.values())


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    """Return what a JSON pointer of the schema points to, None where nothing is there."""
    target: Any = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, Mapping) else None
    return target


def _text_masked(text: str, depth: int = 0, schema: Mapping[str, Any] = _NO_SCHEMA) -> str:
    """Mask the pairs of a text that is JSON, or was meant to be."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict | list):
        clean = _masked(value, schema, schema, depth)
        return text if clean is value else json.dumps(clean, ensure_ascii=False)
    known = _schemas(schema, schema)

    def pair(found: re.Match[str]) -> str:
        inside = [p for s in known if (p := _property(s, found["name"])) is not None]
        if is_secret_name(found["name"]) or any(_is_secret(s, schema) for s in inside):
            return f'{found[1]}"{MASK}"'
        return found[0]

    return _JSON_PAIR.sub(pair, text)
