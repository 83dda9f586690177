"""OpenAPI documents become tools: names, schemas, parameters; what cannot be read says where."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from apps.tools.connectors.base import FoundTool, SourceError
from apps.tools.connectors.openapi.document import Document
from apps.tools.connectors.openapi.operations import Found, document_read
from basics.texts import Told
from tests.tools.connectors.openapi_documents import large_document
from toolloop.providers.base import ToolSpec
from toolloop.tools.validation import problems_find


def document(paths: Any, **rest: Any) -> str:
    return json.dumps({"openapi": "3.0.3", "info": {"title": "Shop"}, "paths": paths, **rest})


def get(**operation: Any) -> Any:
    return {"/things": {"get": {"operationId": "list", **operation}}}


def post(schema: Any, media_type: str = "application/json", **body: Any) -> Any:
    content = {"content": {media_type: {"schema": schema}}, **body}
    return {"/things": {"post": {"operationId": "make", "requestBody": content}}}


def read(text: str, **options: Any) -> Found:
    return document_read(text, prefix="shop", **options)


def tool(paths: Any, **rest: Any) -> FoundTool:
    (found,) = read(document(paths, **rest)).tools
    return found


def test_operations_say_what_they_do() -> None:
    item = {
        m: {"operationId": f"{m}It"}
        for m in ("get", "head", "put", "post", "patch", "delete", "options", "trace")
    }
    found = read(document({"/it": item}))
    facts = {t.name: (t.side_effects, t.idempotent, t.wire["method"]) for t in found.tools}
    assert facts == {
        "shop_getIt": (False, True, "GET"),
        "shop_headIt": (False, True, "HEAD"),
        "shop_putIt": (True, True, "PUT"),
        "shop_postIt": (True, False, "POST"),
        "shop_patchIt": (True, False, "PATCH"),
        "shop_deleteIt": (True, True, "DELETE"),
    }
    assert [s["operation"] for s in found.skipped] == ["optionsIt", "traceIt"]


def test_names_are_unique_and_fit() -> None:
    long = "a" * 200
    paths = {
        "/a": {"get": {"operationId": long}, "post": {"operationId": long[:-1]}},
        "/b": {"get": {"operationId": "do it!"}, "post": {"operationId": "do it?"}},
        "/c/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "schema": {}}]}},
        "/d": {"get": {"operationId": "日本"}},
    }
    names = [t.name for t in read(document(paths)).tools]
    assert len(set(names)) == len(names) == 6
    assert all(len(name) <= 64 and name.isascii() and name.startswith("shop_") for name in names)
    assert names[2:] == ["shop_do_it", "shop_do_it_2", "shop_get_c_id", "shop_get"]


def test_texts_tags_examples_and_deprecation() -> None:
    found = tool(
        get(
            summary="List things.",
            description="All of them, a page at a time.\u202e",
            tags=["things", "lists"],
            deprecated=True,
            parameters=[
                {
                    "name": "limit",
                    "in": "query",
                    "required": True,
                    "example": 5,
                    "description": "How many.",
                    "schema": {"type": "integer"},
                }
            ],
        )
    )
    assert found.title == "List things."
    assert found.description == "Deprecated. List things. All of them, a page at a time."
    assert (found.category, list(found.tags)) == ("things", ["things", "lists", "deprecated"])
    assert list(found.examples) == [{"limit": 5}]
    assert found.parameters["properties"]["limit"] == {"type": "integer", "description": "How many."}
    assert found.parameters["required"] == ["limit"]


def test_parameters_of_one_name_in_several_places_are_kept_apart() -> None:
    places = [
        {"name": "id", "in": p, "required": True, "schema": {"type": "string"}}
        for p in ("path", "query", "header", "cookie")
    ]
    found = tool({"/x/{id}": {"get": {"operationId": "x", "parameters": places}}})
    assert list(found.parameters["properties"]) == ["id", "id_query", "id_header", "id_cookie"]
    assert found.wire["parameters"]["id_query"] == {
        "name": "id",
        "in": "query",
        "style": "form",
        "explode": True,
    }


def test_operation_replaces_a_parameter_of_its_path() -> None:
    item = {
        "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
        "get": {
            "operationId": "x",
            "parameters": [{"name": "q", "in": "query", "schema": {"type": "integer"}}],
        },
    }
    assert tool({"/x": item}).parameters["properties"] == {"q": {"type": "integer"}}


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "Authorization", "Cookie", "A\r\nB", "Accept"]
)
def test_header_that_frames_a_request_is_not_offered(name: str) -> None:
    if "\r" in name:
        with pytest.raises(SourceError, match="name"):
            tool(get(parameters=[{"name": name, "in": "header", "schema": {}}]))
        return
    found = tool(get(parameters=[{"name": name, "in": "header", "schema": {}}]))
    assert found.parameters["properties"] == {}


def test_argument_names_are_such_that_every_provider_takes_them() -> None:
    names = ["filter[name]", "$top", "a.b", "日本", "tool_context_", "x" * 150]
    found = tool(get(parameters=[{"name": n, "in": "query", "schema": {}} for n in names]))
    taken = list(found.parameters["properties"])
    assert len(taken) == len(names)
    assert "tool_context_" not in taken
    assert all(n.isascii() and len(n) <= 64 and n.replace("_", "").isalnum() for n in taken)


@pytest.mark.parametrize(
    ("schema", "fits", "fails"),
    [
        ({"type": "string", "nullable": True}, [None, "a"], [1]),
        ({"type": "string", "enum": ["a"], "nullable": True}, [None, "a"], ["b"]),
        ({"allOf": [{"type": "object", "required": ["a"]}], "nullable": True}, [None, {"a": 1}], [{}, 1]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0]),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, [9], [10]),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}], "discriminator": {"propertyName": "x"}},
            ["a", 1],
            [True],
        ),
        (
            {
                "type": "object",
                "properties": {"id": {"type": "string", "readOnly": True}, "n": {"type": "string"}},
                "required": ["id", "n"],
                "additionalProperties": False,
            },
            [{"n": "x"}],
            [{"id": "1", "n": "x"}, {}],
        ),
    ],
    ids=["nullable", "nullable-enum", "nullable-allof", "exclusive", "inclusive", "oneof", "readonly"],
)
def test_schemas_of_3_0_become_json_schema(schema: Any, fits: list[Any], fails: list[Any]) -> None:
    found = tool(post(schema, required=True))
    for value in fits:
        assert not problems_find({"body": value}, found.parameters), value
    for value in fails:
        assert problems_find({"body": value}, found.parameters), value


def test_schemas_of_3_1_stay_as_they_are() -> None:
    text = json.dumps(
        {
            "openapi": "3.1.0",
            "info": {},
            "paths": post({"type": ["string", "null"], "const": "a", "examples": ["a"]}),
        }
    )
    (found,) = read(text).tools
    assert found.parameters["properties"]["body"] == {
        "type": ["string", "null"],
        "const": "a",
        "examples": ["a"],
    }


def test_recursive_and_shared_references_are_complete_in_each_tool() -> None:
    schemas = {
        "Node": {
            "type": "object",
            "properties": {
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
                "owner": {"$ref": "#/components/schemas/Person"},
            },
        },
        "Person": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        "Other": {"type": "string"},
    }
    found = tool(post({"$ref": "#/components/schemas/Node"}), components={"schemas": schemas})
    assert sorted(found.parameters["$defs"]) == ["Node", "Person"]
    assert problems_find({"body": {"children": [{"owner": {}}]}}, found.parameters)
    assert not problems_find({"body": {"children": [{"owner": {"name": "x"}}]}}, found.parameters)


def test_references_lead_anywhere_in_the_document() -> None:
    paths = get(
        parameters=[{"$ref": "#/components/parameters/limit%20it"}, {"$ref": "#/x-own/a~1b"}],
        responses={"200": {"$ref": "#/components/responses/Many"}},
    )
    found = tool(
        paths,
        components={
            "parameters": {
                "limit it": {"name": "limit", "in": "query", "schema": {"$ref": "#/components/schemas/Limit"}}
            },
            "schemas": {"Limit": {"type": "integer"}},
            "responses": {"Many": {"content": {"application/vnd.x+json": {"schema": {"type": "array"}}}}},
        },
        **{"x-own": {"a/b": {"name": "b", "in": "query", "schema": {}}}},
    )
    assert list(found.parameters["properties"]) == ["limit", "b"]
    assert found.parameters["$defs"] == {"Limit": {"type": "integer"}}
    assert found.returns == {"type": "array"}


def test_schema_that_is_too_large_is_cut_at_its_far_end() -> None:
    big = {f"f{i}": {"type": "string", "description": "x" * 500} for i in range(60)}
    schemas = {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}},
        "B": {"type": "object", "properties": {**big, "c": {"$ref": "#/components/schemas/C"}}},
        "C": {"type": "object", "properties": big},
    }
    found = tool(post({"$ref": "#/components/schemas/A"}), components={"schemas": schemas})
    assert "too large" in found.parameters["$defs"]["C"]["description"]
    assert "properties" in found.parameters["$defs"]["B"]
    assert not problems_find({"body": {"b": {"c": "anything"}}}, found.parameters)


@pytest.mark.parametrize(
    ("media_types", "chosen"),
    [
        (["application/xml", "application/json"], "application/json"),
        (["application/xml", "application/vnd.api+json"], "application/vnd.api+json"),
        (["multipart/form-data", "application/xml"], "multipart/form-data"),
        (["*/*"], "*/*"),
        (["text/plain"], "text/plain"),
        (["application/octet-stream"], ""),
        (["application/xml"], ""),
    ],
    ids=lambda v: "+".join(v) if isinstance(v, list) else v or "none",
)
def test_body_is_written_in_what_can_be_written(media_types: list[str], chosen: str) -> None:
    content = {m: {"schema": {"type": "string"}} for m in media_types}
    paths = {"/x": {"post": {"operationId": "x", "requestBody": {"content": content}}}, "/y": {"get": {}}}
    found = read(document(paths))
    made = {t.name: t for t in found.tools}
    if chosen:
        assert made["shop_x"].wire["body"]["media_type"] == chosen
    else:
        assert "shop_x" not in made
        assert "body" in found.skipped[0]["why"]


def test_servers_and_security_are_said() -> None:
    schemes = {
        "a": {"type": "http", "scheme": "bearer"},
        "b": {"type": "http", "scheme": "Basic"},
        "c": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "d": {"type": "apiKey", "in": "query", "name": "key"},
        "e": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "f": {"type": "oauth2", "flows": {}},
        "g": {"type": "mutualTLS"},
    }
    servers = [{"url": "/{v}/", "variables": {"v": {"default": "v2"}}}]
    text = document(
        {
            **get(security=[]),
            "/other": {"servers": [{"url": "https://files.example.org"}], "get": {"operationId": "o"}},
        },
        components={"securitySchemes": schemes},
        servers=servers,
        security=[{"a": []}],
    )
    found = read(text, base="https://api.example.org/docs/openapi.json")
    assert found.server == "https://api.example.org/v2"
    assert found.title == "Shop"
    assert [(s["placement"], s["parameter"]) for s in found.security] == [
        ("bearer", ""),
        ("basic", ""),
        ("header", "X-Key"),
        ("query", "key"),
        ("header", "Cookie"),
        ("bearer", ""),
        ("", ""),
    ]
    public, other = found.tools
    assert public.wire["public"] is True
    assert other.wire["server"] == "https://files.example.org"
    assert "public" not in other.wire


YAML = """
openapi: 3.0.0
info: {title: Shop, version: 2020-01-01}
paths:
  /things:
    get:
      operationId: list
      parameters:
        - {name: on, in: query, schema: {type: string, enum: [yes, no, on, off, 2020-01-01]}}
        - {name: n, in: query, schema: {type: integer, default: 010, maximum: 1e3}}
      responses:
        200: {description: Done, content: {application/json: {schema: {type: object}}}}
"""


def test_yaml_means_what_json_would() -> None:
    (found,) = read(YAML).tools
    properties = found.parameters["properties"]
    assert properties["on"]["enum"] == ["yes", "no", "on", "off", "2020-01-01"]
    assert (properties["n"]["default"], properties["n"]["maximum"]) == (10, 1000.0)
    assert found.returns == {"type": "object"}


LOOP = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
BAD = {
    "empty": ("", "expected an object"),
    "text": ("hello", "expected an object"),
    "list": ("[1]", "expected an object"),
    "json": ('{"openapi": "3.0.0",', "Line 1, column"),
    "yaml": ("a: [1\nb: 2", "Line 2"),
    "yaml-tag": ("a: !!python/object/apply:os.system ['true']", "YAML"),
    "yaml-circle": ("a: &a [*a]", "nested deeper"),
    "yaml-bomb": (
        "\n".join(["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]),
        "values",
    ),
    "deep-json": ('{"a":' * 200_000 + "1" + "}" * 200_000, "deep"),
    "deep-yaml": ("a: " + "[" * 5_000 + "]" * 5_000, "deep"),
    "swagger": ('{"swagger": "2.0"}', "Swagger 2.0"),
    "no-version": ('{"paths": {}}', "no “openapi”"),
    "version": ('{"openapi": "4.0.0"}', "version 4.0.0"),
    "no-paths": ('{"openapi": "3.0.0"}', "no operation"),
    "paths": ('{"openapi": "3.0.0", "paths": []}', "At paths: Expected an object"),
    "path": (document({"things": {}}), "At paths.things: A path begins"),
    "item": (document({"/a": 1}), "At paths./a: Expected an object"),
    "operation": (document({"/a": {"get": []}}), "At paths./a.get: Expected an object"),
    "operation-id": (
        document({"/a": {"get": {"operationId": 5}}}),
        "At paths./a.get.operationId: Expected a text",
    ),
    "parameters": (document(get(parameters={})), "At paths./things.get.parameters: Expected a list"),
    "parameter-in": (
        document(get(parameters=[{"name": "a", "in": "body"}])),
        "parameters[0].in: Expected one of",
    ),
    "parameter-name": (document(get(parameters=[{"in": "query"}])), "parameters[0].name: Expected a text"),
    "style": (
        document(get(parameters=[{"name": "a", "in": "path", "style": "form"}])),
        "parameters[0].style",
    ),
    "path-parameter": (document({"/a/{id}": {"get": {}}}), "{id}"),
    "remote": (
        document(get(parameters=[{"$ref": "https://evil.example.org/x.json#/a"}])),
        "another document",
    ),
    "file": (document(post({"$ref": "other.yaml#/X"})), "another document"),
    "nowhere": (document(post({"$ref": "#/components/schemas/X"})), "points to nothing"),
    "anchor": (document(post({"$ref": "#here"})), "isn't a path"),
    "circle": (
        document(get(parameters=[{"$ref": "#/components/parameters/a"}]), components={"parameters": LOOP}),
        "circular",
    ),
    "schema": (
        document(post({"type": "thing"})),
        "At paths./things.post.requestBody.content.application/json.schema",
    ),
    "schema-text": (document(post("text")), "Expected a schema"),
    "tags": (document(get(tags="a")), "tags: Expected a list"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_document_says_where(case: str) -> None:
    text, words = BAD[case]
    with pytest.raises(SourceError) as refused:
        read(text)
    assert words in refused.value.message
    assert isinstance(refused.value.message, Told)  # and can be told in the language of who reads it


def test_schema_bomb_ends_in_time() -> None:
    """Each schema refers twice to the next: what is stored must not double thirty times."""
    schemas = {
        f"S{i}": {
            "type": "object",
            "properties": {p: {"$ref": f"#/components/schemas/S{i + 1}"} for p in "ab"},
        }
        for i in range(30)
    }
    schemas["S30"] = {"type": "string"}
    begun = time.process_time()
    found = tool(post({"$ref": "#/components/schemas/S0"}), components={"schemas": schemas})
    assert time.process_time() - begun < 20
    assert len(found.parameters["$defs"]) == 31


def test_patterns_are_told_and_not_run() -> None:
    found = tool(post({"type": "string", "pattern": "(a+)+$"}))
    assert "pattern" not in found.parameters["properties"]["body"]
    assert "(a+)+$" in found.parameters["properties"]["body"]["description"]


def test_document_of_150_operations_is_read_in_time() -> None:
    text = json.dumps(large_document(150))
    begun = time.process_time()
    found = read(text)
    digests = {t.digest() for t in found.tools}
    assert time.process_time() - begun < 20
    assert len(found.tools) == len(digests) == 150
    again = {t.digest() for t in read(text).tools}
    assert again == digests
    for one in found.tools:
        ToolSpec(one.name, one.description, one.parameters)
        assert FoundTool.from_json(json.loads(json.dumps(one.to_json()))).digest() == one.digest()


def test_document_keeps_bare_values() -> None:
    assert Document('{"openapi": "3.1.1", "x": [1, 1.5, true, null]}').root["x"] == [1, 1.5, True, None]
