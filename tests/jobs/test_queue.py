"""Readers and writers that are killed, at any moment, must not take the queue between processes with them."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from jobs.queue import STOP, SharedFlag, SharedNumber, SurvivingQueue
from tests.servers import wait_for

FORK = multiprocessing.get_context("fork")
KILLS = 60
MESSAGES = 20_000


def _started(target: Callable[..., None], *args: Any) -> BaseProcess:
    process = FORK.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def _kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def _pass_on(queue: SurvivingQueue, out: SurvivingQueue) -> None:
    for message in iter(queue.get, STOP):
        out.put(message)


def _pass_one_on(queue: SurvivingQueue, out: SurvivingQueue) -> None:
    out.put(queue.get())


def _fill(queue: SurvivingQueue, count: int) -> None:
    for number in range(count):
        queue.put(number)


def _is_asleep(process: BaseProcess) -> bool:
    with open(f"/proc/{process.pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "S"


def test_queue_works_on_when_a_waiting_reader_is_killed() -> None:
    queue, out = SurvivingQueue(), SurvivingQueue()
    readers = [_started(_pass_one_on, queue, out) for _ in range(3)]
    for reader in readers:
        wait_for(partial(_is_asleep, reader), "the reader to wait")
    _kill(readers[0])
    for number in (1, 2):
        queue.put(number)
    assert sorted([out.get(), out.get()]) == [1, 2]
    for reader in readers[1:]:
        reader.join()
        assert reader.exitcode == 0


def test_readers_killed_at_any_moment_lose_no_more_than_what_they_held() -> None:
    queue, out = SurvivingQueue(4), SurvivingQueue()
    readers = [_started(_pass_on, queue, out) for _ in range(3)]
    chance = random.Random(7)
    writer = _started(_fill, queue, MESSAGES)
    got: list[int] = []
    for _ in range(KILLS):
        got += [out.get() for _ in range(chance.randrange(150))]
        victim = chance.randrange(3)
        _kill(readers[victim])
        readers[victim] = _started(_pass_on, queue, out)
    while len(got) < MESSAGES - KILLS:
        got.append(out.get())
    writer.join()
    for _ in readers:
        queue.put(STOP)
    for reader in readers:
        reader.join()
        assert reader.exitcode == 0
    out.put(STOP)
    got += list(iter(out.get, STOP))
    assert len(got) == len(set(got)), "each is handed out once"
    assert MESSAGES - KILLS <= len(got) <= MESSAGES
    assert queue.empty()


def test_large_messages_arrive_whole_and_leave_no_descriptor_open() -> None:
    queue, out = SurvivingQueue(), SurvivingQueue()
    reader = _started(_pass_on, queue, out)
    before = len(os.listdir("/proc/self/fd"))
    for size in (10, 1_700, 1_800, 1_801, 70_000, 3_000_000):
        queue.put({"text": "x" * size})
        assert out.get() == {"text": "x" * size}
    assert len(os.listdir("/proc/self/fd")) == before
    queue.put(STOP)
    reader.join()
    assert reader.exitcode == 0


def test_full_queue_blocks_until_one_is_taken() -> None:
    queue = SurvivingQueue(3)
    _fill(queue, 3)
    writer = _started(_fill, queue, 1)
    wait_for(lambda: _is_asleep(writer), "the writer to wait")
    assert queue.qsize() == 3
    assert [queue.get() for _ in range(4)] == [0, 1, 2, 0]
    writer.join()
    assert (queue.qsize(), queue.empty()) == (0, True)


def test_reader_killed_before_it_noted_what_it_took_leaves_room() -> None:
    queue = SurvivingQueue(1)
    queue.put("lost")
    queue._outlet.recv(4_096)
    queue.put("next")  # would wait for ever if only the numbers counted
    assert queue.get() == "next"
    assert queue.qsize() == 0


def test_stop_reaches_every_reader_of_a_full_queue_and_never_blocks() -> None:
    queue, out = SurvivingQueue(), SurvivingQueue()
    writer = _started(_fill, queue, 200)

    def is_full() -> bool:
        return queue.qsize() > 0 and (_is_asleep(writer) or not writer.is_alive())

    wait_for(is_full, "the kernel to take no more")
    for _ in range(300):
        queue.put(STOP)
    readers = [_started(_pass_on, queue, out) for _ in range(4)]
    assert sorted(out.get() for _ in range(200)) == list(range(200))
    writer.join()
    for reader in readers:
        reader.join()
        assert reader.exitcode == 0


def _hold(number: SharedNumber, told: SurvivingQueue) -> None:
    with number.get_lock():
        number.value = -2
        told.put("held")
        signal.pause()


def test_number_of_a_process_killed_with_its_lock_can_be_had() -> None:
    number, told = SharedNumber("f", -1), SurvivingQueue()
    holder = _started(_hold, number, told)
    assert told.get() == "held"
    assert not number.get_lock().acquire(block=False)
    _kill(holder)
    with number.get_lock():
        assert number.value == -2.0


def _await(flag: SharedFlag, told: SurvivingQueue) -> None:
    told.put(flag.wait())


def test_raised_flag_wakes_all_who_wait_and_a_killed_one_holds_up_nobody() -> None:
    flag, told = SharedFlag(), SurvivingQueue()
    waiting = [_started(_await, flag, told) for _ in range(3)]
    for one in waiting:
        wait_for(partial(_is_asleep, one), "it to wait")
    _kill(waiting[0])
    assert not flag.wait(0)
    assert not flag.is_set()
    for _ in range(100_000):  # more than a pipe holds
        flag.set()
    assert [told.get(), told.get()] == [True, True]
    assert flag.wait()
    for one in waiting[1:]:
        one.join()
