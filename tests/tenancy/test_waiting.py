"""What waits holds no connection, and what forgets it is told."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from jobs.blocking import BlockingThreads
from runs.hub import Waker
from runs.local_loop import LocalLoop
from tenancy.database.waiting import (
    WaitsWithConnection,
    connections_let_go,
    holding_watched,
    in_db,
    loop_run,
    thread_is_holding,
    wait_for,
)
from tenancy.models import Tenant

BANNED_IN_A_TRANSACTION = {
    "let go": connections_let_go,
    "a coroutine": lambda: wait_for(asyncio.sleep, 0),
    "a loop": lambda: loop_run(asyncio.sleep(0)),
    "a loop that is left for the database": lambda: LocalLoop().run(asyncio.sleep(0)),
}


def asked() -> int:
    return Tenant.objects.count()


@pytest.mark.django_db
def test_what_was_used_is_held_until_it_is_let_go():
    with holding_watched() as held:
        assert not thread_is_holding()
        asked()
        assert held == {_own()}
        assert thread_is_holding()
        connections_let_go()
        assert held == set()
        asked()
        assert held == {_own()}


def _own() -> Any:
    return connections["default"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wait", BANNED_IN_A_TRANSACTION.values(), ids=BANNED_IN_A_TRANSACTION)
def test_nothing_is_waited_for_in_a_transaction(wait: Any):
    wait()
    with pytest.raises(WaitsWithConnection), transaction.atomic():
        wait()


@pytest.mark.django_db
def test_the_transaction_of_a_test_case_is_none_but_one_inside_of_it_is():
    connections_let_go()
    with transaction.atomic(), pytest.raises(WaitsWithConnection):
        connections_let_go()


@pytest.mark.django_db(transaction=True)
def test_a_product_says_in_its_log_what_waits_and_goes_on(settings: Any, caplog: Any):
    settings.STRICT_WAITS = False
    with caplog.at_level(logging.ERROR), transaction.atomic():
        connections_let_go()
        assert asked() == 0
    assert "waits_with_connection" in caplog.text


@pytest.mark.django_db(transaction=True)
async def test_a_coroutine_holds_a_connection_for_its_function_alone():
    with holding_watched() as held:
        assert await in_db(lambda: (thread_is_holding(), asked(), thread_is_holding())) == (False, 0, True)
        assert not await in_db(thread_is_holding)
        assert held == set()
        await sync_to_async(asked)()
        await in_db(asked)
        assert held == set(), "it is the same thread's, and was given back"


@pytest.mark.django_db(transaction=True)
async def test_a_task_may_wait_while_another_of_its_request_asks_the_database():
    asks, may_end = threading.Event(), threading.Event()

    def slowly() -> None:
        asked()
        asks.set()
        assert may_end.wait(60)

    with holding_watched():
        reading = asyncio.create_task(in_db(slowly))
        await asyncio.to_thread(asks.wait, 60)
        try:
            assert not await Waker().wait(0)
        finally:
            may_end.set()
            await reading


@pytest.mark.django_db(transaction=True)
async def test_nobody_waits_for_a_notification_with_a_connection():
    with holding_watched():
        await in_db(asked)
        assert not await Waker().wait(0)
        await sync_to_async(asked)()
        with pytest.raises(WaitsWithConnection, match="a notification"):
            await Waker().wait(0)


@pytest.mark.django_db(transaction=True)
def test_a_thread_for_blocking_functions_is_idle_without_a_connection():
    async def work() -> set[Any]:
        with holding_watched() as held:
            assert await threads.run(asked) == 0
            return set(held)

    threads = BlockingThreads()
    try:
        assert asyncio.run(work()) == set()
    finally:
        threads.close()


def test_a_thread_without_a_request_is_not_watched():
    found: list[bool] = []
    with holding_watched():
        one = threading.Thread(target=lambda: found.append(thread_is_holding()))
        one.start()
        one.join()
    assert found == [False]
