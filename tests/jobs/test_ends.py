"""What takes entries from the queue, and what says that they are done, goes on whatever happens to it."""

from __future__ import annotations

import threading

import pytest

from jobs import ends
from jobs.ends import End, QueueEnds

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "AGAIN_S", 0.001)


def wait_ended(end: End) -> None:
    # None, where it has ended already.
    for thread in [one for one in threading.enumerate() if one.name == end.name]:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_an_end_that_fails_is_alive_and_goes_on() -> None:
    alive: list[bool] = []
    end = End("failing-end")

    def work() -> bool:
        alive.append(end.is_alive())
        if len(alive) == 1:
            raise OSError("the broker is away")
        return len(alive) == 3

    end.start(work)
    wait_ended(end)
    assert alive == [True, True, True]
    assert not end.is_alive()


def test_entries_go_in_and_results_out_until_the_sentinel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    rounds = 0

    def pusher(queue: object, closing: object) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            return  # as after a failure of the broker
        both.tasks.put("entry")
        assert both.closing.wait(PATIENCE_S)

    def monitor(results: object) -> None:
        told.append(both.results.get())
        if len(told) == 1:
            raise OSError("the database is away")

    monkeypatch.setattr(ends, "pusher", pusher)
    monkeypatch.setattr(ends, "monitor", monitor)
    both = QueueEnds()
    both.start()
    assert both.tasks.get() == "entry"
    for result in ("one", "two"):
        both.results.put(result)
    wait_ended(both.monitor)
    assert told == ["one", "two"]
    assert both.pusher.is_alive()
    both.closing.set()
    wait_ended(both.pusher)
    assert rounds == 2
    assert not both.pusher.is_alive()
    assert not both.monitor.is_alive()
