"""Every REST write can be repeated with its key: one effect, one answer, whatever happens in between."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections, transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.collections.collection import services
from apps.collections.collection.api import CollectionsView
from apps.collections.models import Collection, Document
from apps.tools.calls.services import Executed
from tenancy.actors import Actor
from tenancy.idempotency import IdempotentWrite, KeyInUse, _keys, answers_expire, caller_of
from tenancy.models import ApiKey, AuditEvent, IdempotentAnswer, Tenant
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tests.patience import PATIENCE_S
from tests.permissions.rows import API, Row
from tests.permissions.test_matrix import assert_error, key_client, signed_in, url_arguments
from tests.permissions.walking import each_row
from tests.permissions.world import Side
from tests.servers import database_url
from web.drf import idempotency

WRITES = [r for r in API if r.method in idempotency.WRITES and r.ok < 400]
LIST = "/api/v1/collections"
JSON = "application/json"


@pytest.fixture
def side(db: None) -> Side:
    return Side()


@pytest.fixture
def client(side: Side) -> Client:
    return key_client(side, sorted(KEY_SCOPES))


def create(client: Client, name: str = "New", key: str = "k-1", **options: Any) -> Any:
    return client.post(LIST, {"name": name}, JSON, headers={"Idempotency-Key": key}, **options)


def names(side: Side) -> list[str]:
    with tenant_scope(side.tenant.pk):
        return sorted(Collection.objects.values_list("name", flat=True))


@each_row(WRITES, of="side")
def test_every_write_answers_its_repetition_as_the_first_time(row: Row, side: Side):
    of_keys = row.action in KEY_SCOPES  # what no key may do, a person does
    client = key_client(side, [row.action, *row.also]) if of_keys else signed_in(side, "owner")
    headers = {"Idempotency-Key": "one"} | ({} if of_keys else {"X-Tenant": side.tenant.slug})
    url = reverse(row.url, kwargs=url_arguments(row, slug="", ids=side, role="owner"))
    data = dict(row.data(side, "owner")) if row.data else {}
    files = [v for v in data.values() if hasattr(v, "read")]

    def send(suffix: str = "") -> Any:
        for file in files:
            file.seek(0)
        options: dict[str, Any] = {} if files else {"content_type": JSON}
        return getattr(client, row.method.lower())(url + suffix, data, headers=headers, **options)

    first = send()
    assert first.status_code == row.ok, first.content[:300]
    assert "Idempotent-Replayed" not in first
    with tenant_scope(side.tenant.pk):
        done = AuditEvent.objects.count()
    again = send()
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotent-Replayed"] == "true"
    with tenant_scope(side.tenant.pk):
        assert AuditEvent.objects.count() == done
    other = send("?tenant=another")
    assert_error(other, 422)
    assert other.json()["code"] == "idempotency_key_reused"


def test_another_body_is_refused_and_the_same_values_in_another_order_are_not(client: Client, side: Side):
    body = '{"name": "A", "description": "d"}'
    for text, status in ((body, 201), ('{"description":"d","name":"A"}', 201), ('{"name": "B"}', 422)):
        response = client.post(LIST, text, JSON, headers={"Idempotency-Key": "k"})
        assert response.status_code == status
    assert names(side) == ["A"]


def test_uploads_are_told_apart_by_their_bytes(client: Client, side: Side):
    collection = side.row("collections.Collection", "owner")
    url = reverse("api:documents-list", args=[collection.pk])

    def upload(content: bytes, name: str = "a.txt") -> Any:
        file = SimpleUploadedFile(name, content, "text/plain")
        return client.post(url, {"file": file}, headers={"Idempotency-Key": "up"})

    large = b"Line of a large file that goes through a temporary file.\n" * 60_000
    first, again = upload(large), upload(large)
    assert (first.status_code, first.content) == (201, again.content)
    assert again["Idempotent-Replayed"] == "true"
    assert_error(upload(large[:-1]), 422)
    assert_error(upload(large, "b.txt"), 422)
    with tenant_scope(side.tenant.pk):
        assert Document.objects.count() == 1


def test_keys_of_different_callers_routes_and_tenants_do_not_meet(client: Client, side: Side):
    strangers = key_client(Side(), sorted(KEY_SCOPES))
    callers = (client, key_client(side, sorted(KEY_SCOPES)), strangers)
    for number, caller in enumerate(callers):
        response = create(caller, name=f"N{number}")
        assert response.status_code == 201
        assert "Idempotent-Replayed" not in response
    session = signed_in(side, "owner")
    response = session.post(
        LIST, {"name": "S"}, JSON, headers={"Idempotency-Key": "k-1", "X-Tenant": side.tenant.slug}
    )
    assert response.status_code == 201
    talk = client.post("/api/v1/conversations", {"title": "T"}, JSON, headers={"Idempotency-Key": "k-1"})
    assert talk.status_code == 201
    assert len(names(side)) == 3


def test_refused_write_frees_its_key_and_leaves_nothing(client: Client, side: Side):
    assert_error(create(client, name=""), 400)
    assert create(client, name="Right").status_code == 201
    assert names(side) == ["Right"]


def test_repetition_needs_the_right_as_the_first_time(client: Client, side: Side):
    assert create(client).status_code == 201
    with tenant_scope(side.tenant.pk):
        ApiKey.objects.update(scopes=["collection.read"])
    assert_error(create(client), 403)


@pytest.mark.parametrize("key", ["", " ", "k" * 256, "schlüssel"])
def test_key_that_is_none_is_refused(client: Client, side: Side, key: str):
    response = create(client, key=key)
    assert_error(response, 400)
    assert response.json()["code"] == "idempotency_key_invalid"
    assert names(side) == []


def test_crash_in_the_middle_leaves_neither_the_write_nor_a_stuck_key(
    client: Client, side: Side, monkeypatch: pytest.MonkeyPatch
):
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(IdempotentWrite, "store", broken)
        assert create(client).status_code == 500
    assert names(side) == []
    assert create(client).status_code == 201
    assert names(side) == ["New"]


def test_answers_end_after_a_day(client: Client, side: Side):
    assert create(client).status_code == 201
    with tenant_scope(side.tenant.pk):
        row = IdempotentAnswer.objects.get()
        assert timedelta(hours=23) < row.expires_at - timezone.now() <= timedelta(hours=24)
        assert b"New" not in bytes(row.body_encrypted)
        IdempotentAnswer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    again = create(client)  # tried anew: the name is taken
    assert_error(again, 409)
    assert again.json()["code"] != "idempotency_key_in_use"
    assert create(client, name="Newer").status_code == 201
    with tenant_scope(side.tenant.pk):
        IdempotentAnswer.objects.update(expires_at=timezone.now())
    assert answers_expire() == 1
    assert answers_expire() == 0


@pytest.mark.django_db(transaction=True)
def test_repetition_while_the_first_runs_is_told_to_wait(monkeypatch: pytest.MonkeyPatch):
    side = Side()
    client = key_client(side, sorted(KEY_SCOPES))
    inside, go_on = threading.Event(), threading.Event()
    real = services.collection_create

    def slow(**given: Any) -> Any:
        inside.set()
        assert go_on.wait(PATIENCE_S)
        return real(**given)

    monkeypatch.setattr(services, "collection_create", slow)
    answers: list[Any] = []

    def first() -> None:
        answers.append(create(client))
        connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert inside.wait(PATIENCE_S)
        response = create(client)
        assert_error(response, 409)
        assert response.json()["code"] == "idempotency_key_in_use"
        assert int(response["Retry-After"]) >= 1
    finally:
        go_on.set()
        thread.join(PATIENCE_S)
    again = create(client)
    assert again.content == answers[0].content
    assert again["Idempotent-Replayed"] == "true"
    assert names(side) == ["New"]


@pytest.mark.django_db(transaction=True)
def test_write_that_waits_for_others_holds_its_key_and_no_transaction(monkeypatch: pytest.MonkeyPatch):
    """What it has written must be seen by those it waits for."""
    side = Side()
    client = key_client(side, sorted(KEY_SCOPES))
    seen: list[tuple[bool, int]] = []

    def send() -> Any:
        call = {"id": "1", "function": {"name": "calculate", "arguments": "{}"}}
        headers = {"Idempotency-Key": "k-1"}
        return client.post("/api/v1/tools/execute", {"tool_calls": [call]}, JSON, headers=headers)

    def work(**given: Any) -> Executed:
        beside: list[int] = []

        def again() -> None:
            beside.append(send().status_code)
            connections.close_all()

        thread = threading.Thread(target=again)
        thread.start()
        thread.join(PATIENCE_S)
        seen.append((connection.in_atomic_block, beside[0]))
        return Executed(None, (None,), None)

    monkeypatch.setattr("apps.tools.calls.api.calls_execute", work)
    first, again = send(), send()
    assert (first.status_code, again.content) == (200, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert seen == [(False, 409)]


def test_write_whose_answer_cannot_be_kept_is_refused_with_a_key_and_taken_back(
    side: Side, client: Client, monkeypatch: pytest.MonkeyPatch
):
    make = CollectionsView.post

    def answer_a_file(self: CollectionsView, request: Any) -> HttpResponse:
        make(self, request)
        return HttpResponse(b"\x00", content_type="application/octet-stream")

    monkeypatch.setattr(CollectionsView, "post", answer_a_file)
    refused = create(client)
    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_unsupported")
    assert names(side) == []
    assert client.post(LIST, {"name": "New"}, JSON).content == b"\x00"
    assert names(side) == ["New"]


@pytest.mark.django_db(transaction=True)
def test_lock_goes_with_its_connection():
    side = Side()
    write = IdempotentWrite(side.tenant, "key:1", "POST x", "k", "0" * 64)
    held, go_on = threading.Event(), threading.Event()

    def dies() -> None:
        with tenant_scope(side.tenant.pk), transaction.atomic():
            write.begin()
            held.set()
            go_on.wait(PATIENCE_S)
            connection.connection.close()  # as a killed process does
            transaction.set_rollback(True)
        connection.close()

    thread = threading.Thread(target=dies)
    thread.start()
    try:
        assert held.wait(PATIENCE_S)
        with tenant_scope(side.tenant.pk), transaction.atomic(), pytest.raises(KeyInUse):
            write.begin()
    finally:
        go_on.set()
        thread.join(PATIENCE_S)
    with tenant_scope(side.tenant.pk), transaction.atomic():
        assert write.begin() is None


@pytest.mark.django_db(transaction=True)
def test_write_outside_a_transaction_is_a_programming_error():
    tenant = Tenant(pk=1)
    with pytest.raises(RuntimeError, match="inside the transaction"):
        IdempotentWrite(tenant, "key:1", "POST x", "k", "").begin()


def test_actor_of_a_key_and_of_its_person_are_two_callers():
    person = Actor("user", 1, frozenset(), user_id=7)
    key = Actor("api_key", 1, frozenset(), user_id=7, api_key_id=7)
    assert caller_of(person) != caller_of(key)


def waiting_write(side: Side, key: str) -> IdempotentWrite:
    return IdempotentWrite(side.tenant, "key:1", "POST x", key, "0" * 64)


@pytest.mark.django_db(transaction=True)
def test_nobody_else_gets_a_key_that_is_held():
    side = Side()
    one, other = waiting_write(side, "a"), waiting_write(side, "b")
    with one.held(), other.held():
        with pytest.raises(KeyInUse), one.held():  # in this process
            pass
        with tenant_scope(side.tenant.pk), transaction.atomic(), pytest.raises(KeyInUse):
            one.begin()  # in another session, as of another process
        assert locks() == 2
    assert locks() == 0
    with one.held():
        pass


@pytest.mark.django_db(transaction=True)
def test_a_key_that_another_process_holds_is_in_use():
    side = Side()
    write = waiting_write(side, "a")
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (write._lock(),))
        with pytest.raises(KeyInUse), write.held():
            pass
    with write.held():
        pass


@pytest.mark.django_db(transaction=True)
def test_keys_are_taken_again_over_a_new_connection():
    side = Side()
    one, other = waiting_write(side, "a"), waiting_write(side, "b")
    with one.held():
        cut()
        with other.held():
            assert locks() == 2
        assert locks() == 1
        cut()
    assert locks() == 0


def cut() -> None:
    """Close the connection of the keys as a database that is started again does, and wait for the server's end of it."""
    assert _keys._line is not None
    pid = _keys._line.info.backend_pid
    _keys._line.close()
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
            if cursor.fetchone() is None:
                return
            time.sleep(0.01)


def locks() -> int:
    """Return how many advisory locks are held in this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return int(cursor.fetchone()[0])
