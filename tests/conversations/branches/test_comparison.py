"""Two models answer one question at once: two runs, one busy conversation, and a reader who keeps one of the answers."""

from __future__ import annotations

import uuid
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection, connections, transaction
from django.test import Client

from apps.conversations.answering import tasks
from apps.conversations.answering.closing import turn_close
from apps.conversations.attachments.services import attachment_add
from apps.conversations.branches import services as branches_services
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.feedback.services import feedback_give
from apps.conversations.models import Conversation, Feedback, QueuedQuestion, Turn
from apps.conversations.sharing.export_services import conversation_export, conversation_file
from apps.conversations.sharing.selectors import shared_view
from apps.conversations.sharing.services import share_create
from apps.conversations.transcript import selectors
from apps.conversations.transcript.branch_tree import Tree
from apps.conversations.turns import conversations
from apps.conversations.turns import queue as turns_queue
from apps.conversations.turns import services as turns_services
from apps.datasets.rows.dataset_services import dataset_create
from basics.errors import Conflict, DomainError, Invalid
from budgets.ledger import BudgetExceeded
from jobs.models import Job, JobStatus
from runs.models import Run, RunStatus
from runs.providers import provider_for
from runs.services.lifecycle import parked_end
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tenancy.services import member_remove
from tests.budgets.test_ledger import set_budget
from tests.cast import Cast
from tests.conversations.branches.test_branches import act, loaded, said
from tests.conversations.chat.test_views import HTMX, client_of, key_headers, url
from tests.conversations.support import Library, answer, fresh
from tests.patience import PATIENCE_S
from tests.servers import wait_for
from toolloop.errors import AuthFailed
from toolloop.providers.scripted import ScriptedProvider, call, fails, says

pytestmark = pytest.mark.django_db(transaction=True)
ONE, TWO = "compatible/one", "compatible/two"


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models that are offered; nobody asks them anything here."""
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", "one,two")


def compare(cast: Cast, text: str = "Which?", conversation: Conversation | None = None, **more: Any) -> Turn:
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        if conversation is None:
            conversation = conversations.conversation_create(tenant=cast.tenant, actor=actor, model=ONE)
        values: Any = {"client_id": uuid.uuid4(), "compare_with": TWO} | more
        return turns_services.turn_submit(
            tenant=cast.tenant, actor=actor, conversation=conversation, text=text, **values
        )


def both(cast: Cast, text: str = "Which?", **more: Any) -> tuple[Turn, Turn]:
    first = compare(cast, text, **more)
    assert first.second is not None
    return first, first.second


def close(turn: Turn, text: str = "", status: str = RunStatus.COMPLETED) -> None:
    """End a turn and its run as their job would."""
    with tenant_scope(turn.tenant_id), transaction.atomic():
        Run.objects.filter(pk=turn.run_id).update(status=status, answer=text)
        turn_close(Run.objects.get(pk=turn.run_id))


def is_blocked() -> bool:
    """Tell whether a session of the database waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def is_member(cast: Cast) -> bool:
    with tenant_scope(cast.tenant.pk):
        return Membership.objects.filter(pk=cast.member.pk).exists()


def active(turn: Turn) -> list[int]:
    with tenant_scope(turn.tenant_id):
        rows = Turn.objects.filter(conversation_id=turn.conversation_id, is_active=True)
        return list(rows.values_list("pk", flat=True))


def kept(*turns: Turn) -> list[bool | None]:
    return [fresh(turn).is_kept for turn in turns]


def views(cast: Cast, turn: Turn) -> list[Any]:
    with tenant_scope(cast.tenant.pk):
        who: Any = {"actor": cast.actor("member")}
        return selectors.turn_views(
            **who, conversation=selectors.conversation_get(**who, pk=turn.conversation_id)
        )


def listed(cast: Cast, turn: Turn) -> list[int]:
    with tenant_scope(cast.tenant.pk):
        who: Any = {"actor": cast.actor("member")}
        return [t.pk for t in selectors.turn_list(**who, conversation=loaded(cast, turn)[0])]


def test_a_tree_shows_both_answers_as_one_place_until_one_is_kept() -> None:
    #  1 - 2|3 (undecided), 4 (regenerated)
    tree = Tree({1: None, 2: 1, 3: 1, 4: 1}, 3, {2: 3})
    assert (tree.shown, tree.siblings(2), tree.siblings(4)) == ([1, 2, 3], [2, 4], [2, 4])
    kept = Tree({1: None, 2: 1, 3: 1, 4: 1}, 3)
    assert (kept.shown, kept.siblings(3)) == ([1, 3], [2, 3, 4])
    assert Tree({}, None, {2: 3}).shown == []


async def test_both_answer_at_once_and_the_conversation_waits_for_both(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    passage = library.chunks[0].pk
    scripts = {
        ONE: [says("", call("search_documents", query="duty")), says(f"2.5 percent [c{passage}].")],
        TWO: [fails(AuthFailed("no key"))],
    }
    providers = {name: ScriptedProvider(script, by_history=True) for name, script in scripts.items()}
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: providers[model])
    earlier = await sync_to_async(compare)(cast, "Before?", compare_with="")
    await sync_to_async(close)(earlier, "Said before.")
    first, second = await sync_to_async(both)(cast, conversation=earlier.conversation)
    row = await sync_to_async(fresh)(second)
    assert (row.parent_id, row.said, row.run.model) == (earlier.pk, {"user": "Which?"}, TWO)
    conversation = (await sync_to_async(fresh)(first)).conversation
    assert (conversation.model, conversation.head_id) == (ONE, first.pk)
    assert await sync_to_async(said)(second) == ["Before?", "Said before.", "Which?"]
    assert await sync_to_async(listed)(cast, first) == [earlier.pk, first.pk, second.pk]

    def queue(text: str, **more: Any) -> Any:
        with tenant_scope(cast.tenant.pk):
            return turns_queue.question_queue(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                conversation=first.conversation,
                text=text,
                client_id=uuid.uuid4(),
                **more,
            )

    def asked_next() -> Turn | None:
        with tenant_scope(cast.tenant.pk):
            return turns_queue.queued_next(tenant=cast.tenant, conversation_pk=first.conversation_id)

    assert isinstance(await sync_to_async(queue)("Next?", compare_with=TWO), QueuedQuestion)
    assert await sync_to_async(active)(first) == [first.pk]
    await answer(first, lane_threads)
    assert await sync_to_async(active)(first) == [second.pk]
    assert await sync_to_async(asked_next)() is None
    await answer(second, lane_threads)
    assert await sync_to_async(active)(first) == []
    (_, shown) = await sync_to_async(views)(cast, first)
    assert [c.number for c in shown.citations] == [1]
    assert (shown.second.status, shown.can_keep, shown.second.can_keep) == ("failed", True, False)
    assert shown.second.error_message

    after = await sync_to_async(asked_next)()
    assert after is not None
    assert after.second is not None
    assert (after.parent_id, after.has_decided) == (first.pk, True)
    assert await sync_to_async(kept)(first, second, after) == [True, False, None]
    assert (await sync_to_async(said)(after.second))[:3] == ["Before?", "Said before.", "Which?"]


def test_a_question_before_any_choice_follows_the_side_that_has_an_answer(cast: Cast) -> None:
    first, second = both(cast)
    close(second, "Two's.")
    close(first, "", RunStatus.FAILED)
    after = compare(cast, "And?", first.conversation, compare_with="")
    assert (after.parent_id, kept(first, second)) == (second.pk, [False, True])
    assert said(after) == ["Which?", "Two's.", "And?"]
    # A branch that is gone on with is chosen by that too.
    close(after, "Yes.")
    third, fourth = both(cast, "Again?", conversation=first.conversation)
    close(third, "Three.")
    close(fourth, "Four, cut", RunStatus.STOPPED)
    more = act(cast, branches_services.turn_continue, fourth, client_id=uuid.uuid4())
    assert (more.parent_id, kept(third, fourth)) == (fourth.pk, [False, True])


@pytest.mark.parametrize("is_second_first", [False, True])
def test_two_ends_at_the_same_moment_leave_nothing_active(cast: Cast, is_second_first: bool) -> None:
    turns = both(cast)
    early, late = reversed(turns) if is_second_first else turns

    def end_late() -> None:
        try:
            close(late, "Late.")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with tenant_scope(cast.tenant.pk), transaction.atomic():
            Run.objects.filter(pk=early.run_id).update(status=RunStatus.COMPLETED, answer="Early.")
            turn_close(Run.objects.get(pk=early.run_id))
            ended = pool.submit(end_late)
            wait_for(is_blocked, what="the other end to wait for the turns")
            assert not ended.done()
        ended.result(PATIENCE_S)
    assert active(early) == []
    assert [fresh(turn).said["assistant"] for turn in (early, late)] == ["Early.", "Late."]


def test_deleting_a_conversation_while_one_of_two_answers_ends_waits_in_no_circle(cast: Cast) -> None:
    first, second = both(cast)
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}

    def delete() -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                conversations.conversation_delete(**who, conversation=first.conversation)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with tenant_scope(cast.tenant.pk), transaction.atomic():  # as the second one's worker ends its run
            Job.objects.filter(pk=second.run.job_id).update(status=JobStatus.SUCCEEDED)
            Run.objects.filter(pk=second.run_id).update(status=RunStatus.COMPLETED, answer="Two's.")
            deleted = pool.submit(delete)
            wait_for(is_blocked, what="the deletion to wait for the job")
            turn_close(Run.objects.get(pk=second.run_id))
        deleted.result(PATIENCE_S)
    with tenant_scope(cast.tenant.pk):
        assert (Turn.objects.count(), Run.objects.count()) == (0, 0)


def test_a_member_is_removed_while_one_of_their_two_waiting_answers_ends_without_a_circle(cast: Cast) -> None:
    first, second = both(cast)
    with tenant_scope(cast.tenant.pk):
        Run.objects.update(status=RunStatus.PARKED)
        Job.objects.update(status=JobStatus.SUCCEEDED)

    def remove() -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with tenant_scope(cast.tenant.pk), transaction.atomic():  # as a decision that nobody took ends it
            Job.objects.select_for_update().get(pk=second.run.job_id)
            removed = pool.submit(remove)
            wait_for(
                lambda: is_blocked() or removed.done() or not is_member(cast), what="the removal to get on"
            )
            parked_end(Run.objects.select_for_update().get(pk=second.run_id))
        removed.result(PATIENCE_S)
    assert [fresh(turn).run.status for turn in (first, second)] == [RunStatus.FAILED] * 2
    assert active(first) == []


def test_two_tabs_that_keep_different_answers_at_once_leave_one_kept_and_its_branch_shown(cast: Cast) -> None:
    first, second = both(cast)
    close(first, "One's.")
    close(second, "Two's.")

    def keep(turn: Turn) -> None:
        try:
            act(cast, branches_services.turn_keep, turn)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        with tenant_scope(cast.tenant.pk), transaction.atomic():
            Conversation.objects.select_for_update().get(pk=first.conversation_id)
            tabs = [pool.submit(keep, turn) for turn in (first, second)]
            wait_for(is_blocked, what="a tab to wait for the conversation")
        for tab in tabs:
            tab.result(PATIENCE_S)
    mine = kept(first, second)
    assert mine in ([False, True], [True, False]), "one alone"
    assert listed(cast, first) == [(first, second)[mine.index(True)].pk]


def test_the_database_keeps_one_turn_active(cast: Cast) -> None:
    _, second = both(cast)
    with tenant_scope(cast.tenant.pk), pytest.raises(IntegrityError, match="turn_one_active"):
        Turn.objects.filter(pk=second.pk).update(is_active=True)


def test_keeping_one_stops_the_other_and_can_be_feedback(cast: Cast) -> None:
    first, second = both(cast)
    keep = branches_services.turn_keep
    with pytest.raises(Conflict, match="no finished answer to keep"):
        act(cast, keep, second)
    close(second, "Two's.")
    act(cast, keep, second, gives_feedback=True)
    # Nobody had begun with it: it ends at once, with its job.
    assert (fresh(first).run.status, active(first)) == (RunStatus.STOPPED, [])
    assert (kept(first, second), listed(cast, first)) == ([False, True], [second.pk])
    (shown,) = views(cast, first)
    assert (shown.siblings, shown.is_kept, shown.can_keep) == ([first.pk, second.pk], True, False)
    act(cast, branches_services.turn_choose, first)
    assert listed(cast, first) == [first.pk]
    assert kept(first, second) == [False, True]

    with tenant_scope(cast.tenant.pk):
        given: list[Any] = list(feedback_list(actor=cast.actor("owner")))
        (row,) = given
        assert (row.turn_id, row.verdict, row.reason, row.other_model) == (
            second.pk,
            "good",
            "preferred",
            ONE,
        )
        assert list(feedback_list(actor=cast.actor("outsider"))) == []
        Feedback.objects.update(comment="Short.")
    act(cast, keep, second, gives_feedback=True)
    with tenant_scope(cast.tenant.pk):
        assert Feedback.objects.get().comment == "Short."
    with tenant_scope(cast.tenant.pk):
        dataset_create(tenant=cast.tenant, actor=cast.actor("owner"), name="Preferred")
    page = client_of(cast, "owner").get(f"/t/{cast.tenant.slug}/datasets/from-feedback/").content.decode()
    assert "Better than the answer by" in page

    alone = compare(cast, "Alone?", compare_with="")
    close(alone, "Yes.")
    with pytest.raises(Conflict, match="no second answer"):
        act(cast, keep, alone)
    with pytest.raises(Invalid):
        act(cast, feedback_give, alone, verdict="good", reason="preferred")
    with tenant_scope(cast.tenant.pk):
        for role in ("owner", "admin", "viewer"):
            with pytest.raises(DomainError) as refused:
                keep(tenant=cast.tenant, actor=cast.actor(role), turn=loaded(cast, second)[1])
            assert refused.value.status in (403, 404)


def test_a_failed_side_is_retried_with_its_own_model_while_the_other_goes_on(cast: Cast) -> None:
    first, second = both(cast)
    close(first, "", RunStatus.FAILED)
    retry = turns_services.turn_retry
    with pytest.raises(Conflict, match="still being written"):
        act(cast, retry, second)
    again = act(cast, retry, first)
    assert (again.pk, again.run.model, again.is_active, active(first)) == (first.pk, ONE, False, [second.pk])
    with pytest.raises(Conflict, match="still being written"):
        act(cast, retry, first)
    close(second, "", RunStatus.FAILED)
    assert active(first) == [first.pk]
    other = act(cast, retry, second)
    assert other.run.model == TWO
    row = fresh(first).conversation
    assert (row.model, row.head_id) == (ONE, first.pk)
    close(other, "Two's.")
    close(fresh(first), "One's.")
    assert active(first) == []
    with pytest.raises(Conflict, match="Regenerate"):
        act(cast, retry, first)


def test_what_is_refused_leaves_nothing_and_what_is_sent_again_is_the_same(cast: Cast) -> None:
    first, second = both(cast)
    with tenant_scope(cast.tenant.pk):
        before = (Turn.objects.count(), Run.objects.count())
    assert compare(cast, "Which?", first.conversation, client_id=first.client_id).pk == first.pk
    close(first, "1.")
    with pytest.raises(Conflict, match="still being written"):
        compare(cast, "Then?", first.conversation)
    close(second, "2.")
    for name, said_why in ((ONE, "another model"), ("compatible/none", "not available here")):
        with pytest.raises(Invalid, match=said_why):
            compare(cast, "Then?", first.conversation, compare_with=name)
    with tenant_scope(cast.tenant.pk):
        assert (Turn.objects.count(), Run.objects.count()) == before
    assert kept(first, second) == [None, None]


async def test_one_that_no_budget_has_room_for_fails_and_the_other_goes_on(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    await sync_to_async(set_budget)(cast, "0")
    with pytest.raises(BudgetExceeded):
        await sync_to_async(compare)(cast)
    first, second = await sync_to_async(both)(cast, compare_with="extractive")
    never = ScriptedProvider([says("Never asked.")], name="compatible")
    monkeypatch.setattr(
        tasks, "provider_for", lambda tenant, model: never if model == ONE else provider_for(tenant, model)
    )
    await answer(first, lane_threads)
    await answer(second, lane_threads)
    one, two = [await sync_to_async(fresh)(turn) for turn in (first, second)]
    assert (one.run.status, one.run.error_code) == (RunStatus.FAILED, "budget_exceeded")
    assert "is used up" in one.run.error_message
    assert (two.run.status, one.is_active, two.is_active) == (RunStatus.COMPLETED, False, False)


def test_what_a_new_turn_is_said_to_have_means_its_own_rows_alone(cast: Cast) -> None:
    earlier, first = compare(cast, "Before?", compare_with=""), compare(cast, "Which?")
    with tenant_scope(cast.tenant.pk):
        assert [m.text for m in first.messages.all()] == ["Which?"]
        assert [m.text for m in first.messages.filter(author="user")] == ["Which?"]
        first.messages.all().delete()
        assert [m.text for m in fresh(earlier).messages.all()] == ["Before?"]


def test_a_file_goes_with_both_questions_and_all_of_it_with_the_conversation(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
        row = conversations.conversation_create(**who, model=ONE)
        file = attachment_add(**who, conversation=row, name="note.txt", chunks=[b"Thirty days."])
    first, second = both(cast, conversation=row, attachments=[file.pk])
    for turn in (first, second):
        assert [a.name for a in turn.attached] == ["note.txt"]
        assert {a.turn_id for a in turn.attached} == {turn.pk}
    with tenant_scope(cast.tenant.pk):
        assert len({a.document_id for a in (*first.attached, *second.attached)}) == 1
        conversations.conversation_delete(**who, conversation=row)
        assert (Turn.objects.count(), Run.objects.count()) == (0, 0)


def test_files_links_and_forks_say_which_answer_was_kept(cast: Cast) -> None:
    first, second = both(cast)
    close(first, "One's.")
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}

    def told(form: str) -> Any:
        with tenant_scope(cast.tenant.pk):
            return conversation_export(**who, conversation=loaded(cast, first)[0], form=form)

    with pytest.raises(Conflict, match="still being written"):
        act(cast, branches_services.conversation_fork, second)
    close(second, "Two's.")
    text = told("markdown").markdown
    assert text.count("## Which?") == 2
    assert text.count("neither has been kept yet") == 2
    with tenant_scope(cast.tenant.pk):
        conversation = loaded(cast, first)[0]
        shared = shared_view(actor=who["actor"], share=share_create(**who, conversation=conversation))
        assert [turn.answer for turn in shared.turns] == ["One's.", "Two's."]
    act(cast, branches_services.turn_keep, second)
    assert "Kept instead of the answer by" in told("markdown").markdown
    facts = [(t["id"], t["alongside"], t["is_kept"]) for t in told("json").conversation["turns"]]
    assert facts == [(first.pk, second.pk, False), (second.pk, first.pk, True)]
    with tenant_scope(cast.tenant.pk):
        conversation = loaded(cast, first)[0]
        assert conversation_file(**who, conversation=conversation, form="docx").body[:2] == b"PK"
        shared = shared_view(actor=who["actor"], share=share_create(**who, conversation=conversation))
        assert [turn.comparison for turn in shared.turns] == ["Kept instead of the answer by one."]
    fork = act(cast, branches_services.conversation_fork, second)
    with tenant_scope(cast.tenant.pk):
        assert [t.side for t in fork.turns.all()] == [None]


def test_a_fork_of_two_answers_has_the_choice_still_to_make(cast: Cast) -> None:
    alone = compare(cast, "First?", compare_with="")
    close(alone, "Yes.")
    first, second = both(cast, conversation=alone.conversation)
    close(first, "One's.")
    close(second, "Two's.")
    for side in (first, second):
        fork = act(cast, branches_services.conversation_fork, side)
        with tenant_scope(cast.tenant.pk):
            root, one, two = fork.turns.order_by("index")
            assert (root.side, one.side, two.side) == (None, 1, 2)
            assert (one.parent_id, two.parent_id, fork.head_id) == (root.pk, root.pk, one.pk)
            assert (one.run_id, two.run_id) == (first.run_id, second.run_id)
        last = views(cast, one)[-1]
        assert (last.pk, last.second.pk, last.can_keep) == (one.pk, two.pk, True)
        act(cast, branches_services.turn_keep, two)
        assert (kept(one, two), kept(first, second)) == ([False, True], [None, None])
        assert listed(cast, one) == [root.pk, two.pk]


def test_an_answer_that_was_asked_for_again_meanwhile_is_not_kept(cast: Cast) -> None:
    first, second = both(cast)
    close(first, "One, as far as it g", RunStatus.STOPPED)
    close(second, "Two's.")
    with tenant_scope(cast.tenant.pk):
        seen = loaded(cast, first)[1]  # as a tab has it that was loaded before
        assert seen.run.answer
    act(cast, turns_services.turn_retry, first)
    with tenant_scope(cast.tenant.pk), pytest.raises(Conflict, match="no finished answer"):
        branches_services.turn_keep(tenant=cast.tenant, actor=cast.actor("member"), turn=seen)
    assert kept(first, second) == [None, None]


def test_one_of_the_first_two_answers_names_the_conversation_whichever_fails(cast: Cast) -> None:
    """First fails before or after the second ends; both answer; both fail and one is asked again. Paid for once."""
    for ends, named in (
        ([("", "failed"), ("Two's.", "completed")], 2),
        ([("Two's.", "completed"), ("", "failed")], 2),
        ([("One's.", "completed"), ("Two's.", "completed")], 1),
        ([("", "failed"), ("", "failed")], 0),
    ):
        first, second = both(cast)
        turns = [second, first] if ends[1][1] == "failed" and ends[0][0] else [first, second]
        for turn, (text, status) in zip(turns, ends, strict=True):
            close(turn, text, status)
        with tenant_scope(cast.tenant.pk):
            jobs = Job.objects.filter(kind="conversations.title_make")
            wanted = [[], [first.pk], [second.pk]][named]
            pks = [job.payload["turn_id"] for job in jobs]
            assert [pk for pk in pks if pk in (first.pk, second.pk)] == wanted
        if not named:
            close(act(cast, turns_services.turn_retry, second), "Two's.")
            with tenant_scope(cast.tenant.pk):
                assert jobs.filter(payload__turn_id=second.pk).count() == 1


def test_rest_and_pages_ask_both_and_keep_one(cast: Cast) -> None:
    client = Client(headers=key_headers(cast))
    row = client.post("/api/v1/conversations", {"model": ONE}, content_type="application/json").json()
    path = f"/api/v1/conversations/{row['id']}/turns"
    asked = client.post(path, {"text": "Which?", "compare_with": TWO}, content_type="application/json").json()
    second = client.get(f"{path}/{asked['alongside_id']}").json()
    assert (asked["model"], second["model"], second["alongside_id"]) == (ONE, TWO, asked["id"])
    assert (second["question"], second["is_kept"]) == ("Which?", None)
    assert [t["id"] for t in client.get(path).json()["results"]] == [second["id"], asked["id"]]
    same = client.post(
        path, {"text": "?", "compare_with": TWO, "when_busy": "queue"}, content_type="application/json"
    )
    assert (same.status_code, same.json()["compare_with"]) == (202, TWO)
    refused = client.post(f"{path}/{second['id']}/keep")
    assert (refused.status_code, refused.json()["code"]) == (409, "answer_missing")
    with tenant_scope(cast.tenant.pk):
        turns = {t.pk: t for t in Turn.objects.all()}
    close(turns[second["id"]], "Beta.")
    done = client.post(
        f"{path}/{second['id']}/keep", {"feedback": True}, content_type="application/json"
    ).json()
    assert done["head_id"] == second["id"]
    (said_it,) = client.get("/api/v1/feedback").json()["results"]
    assert (said_it["reason"], said_it["model"], said_it["other_model"]) == ("preferred", TWO, ONE)

    person = client_of(cast, "member")
    first, second = both(cast)
    place = url("detail", cast, first.conversation_id)
    page = person.get(place).content.decode()
    assert page.count("hx-sse:connect=") == 2
    assert page.count('class="user"') == 1
    close(first, "", RunStatus.FAILED)
    page = person.get(place).content.decode()
    assert (page.count(f"/turns/{first.pk}/retry/"), "Keep this answer" in page) == (1, False)
    again = person.post(
        url("turn-retry", cast, first.conversation_id, first.pk), headers=HTMX
    ).content.decode()
    assert (again.count("<article"), "<section" in again) == (1, False)
    close(second, "Beta.")
    close(fresh(first), "Alpha.")
    assert person.get(place).content.decode().count("Keep this answer") == 2
    form = {"text": "And?", "client_id": str(uuid.uuid4()), "model": ONE}
    after = person.post(url("turn-create", cast, first.conversation_id), form, headers=HTMX).content.decode()
    assert (after.count('hx-target="#turns"'), after.count("Beta."), after.count("Alpha.")) == (
        1,
        0,
        1,
    )
    missing = Client(headers=key_headers(cast, "outsider"))
    assert missing.post(f"{path}/{second.pk}/keep").status_code == 404
