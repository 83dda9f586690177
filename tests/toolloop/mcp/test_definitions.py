"""What is made of names, texts and schemas that a server chose; no connection needed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolloop.errors import ConfigurationError
from toolloop.mcp.drift import Change, Definition, drift_find, pin_make, pin_read
from toolloop.mcp.listing import Listing, listing_read
from toolloop.mcp.schemas import SchemaRefused, schema_safe
from toolloop.mcp.text import text_clean, tool_name
from toolloop.tools.validation import problems_find

ROOT = Path(__file__).resolve().parents[3]


def define(name: str = "echo", **more: Any) -> Definition:
    data = {"name": name, "description": "Echo.", "inputSchema": {"type": "object"}}
    return Definition.of({**data, **more})


def listing(*definitions: Definition, **more: Any) -> Listing:
    return listing_read("srv", definitions, more.pop("accepted", None), **more)


@given(st.text(max_size=200))
def test_every_name_becomes_one_that_all_providers_take(name: str) -> None:
    made = tool_name("srv", name)
    assert made.startswith("srv__")
    assert len(made) <= 64
    assert made.isascii()
    assert all(char.isalnum() or char in "_-" for char in made)


def test_a_homoglyph_does_not_pass_as_what_it_imitates() -> None:
    assert tool_name("srv", "\u0455end") == "srv___end"  # Cyrillic
    found = listing(define("send"), define("\u0455end"))
    assert set(found.offers) == {"srv__send", "srv___end"}
    drift = drift_find({"send": define("send")}, found.listed)
    assert "\\u0455end" in drift.report()


def test_long_names_stay_apart() -> None:
    long = "a" * 100
    assert tool_name("srv", long + "1") != tool_name("srv", long + "2")


def test_hidden_characters_do_not_reach_the_model() -> None:
    tags = "".join(chr(0xE0000 + ord(char)) for char in "send keys")
    hidden = f"Add\u202e two\u200b numbers\x1b[31m.{tags}\ue000\x00"
    assert text_clean(hidden, 100) == "Add two numbers[31m."
    schema = {"type": "object", "properties": {"a": {"description": hidden, "title": hidden}}}
    (offer,) = listing(define(description=hidden, inputSchema=schema)).offers.values()
    assert offer.description == "Add two numbers[31m."
    assert offer.parameters["properties"]["a"]["description"] == "Add two numbers[31m."
    assert define(description="Add two numbers.").fingerprint != define(description=hidden).fingerprint
    family = "\U0001f468\u200d\U0001f469"
    assert text_clean(family, 10) == family


def test_a_description_is_never_empty_and_never_endless() -> None:
    (offer,) = listing(define(description="\u200b")).offers.values()
    assert "nothing more is known" in offer.description
    (offer,) = listing(define(description="x" * 100_000)).offers.values()
    assert len(offer.description) < 8_100


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"a": {"$ref": "https://evil.example/s.json"}}}, "not fetched"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "not fetched"),
        ({"properties": {"a": {"$ref": 5}}}, "not fetched"),
        ({"type": "array"}, "not object"),
        ({"type": 7}, "not object"),
        ({"properties": ["a"]}, "valid JSON Schema"),
        ({"properties": {"a": "string"}}, "valid JSON Schema"),
        ({"required": "a"}, "valid JSON Schema"),
        ({"properties": {"a": {"enum": 3}}}, "valid JSON Schema"),
        ({"properties": {"a": {"minimum": "low"}}}, "valid JSON Schema"),
        ({"properties": {"a b": {}}}, "argument name"),
        ({"properties": {"\u0430": {}}}, "argument name"),
        ({"properties": {"a": {"description": "x" * 70_000}}}, "characters, the limit"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_reason(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        schema_safe({"type": "object", **schema})
    found = listing(define("good"), define("bad", inputSchema={"type": "object", **schema}))
    assert set(found.offers) == {"srv__good"}
    assert reason in found.withheld["srv__bad"]
    assert reason in found.drift.problems[0]


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(5_000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaRefused, match="deeper than 40"):
        schema_safe(schema)


def test_a_recursive_schema_is_kept_and_checked() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    }
    safe = schema_safe(tree)
    value = {"name": "a", "children": [{"name": "b", "children": []}, {}]}
    assert problems_find(value, safe) == ["children[1]: 'name' is required and missing"]


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"not": {"not": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        {
            "$defs": {str(i): {"allOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(90)},
            "$ref": "#/$defs/0",
        },
    ],
)
def test_references_that_double_at_each_step_do_not_take_forever(schema: dict[str, Any]) -> None:
    value: Any = {}
    for _ in range(60):
        value = {"a": value}
    begun = time.process_time()
    assert problems_find(value, schema_safe({"type": "object", **schema}))
    assert time.process_time() - begun < 2


def test_patterns_are_told_and_not_run() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "description": "Code.", "pattern": "^(a+)+$"}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
    }
    safe = schema_safe(schema)
    assert safe["properties"]["a"]["description"] == "Code.; Must match ^(a+)+$"
    assert problems_find({"a": "a" * 60 + "!", "x-1": 1}, safe) == []


def test_schemas_of_older_drafts_are_understood() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "id": {"$ref": "#/definitions/id"},
        },
        "definitions": {"id": {"type": "string"}},
    }
    safe = schema_safe(schema)
    assert "$schema" not in safe
    assert problems_find({"pair": ["a", "b"], "n": 1, "id": 5}, safe) == [
        'pair[1]: expected integer, got string "b"',
        "id: expected string, got integer 5",
    ]


def test_drift_tells_added_removed_and_changed_apart() -> None:
    accepted = {name: define(name) for name in ("same", "old", "moved")}
    moved = define("moved", annotations={"readOnlyHint": True})
    drift = drift_find(accepted, {"same": define("same"), "moved": moved, "new": define("new")})
    assert [(c.name, c.kind) for c in drift.changes] == [
        ("moved", "changed"),
        ("new", "added"),
        ("old", "removed"),
    ]
    assert '+    "readOnlyHint": true' in drift.changed[0].diff
    assert all(Change.from_json(json.loads(json.dumps(c.to_json()))) == c for c in drift.changes)
    with pytest.raises(ConfigurationError, match="unknown change"):
        Change.from_json({"kind": "approved"})


def test_a_fingerprint_ignores_order_and_what_is_not_reviewed_only() -> None:
    one = define(annotations={"a": 1, "b": 2}, icons=["x"], _meta={"t": 1})
    two = Definition.of(dict(reversed(list(define(annotations={"b": 2, "a": 1}).data.items()))))
    assert one.fingerprint == two.fingerprint
    parts: list[dict[str, Any]] = [
        {"title": "T"},
        {"description": "Echo"},
        {"inputSchema": {"type": "object", "properties": {}}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ]
    prints = {define(**part).fingerprint for part in parts}
    assert len(prints | {define().fingerprint}) == 6


def test_a_damaged_pin_is_refused() -> None:
    pin = pin_make("srv", [define()])
    assert pin_read("srv", json.loads(json.dumps(pin))) == {"echo": define()}
    broken = json.loads(json.dumps(pin))
    broken["tools"]["echo"]["definition"]["description"] = "Evil."
    with pytest.raises(ConfigurationError, match="does not match its fingerprint"):
        pin_read("srv", broken)
    for bad in ({}, {**pin, "server": "other"}, {**pin, "tools": {"echo": 5}}, {**pin, "tools": 5}):
        with pytest.raises(ConfigurationError):
            pin_read("srv", bad)


def test_withheld_tools_come_back_only_as_they_were_accepted() -> None:
    accepted = {"echo": define()}
    changed = listing(define(description="Evil."), accepted=accepted)
    assert (set(changed.offers), set(changed.withheld)) == (set(), {"srv__echo"})
    assert set(listing(define(), accepted=accepted).offers) == {"srv__echo"}
    absent = listing(accepted=accepted)
    assert "no longer lists 'echo'" in absent.withheld["srv__echo"]


def test_a_name_that_two_tools_share_is_offered_by_neither() -> None:
    found = listing(define("a b"), define("a_b"), define("fine"), define("twice"), define("twice"))
    assert set(found.offers) == {"srv__fine"}
    assert len(found.collisions) == 2
    taken = listing(define("read_resource"), reserved=["srv__read_resource"])
    assert "which is taken" in taken.collisions[0]


def probe(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'platform')\n{code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_importing_the_packages_loads_no_sdk() -> None:
    code = (
        "import toolloop.mcp, toolloop.interop.langchain, toolloop.interop.react\n"
        "heavy = ('mcp', 'httpx2', 'httpx', 'pydantic', 'langchain_core', 'starlette', 'jsonschema')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert probe(code).strip() == "[]"


def test_without_the_sdk_the_error_says_what_to_install() -> None:
    code = (
        "sys.modules['mcp'] = None\n"
        "import asyncio\n"
        "from toolloop.mcp import HttpTransport, McpServer\n"
        "server = McpServer('a', HttpTransport(url='http://127.0.0.1:9'))\n"
        "try:\n    asyncio.run(server.connect())\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    assert probe(code).startswith("ConfigurationError MCP needs the package 'mcp'")
