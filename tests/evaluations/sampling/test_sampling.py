"""Live answers are scored after they were given: which are chosen, what it may cost, and who may read what was said."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.conversations.models import AssistantVersion, Citation, Turn
from apps.evaluations.models import LiveSample, LiveScore, SamplingRule
from apps.evaluations.sampling import services as writes
from apps.evaluations.sampling import tasks as sampling
from apps.evaluations.sampling.services import sampling_rule_create, sampling_rule_pause
from apps.evaluations.scorers.turns import asked_in, told_of
from basics.errors import Denied, Invalid, Missing
from jobs.models import Job
from jobs.runner import _finish
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.conversations.support import answer, ask
from tests.permissions.world import make_row
from tests.runs.support import take

pytestmark = pytest.mark.django_db


def make_rule(cast, *, role: str = "admin", **given: Any) -> SamplingRule:
    with tenant_scope(cast.tenant.pk):
        return sampling_rule_create(
            tenant=cast.tenant,
            actor=cast.actor(role),
            **{
                "name": "All",
                "rate": 1.0,
                "scorers": [{"kind": "faithfulness"}],
                "budget_usd": Decimal(1),
                **given,
            },
        )


@pytest.mark.django_db(transaction=True)
async def test_an_answer_is_scored_after_it_was_given(cast, library, found, lane_threads):
    rule = await sync_to_async(make_rule)(cast)
    turn = await sync_to_async(ask)(cast, model="extractive")
    await answer(turn, lane_threads)

    def chosen() -> tuple[LiveSample, Job]:
        with tenant_scope(cast.tenant.pk):
            assert Turn.objects.get(pk=turn.pk).run.status == "completed"
            assert not LiveScore.objects.exists()  # nobody has waited for it
            sample = LiveSample.objects.select_related("job").get(rule=rule)
            return sample, sample.job

    sample, job = await sync_to_async(chosen)()
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    with tenant_scope(cast.tenant.pk):
        await sampling.sample_score(ctx, sample_id=sample.pk)
        await ctx.in_db(_finish, ctx, job, None)

    def scored() -> None:
        with tenant_scope(cast.tenant.pk):
            score = LiveScore.objects.get(sample=sample)
            assert (score.name, score.author) == ("faithfulness", "lexical:faithfulness@1")
            assert score.value is not None
            assert LiveSample.objects.get(pk=sample.pk).state == "done"
        url = f"/t/{cast.tenant.slug}/evaluations/live/{rule.pk}/"
        pages = {}
        for role in ("member", "owner"):
            client = Client()
            client.force_login(cast.user(role))
            pages[role] = client.get(url).content.decode()
        assert "Faithfulness" in pages["owner"]
        assert "Someone else" in pages["owner"]
        assert "Someone else" not in pages["member"]

    await sync_to_async(scored)()


def ended(cast, *, status: str = "completed", cites: bool = True) -> Turn:
    """Return a turn with an answer."""
    with tenant_scope(cast.tenant.pk):
        turn: Turn = make_row(Turn, cast.tenant, cast.user("member"))
        Run.objects.filter(pk=turn.run_id).update(status=status)
        for author in ("user", "assistant"):
            turn.messages.create(tenant=cast.tenant, author=author, text="Cars pay 2.5 percent.")
        if cites:
            make_row(Citation, cast.tenant, cast.user("member"), turn=turn)
        found: Turn = Turn.objects.get(pk=turn.pk)
        return found


def test_rate_doubt_and_budget_choose(cast):
    turns = [ended(cast) for _ in range(6)]
    doubtful, failed = ended(cast, cites=False), ended(cast, status="failed")
    rule = make_rule(cast, rate=0.5, takes_doubtful=True)
    with tenant_scope(cast.tenant.pk):
        for turn in [*turns, doubtful, failed, *turns]:  # told of twice
            writes.answer_sample(turn)
        expected = {t.pk for t in turns if writes._share(rule.pk, t.pk) < 0.5} | {doubtful.pk}
        samples = LiveSample.objects.filter(rule=rule)
        assert set(samples.values_list("turn_id", flat=True)) == expected
        assert all(s.job_id for s in samples)
        samples.update(state="done", cost_usd=Decimal("0.9"))
        late = ended(cast, cites=False)
        assert writes.answer_sample(late) == []
        left_out = LiveSample.objects.get(rule=rule, turn=late)
        assert (left_out.state, left_out.job_id) == ("skipped", None)
        assert "budget" in left_out.error
        sampling_rule_pause(tenant=cast.tenant, actor=cast.actor("admin"), rule=rule)
        count = LiveSample.objects.count()
        writes.answer_sample(ended(cast, cites=False))
        assert LiveSample.objects.count() == count


def test_one_answer_shows_the_price_before_further_ones_are_scored(cast, monkeypatch):
    monkeypatch.setattr("apps.evaluations.experiments.choices._model_checked", lambda *a: None)
    judged = [{"kind": "faithfulness", "options": {"models": ["test/judge"]}}]
    rule, poor = (make_rule(cast, scorers=judged, budget_usd=Decimal(n)) for n in (1, 0))

    def states(of) -> list[str]:
        return list(LiveSample.objects.filter(rule=of).order_by("pk").values_list("state", flat=True))

    with tenant_scope(cast.tenant.pk):
        for turn in [ended(cast), ended(cast)]:
            writes.answer_sample(turn)
        assert states(rule) == ["waiting", "skipped"]
        assert states(poor) == ["skipped", "skipped"]
        LiveSample.objects.filter(rule=rule, state="waiting").update(state="done", cost_usd=Decimal("0.5"))
        for turn in [ended(cast), ended(cast)]:
            writes.answer_sample(turn)
        assert states(rule)[2:] == ["waiting", "skipped"]


def test_who_may_and_what_cannot(cast):
    with pytest.raises(Denied):
        make_rule(cast, role="member")
    changes: tuple[dict[str, Any], ...] = (
        {"rate": 1.5},
        {"rate": 0.0},
        {"scorers": []},
        {"scorers": [{"kind": "token_f1"}]},
        {"name": " "},
        {"budget_usd": Decimal("NaN")},
    )
    for change in changes:
        with pytest.raises(Invalid):
            make_rule(cast, **change)
    with pytest.raises(Missing):
        make_rule(cast, assistant=10**9)
    rule = make_rule(cast)
    client = Client()
    client.force_login(cast.user("outsider"))
    other = f"/t/{cast.other_tenant.slug}/evaluations/live/{rule.pk}/"
    assert client.get(other).status_code == 404


def test_a_judge_reads_the_conversation_as_the_answer_had_it(cast):
    rule = make_rule(cast)
    first, other, second = (ended(cast) for _ in range(3))
    with tenant_scope(cast.tenant.pk):
        Turn.objects.filter(pk__in=(other.pk, second.pk)).update(
            conversation=first.conversation_id, parent=first.pk, is_active=False
        )
        Turn.objects.filter(pk=other.pk).update(index=7)
        Turn.objects.filter(pk=second.pk).update(index=8)
        for turn, asked in ((first, "Who pays duty?"), (other, "Another branch?"), (second, "And they?")):
            turn.messages.filter(author="user").update(text=asked)
        sample = make_row(LiveSample, cast.tenant, cast.user("member"), rule=rule, turn=second)
        work = sampling._read(sample.pk)
        assert work is not None
        assert told_of(work.row) == [
            {"role": "user", "text": "Who pays duty?"},
            {"role": "assistant", "text": "Cars pay 2.5 percent."},
        ]
        assert asked_in(work.row).endswith("Last question: And they?")
        # An assistant that remembers nothing is not judged by what it was not told.
        version = make_row(
            AssistantVersion, cast.tenant, cast.user("member"), mode="tools", options={"memory_turns": 0}
        )
        Turn.objects.filter(pk=second.pk).update(assistant_version=version)
        work = sampling._read(sample.pk)
        assert work is not None
        assert work.row.messages == ()
