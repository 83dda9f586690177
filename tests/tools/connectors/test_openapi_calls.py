"""Calls of HTTP tools as a real server sees them, and what a model is told of the answers."""

from __future__ import annotations

import base64
import gzip
import json
import socket
from collections.abc import Iterator
from email.parser import BytesParser
from typing import Any

import pytest
from pytest_socket import socket_allow_hosts

from apps.tools.connectors import http
from tests.tools.connectors.http_server import ApiServer, Sent, api_serving
from tests.tools.connectors.openapi_calls import call, secret, source_of
from toolloop.messages import ToolResult

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")

CANARY = 'canary-8f3b/1e77+sec"ret'


@pytest.fixture(autouse=True)
def _loopback(settings: Any) -> None:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    socket_allow_hosts(["127.0.0.1", "127.0.0.2", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_serving() as one:
        yield one


def sent(api: ApiServer, result: ToolResult) -> Sent:
    assert not result.is_error, result.content
    (one,) = api.seen
    return one


def operation(method: str = "get", *parameters: Any, **rest: Any) -> Any:
    return {method: {"operationId": "do", "parameters": list(parameters), **rest}}


STYLES: dict[str, tuple[str, dict[str, Any], Any, str]] = {
    # What OpenAPI's own table of styles gives as examples.
    "simple": ("path", {}, "blue", "blue"),
    "simple-list": ("path", {}, ["blue", "black", "brown"], "blue,black,brown"),
    "simple-object": ("path", {}, {"R": 100, "G": 200}, "R,100,G,200"),
    "simple-object-explode": ("path", {"explode": True}, {"R": 100, "G": 200}, "R=100,G=200"),
    "label": ("path", {"style": "label"}, "blue", ".blue"),
    "label-list-explode": ("path", {"style": "label", "explode": True}, ["blue", "black"], ".blue.black"),
    "matrix": ("path", {"style": "matrix"}, "blue", ";color=blue"),
    "matrix-list": ("path", {"style": "matrix"}, ["blue", "black"], ";color=blue,black"),
    "matrix-list-explode": (
        "path",
        {"style": "matrix", "explode": True},
        ["blue", "black"],
        ";color=blue;color=black",
    ),
    "matrix-object-explode": ("path", {"style": "matrix", "explode": True}, {"R": 1, "G": 2}, ";R=1;G=2"),
    "encoded": ("path", {}, "a/b?c#d%2e é", "a%2Fb%3Fc%23d%252e%20%C3%A9"),
    "form": ("query", {}, "blue", "color=blue"),
    "form-list": ("query", {}, ["blue", "black"], "color=blue&color=black"),
    "form-list-flat": ("query", {"explode": False}, ["blue", "black"], "color=blue,black"),
    "form-object": ("query", {}, {"R": 100, "G": 200}, "R=100&G=200"),
    "form-object-flat": ("query", {"explode": False}, {"R": 100, "G": 200}, "color=R,100,G,200"),
    "space": ("query", {"style": "spaceDelimited"}, ["blue", "black"], "color=blue%20black"),
    "pipe": ("query", {"style": "pipeDelimited"}, ["blue", "black"], "color=blue%7Cblack"),
    "deep": (
        "query",
        {"style": "deepObject", "explode": True},
        {"R": 100, "G": ["a", "b"]},
        "color%5BR%5D=100&color%5BG%5D=a&color%5BG%5D=b",
    ),
    "boolean": ("query", {}, True, "color=true"),
    "number": ("query", {}, 1.5, "color=1.5"),
    "injection": ("query", {}, "a&admin=1#x", "color=a%26admin%3D1%23x"),
    "empty-list": ("query", {"explode": False}, [], ""),
    "null": ("query", {}, None, ""),
    "content": (
        "query",
        {"content": {"application/json": {"schema": {}}}},
        {"a": [1]},
        "color=%7B%22a%22%3A%20%5B1%5D%7D",
    ),
    "header": ("header", {}, ["a", "b"], "a,b"),
    "header-object": ("header", {"explode": True}, {"R": 1}, "R=1"),
    "cookie": ("cookie", {}, "a;b", "color=a%3Bb"),
}


@pytest.mark.parametrize("case", list(STYLES))
def test_argument_is_written_in_its_style(case: str, api: ApiServer) -> None:
    place, style, value, expected = STYLES[case]
    stated: dict[str, Any] = {} if "content" in style else {"schema": {}}
    path = "/things/{color}" if place == "path" else "/things"
    parameter = {"name": "color", "in": place, **stated, **style}
    got = sent(
        api, call(source_of(f"{api.url}/v1"), operation("get", parameter), {"color": value}, path=path)
    )
    shown = {
        "path": got.path.removeprefix("/v1/things/"),
        "query": got.path.removeprefix("/v1/things").removeprefix("?"),
        "header": got.headers.get("color"),
        "cookie": got.headers.get("cookie"),
    }
    assert shown[place] == expected


@pytest.mark.parametrize("value", [".", "..", "", []])
def test_path_cannot_be_left(value: Any, api: ApiServer) -> None:
    parameter = {"name": "id", "in": "path", "required": True, "schema": {}}
    result = call(source_of(api.url), operation("get", parameter), {"id": value}, path="/a/{id}/b")
    assert result.is_error
    assert "path" in result.content
    assert api.seen == []


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "é", "a\x00b"])
def test_header_cannot_be_broken(value: str, api: ApiServer) -> None:
    parameter = {"name": "X-Id", "in": "header", "schema": {"type": "string"}}
    result = call(source_of(api.url), operation("get", parameter), {"X-Id": value})
    assert result.is_error
    assert "ASCII" in result.content
    assert api.seen == []


def body_of(media_type: str, schema: Any = None) -> Any:
    content = {media_type: {"schema": schema or {}}}
    return operation("post", requestBody={"required": True, "content": content})


def test_json_body_arrives_as_it_was_given(api: ApiServer) -> None:
    value = {"name": "Lämp", "price": 1.5, "tags": [None, True]}
    got = sent(api, call(source_of(api.url), body_of("application/json"), {"body": value}))
    assert (got.method, got.headers["content-type"]) == ("POST", "application/json")
    assert json.loads(got.body) == value
    assert not {"referer", "origin"} & got.headers.keys()
    assert got.headers["accept-encoding"] == "identity"


def test_form_body_arrives(api: ApiServer) -> None:
    got = sent(
        api,
        call(
            source_of(api.url),
            body_of("application/x-www-form-urlencoded"),
            {"body": {"a": "x&y", "b": [1, 2], "c": None}},
        ),
    )
    assert got.body == b"a=x%26y&b=1&b=2"
    assert got.headers["content-type"] == "application/x-www-form-urlencoded"


def test_multipart_body_arrives(api: ApiServer) -> None:
    schema = {
        "type": "object",
        "properties": {"file": {"type": "string", "format": "binary"}, "note": {"type": "string"}},
    }
    value = {"file": "one\r\ntwo", "note": 'a"b', 'odd"\r\nname': "x"}
    got = sent(api, call(source_of(api.url), body_of("multipart/form-data", schema), {"body": value}))
    head = f"Content-Type: {got.headers['content-type']}\r\n\r\n".encode()
    parts: Any = BytesParser().parsebytes(head + got.body).get_payload()
    names = [part.get_param("name", header="content-disposition") for part in parts]
    assert names == ["file", "note", "odd%22%0D%0Aname"]
    assert parts[0].get_filename() == "file.txt"
    assert got.body.count(b"\r\none\r\ntwo\r\n") == 1


def test_text_body_arrives(api: ApiServer) -> None:
    got = sent(api, call(source_of(api.url), body_of("text/plain"), {"body": "ä"}))
    assert (got.body, got.headers["content-type"]) == ("ä".encode(), "text/plain; charset=utf-8")


def test_form_that_is_no_object_is_refused(api: ApiServer) -> None:
    result = call(source_of(api.url), body_of("application/x-www-form-urlencoded"), {"body": "a=b"})
    assert result.is_error
    assert api.seen == []


def test_json_answer_stays_structured(api: ApiServer) -> None:
    api.says({"items": [{"id": 1, "name": "Lämp"}]})
    result = call(source_of(api.url), operation())
    assert result.payload == {"items": [{"id": 1, "name": "Lämp"}]}
    assert json.loads(result.content) == result.payload


@pytest.mark.parametrize("value", ["text", None, 5, True, []])
def test_plain_json_answer_is_kept(value: Any, api: ApiServer) -> None:
    api.says(value)
    result = call(source_of(api.url), operation())
    assert json.loads(result.content) == value


@pytest.mark.parametrize(
    ("status", "headers", "body", "words"),
    [
        (200, {"Content-Type": "text/plain; charset=latin-1"}, "Lämp".encode("latin-1"), "Lämp"),
        (200, {}, b"plain", "plain"),
        (204, {}, b"", "Done (status 204)"),
        (200, {"Content-Type": "image/png"}, b"\x89PNG\x00\x01", "6 bytes of image/png"),
        (200, {"Content-Type": "text/plain"}, GIF, "The answer is a picture."),
        (200, {"Content-Type": "image/png"}, GIF[:20], "Picture 1 isn't shown."),
        (200, {}, b"\x00\x01\xff", "can't be shown"),
        (200, {"Content-Type": "text/plain; charset=nonsense"}, b"abc", "abc"),
    ],
    ids=["latin", "unnamed", "empty", "image", "picture", "half", "bytes", "charset"],
)
def test_answer_that_is_no_json_is_told(
    api: ApiServer, status: int, headers: dict[str, str], body: bytes, words: str
) -> None:
    api.answer = (status, headers, body)
    result = call(source_of(api.url), operation())
    assert not result.is_error
    assert words in result.content
    assert [part.media_type for part in result.parts] == (["image/png"] if body == GIF else [])


@pytest.mark.parametrize(
    ("status", "headers", "body", "words"),
    [
        (400, {"Content-Type": "application/json"}, b'{"error": "no such lamp"}', "no such lamp"),
        (401, {}, b"", "credentials"),
        (404, {}, b"", "status 404"),
        (429, {}, b"", "wait"),
        (500, {"Content-Type": "text/html"}, b"<h1>" + b"x" * 50_000, "[... cut ...]"),
        (302, {"Location": "http://elsewhere.example.org/"}, b"", "redirect"),
        (304, {}, b"", "redirect"),
        (200, {"Content-Type": "application/json"}, b"{oops", "is not"),
        (200, {"Content-Type": "application/json"}, b"[" * 100_000, "is not"),
        (200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 1000), "compressed"),
        (200, {"Content-Length": "99999999"}, b"", "more than 1,000,000 bytes"),
        (200, {"Content-Type": "text/plain"}, b"0" * 1_000_001, "more than 1,000,000 bytes"),
    ],
    ids=[
        "400",
        "401",
        "404",
        "429",
        "500",
        "302",
        "304",
        "no-json",
        "deep-json",
        "gzip",
        "announced",
        "large",
    ],
)
def test_answer_that_is_an_error_is_told(
    api: ApiServer, status: int, headers: dict[str, str], body: bytes, words: str
) -> None:
    api.answer = (status, headers, body)
    result = call(source_of(api.url), operation())
    assert result.is_error
    assert words in result.content
    assert len(result.content) < 3_000
    assert len(api.seen) == 1


def test_server_that_is_not_there_is_told(api: ApiServer) -> None:
    with socket.socket() as taken:  # nobody listens here, and nobody else can begin to
        taken.bind(("127.0.0.1", 0))
        result = call(source_of(f"http://127.0.0.1:{taken.getsockname()[1]}"), operation("post"))
    assert result.is_error
    assert "couldn't be reached" in result.content
    assert "done all the same" not in result.content


def test_server_that_never_ends_is_cut_off(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CALL_SECONDS", 0.5)
    api.answer = (200, {"Content-Length": "100"}, b"a bit")
    result = call(source_of(api.url), operation("post"))
    assert result.is_error
    assert "0.5 s" in result.content
    assert "done all the same" in result.content


PLACES = {
    "bearer": ("bearer", "", f"Bearer {CANARY}"),
    "header": ("header", "X-Api-Key", CANARY),
    "basic": ("basic", "anna", "Basic "),
    "query": ("query", "key", "key=canary-8f3b"),
}


@pytest.mark.parametrize("case", list(PLACES))
def test_secret_goes_to_its_place_and_never_comes_back(
    case: str, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that repeats all it was sent, in its headers, its errors and its body."""
    placement, parameter, expected = PLACES[case]
    caplog.set_level(0)

    def echo(sent: Sent) -> Any:
        said = {"headers": sent.headers, "path": sent.path, "plain": CANARY}
        status = 500 if "fail" in sent.path else 302 if "move" in sent.path else 200
        headers = {"Content-Type": "application/json", "X-Echo": sent.path, "Location": sent.path}
        return status, headers, json.dumps(said).encode()

    api.answer = echo
    shown: list[str] = []
    for path in ("/things", "/fail", "/move"):
        result = call(
            source_of(api.url), operation(), path=path, secrets=[secret(CANARY, placement, parameter)]
        )
        shown += [result.content, json.dumps(result.payload)]
    place = {"bearer": "authorization", "basic": "authorization", "header": "x-api-key"}.get(case)
    first = api.seen[0]
    assert (first.headers[place] if place else first.path.partition("?")[2]).startswith(expected)
    shown += [record.getMessage() + str(record.__dict__) for record in caplog.records]
    for text in shown:
        for form in (CANARY, "canary-8f3b", "1e77", "YW5uYTpjYW5hcnk"):
            assert form not in text
    assert "[secret]" in shown[0]


def test_secret_that_is_a_number_never_comes_back(api: ApiServer) -> None:
    api.says({"key": 12345678901})
    result = call(source_of(api.url), operation(), secrets=[secret("12345678901")])
    assert "12345678901" not in result.content + json.dumps(result.payload)


def test_model_cannot_set_what_a_secret_stands_in(api: ApiServer) -> None:
    parameters = [{"name": n, "in": p, "schema": {}} for n, p in (("X-Api-Key", "header"), ("key", "query"))]
    secrets = [secret("right-one", "header", "X-Api-Key"), secret("right-two", "query", "key")]
    got = sent(
        api,
        call(
            source_of(api.url),
            operation("get", *parameters),
            {"X-Api-Key": "wrong", "key": "wrong"},
            secrets=secrets,
        ),
    )
    assert got.headers["x-api-key"] == "right-one"
    assert got.path == "/things?key=right-two"


def test_operation_that_is_public_gets_no_secret(api: ApiServer) -> None:
    got = sent(api, call(source_of(api.url), operation(security=[]), secrets=[secret(CANARY)]))
    assert "authorization" not in got.headers


def test_secret_goes_to_the_own_server_alone(api: ApiServer) -> None:
    with api_serving("127.0.0.2") as files:
        item = operation(servers=[{"url": files.url}])
        refused = call(source_of(api.url), item, secrets=[secret(CANARY)])
        assert refused.is_error
        assert "can't call the host" in refused.content
        assert files.seen == []
        allowed = call(source_of(api.url, allowed_hosts=["127.0.0.2"]), item, secrets=[secret(CANARY)])
        assert not allowed.is_error
        assert "authorization" not in files.seen[0].headers
    assert api.seen == []


def test_another_port_of_the_own_host_gets_no_secret(api: ApiServer) -> None:
    with api_serving() as other:
        result = call(source_of(api.url), operation(servers=[{"url": other.url}]), secrets=[secret(CANARY)])
        assert not result.is_error
        assert "authorization" not in other.seen[0].headers
