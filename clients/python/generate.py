"""Write the client's models and methods from docs/openapi.yaml: `make client`, and each build (`hatch_build.py`).

Same schema, same text. What is written is in no commit.

Own and small, because what the known generators write has a module for each operation, raises nothing and leaves repetition,
retries and streams to its user.
"""

from __future__ import annotations

import keyword
import os
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "docs" / "openapi.yaml"
PACKAGE = HERE / "src" / "groundwork_client"
METHODS = ("get", "post", "put", "patch", "delete")
NOTE = "Generated from docs/openapi.yaml by `make client`: do not edit."
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the annotation of a schema."""
    options = [_bare(schema)]
    for several in ("oneOf", "anyOf"):
        if several in schema:
            options = [type_of(one) for one in schema[several]]
    if schema.get("nullable") and "None" not in options:
        options.append("None")
    return " | ".join(dict.fromkeys(options)) if "Any" not in options else "Any"


def _bare(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if len(schema.get("allOf", ())) == 1:
        return type_of(schema["allOf"][0])
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    kind = schema.get("type")
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {type_of(values) if isinstance(values, dict) and values else 'Any'}]"
    if kind == "string" and schema.get("format") == "binary":
        return "transport.File"
    return _PLAIN.get(str(kind), "Any")


def models(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of models.py."""
    yield f'"""What the API takes and gives. {NOTE}"""\n'
    yield "from __future__ import annotations\n"
    yield "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, final\n"
    yield "from groundwork_client import transport\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" not in schema:
            yield f'\n{name}: TypeAlias = "{type_of(schema)}"'
            continue
        required = set(schema.get("required", ()))
        # Final: a type checker then tells the shapes of a union apart by their keys.
        yield f"\n\n@final\nclass {name}(TypedDict):"
        yield from _documented(schema.get("description", ""), "    ")
        for field, value in schema["properties"].items():
            if not field.isidentifier() or keyword.iskeyword(field):
                raise SystemExit(f"{name}.{field} cannot be an attribute: teach generate.py")
            kind = type_of(value)
            yield f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}"
            yield from _documented(value.get("description", ""), "    ")


def _documented(text: str, indent: str) -> Iterator[str]:
    if not text:
        return
    safe = text.replace("\\", "\\\\").replace('"""', "'''").strip()
    safe += " " if safe.endswith('"') else ""
    lines = textwrap.wrap(f'"""{safe}"""', 116 - len(indent), break_long_words=False, break_on_hyphens=False)
    yield from (indent + line for line in lines)


def client(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of client.py."""
    yield f'"""The operations of the API. {NOTE}"""\n'
    yield "from __future__ import annotations\n"
    yield "from collections.abc import Iterator"
    yield "from typing import Any, Literal, cast\n"
    yield "from groundwork_client import models"
    yield "from groundwork_client.transport import Event, Transport\n\n"
    yield "class Groundwork(Transport):"
    yield '    """The workspace of an API key; a method for each operation, named as in the API\'s reference."""'
    schemas = document["components"]["schemas"]
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield from _operation(path, method, item[method], schemas)


def _operation(
    path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Iterator[str]:
    name = operation["operationId"]
    given = operation.get("parameters", [])
    if any(keyword.iskeyword(p["name"]) for p in given):
        raise SystemExit(f"{name}: a parameter cannot be an argument: rename it, or teach generate.py")
    positional = [f"{p['name']}: {_named(p['schema'])}" for p in given if p["in"] == "path"]
    query = [p for p in given if p["in"] == "query" and "sse" not in p["schema"].get("enum", ())]
    answer, is_stream, is_file = _answer(operation)
    if is_stream:  # it goes on behind an event by itself
        query = [p for p in query if p["name"] != "after"]
    sent, body = _body(operation, positional)
    named = [
        f"{p['name']}: {_named(p['schema'])}{'' if p.get('required') else ' | None = None'}" for p in query
    ]
    if is_stream:
        named.append('after: str = ""')
    if method != "get":
        named.append("idempotency_key: str | None = None")
    arguments = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    shown = "{" + ", ".join(f'"{p["name"]}": {p["name"]}' for p in query) + "}"
    target = f'f"{path}"' if "{" in path else f'"{path}"'
    options = ([f"query={shown}"] if query else []) + body
    yield f"\n    def {name}({arguments}) -> {answer}:"
    yield from _documented(_told(operation, query), "        ")
    if is_stream:
        yield f"        return self._events({', '.join([target, *options, 'after=after'])})"
    elif is_file:
        yield f"        return self._bytes({', '.join([target, *options])})"
    else:
        if method != "get":
            options.append("idempotency_key=idempotency_key")
        call = f'self._call("{method.upper()}", {", ".join([target, *options])})'
        yield f"        {call}" if answer == "None" else f'        return cast("{answer}", {call})'
    page = schemas.get(answer.removeprefix("models."), {})
    is_page = {"next", "results"} <= set(page.get("properties", {}))
    if not sent and is_page and any(p["name"] == "cursor" for p in query):
        yield from _all(name, page, positional, query)


def _all(name: str, page: Mapping[str, Any], positional: list[str], query: list[Any]) -> Iterator[str]:
    """Yield the method that goes through all pages of a list."""
    item = _named(page["properties"]["results"]["items"])
    kept = [p for p in query if p["name"] != "cursor"]
    named = [f"{p['name']}: {_named(p['schema'])} | None = None" for p in kept]
    arguments = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    passed = [p.split(":")[0] for p in positional] + [f"{p['name']}={p['name']}" for p in kept]
    yield f"\n    def {name}_all({arguments}) -> Iterator[{item}]:"
    yield f'        """Go through all rows of ``{name}``, page by page."""'
    yield f"        return self._every(lambda cursor: self.{name}({', '.join([*passed, 'cursor=cursor'])}))"


def _named(schema: Mapping[str, Any]) -> str:
    kind = type_of(schema)
    return f"models.{kind}" if "$ref" in schema else kind


def _answer(operation: Mapping[str, Any]) -> tuple[str, bool, bool]:
    """Return the type of an answer, whether it is a stream of events, and whether it is a file."""
    kinds = [_answer_of(r) for s, r in sorted(operation["responses"].items()) if s.startswith("2")]
    if not kinds:
        raise SystemExit(f"{operation['operationId']} has no answer")
    return " | ".join(dict.fromkeys(kind for kind, _, _ in kinds)), *kinds[0][1:]


def _answer_of(response: Mapping[str, Any]) -> tuple[str, bool, bool]:
    content = response.get("content", {})
    if "application/json" in content:  # an answer that can also be streamed is given whole
        schema = content["application/json"]["schema"]
        if schema.get("type") == "array":
            return f"list[{_named(schema['items'])}]", False, False
        return _named(schema), False, False
    if "text/event-stream" in content:
        return "Iterator[Event]", True, False
    return ("bytes", False, True) if content else ("None", False, False)


def _body(operation: Mapping[str, Any], positional: list[str]) -> tuple[bool, list[str]]:
    """Add the body's parameter; return whether there is one, and how it is passed on."""
    body = operation.get("requestBody")
    if body is None:
        return False, []
    is_json = "application/json" in body["content"]
    schema = body["content"]["application/json" if is_json else "multipart/form-data"]["schema"]
    optional = "" if body.get("required") else " | None = None"
    positional.append(f"body: {_named(schema)}{optional}")
    if is_json:
        return True, ["body=body" if body.get("required") else "body=body or {}"]
    return True, ['form=cast("dict[str, Any]", body)']


def _told(operation: Mapping[str, Any], query: list[Any]) -> str:
    told = [operation.get("description", "").strip() or operation["operationId"]]
    told += [f"{p['name']}: {p['description'].strip()}" for p in query if p.get("description")]
    return " ".join(t if t.endswith((".", "!", "?")) else f"{t}." for t in told)


def written(schema: Path) -> dict[str, str]:
    """Return the names of the generated files and their text."""
    document = yaml.load(schema.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe
    parts = {"models.py": models(document), "client.py": client(document)}
    return {name: "\n".join(lines) + "\n" for name, lines in parts.items()}


def client_write(schema: Path = SCHEMA, package: Path = PACKAGE) -> None:
    """Write the generated files into the package.

    Each is replaced at once: tests, type checker and builds that run side by side read the old text or the new one.
    """
    for name, text in written(schema).items():
        handle, temporary = tempfile.mkstemp(dir=package, prefix=f".{name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, package / name)


if __name__ == "__main__":
    client_write()
