"""A backup takes what processor time nobody else wants: its thread, and its session's process in the database."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from backups.priority import session_follow, thread_yield
from tenancy.database.direct import direct_connection

pytestmark = pytest.mark.django_db(transaction=True)


def in_a_thread(work: Callable[[], object]) -> None:
    """Do it where a lowered priority ends with the thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def niceness(number: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, number)


def test_thread_and_session_of_a_backup_yield_and_nothing_else_does(settings: Any) -> None:
    settings.BACKUP_NICE = 7
    before = niceness(0)

    def work() -> None:
        with direct_connection() as line, direct_connection() as other:
            session_follow(line)
            assert niceness(line.info.backend_pid) == before
            thread_yield()
            thread_yield()
            assert niceness(threading.get_native_id()) == max(7, before)
            session_follow(line)
            assert niceness(line.info.backend_pid) == max(7, before)
            assert niceness(other.info.backend_pid) == before

    in_a_thread(work)
    assert niceness(0) == before


def test_a_process_that_is_not_the_servers_keeps_its_priority(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BACKUP_NICE = 7
    before, asked = niceness(0), []

    class Named:
        def __init__(self, pid: int) -> None:
            asked.append(pid)

        def name(self) -> str:
            return "python"

    monkeypatch.setattr(psutil, "Process", Named)

    def work() -> None:
        with direct_connection() as line:
            thread_yield()
            session_follow(line)
            assert asked == [line.info.backend_pid]
            assert niceness(line.info.backend_pid) == before

    in_a_thread(work)
