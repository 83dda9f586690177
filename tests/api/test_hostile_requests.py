"""Requests that no schema describes: broken encodings, absurd numbers, endless nesting. Each is refused, none is a 500."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests

from tests.api.conftest import Api

pytestmark = pytest.mark.servers

JSON = "application/json"
HUGE = 10**40
DEEP = 100_000

# (method, path, content type, body); {c} and {v} are a collection and a conversation that exist.
REQUESTS: list[tuple[str, str, str, bytes]] = [
    ("POST", "collections", JSON, b'{"name": "lone \\ud800 surrogate"}'),
    ("POST", "collections", JSON, b'{"name": "nul \\u0000 inside"}'),
    ("POST", "collections", JSON, b'{"name": "broken \xff\xfe utf-8"}'),
    ("POST", "collections", JSON, b'{"name": "a", "description": "nul \\u0000"}'),
    ("POST", "collections", JSON, b'{"name": "a", "description": "lone \\udfff"}'),
    ("POST", "collections", JSON, b'{"name": "a", "chunk_size": %d}' % HUGE),
    ("POST", "collections", JSON, b'{"name": "a", "chunk_size": 1e400}'),
    ("POST", "collections", JSON, b'{"name": "a", "chunk_size": NaN}'),
    ("POST", "collections", JSON, b"[" * DEEP),
    ("POST", "collections", JSON, b'{"a":' * DEEP),
    ("POST", "collections", JSON, b"9" * DEEP),
    ("POST", "collections", JSON, b""),
    ("POST", "collections", JSON, b"null"),
    ("POST", "collections", JSON, b'"text"'),
    ("POST", "collections", JSON, b"[1, 2]"),
    ("POST", "collections", "application/xml", b"<a/>"),
    ("POST", "collections", "application/json; charset=bogus", b'{"name": "b"}'),
    ("POST", "collections", "multipart/form-data", b"no boundary"),
    ("POST", "collections/{c}/documents", "multipart/form-data; boundary=x", b"--x\r\nbroken"),
    (
        "POST",
        "collections/{c}/documents",
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nno file\r\n--x--\r\n',
    ),
    (
        "POST",
        "collections/{c}/documents",
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n1\r\n' * 2000 + b"--x--\r\n",
    ),
    ("POST", "search", JSON, b'{"query": "lone \\ud800"}'),
    ("POST", "search", JSON, b'{"query": "nul \\u0000"}'),
    ("POST", "search", JSON, b'{"query": "   "}'),
    ("POST", "search", JSON, b'{"query": "a", "k": %d}' % HUGE),
    ("POST", "search", JSON, b'{"query": "a", "collections": [%d]}' % HUGE),
    ("POST", "search", JSON, b'{"query": "a", "filters": {"document_id": {"in": [%d, "x", null]}}}' % HUGE),
    ("POST", "search", JSON, b'{"query": "a", "filters": {"media_type": "\\ud800"}}'),
    ("POST", "search", JSON, b'{"query": "a", "filters": {"media_type": {"eq": "\\u0000"}}}'),
    ("POST", "search", JSON, b'{"query": "a", "filters": {"__class__": 1}}'),
    ("POST", "search", JSON, b'{"query": "a & b | ! (c:* <-> \' \\\\"}'),
    ("POST", "search", JSON, b'{"query": "' + b"a.b-c/" * 300 + b'"}'),
    ("POST", "conversations", JSON, b'{"title": "lone \\ud800"}'),
    ("POST", "conversations", JSON, b'{"collections": [%d]}' % HUGE),
    ("POST", "conversations", JSON, b'{"model": "\\u0000/\\ud800"}'),
    ("POST", "conversations/{v}/turns", JSON, b'{"text": "lone \\ud800"}'),
    ("POST", "conversations/{v}/turns", JSON, b'{"text": "\\u0000"}'),
    ("POST", "conversations/{v}/turns", JSON, b'{"text": "a", "client_id": "no"}'),
    ("PATCH", "conversations/{v}", JSON, b'{"title": "\\ud800"}'),
    ("PATCH", "collections/{c}", JSON, b'{"description": "\\ud800"}'),
    ("GET", f"collections/{HUGE}", "", b""),
    ("GET", f"documents/{HUGE}", "", b""),
    ("DELETE", f"documents/{HUGE}", "", b""),
    ("GET", f"chunks/{HUGE}", "", b""),
    ("GET", f"conversations/{HUGE}/turns/{HUGE}", "", b""),
    ("POST", f"runs/{HUGE}/stop", "", b""),
    ("GET", f"runs/{HUGE}/events?after={HUGE}", "", b""),
    ("GET", "collections?cursor=cD1ub3BlJTAw", "", b""),
    ("GET", "collections?cursor=" + "A" * 3000, "", b""),
    ("GET", "collections?page_size=-1&page_size=%00", "", b""),
    ("GET", "collections/{c}/documents?status=%00", "", b""),
    ("GET", "collections/{c}/documents?status=%ED%A0%80", "", b""),
    ("GET", "me?tenant=%00", "", b""),
    ("GET", "members?cursor=%ff%fe", "", b""),
    ("PUT", "collections", JSON, b"{}"),
    ("PATCH", "me", JSON, b"{}"),
    ("TRACE", "collections", "", b""),
]


HEADERS: list[dict[str, str]] = [
    {"Authorization": "Bearer gw_\u00e9\u00e9"},
    {"Authorization": "Bearer " + "x" * 8000},
    {"Authorization": "Basic bm86bm8="},
    {"Authorization": ""},
    {"X-Tenant": "../.."},
    {"Accept": "text/html, image/png"},
    {"Host": "evil.example"},
    {"X-Request-ID": "a\tb" * 50},
    {"Last-Event-ID": "\u00ff-1"},
    {"Cookie": "groundwork_session=" + "%00" * 50},
    {"Content-Length": "-1"},
    {"Transfer-Encoding": "chunked, identity"},
]


def _status_with(api: Api, headers: dict[str, str]) -> int:
    """Send headers that no client library would and return the status."""
    sent = {"Host": "127.0.0.1", "Authorization": f"Bearer {api.key}", **headers}
    lines = [f"GET /api/v1/runs/{api.ids['']['runs']}/events HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in sent.items()]
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        head = connection.recv(4096).decode("latin-1")
    return int(head.split(" ", 2)[1])


def test_no_request_is_a_500_when_it_is_hostile(api: Api) -> None:
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {api.key}"
    ids = api.ids[""]
    wrong: list[str] = []
    for method, path, content_type, body in REQUESTS:
        where = path.format(c=ids["collections"], v=ids["conversations"])
        headers = {"Content-Type": content_type} if content_type else {}
        answer = session.request(method, f"{api.url}/api/v1/{where}", data=body, headers=headers, timeout=20)
        told = f"{method} {path[:60]} {body[:60]!r}: {answer.status_code} {answer.text[:150]}"
        if answer.status_code >= 500:
            wrong.append(told)
        elif answer.status_code >= 400 and method != "TRACE":
            shape: Any = answer.json()
            if set(shape) != {"code", "message", "details", "request_id"}:
                wrong.append(f"another shape: {told}")
    statuses = [(hostile, _status_with(api, hostile)) for hostile in HEADERS]
    wrong += [f"{hostile}: {status}" for hostile, status in statuses if status >= 500]
    assert not wrong, "\n".join(wrong)
