"""A reader that is killed while it waits must not take the queue with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

from jobs.queue import SurvivingQueue


def _read(queue: SurvivingQueue, out: SurvivingQueue) -> None:
    out.put(queue.get())


def test_queue_works_on_when_a_waiting_reader_is_killed() -> None:
    fork = multiprocessing.get_context("fork")
    queue, out = SurvivingQueue(), SurvivingQueue()
    readers = [fork.Process(target=_read, args=(queue, out), daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
        time.sleep(0.1)  # the first one waits inside the lock
    assert readers[0].pid is not None
    os.kill(readers[0].pid, signal.SIGKILL)
    readers[0].join(5)
    for number in (1, 2):
        queue.put(number)
    assert sorted([out.get(), out.get()]) == [1, 2]
    for reader in readers[1:]:
        reader.join(5)
        assert reader.exitcode == 0
