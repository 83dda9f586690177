"""How many statements a turn costs the database: the committed numbers, to submit it, of each step, and of all else.

After a change that is meant to cost (or save) statements, set the numbers in statement_counts.json in the same commit.
"""

from __future__ import annotations

import json
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from runs import recorder
from tenancy.database.cursors import BinaryCursor, ScopedCursor
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from toolloop.providers.scripted import call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
BASELINE = Path(__file__).with_name("statement_counts.json")
FEW, MANY = 1, 4


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement of every thread, whatever the clock says: nothing is written but where the loop asks for it."""
    monkeypatch.setattr(recorder, "FLUSH_S", 3600.0)
    statements: list[str] = []
    for cursor in (ScopedCursor, BinaryCursor):
        execute = cursor.execute

        def counted(self: Any, query: Any, *args: Any, execute: Any = execute, **options: Any) -> Any:
            statements.append(str(query))
            return execute(self, query, *args, **options)

        monkeypatch.setattr(cursor, "execute", counted)
    return statements


async def test_a_turn_costs_the_statements_that_are_committed(
    cast: Cast,
    library: Library,
    found: Any,
    lane_threads: Executor,
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs: dict[int, tuple[int, int]] = {}
    for steps in (FEW, FEW, MANY):  # the first one also fills what a process keeps
        sent.clear()
        turn = await sync_to_async(ask)(cast)
        submitted = len(sent)
        sent.clear()
        looks = [calls(call("search_documents", query=f"duty {number}")) for number in range(steps)]
        await answer(turn, lane_threads, monkeypatch, [*looks, says("Done.")])
        costs[steps] = submitted, len(sent)
    spent = {
        "submit": costs[MANY][0],
        "step": (costs[MANY][1] - costs[FEW][1]) / (MANY - FEW),
        "rest": costs[FEW][1] - (costs[MANY][1] - costs[FEW][1]) / (MANY - FEW) * FEW,
    }
    assert spent == json.loads(BASELINE.read_text()), sent
