"""Every route that streams or waits, and how to open it many times at once; a new one belongs into ``ROUTES``.

What is waited for never comes by itself: no worker runs, and the server that tools, models and embedders are asked at (the
gate) answers when it is told to.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone

from apps.collections.index.embedding import space_for
from apps.conversations.openai.responses_shapes import ResponseShape, response_request_read
from apps.conversations.openai.services import completion_start
from apps.conversations.transcript.segments import response_id_of
from apps.tools.models import ToolGrant, ToolVersion
from apps.tools.sources.contract_tests import contract_test_set
from jobs.models import Job
from runs.models import Run, ToolCall
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import api_key_authenticate
from tenancy.services import api_key_create
from tests.factories import actor_of
from tests.permissions.rows import API, PORTAL, Row
from tests.permissions.rows.common import turn_is
from tests.permissions.test_matrix import signed_in, url_arguments
from tests.permissions.world import Side, make_row
from tests.servers import wait_for
from tests.tools.connectors.http_server import ApiServer, Sent, api_serving
from tests.tools.sources.support import source_made

EMBEDDER = "openai/text-embedding-3-small@384"
MODEL = "gate-model"
UNDER_WAY = "extractive/under-way"
MANY = 50
BIG = 40_000  # characters of a call's arguments; a hundred of them fill every buffer between a server and a slow reader
CALLS = 100
_TOOL = {"openapi": "3.1.0", "info": {"title": "gate"}, "paths": {"/wait": {"get": {"operationId": "wait"}}}}
_REFUSED = 404, {"Content-Type": "application/json"}, b'{"error": {"message": "the gate says no"}}'


class Gate:
    """A server whose answers wait until they are let go."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._open = threading.Event()
        server.answer = self._answer
        server.server.socket.listen(512)

    @property
    def url(self) -> str:
        """Return its address."""
        return self._server.url

    @property
    def arrived(self) -> int:
        """Return how many requests have come since it was closed last."""
        return len(self._server.seen)

    def close(self) -> None:
        """Let whoever asks from now on wait."""
        self._server.seen.clear()
        self._open.clear()

    def open(self) -> None:
        """Refuse all that wait, so that they end."""
        self._open.set()

    def _answer(self, sent: Sent) -> Any:
        self._open.wait(120)
        return _REFUSED


@dataclass(frozen=True)
class World:
    """A workspace in which everything that can be waited for is there, the gate, and who asks."""

    side: Side
    gate: Gate
    key: str
    cookies: str
    tool: str
    test: int
    collection: int

    @property
    def slug(self) -> str:
        """Return the workspace's name in addresses."""
        return self.side.tenant.slug

    def begun(self) -> int:
        """Return how many runs were ever begun: without a worker, each waits until its client has gone."""
        with tenant_scope(self.side.tenant.pk):
            return Run.objects.count()


@contextmanager
def world_made() -> Iterator[World]:
    """Make the world, and stand the gate behind what this process's environment names as model and embedder."""
    side = Side()
    actor = actor_of(side.people["owner"])
    with api_serving() as server, ExitStack() as undo:
        gate = Gate(server)
        for name, value in gate_environment(gate.url).items():
            undo.callback(_environment_put, name, os.environ.get(name))
            os.environ[name] = value
        source = source_made(side.tenant, "openapi", "gate", url=gate.url, document=json.dumps(_TOOL))
        with tenant_scope(side.tenant.pk):
            tool = ToolVersion.objects.get(source=source).tool_name
            ToolGrant.objects.create(tenant=side.tenant, effect="allow", target_kind="tool", target=tool)
            _, key = api_key_create(tenant=side.tenant, actor=actor, name="waits", scopes=sorted(KEY_SCOPES))
            test = contract_test_set(
                tenant=side.tenant, actor=actor, tool_name=tool, name="waits", arguments={}, source=source.pk
            )
            collection = side.row("collections.Collection", "owner")
            collection.space = space_for(EMBEDDER, tenant=side.tenant)
            collection.save()
        for number in range(CALLS):
            _call_made(side, number)
        inside = signed_in(side, "owner")
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in inside.cookies.items())
        try:
            yield World(side, gate, key, cookies, tool, test.pk, collection.pk)
        finally:
            gate.open()


def gate_environment(url: str) -> dict[str, str]:
    """Return the settings of a server whose models, embedder and tools are the gate's."""
    return {
        "OPENAI_API_KEY": "gate",
        "OPENAI_BASE_URL": f"{url}/v1",
        "GROUNDWORK_COMPATIBLE_BASE_URL": f"{url}/v1",
        "GROUNDWORK_COMPATIBLE_MODELS": MODEL,
        "GROUNDWORK_FETCH_NETWORKS": "127.0.0.0/8",
    }


def _environment_put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _call_made(side: Side, number: int) -> None:
    run = side.row("runs.Run", "owner")
    make_row(
        ToolCall,
        side.tenant,
        side.user("owner"),
        run=run,
        user_id=side.user("owner").pk,
        call_id=f"big{number}",
        arguments={"text": "x" * BIG},
    )


@dataclass(frozen=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None = None

    def to_bytes(self) -> bytes:
        """Return it as it is sent; the connection ends with its answer."""
        body = b"" if self.body is None else json.dumps(self.body).encode()
        headers = {
            "Host": "127.0.0.1",
            "Connection": "close",
            "Content-Length": str(len(body)),
            **self.headers,
        }
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        head = [f"{self.method} {self.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*head, "", ""]).encode() + body


@dataclass(frozen=True)
class Route:
    """A route that streams or waits.

    Attributes:
        name: what it is called in a report.
        urls: names of the URLs that it stands for.
        ask: makes the request of a number.
        begins: the answer begins before what is waited for has come: its first line is read.
        waits: returns how many wait by now, where the answer has not begun.
        before: changes the world first.
        is_slow: nothing is waited for; the answer is large, and nobody reads on.
        is_dear: by day the test, unlike the benchmark, opens it no more often than it takes to use up the pool: it is
            another one's twin, or takes long (SDKs, certificates).
    """

    name: str
    urls: tuple[str, ...]
    ask: Callable[[World, int], Request]
    begins: bool = False
    waits: Callable[[World], int] | None = None
    before: Callable[[World], None] | None = None
    is_slow: bool = False
    is_dear: bool = False

    def __str__(self) -> str:
        return self.name


# --- the streams of the permission matrix ---------------------------------------------------------


def _active(label: str, **facts: Any) -> Callable[[World], None]:
    def change(world: World) -> None:
        row = world.side.row(label, "owner")
        for name, value in facts.items():
            setattr(row, name, value)
        with platform_scope():
            row.save(update_fields=list(facts))

    return change


def _turn_under_way(world: World) -> None:
    turn_is(True, "running")(world.side, "owner")


# What keeps each stream open; one that is open always has no entry.
_KEPT_OPEN: dict[str, Callable[[World], None]] = {
    "conversations:run-stream": _turn_under_way,
    "api:runs-events": _turn_under_way,
    "datasets:job-stream": _active("datasets.GenerationJob", state="running", options={"collections": []}),
    "datasets:export-stream": _active("datasets.DatasetExport", status="running"),
    "datasets:import-stream": _active("datasets.DatasetImport", status="running"),
    "datasets:checks-stream": _active("datasets.DatasetCheck", status="running"),
}


def _stream(row: Row) -> Route:
    def ask(world: World, number: int) -> Request:
        kwargs = url_arguments(row, slug=world.slug, ids=world.side, role="owner")
        headers = _by_key(world) if row.url.startswith("api:") else _by_person(world)
        return Request(row.method, reverse(row.url, kwargs=kwargs), headers)

    is_twin = row.url not in ("conversations:run-stream", "api:runs-events")
    return Route(row.url, (row.url,), ask, begins=True, before=_KEPT_OPEN.get(row.url), is_dear=is_twin)


# --- what waits for a worker, and what waits for a server -----------------------------------------


def _by_key(world: World) -> dict[str, str]:
    return {"Authorization": f"Bearer {world.key}"}


def _by_person(world: World) -> dict[str, str]:
    return {"Cookie": world.cookies}


def _post(
    url: str, body: Callable[[World], dict[str, Any]], *, with_key: bool = False, **ids: str
) -> Callable[[World, int], Request]:
    def ask(world: World, number: int) -> Request:
        kwargs = {name: getattr(world, fact) for name, fact in ids.items()}
        headers = _by_key(world)
        if with_key:
            headers["Idempotency-Key"] = f"{url}-{number}"
        return Request("POST", reverse(url, kwargs=kwargs), headers, body(world))

    return ask


def _asked(world: World) -> int:
    return world.gate.arrived


def _chat(**more: Any) -> Callable[[World], dict[str, Any]]:
    def body(world: World) -> dict[str, Any]:
        return {"model": "extractive", "messages": [{"role": "user", "content": "Why?"}], **more}

    return body


def _call(world: World) -> dict[str, Any]:
    function = {"name": world.tool, "arguments": "{}"}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}


def _mcp(world: World, number: int) -> Request:
    headers = {
        **_by_key(world),
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    params = {"name": world.tool, "arguments": {}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return Request("POST", f"/t/{world.slug}/mcp", headers, message)


def _replay(world: World, number: int) -> Request:
    run = world.side.row("runs.Run", "owner")
    return Request("POST", reverse("api:runs-replay", args=[run.pk]), _by_key(world), {"ask_model": True})


def _replayable(world: World) -> None:
    (row,) = [r for r in API if r.url == "api:runs-replay"]
    assert row.before is not None
    row.before(world.side, "owner")
    _active("runs.Run", model=f"compatible/{MODEL}")(world)


def _test_run(world: World, number: int) -> Request:
    with tenant_scope(world.side.tenant.pk):
        source = ToolVersion.objects.get(tool_name=world.tool).source_id
    url = reverse("api:contract-tests-run", args=[source, world.test])
    return Request("POST", url, _by_key(world), {})


def _versions(world: World, number: int) -> Request:
    with tenant_scope(world.side.tenant.pk):
        version = ToolVersion.objects.get(tool_name=world.tool)
    url = reverse("api:tool-versions-accept", args=[version.source_id])
    return Request("POST", url, _by_key(world), {"versions": [version.pk]})


def _version_waits(world: World) -> None:
    with tenant_scope(world.side.tenant.pk):
        ToolVersion.objects.filter(tool_name=world.tool).update(state="waiting")


def _search_page(world: World, number: int) -> Request:
    url = reverse("collections:search", args=[world.slug, world.collection])
    return Request("GET", f"{url}?q=why", _by_person(world))


def _responses_under_way(world: World) -> None:
    """Let a worker be at as many responses as will be cancelled; it never hears of it."""
    shape = ResponseShape(data={"model": "extractive", "input": "Why?"})
    shape.is_valid(raise_exception=True)
    request = response_request_read(shape.validated_data, None)
    found = api_key_authenticate(key=world.key)
    assert found is not None
    actor = found[1]
    with tenant_scope(world.side.tenant.pk):
        made = [
            completion_start(tenant=world.side.tenant, actor=actor, request=request).pk for _ in range(MANY)
        ]
        runs = Run.objects.filter(pk__in=made)
        runs.update(status="running", model=UNDER_WAY)
        Job.objects.filter(pk__in=runs.values("job")).update(
            status="running",
            worker="nobody",
            attempts=1,
            lease_expires_at=timezone.now() + timedelta(hours=1),
        )


def _under_way(world: World) -> list[int]:
    with tenant_scope(world.side.tenant.pk):
        return list(Run.objects.filter(model=UNDER_WAY).order_by("pk").values_list("pk", flat=True))


def _cancelled(world: World, number: int) -> Request:
    response = response_id_of(_under_way(world)[number], 0)
    url = reverse("api:responses-cancel", args=[response])
    return Request("POST", url, _by_key(world))


def _told_to_stop(world: World) -> int:
    with tenant_scope(world.side.tenant.pk):
        return Run.objects.filter(model=UNDER_WAY, stop_requested_at__isnull=False).count()


def _download(url: str, query: str = "") -> Callable[[World, int], Request]:
    def ask(world: World, number: int) -> Request:
        return Request("GET", reverse(url) + query, _by_key(world))

    return ask


STREAMS = tuple(_stream(row) for row in (*PORTAL, *API) if row.is_stream)
WAITING = (
    Route(
        "chat completion",
        ("api:chat-completions",),
        _post("api:chat-completions", _chat()),
        waits=World.begun,
    ),
    Route(
        "chat completion with a key",
        ("api:chat-completions",),
        _post("api:chat-completions", _chat(), with_key=True),
        waits=World.begun,
        is_dear=True,
    ),
    Route(
        "chat completion, streamed",
        ("api:chat-completions",),
        _post("api:chat-completions", _chat(stream=True)),
        begins=True,
        is_dear=True,
    ),
    Route(
        "response",
        ("api:responses-list",),
        _post("api:responses-list", lambda w: {"model": "extractive", "input": "Why?"}),
        waits=World.begun,
    ),
    Route(
        "response, streamed",
        ("api:responses-list",),
        _post("api:responses-list", lambda w: {"model": "extractive", "input": "Why?", "stream": True}),
        begins=True,
        is_dear=True,
    ),
    Route(
        "cancelled response",
        ("api:responses-cancel",),
        _cancelled,
        waits=_told_to_stop,
        before=_responses_under_way,
        is_dear=True,
    ),
    Route("tool call", ("api:tools-execute",), _post("api:tools-execute", _call), waits=_asked),
    Route(
        "tool call with a key",
        ("api:tools-execute",),
        _post("api:tools-execute", _call, with_key=True),
        waits=_asked,
        is_dear=True,
    ),
    Route("tool call over MCP", ("mcp",), _mcp, waits=_asked, is_dear=True),
    Route("contract test", ("api:contract-tests-run",), _test_run, waits=_asked, is_dear=True),
    Route(
        "version to accept",
        ("api:tool-versions-accept",),
        _versions,
        waits=_asked,
        before=_version_waits,
        is_dear=True,
    ),
    Route(
        "embeddings",
        ("api:embeddings",),
        _post("api:embeddings", lambda w: {"model": EMBEDDER, "input": ["Why?"]}),
        waits=_asked,
        is_dear=True,
    ),
    Route(
        "search",
        ("api:search",),
        _post("api:search", lambda w: {"query": "why", "collections": [w.collection]}),
        waits=_asked,
        is_dear=True,
    ),
    Route(
        "search with a key",
        ("api:search",),
        _post("api:search", lambda w: {"query": "why", "collections": [w.collection]}, with_key=True),
        waits=_asked,
        is_dear=True,
    ),
    Route("search page", ("collections:search",), _search_page, waits=_asked, is_dear=True),
    Route(
        "replay that asks a model",
        ("api:runs-replay",),
        _replay,
        waits=_asked,
        before=_replayable,
        is_dear=True,
    ),
)
SLOW = (
    Route(
        "call log read slowly",
        ("api:tool-calls-list",),
        _download("api:tool-calls-list", f"?page_size={CALLS}"),
        is_slow=True,
        is_dear=True,
    ),
    Route(
        "export read slowly",
        ("api:tool-calls-file",),
        _download("api:tool-calls-file", "?form=jsonl"),
        is_slow=True,
        is_dear=True,
    ),
)
ROUTES = (*STREAMS, *WAITING, *SLOW)


# --- opening them --------------------------------------------------------------------------------


@contextmanager
def opened(route: Route, world: World, port: int, count: int) -> Iterator[None]:
    """Open a route many times at once, and go on when all of them wait."""
    world.gate.close()
    if route.before is not None:
        route.before(world)
    before = route.waits(world) if route.waits is not None else 0
    requests = [route.ask(world, number).to_bytes() for number in range(count)]
    with ExitStack() as lines:
        open_ = [lines.enter_context(_line(port, route.is_slow)) for _ in requests]
        for line, sent in zip(open_, requests, strict=True):
            line.sendall(sent)
        if route.begins or route.is_slow:
            for line in open_:
                head = _begun(line)
                assert head.startswith(b"HTTP/1.1 200"), f"{route}: {head[:300]!r}"
        else:
            _all_wait(route, world, before + count, open_)
        yield
        world.gate.open()
        if route.waits is _asked:  # each ends before the next route begins
            for line in open_:
                assert line.recv(12), f"{route}: no answer came"


def _line(port: int, is_slow: bool) -> socket.socket:
    line = socket.socket()
    if is_slow:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    line.settimeout(60)
    line.connect(("127.0.0.1", port))
    return line


def _begun(line: socket.socket) -> bytes:
    """Return the head of an answer, and what came with it of the first piece."""
    head = b""
    while b"\r\n\r\n" not in head or not head.partition(b"\r\n\r\n")[2]:
        piece = line.recv(512)
        if not piece:
            break
        head += piece
    return head


def _all_wait(route: Route, world: World, wanted: int, lines: list[socket.socket]) -> None:
    assert route.waits is not None
    waits = route.waits

    def has_come() -> bool:
        return waits(world) >= wanted or any(_early(line) for line in lines)

    wait_for(has_come, f"{wanted} times {route} to wait")
    early = next((text for line in lines if (text := _early(line))), b"")
    assert not early, f"{route} was answered at once: {early!r}"


def _early(line: socket.socket) -> bytes:
    """Return the beginning of what was answered already, "" for nothing."""
    line.setblocking(False)
    try:
        return line.recv(600, socket.MSG_PEEK)
    except BlockingIOError:
        return b""
    finally:
        line.settimeout(60)
