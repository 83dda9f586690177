"""A parameter or field that an operation does not have is refused by name, never ignored: in every operation there is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import EndpointEnumerator
from rest_framework.parsers import JSONParser

from tests.cast import Cast
from tests.openapi import committed
from web.drf.known import EVERYWHERE, fields_known, parameters_known
from web.drf.views import TenantAPIView

JSON = "application/json"


def operations() -> list[tuple[str, str, Any]]:
    """Return path, method and view class of every REST operation."""
    found = []
    for path, _, method, callback in EndpointEnumerator().get_api_endpoints():
        view = getattr(callback, "cls", None)
        if not path.startswith("/api/v1/"):
            continue  # MCP, whose clients say in messages what they want
        if isinstance(view, type) and issubclass(view, TenantAPIView):
            found.append((path, method, view))
    return found


def documented() -> dict[tuple[str, str], frozenset[str]]:
    paths = committed()["paths"]
    return {
        (path, method.upper()): frozenset(p["name"] for p in o.get("parameters", ()) if p["in"] == "query")
        for path, item in paths.items()
        for method, o in item.items()
    }


def test_known_parameters_are_those_of_the_schema() -> None:
    schema = documented()
    names = {_shape(path): params for path, params in schema.items()}
    checked = 0
    for path, method, view in operations():
        params = names.get(_shape((path, method)))
        if params is None:  # a second spelling, left out of the schema
            continue
        assert set(parameters_known(view, method) or ()) == params | EVERYWHERE, (path, method)
        checked += 1
    assert checked == len(schema) > 250


def _shape(operation: tuple[str, str]) -> tuple[str, str]:
    path, method = operation
    parts = ["{}" if part.startswith("{") else part for part in path.split("/")]
    return "/".join(parts), method


@pytest.fixture
def owner(cast: Cast, client: Client) -> Client:
    client.force_login(cast.user("owner"))
    return client


def test_every_operation_refuses_an_unknown_parameter(cast: Cast, owner: Client) -> None:
    for path, method, _ in operations():
        answer = _ask(owner, cast, path, method, "&no_such_thing=1", None)
        assert answer.status_code == 400, (path, method, answer.content)
        assert "no_such_thing" in answer.json()["details"]["fields"], (path, method)


def test_every_operation_refuses_an_unknown_field(cast: Cast, owner: Client) -> None:
    tried = 0
    for path, method, view in operations():
        if method not in {"POST", "PUT", "PATCH"} or view.takes_unknown_fields:
            continue
        if fields_known(view, method) is None:
            continue
        body: Any = {"no_such_thing": 1}
        if any(issubclass(parser, JSONParser) for parser in view.parser_classes):
            answer = _ask(owner, cast, path, method, "", body)
        else:
            answer = owner.post(f"{_address(path)}?tenant={cast.tenant.slug}", body)
        assert answer.status_code == 400, (path, method, answer.content)
        assert "no_such_thing" in answer.json()["details"]["fields"], (path, method)
        tried += 1
    assert tried > 60


def _address(path: str) -> str:
    path = path.replace("{key}", "0" * 8 + "-0000-4000-8000-" + "0" * 12)
    return "/".join("1" if part.startswith("{") else part for part in path.split("/"))


def _ask(client: Client, cast: Cast, path: str, method: str, more: str, body: Any) -> Any:
    text = "" if body is None else json.dumps(body)
    return client.generic(method, f"{_address(path)}?tenant={cast.tenant.slug}{more}", text, JSON)


def test_an_unknown_field_is_found_inside_of_lists_and_names_the_nearest(cast: Cast, owner: Client) -> None:
    call = {"id": "a", "function": {"name": "search_documents", "argument": "{}"}}
    answer = _ask(owner, cast, "/api/v1/tools/execute", "POST", "", {"tool_calls": [call]})
    assert answer.status_code == 400
    inner = answer.json()["details"]["fields"]["tool_calls"]["0"]["function"]
    assert "Did you mean “arguments”?" in inner["argument"][0]


def test_a_misspelt_filter_does_not_give_the_whole_list(cast: Cast, owner: Client) -> None:
    answer = owner.get(f"/api/v1/approvals?tenant={cast.tenant.slug}&boxx=decided")
    assert answer.status_code == 400
    assert "Did you mean “box”?" in answer.json()["details"]["fields"]["boxx"][0]


def test_a_value_of_the_wrong_kind_does_not_count_as_none(cast: Cast, owner: Client) -> None:
    for query, field in (
        ("assistants?archived=maybe", "archived"),
        ("approvals?box=nowhere", "box"),
        ("reads?document=one", "document"),
        ("tool-calls?since=yesterday", "since"),
        ("tool-calls?status=ended&status=failed", "status"),
        ("tool-calls?text=a%00b", "text"),
        ("tools?system=other", "system"),
    ):
        answer = owner.get(f"/api/v1/{query}&tenant={cast.tenant.slug}")
        assert answer.status_code == 400, (query, answer.content)
        assert field in answer.json()["details"]["fields"], query


OTHERS = {"/api/v1/models", "/api/v1/tools"}
"""Lists in the form of another protocol: OpenAI's models and functions."""


def test_every_list_has_the_one_envelope() -> None:
    schema = committed()
    shapes, lists = schema["components"]["schemas"], 0
    for path, item in schema["paths"].items():
        content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        shape = content.get("application/json", {}).get("schema", {})
        while "$ref" in shape:
            shape = shapes[shape["$ref"].rpartition("/")[2]]
        assert shape.get("type") != "array", f"{path}: a bare list; name a pagination_class"
        properties = shape.get("properties", {})
        if "results" in properties:
            assert set(properties) == {"next", "previous", "results"}, path
            lists += 1
        elif path not in OTHERS:
            lone = [n for n, p in properties.items() if p.get("type") == "array"]
            assert len(properties) > 1 or not lone or path.endswith(("/diff", "/outgoing-hosts")), path
    assert lists > 50
