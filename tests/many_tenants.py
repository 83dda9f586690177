"""Many workspaces at every door at once: each answer must be the asker's own, whole, and nobody else's."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from tenancy.models import Membership, Role, Tenant
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import platform_scope
from tenancy.services import api_key_create
from tests.concurrency.rest import Rest
from tests.factories import actor_of, make_collection, make_member, make_tenant


@dataclass(frozen=True)
class Workspace:
    """A workspace with one collection, whose owner has a key and is signed in."""

    slug: str
    collection: int
    name: str
    key: str
    session: str


@dataclass
class Found:
    """What came of all requests."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, problem: str) -> None:
        """Count a request; a problem is kept with what was asked."""
        with self._lock:
            if problem:
                self.wrong.append(f"{what}: {problem}")
            else:
                self.right += 1


Door = Callable[[int, Workspace, Workspace], str]
"""Sends one request for the first workspace to a port; returns what was wrong with the answer, or nothing."""


def workspaces_make(count: int) -> list[Workspace]:
    """Make workspaces whose collections have names that no other has."""
    return [_made(make_tenant(), number) for number in range(count)]


def _made(tenant: Tenant, number: int) -> Workspace:
    owner = make_member(tenant, Role.OWNER)
    name = f"only-of-{number}-{tenant.slug}"
    collection = make_collection(tenant, name)
    with platform_scope():
        _, key = api_key_create(tenant=tenant, actor=actor_of(owner), name="many", scopes=sorted(KEY_SCOPES))
    return Workspace(tenant.slug, collection.pk, name, key, _signed_in(owner))


def _signed_in(owner: Membership) -> str:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(owner.user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = owner.user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def visit(
    port: Callable[[], int],
    workspaces: Sequence[Workspace],
    *,
    requests: int,
    at_once: int,
    doors: Sequence[Door] | None = None,
    goes_on: Callable[[], bool] = lambda: False,
) -> Found:
    """Send requests of all workspaces through all doors, many at once, and check each answer.

    Args:
        port: of the web server that the next request goes to, on loopback.
        workspaces: who asks, in turn.
        requests: how many in all; one in twenty is a question whose answer is read from its stream.
        at_once: threads.
        doors: instead of the usual ones, in turn.
        goes_on: whether more are sent than that.
    """
    found = Found()
    numbers = itertools.count()
    every = doors or DOORS

    def work() -> None:
        while (number := next(numbers)) < requests or goes_on():
            own = workspaces[number % len(workspaces)]
            other = workspaces[(number * 7 + 1) % len(workspaces)]
            door = every[(number // len(workspaces)) % len(every)]
            try:
                problem = door(port(), own, other)
            except (OSError, http.client.HTTPException) as error:
                problem = repr(error)
            found.note(f"{door.__name__} of {own.slug}", problem)

    with ThreadPoolExecutor(at_once) as pool:
        for one in [pool.submit(work) for _ in range(at_once)]:
            one.result()
    return found


def _list(port: int, own: Workspace, other: Workspace) -> str:
    status, text = send(port, own, "GET", "/api/v1/collections")
    names = [row["name"] for row in json.loads(text)["results"]] if status == 200 else []
    return "" if names == [own.name] else f"{status} {names}"


def _detail(port: int, own: Workspace, other: Workspace) -> str:
    status, text = send(port, own, "GET", f"/api/v1/collections/{own.collection}")
    return "" if status == 200 and json.loads(text)["name"] == own.name else f"{status} {text[:200]}"


def _neighbour(port: int, own: Workspace, other: Workspace) -> str:
    if other is own:
        return ""
    status, text = send(port, own, "GET", f"/api/v1/collections/{other.collection}")
    return "" if status == 404 and other.name not in text else f"{status} {text[:200]}"


def _write(port: int, own: Workspace, other: Workspace) -> str:
    status, text = send(
        port, own, "PATCH", f"/api/v1/collections/{own.collection}", {"description": own.slug}
    )
    is_right = status == 200 and json.loads(text)["description"] == own.slug
    return "" if is_right else f"{status} {text[:200]}"


def _page(port: int, own: Workspace, other: Workspace) -> str:
    status, text = send(port, own, "GET", f"/t/{own.slug}/collections/", cookie=True)
    strangers = other is not own and other.name in text
    return "" if status == 200 and own.name in text and not strangers else f"{status} {text[:200]}"


def _mcp(port: int, own: Workspace, other: Workspace) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    status, text = send(port, own, "POST", f"/t/{own.slug}/mcp", message)
    return "" if status == 200 and '"search_documents"' in text else f"{status} {text[:200]}"


def _turn(port: int, own: Workspace, other: Workspace) -> str:
    status, text = send(port, own, "POST", "/api/v1/conversations", {"title": own.name})
    if status != 201:
        return f"{status} {text[:200]}"
    talk = json.loads(text)["id"]
    question = {"text": f"What is {own.name}?", "model": "extractive"}
    status, text = send(port, own, "POST", f"/api/v1/conversations/{talk}/turns", question)
    if status not in {201, 202}:
        return f"{status} {text[:200]}"
    run = json.loads(text)["run_id"]
    status, text = send(port, own, "GET", f"/api/v1/runs/{run}/events", accept="text/event-stream")
    return "" if status == 200 and "event: end" in text else f"{status} {text[-300:]}"


DOORS: tuple[Door, ...] = (
    *(_list, _detail, _neighbour, _page, _mcp, _write) * 3,
    _list,
    _turn,
)


def send(
    port: int,
    own: Workspace,
    method: str,
    path: str,
    body: Any = None,
    *,
    cookie: bool = False,
    accept: str = "application/json, text/event-stream",
) -> tuple[int, str]:
    """Send one request with the workspace's key, or as its owner who is signed in; returns status and text."""
    rest = Rest(port, "", own.session) if cookie else Rest(port, own.key)
    sent = None if body is None else json.dumps(body).encode()
    answer = rest.call(method, path, sent, seconds=240, accept="text/html" if cookie else accept)
    return answer.status, answer.text
