"""Branches: an edited question and another answer stand beside the old ones, and only the chosen branch counts."""

from __future__ import annotations

import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.answering.tasks import history_of
from apps.conversations.branches import services as branches_services
from apps.conversations.models import Citation, Conversation, Message, Turn
from apps.conversations.transcript import selectors
from apps.conversations.transcript.branch_tree import HISTORY_TURNS, Tree, branch_before
from apps.conversations.turns import conversations
from apps.conversations.turns import services as turns_services
from basics.errors import Conflict, Missing
from runs.models import Run, RunStatus, UsageRecord
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask, fresh
from toolloop.providers.scripted import call, says

pytestmark = pytest.mark.django_db(transaction=True)

#        1
#      /   \
#     2     5
#    / \     \
#   3   4     6
TREE = Tree({1: None, 2: 1, 3: 2, 4: 2, 5: 1, 6: 5})


@pytest.mark.parametrize(
    ("last", "path"), [(3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 5, 6]), (1, [1]), (None, []), (9, [])]
)
def test_path_leads_from_the_first_question_to_the_last(last: int | None, path: list[int]) -> None:
    assert TREE.path(last) == path


def test_siblings_and_newest_leaf() -> None:
    assert [TREE.siblings(pk) for pk in (1, 2, 4, 6)] == [[1], [2, 5], [3, 4], [6]]
    assert [TREE.newest_leaf(pk) for pk in (1, 2, 3, 5)] == [6, 4, 3, 6]


def end(turn: Turn, text: str, status: str = RunStatus.COMPLETED) -> Turn:
    """End a turn as its job would, with this answer."""
    with tenant_scope(turn.tenant_id):
        Run.objects.filter(pk=turn.run_id).update(status=status, answer=text)
        Turn.objects.filter(pk=turn.pk).update(is_active=False)
        Message.objects.create(tenant_id=turn.tenant_id, turn=turn, author="assistant", text=text)
    return turn


def loaded(cast: Cast, turn: Turn) -> tuple[Conversation, Turn]:
    conversation = selectors.conversation_get(actor=cast.actor("member"), pk=turn.conversation_id)
    row = selectors.turn_get(actor=cast.actor("member"), conversation=conversation, pk=turn.pk)
    row.conversation = conversation
    return conversation, row


def act(cast: Cast, service: Any, turn: Turn, **values: Any) -> Any:
    with tenant_scope(cast.tenant.pk):
        return service(tenant=cast.tenant, actor=cast.actor("member"), turn=loaded(cast, turn)[1], **values)


def shown(cast: Cast, turn: Turn) -> list[str]:
    """Return the questions of the branch that is shown."""
    with tenant_scope(cast.tenant.pk):
        conversation, _ = loaded(cast, turn)
        views = selectors.turn_views(actor=cast.actor("member"), conversation=conversation)
        assert [v.pk for v in views] == [
            t.pk for t in selectors.turn_list(actor=cast.actor("member"), conversation=conversation)
        ]
    return [view.user_text for view in views]


def _history(turn: Turn) -> Any:
    question = turn.messages.get(author="user").text
    return history_of(turn, question, branch_before(turn, HISTORY_TURNS - 1), {})


def said(turn: Turn) -> list[str]:
    """Return what the model reads of the conversation."""
    with tenant_scope(turn.tenant_id):
        read: Any = _history(Turn.objects.get(pk=turn.pk))
    return [message.text for message in read]


def three(cast: Cast) -> tuple[Turn, Turn, Turn]:
    first = end(ask(cast, "One?"), "1.")
    second = end(ask(cast, "Two?", conversation=first.conversation), "2.")
    return first, second, end(ask(cast, "Three?", conversation=first.conversation), "3.")


def test_edited_question_makes_a_branch_and_the_old_one_can_be_chosen_again(cast: Cast) -> None:
    first, second, third = three(cast)
    other = act(cast, branches_services.turn_edit, second, text="Two, really?", client_id=uuid.uuid4())
    assert said(other) == ["One?", "1.", "Two, really?"]
    assert shown(cast, first) == ["One?", "Two, really?"]
    end(other, "2!")
    after = ask(cast, "And then?", conversation=first.conversation)
    assert said(after) == ["One?", "1.", "Two, really?", "2!", "And then?"]
    end(after, "4.")

    act(cast, branches_services.turn_choose, second)
    assert shown(cast, first) == ["One?", "Two?", "Three?"]
    act(cast, branches_services.turn_choose, other)
    assert shown(cast, first) == ["One?", "Two, really?", "And then?"]
    with tenant_scope(cast.tenant.pk):
        conversation, _ = loaded(cast, first)
        views = selectors.turn_views(actor=cast.actor("member"), conversation=conversation)
    assert [(v.place, len(v.siblings)) for v in views] == [(1, 1), (2, 2), (1, 1)]
    assert (views[1].sibling_before, views[1].sibling_after) == (second.pk, None)
    assert fresh(third).index == 2
    assert fresh(after).index == 4


def test_regenerated_answer_reads_nothing_of_the_old_one(cast: Cast) -> None:
    first, second, _ = three(cast)
    ident = uuid.uuid4()
    again = act(cast, branches_services.turn_regenerate, second, client_id=ident)
    assert said(again) == ["One?", "1.", "Two?"]
    assert fresh(second).said == {"user": "Two?", "assistant": "2."}
    assert act(cast, branches_services.turn_regenerate, second, client_id=ident).pk == again.pk
    root = end(again, "II.")
    other = act(cast, branches_services.turn_regenerate, first, client_id=uuid.uuid4())
    assert (fresh(other).parent_id, said(other)) == (None, ["One?"])
    with pytest.raises(Conflict, match="still being written"):
        act(cast, branches_services.turn_regenerate, root, client_id=uuid.uuid4())


def test_retry_in_place_is_for_the_last_question_of_a_branch(cast: Cast) -> None:
    first = end(ask(cast, "One?"), "1.", RunStatus.STOPPED)
    second = end(ask(cast, "Two?", conversation=first.conversation), "", RunStatus.FAILED)
    beside = end(act(cast, branches_services.turn_edit, second, text="Other?", client_id=uuid.uuid4()), "2.")
    with pytest.raises(Conflict, match="Regenerate"):
        act(cast, turns_services.turn_retry, first)
    again = act(cast, turns_services.turn_retry, second)
    assert (again.pk, shown(cast, first)) == (second.pk, ["One?", "Two?"])
    with pytest.raises(Conflict, match="still being written"):
        ask(cast, "Busy?", conversation=first.conversation)
    assert fresh(beside).is_active is False


def test_stopped_answer_goes_on_in_the_next_turn(cast: Cast) -> None:
    first, second, _ = three(cast)
    with pytest.raises(Conflict, match="stopped"):
        act(cast, branches_services.turn_continue, second, client_id=uuid.uuid4())
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=second.run_id).update(status=RunStatus.STOPPED)
    more = act(cast, branches_services.turn_continue, second, client_id=uuid.uuid4())
    assert said(more)[:-1] == ["One?", "1.", "Two?", "2."]
    assert isinstance(said(more)[-1], str)
    assert shown(cast, first)[:2] == ["One?", "Two?"]
    assert fresh(more).parent_id == second.pk


async def test_fork_keeps_its_content_when_the_first_is_deleted(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    cited = library.chunks[0].pk
    turn = await sync_to_async(ask)(cast)
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [says("", call("search_documents", query="duty")), says(f"Cars pay 2.5 percent [c{cited}].")],
    )
    await sync_to_async(_fork_and_delete)(cast, turn)


def _fork_and_delete(cast: Cast, turn: Turn) -> None:
    end(ask(cast, "Later?", conversation=turn.conversation), "Later.")
    fork = act(cast, branches_services.conversation_fork, turn)
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}

    def look() -> list[tuple[Any, ...]]:
        row = selectors.conversation_get(actor=who["actor"], pk=fork.pk)
        return [
            (v.user_text, v.blocks, v.citations, v.tool_cards)
            for v in selectors.turn_views(actor=who["actor"], conversation=row)
        ]

    with tenant_scope(cast.tenant.pk):
        before = look()
        assert len(before) == 1
        assert before[0][2][0].quote
        first = selectors.conversation_get(actor=who["actor"], pk=turn.conversation_id)
        conversations.conversation_delete(**who, conversation=first)
        assert look() == before
        assert Run.objects.count() == 1
        usage = UsageRecord.objects.count()
        conversations.conversation_delete(
            **who, conversation=selectors.conversation_get(actor=who["actor"], pk=fork.pk)
        )
        assert (Run.objects.count(), Citation.objects.count()) == (0, 0)
        assert UsageRecord.objects.count() == usage > 0


def test_running_answer_is_not_forked_and_strangers_touch_no_branch(cast: Cast) -> None:
    first = end(ask(cast, "One?"), "1.")
    second = ask(cast, "Two?", conversation=first.conversation)
    with pytest.raises(Conflict, match="still being written"):
        act(cast, branches_services.conversation_fork, second)
    assert act(cast, branches_services.conversation_fork, first).forked_from_id == first.conversation_id
    with tenant_scope(cast.tenant.pk):
        _, turn = loaded(cast, first)
        for role in ("owner", "admin", "viewer"):
            who: Any = {"tenant": cast.tenant, "actor": cast.actor(role)}
            for service in (branches_services.turn_choose, branches_services.conversation_fork):
                with pytest.raises(Missing):
                    service(**who, turn=turn)
            with pytest.raises(Missing):
                branches_services.turn_regenerate(**who, turn=turn, client_id=uuid.uuid4())
    elsewhere = end(ask(cast, "Elsewhere?"), "!")
    with tenant_scope(cast.tenant.pk), pytest.raises(Missing):
        turns_services.turn_submit(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            conversation=elsewhere.conversation,
            text="?",
            client_id=uuid.uuid4(),
            after=turn,
        )
