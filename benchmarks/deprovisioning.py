"""How long do doors stay open on two machines once a provider deprovisions somebody at one of them?

Two machines, each with a web server, a worker and a data directory of its own, and one Postgres. In each round a new
person has a company session, an API key and an application's access token, three answers that a model speaks without end,
and a stream of each answer open at both web servers. Then the provider deprovisions the person at the first machine: by
Okta's PATCH, by Entra's PATCH, or by taking them out of the group that gave them their role. Told is how long after the
call was answered each door was seen open last, the slowest of all rounds:

    page, key, token    a request at either web server is refused
    streams             all six streams are closed
    runs                all three runs have ended
    model               the model server has seen all connections closed

The bar is 5 seconds for each. It also says on how many workers the runs were.

Run: python -m benchmarks.deprovisioning [--rounds 2]. It makes and drops a database of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import write_result  # noqa: E402
from _stack import database, load, model_server  # noqa: E402

MODEL = "fake-words100000-gap100"
BAR_S, GIVE_UP_S, ANSWERS = 5.0, 60.0, 3
HOWS = ("okta", "entra", "group")
GROUP = "Engineers"


def status(url: str, *, body: Any = None, method: str = "", **headers: str) -> tuple[int, bytes, str]:
    """Ask; return status, answer and the address that it came from."""
    data = None if body is None else json.dumps(body).encode()
    headers.setdefault("Content-Type", "application/scim+json")
    method = method or ("GET" if body is None else "PATCH")
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return response.status, response.read(), response.url
    except urllib.error.HTTPError as error:
        return error.code, error.read(), url


class Provider:
    """A company's identity provider, in front of one machine."""

    def __init__(self, url: str, tenant: Any, owner: Any) -> None:
        from sso import services
        from tests.sso.conftest import domain_have

        domain_have(tenant, owner)
        self.connection = services.connection_set(
            tenant=tenant, actor=owner, name="Acme", issuer="https://id.acme.example", client_id="x"
        )
        services.rules_set(
            tenant=tenant, actor=owner, requires_sso=False, requires_second_factor=False, session_hours=None,
            break_glass=None, default_role="",
        )  # fmt: skip
        services.group_role_set(tenant=tenant, actor=owner, group=GROUP, role="admin")
        _, token = services.scim_token_create(tenant=tenant, actor=owner, name="Okta")
        self.url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self.group = self.call("POST", "Groups", {"displayName": GROUP})["id"]

    def call(self, method: str, path: str, body: Any) -> Any:
        code, text, _ = status(f"{self.url}/scim/v2/{path}", body=body, method=method, **self._headers)
        if code not in {200, 201, 204}:
            raise RuntimeError(f"{method} {path}: {code} {text[:500]!r}")
        return json.loads(text) if text else {}

    def takes_in(self, email: str) -> str:
        made = self.call("POST", "Users", {"userName": email, "active": True})["id"]
        self.patch(f"Groups/{self.group}", {"op": "add", "path": "members", "value": [{"value": made}]})
        return str(made)

    def takes_out(self, person: str, how: str) -> None:
        if how == "okta":
            self.patch(f"Users/{person}", {"op": "replace", "value": {"active": False}})
        elif how == "entra":
            self.patch(f"Users/{person}", {"op": "Replace", "path": "active", "value": "False"})
        else:
            self.patch(f"Groups/{self.group}", {"op": "remove", "path": f'members[value eq "{person}"]'})

    def patch(self, path: str, one: Any) -> None:
        self.call("PATCH", path, {"Operations": [one]})


class Person:
    """Somebody whose doors are open at both machines."""

    def __init__(self, tenant: Any, provider: Provider, number: int) -> None:
        from django.test import Client
        from django.utils import timezone

        from sso.sign_ins import sign_in_begin
        from tenancy import tokens
        from tenancy.entrances import COMPANY_ONLY, SIGN_INS
        from tenancy.models import Membership, OAuthToken, User
        from tenancy.scope import tenant_scope
        from tenancy.services import api_key_create
        from tests.factories import actor_of
        from tests.sso.conftest import BACKEND
        from tests.sso.provider import DOMAIN

        self.tenant = tenant
        self.pk = provider.takes_in(f"person-{number}@{DOMAIN}")
        user = User.objects.get(email=f"person-{number}@{DOMAIN}")
        with tenant_scope(tenant.pk):
            member = Membership.objects.select_related("user").get(tenant=tenant, user=user)
            self.actor = actor_of(member)
            _, self.key = api_key_create(tenant=tenant, actor=self.actor, name="k", scopes=["tenant.read"])
            row, _ = api_key_create(tenant=tenant, actor=self.actor, name="app", scopes=["tenant.read"])
            self.token, digest = tokens.make_token()
            OAuthToken.objects.create(
                tenant=tenant, api_key=row, kind="access", sha256=digest,
                expires_at=timezone.now() + timedelta(minutes=15),
            )  # fmt: skip
            sign_in = sign_in_begin(connection=provider.connection, user=user)
        browser = Client()
        browser.force_login(user, BACKEND)
        session = browser.session
        session[COMPANY_ONLY], session[SIGN_INS] = True, {str(tenant.pk): sign_in}
        session.save()
        self.cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())

    def ways(self) -> dict[str, Callable[[str], bool]]:
        """Return how each door is tried at a web server: whether it opens."""
        page = f"/t/{self.tenant.slug}/settings/connections/"

        def by_page(url: str) -> bool:
            code, _, where = status(url + page, Cookie=self.cookie)
            return code == 200 and where.endswith(page)

        def by_key(url: str) -> bool:
            return status(f"{url}/api/v1/me", Authorization=f"Bearer {self.key}")[0] == 200

        def by_token(url: str) -> bool:
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            bearer = {"Authorization": f"Bearer {self.token}"}
            found = status(f"{url}/t/{self.tenant.slug}/mcp", body=ping, method="POST", **headers, **bearer)
            return found[0] == 200

        return {"page": by_page, "key": by_key, "token": by_token}

    def asks(self) -> list[tuple[int, int]]:
        """Ask as often as there are answers; return conversation and run of each."""
        from apps.conversations.turns.conversations import conversation_create
        from apps.conversations.turns.services import turn_submit
        from tenancy.scope import tenant_scope

        made = []
        with tenant_scope(self.tenant.pk):
            for _ in range(ANSWERS):
                row = conversation_create(tenant=self.tenant, actor=self.actor, model=f"compatible/{MODEL}")
                turn = turn_submit(
                    tenant=self.tenant,
                    actor=self.actor,
                    conversation=row,
                    text="Go on.",
                    client_id=uuid.uuid4(),
                )
                made.append((row.pk, turn.run_id))
        return made


class Stream(threading.Thread):
    """A stream that is read until it ends."""

    def __init__(self, url: str, cookie: str) -> None:
        super().__init__(daemon=True)
        self._request = urllib.request.Request(url, headers={"Cookie": cookie})  # noqa: S310
        self.has_begun, self.ended_at, self.told = threading.Event(), 0.0, ""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError), urllib.request.urlopen(self._request, timeout=300) as response:  # noqa: S310
            for line in response:
                self.told = f"{response.status} {response.url}: {line[:200]!r}"
                self.has_begun.set()
        self.ended_at = time.monotonic()


def workers_of(runs: list[int], tenant: Any) -> set[str]:
    """Return the workers that do some runs."""
    from jobs.models import Job
    from runs.models import Run
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        jobs = Run.objects.filter(pk__in=runs).values("job_id")
        return set(Job.objects.filter(pk__in=jobs, status="running").values_list("worker", flat=True))


def unended(runs: list[int], tenant: Any) -> int:
    """Return how many runs go on."""
    from runs.models import ACTIVE, Run
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        return Run.objects.filter(pk__in=runs, status__in=ACTIVE).count()


def wait(condition: Callable[[], bool], what: str) -> float:
    """Wait until something is so; return when it was."""
    until = time.monotonic() + GIVE_UP_S
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"waited {GIVE_UP_S:.0f} s for {what}")
        time.sleep(0.02)
    return time.monotonic()


def closed_times(person: Person, urls: list[str], began: float) -> dict[str, float]:
    """Try each door until none opens at either server; return when each was seen open last."""
    found = {}
    for name, opens in person.ways().items():
        last = began
        while any(opens(url) for url in urls):
            last = time.monotonic()
            if last - began > GIVE_UP_S:
                break
        found[name] = last - began
    return found


def one_round(
    tenant: Any, provider: Provider, urls: list[str], model_url: str, number: int, how: str
) -> tuple[dict[str, float], int]:
    """Take one person in and out again; return the seconds of each door, and how many workers did their runs."""
    person = Person(tenant, provider, number)
    asked = person.asks()
    streams = [
        Stream(f"{url}/t/{tenant.slug}/chat/{conversation}/runs/{run}/stream/", person.cookie)
        for url in urls
        for conversation, run in asked
    ]
    for stream in streams:
        if not stream.has_begun.wait(GIVE_UP_S):
            raise SystemExit(f"a stream did not begin: {stream.told}")
    runs = [run for _, run in asked]
    wait(lambda: len(speaking(model_url)) == ANSWERS, "the answers")
    if not all(opens(url) for opens in person.ways().values() for url in urls):
        raise SystemExit("a door was closed before")
    workers = len(workers_of(runs, tenant))
    provider.takes_out(person.pk, how)
    began = time.monotonic()
    told = closed_times(person, urls, began)
    for stream in streams:
        stream.join(GIVE_UP_S)
    told["streams"] = max(stream.ended_at or began + GIVE_UP_S for stream in streams) - began
    told["runs"] = wait(lambda: not unended(runs, tenant), "the runs") - began
    told["model"] = wait(lambda: not speaking(model_url), "the model") - began
    return {name: round(max(seconds, 0.0), 2) for name, seconds in told.items()}, workers


def speaking(url: str) -> list[Any]:
    """Return the calls that the model server is answering without end."""
    _, text, _ = status(f"{url.removesuffix('/v1')}/log")
    return [
        (call["asked_at"], call["tools"][:1])
        for call in json.loads(text)
        if not call["closed_at"] and call["messages"][-1]["content"] == "Go on."
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    slowest: dict[str, dict[str, float]] = {}
    workers: list[int] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(database())
        model_url = stack.enter_context(model_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-machines-")))
        os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"] = model_url
        os.environ["GROUNDWORK_COMPATIBLE_MODELS"] = MODEL
        from tests.servers import Stack

        machines = []
        for name in ("a", "b"):
            home = folder / name
            home.mkdir()
            one = Stack(
                home, DATABASE_URL=os.environ["DATABASE_URL"], GROUNDWORK_DATA_DIR=str(home / "data"),
                DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"], GROUNDWORK_JOB_LEASE_S="30",
                GROUNDWORK_WORKERS="2", GROUNDWORK_LOOP_SLOTS="2",
            )  # fmt: skip
            stack.callback(one.stop)
            one.start()
            machines.append(one)
        from tenancy.models import Role
        from tests.factories import actor_of, make_member, make_tenant

        tenant = make_tenant("deprovisioning")
        provider = Provider(machines[0].url, tenant, actor_of(make_member(tenant, Role.OWNER)))
        urls = [one.url for one in machines]
        for number in range(rounds * len(HOWS)):
            how = HOWS[number % len(HOWS)]
            told, on = one_round(tenant, provider, urls, model_url, number, how)
            workers.append(on)
            print(how, on, told, flush=True)
            kept = slowest.setdefault(how, told)
            slowest[how] = {name: max(kept[name], told[name]) for name in told}
    good = all(seconds < BAR_S for told in slowest.values() for seconds in told.values())
    write_result(
        "deprovisioning",
        {
            "rounds": rounds,
            "slowest_s": slowest,
            "workers_in_a_round": workers,
            "load": load(),
            "is_good": good,
        },
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
