"""What many rows ask for at once is answered in groups; nobody's question is lost, and no failure is another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from basics import gathering
from basics.gathering import Crowd, Gathered
from tests.patience import PATIENCE_S


class Answers:
    """Doubles numbers; keeps the groups it was asked."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.failure: Exception | None = None

    async def __call__(self, group: list[int]) -> Sequence[int | Exception]:
        self.groups.append(group)
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return [ValueError(str(n)) if n < 0 else 2 * n for n in group]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may go on because time has passed."""
    monkeypatch.setattr(gathering, "GATHER_S", 3600.0)


async def test_a_group_is_answered_once_and_in_its_order() -> None:
    answers = Answers()
    groups = Gathered(answers, Crowd(1, 3 * gathering.FEW))
    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.gather(*map(groups.ask, (1, -2, 3)), return_exceptions=True)
    assert answers.groups == [[1, -2, 3]]
    assert found[0] == 2
    assert found[2] == 6
    assert isinstance(found[1], ValueError)


async def test_a_row_that_is_alone_waits_for_nobody() -> None:
    answers = Answers()
    groups = Gathered(answers, Crowd(1, 1))
    async with asyncio.timeout(PATIENCE_S):
        assert [await groups.ask(n) for n in (1, 2)] == [2, 4]
    assert answers.groups == [[1], [2]]


async def test_a_failure_is_told_to_its_group_and_the_next_one_is_answered() -> None:
    answers = Answers()
    groups = Gathered(answers, Crowd(1, 2))
    answers.failure = RuntimeError("no database")
    async with asyncio.timeout(PATIENCE_S):
        found = await asyncio.gather(groups.ask(1), groups.ask(2), return_exceptions=True)
        assert {str(error) for error in found} == {"no database"}
        answers.failure = None
        assert await groups.ask(3) == 6


async def test_what_nobody_waits_for_any_more_is_answered_at_the_end() -> None:
    answers = Answers()
    groups = Gathered(answers, Crowd(1, 100))
    asked = [asyncio.create_task(groups.ask(n)) for n in (1, 2)]
    await asyncio.sleep(0)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert answers.groups == []
    async with asyncio.timeout(PATIENCE_S):
        await groups.flush()
    assert answers.groups == [[1, 2]]


async def test_what_is_put_down_without_waiting_is_answered_too() -> None:
    answers = Answers()
    groups = Gathered(answers, Crowd(1, 100))
    groups.put(1)
    async with asyncio.timeout(PATIENCE_S):
        await groups.flush()
    assert answers.groups == [[1]]
