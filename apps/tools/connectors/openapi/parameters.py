"""The arguments of an operation: its parameters and its body under names that every provider takes, and where each goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.tools.connectors.openapi.document import Document, error_at, list_at, mapping_at, text_at
from apps.tools.connectors.openapi.schemas import Schemas
from basics.texts import gettext as _
from basics.texts import gettext_noop
from toolloop.mcp.text import text_clean

PLACES = ("path", "query", "header", "cookie")
CONTEXT = "tool_context_"
"""Name under which a tool is given its context; no argument has it."""
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
# The specification: "If in is header and the name is Accept, Content-Type or Authorization, it shall be ignored". The rest
# frames a request or names its receiver.
_NO_HEADERS = frozenset(
    {
        "accept",
        "content-type",
        "authorization",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "cookie",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "accept-encoding",
        "proxy-authorization",
        "keep-alive",
        "user-agent",
    }
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(slots=True)
class Arguments:
    """What a call takes.

    Attributes:
        properties: schema of each argument.
        required: names of those that must be given.
        wire: ``parameters`` (argument -> name, place, style, explode) and ``body`` (argument, media type, files).
        examples: whole argument objects.
        unusable: why the operation cannot be called, in English and marked for translators; "" when it can.
        offered: the media types of a body that cannot be written, "" when it can.
    """

    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    wire: dict[str, Any] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(default_factory=list)
    unusable: str = ""
    offered: str = ""


def arguments_read(
    document: Document,
    schemas: Schemas,
    path: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
    at: str,
) -> Arguments:
    """Return the arguments of an operation.

    Raises:
        SourceError: a parameter or the body is described wrongly; the message names the place.
    """
    found = Arguments()
    shown: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    for where, parameter in _parameters(document, item, operation, at):
        place = parameter["in"]
        name = parameter["name"]
        if place == "header" and (name.lower() in _NO_HEADERS or not _HEADER.fullmatch(name)):
            continue
        argument = _free(name, place, found.properties)
        schema, style = _schema_and_style(schemas, parameter, place, where)
        _describe(schema, parameter.get("description"), where)
        if parameter.get("deprecated") is True:
            schema["description"] = f"Deprecated. {schema.get('description', '')}".strip()
        found.properties[argument] = schema
        if place == "path" or parameter.get("required") is True:
            found.required.append(argument)
        parameters[argument] = {"name": name, "in": place, **style}
        example = _example(document, parameter, where)
        if example is not None:
            shown[argument] = example
    _check_path(path, parameters, at)
    if parameters:
        found.wire["parameters"] = parameters
    if "requestBody" in operation:
        _body(document, schemas, operation["requestBody"], found, shown, f"{at}.requestBody")
    if shown and set(found.required) <= shown.keys():
        found.examples.append(shown)
    return found


def _parameters(
    document: Document, item: Mapping[str, Any], operation: Mapping[str, Any], at: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the parameters of path and operation; one of the operation replaces that of the path."""
    found: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for owner, level in ((item, at.rsplit(".", 1)[0]), (operation, at)):
        given = list_at(owner.get("parameters", []), f"{level}.parameters")
        for index, node in enumerate(given):
            where = f"{level}.parameters[{index}]"
            parameter = mapping_at(document.resolve(node, where)[0], where)
            name = text_at(parameter.get("name"), f"{where}.name")
            place = parameter.get("in")
            if place not in PLACES:
                raise error_at(f"{where}.in", _("Expected one of %(names)s.") % {"names": ", ".join(PLACES)})
            if not 1 <= len(name) <= 200 or not name.isprintable():
                raise error_at(f"{where}.name", _("Expected a name of at most 200 characters."))
            found[name, place] = (where, parameter)
    yield from found.values()


def _schema_and_style(
    schemas: Schemas, parameter: Mapping[str, Any], place: str, at: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    if "content" in parameter:
        content = mapping_at(parameter["content"], f"{at}.content")
        for media_type, given in content.items():
            media = mapping_at(given, f"{at}.content.{media_type}")
            schema = schemas.convert(media.get("schema", {}), f"{at}.content.{media_type}.schema", "request")
            return dict(schema), {"style": "json"}
    style = parameter.get("style", _STYLES[place][0])
    if style not in _STYLES[place]:
        text = _("Expected one of %(names)s where “in” is %(place)s.")
        raise error_at(f"{at}.style", text % {"names": ", ".join(_STYLES[place]), "place": place})
    explode = parameter.get("explode", style == "form")
    schema = schemas.convert(parameter.get("schema", {}), f"{at}.schema", "request")
    return dict(schema), {"style": style, "explode": explode is True}


def _check_path(path: str, parameters: Mapping[str, Any], at: str) -> None:
    stated = {p["name"] for p in parameters.values() if p["in"] == "path"}
    for name in _PLACEHOLDER.findall(path):
        if name not in stated:
            text = _("The path contains %(name)s, but no parameter of that name is described.")
            raise error_at(at, text % {"name": f"{{{name}}}"})


def _free(name: str, place: str, taken: Mapping[str, Any]) -> str:
    """Return a name for an argument that is free and that every provider takes."""
    plain = _OTHER.sub("_", name).strip("_")[:50] or place
    for candidate in (plain, f"{plain}_{place}"):
        if candidate not in taken and candidate != CONTEXT:
            return candidate
    number = 2
    while f"{plain}_{number}" in taken:
        number += 1
    return f"{plain}_{number}"


def _describe(schema: dict[str, Any], text: Any, at: str) -> None:
    if text:
        schema["description"] = text_clean(text_at(text, f"{at}.description"), 1_000)


def _example(document: Document, owner: Mapping[str, Any], at: str) -> Any:
    if "example" in owner:
        return owner["example"]
    examples = owner.get("examples")
    if isinstance(examples, Mapping):
        for name, given in examples.items():
            example = document.resolve(given, f"{at}.examples.{name}")[0]
            if isinstance(example, Mapping) and "value" in example:
                return example["value"]
    schema = owner.get("schema")
    if isinstance(schema, Mapping) and "example" in schema:
        return schema["example"]
    return None


def _body(
    document: Document, schemas: Schemas, given: Any, found: Arguments, shown: dict[str, Any], at: str
) -> None:
    body, at = document.resolve(given, at)
    content = mapping_at(mapping_at(body, at).get("content", {}), f"{at}.content")
    media_type = _chosen(list(content))
    if not media_type:
        found.offered = ", ".join(content)[:100]
        found.unusable = (
            gettext_noop("its body can't be sent in any of these formats")
            if content
            else gettext_noop("no content is described for its body")
        )
        return
    place = f"{at}.content.{media_type}"
    media = mapping_at(content[media_type], place)
    schema = dict(schemas.convert(media.get("schema", {}), f"{place}.schema", "request"))
    _describe(schema, body.get("description"), at)
    kind = media_type.partition(";")[0].strip().lower()
    if kind.startswith("text/"):
        schema.setdefault("type", "string")
    argument = _free("body", "content", found.properties)
    found.properties[argument] = schema
    if body.get("required") is True:
        found.required.append(argument)
    found.wire["body"] = {"argument": argument, "media_type": media_type}
    if kind == "multipart/form-data":
        found.wire["body"]["files"] = _files(document, media.get("schema", {}), f"{place}.schema")
    example = _example(document, media, place)
    if example is not None:
        shown[argument] = example


def _chosen(media_types: Sequence[str]) -> str:
    """Return the media type that a body is best written in, "" when it can be written in none."""
    kinds = {one: one.partition(";")[0].strip().lower() for one in media_types}
    rules: tuple[Callable[[str], bool], ...] = (
        lambda kind: kind == "application/json",
        lambda kind: kind.endswith("+json"),
        lambda kind: kind in _FORMS,
        lambda kind: kind in ("*/*", "application/*"),
        lambda kind: kind.startswith("text/") and kind not in ("text/xml", "text/*"),
    )
    return next((one for rule in rules for one, kind in kinds.items() if rule(kind)), "")


def _files(document: Document, schema: Any, at: str) -> list[str]:
    """Return the parts of a form that are files; a model gives their text."""
    plain = document.resolve(schema, at)[0]
    properties = plain.get("properties", {}) if isinstance(plain, Mapping) else {}
    found = []
    for name, part in mapping_at(properties, f"{at}.properties").items():
        value = document.resolve(part, f"{at}.properties.{name}")[0]
        if isinstance(value, Mapping) and (
            value.get("format") in ("binary", "base64") or "contentMediaType" in value
        ):
            found.append(name)
    return found
