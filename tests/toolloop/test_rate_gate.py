"""The gate in front of a model: no more at once than allowed, and nobody's turn is lost."""

from __future__ import annotations

import asyncio

from tests.patience import PATIENCE_S
from toolloop.rate_gate import RateGate


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def _waiting(gate: RateGate, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(gate.enter()) for _ in range(count)]
    await _settled()
    return tasks


async def test_each_who_leaves_lets_one_in_who_waits_in_order() -> None:
    gate = RateGate(2)
    tasks = await _waiting(gate, 5)
    assert [task.done() for task in tasks] == [True, True, False, False, False]
    for through in (3, 4, 5):
        gate.leave(refused=False)
        await _settled()
        assert [task.done() for task in tasks] == [True] * through + [False] * (5 - through)


async def test_a_turn_passes_on_when_its_owner_is_cancelled() -> None:
    gate = RateGate(1)
    _, second, third = await _waiting(gate, 3)
    gate.leave(refused=None)  # The turn is the second one's now, who does not know it yet.
    second.cancel()
    async with asyncio.timeout(PATIENCE_S):
        await third
    assert second.cancelled()


async def test_all_come_through_when_the_gate_has_been_closed() -> None:
    gate = RateGate(4)

    async def call(number: int) -> None:
        await gate.enter()
        await asyncio.sleep(0)
        gate.leave(refused=number < 12, retry_after_s=0.01)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*map(call, range(40)))
    assert gate.closings
