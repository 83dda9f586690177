"""How the client sends: keys, repetition, errors, events; against answers that a test makes up."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from groundwork_client import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Groundwork,
    Invalid,
    NotFound,
    RateLimited,
    ServerFailed,
    transport,
)

Answer = httpx.Response | Exception


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Do not wait; returns for how long it would have been."""
    seen: list[float] = []
    monkeypatch.setattr(time, "sleep", seen.append)
    return seen


class Server:
    """Answers in the order given, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.seen = list(answers), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.seen.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options: Any) -> Groundwork:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Groundwork("http://server/", "gw_x", http=http, **options)


def refused(status: int, code: str = "why", **headers: str) -> httpx.Response:
    body = {"code": code, "message": "Do this.", "details": {"a": 1}, "request_id": "r1"}
    return httpx.Response(status, json=body, headers=headers)


def ok(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def test_key_is_sent_and_each_write_has_its_own_key_for_repetition() -> None:
    server = Server(ok(), ok(), ok(), ok())
    client = server.client()
    client.collections_create({"name": "a"})
    client.collections_create({"name": "a"})
    client.collections_create({"name": "a"}, idempotency_key="mine")
    client.collections_get(1)
    assert {r.headers["Authorization"] for r in server.seen} == {"Bearer gw_x"}
    keys = [r.headers.get("Idempotency-Key") for r in server.seen]
    assert keys[0] != keys[1]
    assert keys[2:] == ["mine", None]


@pytest.mark.parametrize(
    "first",
    [
        refused(429, **{"Retry-After": "7"}),
        refused(503, **{"Retry-After": "7"}),
        refused(409, **{"Retry-After": "7"}),
    ],
    ids=["429", "503", "409"],
)
def test_what_may_be_tried_again_waits_as_told_and_keeps_its_key(
    first: httpx.Response, pauses: list[float]
) -> None:
    server = Server(first, httpx.ConnectError("gone"), ok(id=1))
    assert server.client().collections_create({"name": "a"})["id"] == 1
    assert pauses[0] == 7
    assert len({r.headers["Idempotency-Key"] for r in server.seen}) == 1
    assert len({r.content for r in server.seen}) == 1


def test_waiting_has_an_end(pauses: list[float]) -> None:
    with pytest.raises(RateLimited) as limited:
        Server(refused(429, **{"Retry-After": "61"})).client().collections_get(1)
    assert limited.value.retry_after_s == 61
    assert pauses == []
    with pytest.raises(RateLimited):
        Server(*[refused(429, **{"Retry-After": "1"})] * 4).client().collections_get(1)
    assert pauses == [1, 1, 1]
    with pytest.raises(ConnectionFailed, match="GET /api/v1/collections/1"):
        Server(*[httpx.ReadTimeout("slow")] * 4).client().collections_get(1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (404, NotFound),
        (409, Conflict),
        (413, Invalid),
        (422, Invalid),
        (418, ApiError),
        (500, ServerFailed),
    ],
)
def test_refusal_is_raised_at_once_with_what_the_server_said(status: int, kind: type[ApiError]) -> None:
    server = Server(refused(status))
    with pytest.raises(kind) as raised:
        server.client().collections_get(1)
    error = raised.value
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, "why", "Do this.")
    assert (error.details, error.request_id) == ({"a": 1}, "r1")


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"[]", b""])
def test_answer_that_is_not_the_servers_own_is_an_error_too(body: bytes, pauses: list[float]) -> None:
    with pytest.raises(ServerFailed, match="502"):
        Server(*[httpx.Response(502, content=body)] * 4).client().collections_get(1)


def test_pages_are_followed_to_the_last() -> None:
    server = Server(
        ok(results=[{"id": 1}], next="http://server/api/v1/collections?cursor=a%3D%3D&page_size=1"),
        ok(results=[{"id": 2}], next=None),
    )
    rows = list(server.client().collections_list_all(page_size=1))
    assert [r["id"] for r in rows] == [1, 2]
    assert [r.url.params.get("cursor") for r in server.seen] == [None, "a=="]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path,
        lambda path: ("a.txt", b"some text"),
        lambda path: ("a.txt", io.BytesIO(b"some text")),
    ],
    ids=["path", "bytes", "open"],
)
def test_upload_is_whole_when_it_is_tried_again(
    make: Callable[[Path], transport.File], tmp_path: Path, pauses: list[float]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"some text")
    server = Server(refused(503), ok(id=1))
    server.client().documents_upload(1, {"file": make(tmp_path / "a.txt")})
    assert [r.content.count(b"some text") for r in server.seen] == [1, 1]
    assert all(b'filename="a.txt"' in r.content for r in server.seen)


class Breaks(httpx.SyncByteStream):
    """A stream that ends in the middle of an event."""

    def __iter__(self) -> Iterator[bytes]:
        yield b': hello\n\nid: 1\nevent: text\ndata: {"text": "a"}\n\nid: 2\nevent: te'
        raise httpx.ReadError("gone")


def test_events_go_on_behind_the_last_one_when_the_connection_is_lost(pauses: list[float]) -> None:
    rest = b'id: 2\nevent: text\ndata: {"text":\ndata: "b"}\n\nevent: end\ndata: {}\n\n'
    server = Server(
        httpx.Response(200, stream=Breaks()), httpx.ConnectError("gone"), httpx.Response(200, content=rest)
    )
    events = list(server.client().runs_events(5))
    assert [(e.id, e.kind, e.data) for e in events] == [
        ("1", "text", {"text": "a"}),
        ("2", "text", {"text": "b"}),
    ]
    assert [r.headers.get("Last-Event-ID") for r in server.seen] == [None, "1", "1"]


def test_stream_that_never_ends_well_is_given_up(pauses: list[float]) -> None:
    with pytest.raises(ConnectionFailed, match="ended before its last event"):
        list(Server(*[httpx.Response(200, content=b"")] * 4).client().runs_events(5))
    with pytest.raises(NotFound):
        list(Server(refused(404)).client().runs_events(5))
