"""A crowd at the search: order of arrival, the end of the line, who waits without a connection, and forks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from django.db import connection, transaction
from django.test import Client

from apps.collections.models import Collection
from apps.collections.search import SearchResult, search_run
from apps.collections.search import gate as gates
from apps.collections.search.gate import Gate, SearchBusy
from basics.errors import DomainError
from tenancy.database.waiting import holding_watched
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest

WAIT_S = 30


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


def stands(own: Gate, waiting: int) -> bool:
    return own.waiting == waiting


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Let the searches of this test pass one place, behind which two may wait."""
    own = Gate(1, 2)
    monkeypatch.setattr(gates, "_gate", own)
    yield own
    own.aside.shutdown()


def test_places_are_given_in_the_order_in_which_they_are_asked_for() -> None:
    own, came, done = Gate(1, 5), list(range(5)), []

    def search(number: int) -> None:
        with own.place():
            done.append(number)

    with ThreadPoolExecutor(len(came)) as threads, own.place():
        for number in came:
            threads.submit(search, number)
            until(partial(stands, own, number + 1))
        assert done == []
    assert done == came


def test_as_many_work_at_once_as_there_are_places() -> None:
    own, together = Gate(2, 8), threading.Barrier(2)
    lock, inside, most = threading.Lock(), [0], [0]

    def search() -> None:
        with own.place():
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            together.wait(WAIT_S)  # two at once, or never
            with lock:
                inside[0] -= 1

    with ThreadPoolExecutor(8) as threads:
        for one in [threads.submit(search) for _ in range(8)]:
            one.result(WAIT_S)
    assert most == [2]


def test_the_line_ends_but_for_those_who_are_patient() -> None:
    own = Gate(1, 1)

    def search(is_patient: bool) -> bool:
        with own.place(is_patient=is_patient):
            return True

    with ThreadPoolExecutor(2) as threads:
        with own.place():
            first = threads.submit(search, False)
            until(lambda: own.waiting == 1)
            with pytest.raises(SearchBusy) as refused, own.place():
                pytest.fail("there was no room")
            patient = threads.submit(search, True)
            until(lambda: own.waiting == 2)
        assert first.result(WAIT_S)
        assert patient.result(WAIT_S)
    assert (refused.value.status, refused.value.code) == (429, "search_busy")
    with own.place():  # a refusal took none
        assert own.waiting == 0


def test_a_place_comes_back_whatever_ends_the_search() -> None:
    own = Gate(1, 1)
    for error in (DomainError("no", "No."), KeyboardInterrupt()):
        with pytest.raises(type(error)), own.place():
            raise error
    with own.place():
        pass


def test_who_leaves_the_line_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DomainError("gone", "Gone.")

    own = Gate(1, 5)
    with own.place(), monkeypatch.context() as patched:
        patched.setattr(gates, "connections_let_go", gone)
        with pytest.raises(DomainError):
            own._take(is_patient=False)
        assert own.waiting == 0
    with own.place():
        pass


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_with_a_connection_and_a_transaction_waits_for_nobody(cast: Cast) -> None:
    own, held = Gate(1, 5), []

    def search() -> None:
        with holding_watched() as holding:
            connection.ensure_connection()
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            held.append(len(holding))
            with ExitStack() as waiting:
                waiting.callback(connection.close)
                with own.place():
                    held.append(len(holding))

    with ThreadPoolExecutor(1) as threads:
        with own.place():
            one = threads.submit(search)
            until(lambda: own.waiting == 1)
            with transaction.atomic(), own.place():
                assert own.waiting == 1
        one.result(WAIT_S)
    assert held == [1, 0]


def test_a_fork_has_a_gate_of_its_own(crowd: Gate) -> None:
    with crowd.place():
        child = os.fork()
        if not child:
            with gates.gate().place():  # the parent's has no place left
                os._exit(0 if gates.gate() is not crowd else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.django_db(transaction=True)
def test_a_crowd_finds_what_one_finds_and_the_last_are_told_to_come_again(
    cast: Cast, collection: Collection, crowd: Gate, client: Client
) -> None:
    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "lamps.md", LAMPS)

    def search(*, is_patient: bool = False) -> SearchResult:
        try:
            with tenant_scope(cast.tenant.pk):
                return search_run(
                    tenant=cast.tenant,
                    actor=cast.actor("viewer"),
                    collections=[collection],
                    query="Which pumps come from Brazil?",
                    is_patient=is_patient,
                )
        finally:
            connection.close()

    alone = search()
    assert alone.hits
    client.force_login(cast.user("viewer"))
    path = f"/t/{cast.tenant.slug}/collections/{collection.pk}/search/"
    with ThreadPoolExecutor(3) as threads:
        with crowd.place():
            asked = []
            for number in range(3):
                asked.append(threads.submit(search, is_patient=number == 2))
                until(partial(stands, crowd, number + 1))
            with pytest.raises(SearchBusy):
                search()
            page = client.get(path, {"q": "pumps"})
            assert page.status_code == 429
            assert "3 other searches are waiting to run. Try again in 1 s." in page.content.decode()
            answer = client.post(
                "/api/v1/search",
                {"query": "pumps"},
                content_type="application/json",
                headers={"X-Tenant": cast.tenant.slug},
            )
            assert (answer.status_code, answer.json()["code"]) == (429, "search_busy")
            assert answer.headers["Retry-After"] == "1"
        found = [one.result(WAIT_S) for one in asked]
    assert [[hit.chunk_id for hit in one.hits] for one in found] == [[hit.chunk_id for hit in alone.hits]] * 3
    assert client.get(path, {"q": "pumps"}).status_code == 200
    assert crowd.waiting == 0
