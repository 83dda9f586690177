"""Rights are read at each call: what is taken away between two calls of one step stops the second."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.answering import prepare
from apps.conversations.models import Conversation
from apps.conversations.toolset import document_search
from apps.conversations.turns.conversations import conversation_create
from apps.tools.models import ToolEntry, ToolGrant
from runs.models import Run, ToolCall
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from toolloop.limits import Limits
from toolloop.providers.scripted import call, says

pytestmark = pytest.mark.django_db(transaction=True)


def conversation_of(cast: Cast) -> Conversation:
    with tenant_scope(cast.tenant.pk):
        return conversation_create(tenant=cast.tenant, actor=cast.actor("member"))


async def after_first_search(
    cast: Cast, lane: Executor, monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]
) -> tuple[Run, list[ToolCall]]:
    """Ask for two searches in one step, change something when the first has found its passages; return run and calls."""
    monkeypatch.setattr(prepare, "Limits", partial(Limits, max_parallel_tools=1))
    search: Any = vars(document_search)["search_run"]
    made: list[Any] = []

    def searched(**asked: Any) -> Any:
        found = search(**asked)
        made.append(asked)
        if len(made) == 1:
            change()
        return found

    monkeypatch.setattr(document_search, "search_run", searched)
    conversation = await sync_to_async(conversation_of)(cast)
    turn = await sync_to_async(ask)(cast, conversation=conversation)
    twice = [call("search_documents", query="duty"), call("search_documents", query="duty on trucks")]
    await answer(turn, lane, monkeypatch, [says("", *twice), says("It is 2.5 percent.")])
    return await sync_to_async(_ended)(turn.run_id, cast)


def _ended(run_id: int, cast: Cast) -> tuple[Run, list[ToolCall]]:
    with tenant_scope(cast.tenant.pk):
        return Run.objects.get(pk=run_id), list(ToolCall.objects.filter(run_id=run_id).order_by("pk"))


async def test_nothing_changed_and_both_calls_run(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = await after_first_search(cast, lane_threads, monkeypatch, lambda: None)
    assert run.status == "completed"
    assert [row.status for row in calls] == ["succeeded", "succeeded"]


async def test_a_removed_member_makes_no_second_call(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = cast.actor("member").user_id or 0
    run, calls = await after_first_search(
        cast, lane_threads, monkeypatch, lambda: Membership.objects.filter(user_id=person).delete()
    )
    assert run.status == "failed"
    assert run.error_code == "actor_gone"
    assert [row.status for row in calls] == ["succeeded", "failed"]
    assert calls[1].error_code == "actor_gone"


async def test_a_member_who_lost_the_right_to_read_finds_nothing_more(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenancy import permissions

    person = cast.actor("member").user_id or 0
    fewer = {**permissions.ROLE_ACTIONS, "viewer": frozenset({"tool.run", "conversation.write"})}
    monkeypatch.setattr("tenancy.selectors.ROLE_ACTIONS", fewer)
    _, calls = await after_first_search(
        cast,
        lane_threads,
        monkeypatch,
        lambda: Membership.objects.filter(user_id=person).update(role="viewer"),
    )
    assert [row.status for row in calls] == ["succeeded", "failed"]


async def test_a_new_denial_stops_the_second_call(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny() -> None:
        ToolGrant.objects.create(
            tenant=cast.tenant,
            effect="deny",
            target_kind="tool",
            target="search_documents",
            subject_kind="everyone",
        )

    run, calls = await after_first_search(cast, lane_threads, monkeypatch, deny)
    assert run.status == "completed"
    assert [row.status for row in calls] == ["succeeded", "denied"]


async def test_a_denial_of_the_role_that_somebody_just_got_counts(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = cast.actor("member").user_id or 0

    def demote() -> None:
        ToolGrant.objects.create(
            tenant=cast.tenant,
            effect="deny",
            target_kind="tool",
            target="search_documents",
            subject_kind="role",
            subject="admin",
        )
        Membership.objects.filter(user_id=person).update(role="admin")

    _, calls = await after_first_search(cast, lane_threads, monkeypatch, demote)
    assert [row.status for row in calls] == ["succeeded", "denied"]


async def test_a_tool_that_is_switched_off_makes_no_second_call(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def off() -> None:
        ToolEntry.objects.create(tenant=cast.tenant, name="search_documents", is_enabled=False)

    _, calls = await after_first_search(cast, lane_threads, monkeypatch, off)
    assert [row.status for row in calls] == ["succeeded", "denied"]
