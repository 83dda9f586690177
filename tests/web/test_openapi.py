"""The committed schema is the one the code serves, and says the same things about every operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

from tests.openapi import COMMITTED, committed, read
from web.drf.schema import ERROR


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return committed()


def operations(schema: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(p, m, o) for p, item in schema["paths"].items() for m, o in item.items()]


def test_committed_schema_is_current_and_made_without_warnings(tmp_path: Path):
    fresh = tmp_path / "openapi.yaml"
    call_command("spectacular", "--fail-on-warn", "--file", str(fresh))
    assert fresh.read_text() == COMMITTED.read_text(), "run: make openapi"


def test_every_operation_documents_errors_and_authentication(schema: dict[str, Any]):
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        assert {"apiKey": []} in operation["security"], where
        assert {"session": []} in operation["security"], where
        expected = {"400", "401", "403"} | ({"404"} if "{" in path else set())
        assert expected <= set(operation["responses"]), where
        for status in expected:
            content = operation["responses"][status]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Error"}, where
        assert operation["description"], where
        assert operation["operationId"], where
    assert schema["components"]["schemas"]["Error"]["required"] == ERROR["required"]


def test_every_write_documents_its_idempotency_key(schema: dict[str, Any]):
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        named = [p for p in operation.get("parameters", []) if p["name"] == "Idempotency-Key"]
        if method == "get":
            assert not named, where
            continue
        assert len(named) == 1, where
        assert named[0]["in"] == "header", where
        assert {"409", "422"} <= set(operation["responses"]), where
        for status, answer in operation["responses"].items():
            assert ("Idempotent-Replayed" in answer.get("headers", {})) == (status[0] == "2"), where


def test_comparisons_may_find_nothing_in_common(schema: dict[str, Any]):
    found = [o["responses"] for p, m, o in operations(schema) if p.endswith("/comparison") and m == "get"]
    assert found
    assert all("409" in responses for responses in found)


def test_operation_names_are_unique(schema: dict[str, Any]):
    names = [o["operationId"] for _, _, o in operations(schema)]
    assert len(names) == len(set(names))


def test_schema_and_url_configuration_agree(schema: dict[str, Any]):
    def walk(patterns: Any) -> Iterator[str]:
        for pattern in patterns:
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern.url_patterns)
            else:
                yield "/api/v1/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern))

    found = set(walk(get_resolver("config.api_urls").url_patterns))
    served = {p.replace("{id}", "{pk}") for p in schema["paths"]}
    assert {p.replace("{id}", "{pk}") for p in found} == served


@pytest.mark.django_db
def test_reference_page_lists_every_operation_under_the_strict_policy(schema: dict[str, Any]):
    response = Client().get("/api/docs/")
    assert response.status_code == 200
    body = response.content.decode()
    for path, _, operation in operations(schema):
        assert f'id="{operation["operationId"]}"' in body
        assert path in body
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "https://" not in body.replace("https://www.w3.org", ""), "nothing from elsewhere"
    assert "<script>" not in body
    assert "style=" not in body


@pytest.mark.django_db
def test_schema_is_served(schema: dict[str, Any]):
    response = Client().get("/api/schema/")
    assert response.status_code == 200
    assert read(response.content)["paths"].keys() == schema["paths"].keys()
