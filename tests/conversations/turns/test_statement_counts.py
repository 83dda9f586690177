"""How many statements a turn costs: the committed numbers. A turn that asks more, or less, than its number fails.

After a change that is meant to cost (or save) statements, set the number in statement_counts.json in the same commit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.chat.api import turn_out
from apps.conversations.models import Conversation, Turn
from apps.conversations.transcript import selectors
from apps.conversations.transcript.selectors import turn_get, turn_view
from apps.conversations.turns.conversations import conversation_create
from runs import recorder
from runs.pace import Pace
from runs.recorder import Recorder
from runs.transcript import TEXT, Transcript
from tenancy.actors import Actor
from tenancy.permissions import KEY_SCOPES, ROLE_ACTIONS
from tenancy.scope import tenant_scope
from tenancy.selectors import api_key_authenticate
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.branches.test_branches import end
from tests.conversations.support import Library, answer, ask
from tests.patience import PATIENCE_S
from tests.runs.clock import Clock
from tests.runs.support import make_run, take
from tests.statements import statements_noted
from toolloop.providers.scripted import ScriptedTurn, call, says

COUNTS: dict[str, int] = json.loads(Path(__file__).with_name("statement_counts.json").read_text())
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _calls_begin_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than that from letting a call in to running it, which then asks once more."""
    monkeypatch.setattr(selectors, "FRESH_S", PATIENCE_S)


def conversation_of(cast: Cast) -> Conversation:
    with tenant_scope(cast.tenant.pk):
        return conversation_create(tenant=cast.tenant, actor=cast.actor("member"))


def key_of(cast: Cast) -> Actor:
    """Return a key of the owner's, with rights enough to ask and search."""
    with tenant_scope(cast.tenant.pk):
        scopes = sorted(KEY_SCOPES & ROLE_ACTIONS["member"])
        _, secret = api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=scopes)
    found = api_key_authenticate(key=secret)
    assert found is not None
    return found[1]


async def cost_of(
    cast: Cast,
    conversation: Conversation | None,
    lane: Executor,
    monkeypatch: Any,
    script: Sequence[ScriptedTurn],
    *,
    actor: Actor | None = None,
) -> tuple[int, int]:
    """Return how many statements a question's submission takes, and its answer."""
    with statements_noted() as submitted:
        turn = await sync_to_async(ask)(cast, conversation=conversation, actor=actor)
    with statements_noted() as answered:
        await answer(turn, lane, monkeypatch, script)
    # What takes the job in a test, and the look for somebody who wants it stopped, which is asked at any moment.
    own = [one for one in answered if '"stop_requested_at" IS NULL' not in one]
    return len(submitted), len(own)


def search(number: int) -> Any:
    return call("search_documents", query="duty on cars", limit=number + 1)


async def test_statements_of_a_turn(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is written because time has passed: what nobody waits for goes with what somebody does.
    monkeypatch.setattr(Recorder, "_wake", lambda self, due: None)
    conversation = await sync_to_async(conversation_of)(cast)

    async def cost(*script: ScriptedTurn) -> tuple[int, int]:
        return await cost_of(cast, conversation, lane_threads, monkeypatch, script)

    last = says("It is 2.5 percent.")
    await cost(last)  # loads what a process loads once
    submit, plain = await cost(last)
    _, one_step = await cost(says("", search(0)), last)
    _, three_steps = await cost(says("", search(0)), says("", search(1)), says("", search(2)), last)
    _, three_calls = await cost(says("", search(0), search(1), search(2)), last)
    key = await sync_to_async(key_of)(cast)
    of_key = [
        (await cost_of(cast, None, lane_threads, monkeypatch, (*steps, last), actor=key))[1]
        for steps in ([says("", search(0))], [says("", search(0)), says("", search(1))])
    ]
    found = {
        "submit": submit,
        "answer": plain,
        "step with a search": (three_steps - one_step) // 2,
        "further search of a step": (three_calls - one_step) // 2,
        "step of a key with a search": of_key[1] - of_key[0],
    }
    assert (three_steps - one_step) % 2 == 0
    assert (three_calls - one_step) % 2 == 0
    assert found == {name: COUNTS[name] for name in found}


def test_parts_that_a_turn_has_none_of_are_not_asked_for(cast: Cast) -> None:
    turn = end(ask(cast), "It is 2.5 percent.")
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        with statements_noted() as sent:
            turn_view(turn_get(actor=actor, conversation=turn.conversation, pk=turn.pk))
        assert len(sent) == COUNTS["turn without sources, calls, decisions and files, read for its page"]


def test_reply_to_a_question_is_what_is_stored_and_reads_nothing(cast: Cast) -> None:
    view: Any = SimpleNamespace(tenant=cast.tenant, actor=cast.actor("member"))
    with tenant_scope(cast.tenant.pk):
        turn = ask(cast)
        with statements_noted() as sent:
            told = turn_out(view, turn)
        assert not sent
        stored = Turn.objects.get(pk=turn.pk)
        assert told == turn_out(view, stored)
        assert told["question"]


async def test_statements_of_a_second_of_streamed_text(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty answers that say twenty words a second, by a clock that goes on when all that is due is written."""
    clock = Clock()
    pace = Pace(clock)  # type: ignore[arg-type]
    monkeypatch.setattr(recorder, "pace_here", lambda: pace)
    made = [await sync_to_async(make_run)(cast) for _ in range(40)]
    contexts = [(await sync_to_async(take)(job, "w1", lane_threads), run) for run, job in made]
    with tenant_scope(cast.tenant.pk):
        recorders = [Recorder(ctx, run.pk, Transcript(), asyncio.Event()) for ctx, run in contexts]
        for one in recorders:
            one.open()
        await say(clock, recorders, words=20)  # in the first second it is found out how many speak
        with statements_noted() as sent:
            await say(clock, recorders, words=20)
        for one in recorders:
            await one.close()
    assert len(sent) == COUNTS["second of streamed text, forty answers"]


async def say(clock: Clock, recorders: Sequence[Recorder], *, words: int) -> None:
    for _ in range(words):
        for one in recorders:
            one.delta(TEXT, 0, "word ")
        clock.turn(0.05)
        async with asyncio.timeout(PATIENCE_S):
            while any(one._now.is_set() or one._lock.locked() for one in recorders):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
