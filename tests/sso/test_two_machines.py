"""Two web servers: who is deprovisioned at one is out on both, and an answer of a provider that one has taken the other refuses.

How soon a deprovisioned person is out, with runs and workers too, is measured by ``benchmarks/deprovisioning.py``.
"""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client

from sso import services
from sso.sign_ins import sign_in_begin
from tenancy.entrances import COMPANY_ONLY, SIGN_INS
from tenancy.models import Membership, User
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create, member_role_change
from tests.cast import Cast
from tests.factories import actor_of, make_collection
from tests.servers import Stack, wait_for
from tests.sso.conftest import BACKEND, Door, domain_have
from tests.sso.provider import CLIENT, DOMAIN
from tests.sso.saml_door import SamlDoor
from tests.sso.saml_provider import encoded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]


@pytest.fixture
def machines(transactional_db: None, tmp_path: Path) -> Iterator[tuple[Stack, Stack]]:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    loopback = {"GROUNDWORK_FETCH_NETWORKS": "127.0.0.0/8"}  # where the provider is
    both = Stack(tmp_path / "a", **loopback), Stack(tmp_path / "b", **loopback)
    try:
        for one in both:
            one.start_web()
        yield both
    finally:
        for one in both:
            one.stop()


def opened(url: str, *, body: object = None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(  # noqa: S310
        url,
        method="GET" if body is None else "PATCH",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/scim+json", **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return response.status, response.url
    except urllib.error.HTTPError as error:
        return error.code, url


def test_deprovisioned_at_one_machine_is_out_on_both(machines: tuple[Stack, Stack], cast: Cast) -> None:
    first, second = machines
    owner = cast.actor("owner")
    domain_have(cast.tenant, owner)
    _, token = services.scim_token_create(tenant=cast.tenant, actor=owner, name="Okta")
    bearer = {"Authorization": f"Bearer {token}"}
    person = {"userName": f"ada@{DOMAIN}", "active": True}
    made = (
        Client()
        .post("/scim/v2/Users", json.dumps(person), content_type="application/scim+json", headers=bearer)
        .json()
    )
    ada = User.objects.get(email=f"ada@{DOMAIN}")
    connection = services.connection_set(
        tenant=cast.tenant, actor=owner, name="Acme", issuer="https://id.acme.example", client_id=CLIENT
    )
    with tenant_scope(cast.tenant.pk):
        member = Membership.objects.get(tenant=cast.tenant, user=ada)
        member = member_role_change(tenant=cast.tenant, actor=owner, member_id=member.pk, role="admin")
        member.user = ada
        _, key = api_key_create(tenant=cast.tenant, actor=actor_of(member), name="k", scopes=["tenant.read"])
        sign_in = sign_in_begin(connection=connection, user=ada)
    collection = make_collection(cast.tenant)
    browser = Client()
    browser.force_login(ada, BACKEND)
    session = browser.session
    session[COMPANY_ONLY], session[SIGN_INS] = True, {str(cast.tenant.pk): sign_in}
    session.save()
    cookie = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    page = f"/t/{cast.tenant.slug}/settings/connections/"
    stream = f"/t/{cast.tenant.slug}/collections/{collection.pk}/stream/"

    def ways() -> list[tuple[int, bool]]:
        found = []
        for machine in machines:
            status, where = opened(machine.url + page, **cookie)
            found.append((status, where.endswith(page)))
            found.append((opened(f"{machine.url}/api/v1/me", Authorization=f"Bearer {key}")[0], True))
        return found

    assert ways() == [(200, True), (200, True)] * 2
    ended = threading.Event()
    begun = threading.Event()
    said: list[bytes] = []

    def read() -> None:
        request = urllib.request.Request(second.url + stream, headers=cookie)  # noqa: S310
        with urllib.request.urlopen(request, timeout=300) as response:  # noqa: S310
            begun.set()
            said.extend(response)
        ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    wait_for(begun.is_set, "the stream")
    off = {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}
    assert opened(f"{first.url}/scim/v2/Users/{made['id']}", body=off, **bearer)[0] == 200
    assert [status for status, _ in ways()] == [404, 401] * 2
    wait_for(ended.is_set, "the end of the stream")
    assert any(b"signed out" in line for line in said)


def at_once(machines: tuple[Stack, Stack], address: str, browser: Client, body: bytes = b"") -> list[Any]:
    """Send a browser's request to both servers at the same moment, as if they had one address; return the answers."""
    ready = threading.Barrier(len(machines))
    parts = urlsplit(address)
    headers = {"Host": "localhost", "Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    if body:
        headers = {"Host": "localhost", "Content-Type": "application/x-www-form-urlencoded"}

    def send(machine: Stack) -> http.client.HTTPResponse:
        line = http.client.HTTPConnection("127.0.0.1", machine.port, timeout=60)
        line.connect()
        ready.wait(60)
        line.request("POST" if body else "GET", f"{parts.path}?{parts.query}", body or None, headers)
        answer = line.getresponse()
        answer.read()
        return answer

    with ThreadPoolExecutor(len(machines)) as threads:
        return sorted(threads.map(send, machines), key=lambda answer: answer.status)


def test_answer_of_openid_counts_once_over_two_servers(machines: tuple[Stack, Stack], door: Door) -> None:
    for n in range(4):
        browser = Client(SERVER_NAME="localhost")
        address = door.provider.authorize(door.begin(browser))
        assert [one.status for one in at_once(machines, address, browser)] == [302, 400]
        assert [one.status for one in at_once(machines, address, browser)] == [400, 400]
        assert door.provider.calls.count("/token") == n + 1, "the other asks nothing of the provider"


def test_assertion_of_saml_counts_once_over_two_servers(machines: tuple[Stack, Stack], cast: Cast) -> None:
    door = SamlDoor(cast)
    for n in range(4):
        browser = Client(SERVER_NAME="localhost")
        asked = door.begin(browser)
        form = {"SAMLResponse": encoded(door.provider.respond(asked)), "RelayState": asked.state}
        posted = at_once(machines, door.acs, browser, urlencode(form).encode())
        assert [one.status for one in posted] == [303, 403]
        assert door.answers() == n + 1
        where = posted[0].headers["Location"]
        assert [one.status for one in at_once(machines, where, browser)] == [302, 400]
        assert [one.status for one in at_once(machines, where, browser)] == [400, 400]
