"""Calls in the shape of the file API that we have absorbed: its request, its arguments, its answer, and its short address."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.collections.models import Collection
from tests.cast import Cast
from tests.collections.files.conftest import Write, scope, write  # noqa: F401 - fixtures
from tests.factories import make_collection

pytestmark = pytest.mark.django_db(transaction=True)
FILES: dict[str, bytes | str] = {
    "README.md": "Groundwork\n",
    "src/Main.py": "Total = 1\n",
    "src/inner/util.py": "total = 2\n",
    "notes.txt": b"caf\xe9\n",
}


@pytest.fixture
def execute(cast: Cast, collection: Collection, write: Write, client: Client) -> Any:  # noqa: F811
    for path, content in FILES.items():
        write(path, content)
    client.force_login(cast.user("member"))

    def executing(
        name: str, arguments: Any, address: str = "/api/v1/tools/execute", **more: Any
    ) -> dict[str, Any]:
        body = {"function_name": name, "arguments": arguments, **more}
        answer = client.post(f"{address}?tenant={cast.tenant.slug}", json.dumps(body), "application/json")
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    return executing


def result(told: dict[str, Any]) -> Any:
    assert (told["success"], told["error"], told["system"]) == (True, None, "native"), told
    assert told["execution_time_ms"] > 0
    return json.loads(told["messages"][0]["content"])


def refused(told: dict[str, Any], says: str) -> None:
    assert told["success"] is False, told
    assert says in told["error"]


def names(listing: Any) -> list[str]:
    return [entry["name"] for entry in listing["entries"]]


@pytest.mark.parametrize("address", ["/api/v1/tools/execute", "/v1/tools/execute"])
def test_arguments_are_an_object_or_its_text(execute: Any, address: str) -> None:
    arguments = {"path": "README.md"}
    for given in (arguments, json.dumps(arguments)):
        told = execute("read_file", given, address, tool_call_id="call_7")
        assert result(told)["text"] == "Groundwork"
        assert told["messages"][0]["tool_call_id"] == "call_7"


def test_folders_are_listed_by_path_pattern_and_recursively(execute: Any) -> None:
    assert names(result(execute("list_directory", {"path": "."}))) == ["src/", "notes.txt", "README.md"]
    found = result(execute("list_directory", {"path": "src", "recursive": True}))
    assert names(found) == ["Main.py", "inner/util.py"]
    found = result(execute("list_directory", {"recursive": True, "pattern": "*.py"}))
    assert names(found) == ["src/Main.py", "src/inner/util.py"]
    assert names(result(execute("list_directory", {"show_hidden": False}))) == [
        "src/",
        "notes.txt",
        "README.md",
    ]
    refused(execute("list_directory", {"show_hidden": True}), "Hidden files are switched off")


def test_hidden_files_are_shown_where_the_rules_show_them(
    execute: Any,
    collection: Collection,
    write: Write,  # noqa: F811
) -> None:
    collection.file_rules = {"show_hidden": True}
    collection.save()
    write(".hidden/.env", "A=1\n")
    assert ".hidden/" in names(result(execute("list_directory", {"show_hidden": True})))
    assert ".hidden/" not in names(result(execute("list_directory", {"show_hidden": False})))


def test_search_tells_capitals_apart_and_gives_as_many_as_asked(execute: Any) -> None:
    def paths(**arguments: Any) -> list[str]:
        return [m["path"] for m in result(execute("search_files", arguments))["matches"]]

    assert paths(query="total") == ["src/Main.py", "src/inner/util.py"]
    assert paths(query="total", case_sensitive=True) == ["src/inner/util.py"]
    assert paths(query="total", max_results=1) == ["src/Main.py"]
    assert paths(query="total", pattern="util*") == ["src/inner/util.py"]
    assert paths(pattern="*.py", path="src/inner") == ["src/inner/util.py"]
    refused(execute("search_files", {"query": "total", "max_results": 0}), "limit")


def test_a_file_is_read_in_the_encoding_that_is_named(execute: Any) -> None:
    assert result(execute("read_file", {"path": "notes.txt", "encoding": "latin-1"}))["text"] == "café"
    for name, says in (
        ("utf-8", "isn't text in utf-8"),
        ("rot13", "isn't a text encoding"),
        ("idna", "isn't a text encoding"),
    ):
        refused(execute("read_file", {"path": "notes.txt", "encoding": name}), says)


def test_what_fails_and_what_waits_is_told(execute: Any, cast: Cast) -> None:
    refused(execute("read_file", {"path": "nothing.txt"}), "does not exist")
    for name, arguments in (
        ("no_such_tool", {}),
        ("read_file", "[1]"),
        ("read_file", {"path": "README.md", "pat": 1}),
    ):
        told = execute(name, arguments)
        assert (told["success"], told["messages"][0]["is_error"]) == (False, True), told
    waits = execute("write_file", {"path": "new.txt", "content": "x"}, tool_call_id="w")
    assert waits["success"] is False
    assert waits["error"] == f"A call waits for approval: see /runs/{waits['waiting_run']}/decisions."
    assert waits["waiting"] == ["w"]


def test_two_collections_must_be_told_apart(execute: Any, cast: Cast, collection: Collection) -> None:
    make_collection(cast.tenant, name="Other")
    refused(execute("read_file", {"path": "README.md"}), "collection")
    told = execute("read_file", {"path": "README.md"}, collections=[collection.pk])
    assert result(told)["text"] == "Groundwork"


def test_our_own_shape_takes_objects_and_tells_success(execute: Any, client: Client, cast: Cast) -> None:
    arguments = {"collection": "Trade", "path": "README.md"}
    call = {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
    answer = client.post(
        f"/v1/tools/execute?tenant={cast.tenant.slug}",
        {"tool_calls": [call]},
        content_type="application/json",
    )
    assert answer.status_code == 200, answer.content
    assert result(answer.json())["text"] == "Groundwork"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"function_name": "a", "tool_calls": []},
        {"tool_calls": [], "arguments": {}},
        {"function_name": "a", "arguments": [1]},
    ],
)
def test_a_body_of_neither_shape_is_refused(body: Any, execute: Any, client: Client, cast: Cast) -> None:
    answer = client.post(
        f"/api/v1/tools/execute?tenant={cast.tenant.slug}", body, content_type="application/json"
    )
    assert answer.status_code == 400, answer.content


def test_the_short_address_is_the_whole_api(execute: Any, client: Client, cast: Cast) -> None:
    short, whole = (client.get(f"{a}/collections?tenant={cast.tenant.slug}") for a in ("/v1", "/api/v1"))
    assert (short.status_code, short.json()) == (200, whole.json())
    assert client.get("/v1/nothing").status_code == client.get("/api/v1/nothing").status_code
