"""Which rows an arm fails: by tag, in groups of rows that are alike, tagged by people, and as a dataset of their own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from django.urls import reverse

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace, EmbeddingUsage
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow
from apps.datasets.records.parts import RowType
from apps.datasets.records.record import Record
from apps.datasets.rows.selectors import version_rows
from apps.evaluations.failures import tasks
from apps.evaluations.failures.grouping import groups_of
from apps.evaluations.failures.selectors import arm_failures
from apps.evaluations.failures.services import (
    GROUP_JOB,
    failure_tags_change,
    failures_collect,
    failures_group,
)
from apps.evaluations.models import Arm, Experiment, FailureGroups, FailureTag, Score, Trial
from basics.errors import Conflict, Denied, Invalid, Missing
from budgets.services import budget_set
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from runs.models import UsageRecord
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.collections.pipeline.test_summaries_model import run_job
from tests.evaluations.support import make_experiment, make_version

DUTIES = (
    "What is the customs duty on cars?",
    "What is the customs duty on trucks?",
    "Which customs duty do bicycles pay?",
)
NOTICES = ("How long is the notice period of a tenant?", "How long is the notice period of a landlord?")
FINE = tuple(f"How is form {n} filled in?" for n in range(5))


def test_groups_are_made_around_the_rows_with_most_neighbours():
    def at(*degrees: float) -> np.ndarray:
        turn = np.radians(degrees)
        return np.stack([np.cos(turn), np.sin(turn)], axis=1).astype(np.float32)

    first, second, third = groups_of(at(0, 90, 20, 100, 10, 200), alike=0.9)
    assert (first[0], set(first), set(second), third) == (4, {0, 2, 4}, {1, 3}, [5])
    assert groups_of(np.zeros((0, 2), np.float32)) == []


@pytest.fixture
def arm(cast):
    rows = [Record(question=q, answer="a", type=RowType.FACTUAL, tags=("duty",)) for q in DUTIES]
    rows += [Record(question=q, answer="a", tags=("law",)) for q in NOTICES]
    rows += [Record(question=q, answer="a", tags=("law",)) for q in FINE]
    version = make_version(cast, rows)
    experiment = make_experiment(cast, version, {"kind": "model", "model": "extractive"}, concurrency=1)
    with tenant_scope(cast.tenant.pk):
        Score.objects.bulk_create(
            Score(
                tenant=cast.tenant,
                trial=t,
                name="token_f1",
                value=1.0 if t.position >= 5 else 0.1 * (t.position + 1),
                reason=f"<b>wrong {t.position}</b>",
                author_kind="rule",
                author="token_f1@1",
            )
            for t in Trial.objects.filter(experiment=experiment, position__lt=9)
        )
        return Arm.objects.select_related("experiment").get(experiment=experiment)


def run_jobs(cast) -> int:
    """Do the queued jobs that group, as a worker would; returns how many."""
    with tenant_scope(cast.tenant.pk):
        jobs = Job.objects.filter(kind=GROUP_JOB, status=JobStatus.QUEUED)
        waiting = list(jobs.values_list("pk", flat=True))
    for pk in waiting:
        run_here(cast.tenant.pk, pk)
    return len(waiting)


def group(cast, arm):
    """Have the groups made."""
    with tenant_scope(cast.tenant.pk):
        failures_group(tenant=cast.tenant, actor=cast.actor("member"), arm=arm)
    assert run_jobs(cast) == 1


def judged_again(cast, arm):
    """Have the first row fail for another reason."""
    trial = Trial.objects.get(arm=arm, position=0)
    Score.objects.create(
        tenant=cast.tenant,
        trial=trial,
        name="token_f1",
        value=0.0,
        reason="another",
        author_kind="rule",
        author="x@1",
    )


class Vectors:
    """An embedder to which nothing is like anything."""

    def __init__(self, provider: str = "local") -> None:
        self.space, self.usage = (EmbeddingSpace(provider, "text-embedding-3-small", 2, ""), EmbeddingUsage())
        self.asked: list[int] = []

    def embed_documents(self, texts, **_):
        self.asked.append(len(texts))
        self.usage = EmbeddingUsage(len(texts), 1_000, 1)
        return np.eye(len(texts), dtype=np.float32)


@pytest.mark.django_db(transaction=True)  # the heartbeat of the job must see it
def test_failures_are_told_by_tag_and_in_groups_and_become_a_dataset(cast, arm, client):
    with tenant_scope(cast.tenant.pk):
        found = arm_failures(actor=cast.actor("viewer"), arm=arm)
        assert (found.scored, found.failing, found.pages) == (9, 5, 1)
        assert (found.state, found.groups) == ("none", [])
        by_tag: dict[str, Any] = {t.tag: (t.failing, t.rows, t.lift) for t in found.tags}
        assert by_tag == {
            "factual": (3, 3, pytest.approx(1.8)),
            "duty": (3, 3, pytest.approx(1.8)),
            "law": (2, 6, pytest.approx(0.6)),
        }
        who = {"tenant": cast.tenant, "actor": cast.actor("member"), "arm": arm}
        # A tag needs no vectors.
        version = failures_collect(**who, name="Duties", tag="duty")
        kept = [row.record for row in version_rows(actor=cast.actor("member"), version=version)]
        assert {row.question for row in kept} == set(DUTIES)
        assert {row.tags for row in kept} == {("duty",)}
        with pytest.raises(Missing):
            failures_collect(**who, name="Group", group=1)
    group(cast, arm)
    with tenant_scope(cast.tenant.pk):
        found = arm_failures(actor=cast.actor("viewer"), arm=arm)
        assert found.state == "ready"
        groups = [{row.question for row in one.rows} for one in found.groups]
        assert groups[0] == set(DUTIES)
        assert set(NOTICES) in groups
        assert "customs" in found.groups[0].terms
        assert found.groups[0].rows[0].reason.startswith("<b>wrong")
        assert failures_collect(**who, name="Group", group=1).row_count == len(DUTIES)
        with pytest.raises(Missing):
            failures_collect(**who, name="Nothing", tag="nope")
        with pytest.raises(Missing):
            failures_collect(**who, name="Nothing", group=99)
        with pytest.raises(Denied):
            failures_collect(**{**who, "actor": cast.actor("viewer")}, name="Mine")
        assert Dataset.objects.filter(name__in=("Nothing", "Mine")).count() == 0
    page = reverse("evaluations:failures", args=[cast.tenant.slug, arm.pk])
    client.force_login(cast.user("member"))
    text = client.get(page).content.decode()
    assert "&lt;b&gt;wrong" in text
    assert "<b>wrong" not in text
    made = client.post(f"{page}collect/", {"group": "1"})
    assert made.status_code == 302
    assert "/datasets/" in made["Location"]
    assert client.post(f"{page}collect/", {"group": "x"}).status_code == 400
    moved = client.post(f"{page}split/", {"which": "tag:duty", "into": "test"})
    assert "#check-splits" in moved["Location"]
    with tenant_scope(cast.tenant.pk):
        check = DatasetCheck.objects.get(kind="splits")
        assert check.dataset_id == arm.experiment.version.dataset_id
        run_job(check.job)
        check.refresh_from_db()
        assert (check.result["chosen"], check.result["counts"]) == (3, {"test": 3, "": 7})
        put = DatasetRow.objects.filter(dataset=check.dataset_id, split="test")
        assert set(put.values_list("question", flat=True)) == set(DUTIES)
    refused = client.post(f"{page}split/", {"which": "group:99", "into": "test"})
    assert refused["Location"] == page
    client.force_login(cast.user("outsider"))
    assert client.post(f"{page}split/", {"into": "test"}).status_code == 404
    assert client.get(page).status_code == 404
    assert client.post(f"{page}collect/", {"group": "1"}).status_code == 404
    assert client.post(f"{page}group/").status_code == 404


@pytest.mark.django_db
def test_a_look_embeds_nothing_and_groups_follow_what_fails(cast, arm, client, monkeypatch):
    embedder = Vectors()
    monkeypatch.setattr(tasks, "embedder_of_setting", lambda *_, **__: embedder)
    with tenant_scope(cast.tenant.pk):
        Experiment.objects.filter(pk=arm.experiment_id).update(state="stopped")
    page = reverse("evaluations:failures", args=[cast.tenant.slug, arm.pk])
    client.force_login(cast.user("viewer"))
    seen = client.get(page).content.decode()
    assert "not grouped yet" in seen
    assert "hx-post" not in seen.partition('id="groups"')[2].partition(">")[0]
    assert client.post(f"{page}group/").status_code == 403
    client.force_login(cast.user("member"))
    assert 'hx-trigger="load"' in client.get(page).content.decode()
    for _ in range(2):  # asked twice, done once
        assert client.post(f"{page}group/").status_code == 302
    working = client.get(page).content.decode()
    assert 'hx-trigger="every 2s"' in working
    assert "<progress" in working
    assert embedder.asked == []
    assert run_jobs(cast) == 1
    assert embedder.asked == [5]
    assert "Unlike any other" in client.get(page).content.decode()
    assert embedder.asked == [5]
    with tenant_scope(cast.tenant.pk):
        judged_again(cast, arm)
        assert arm_failures(actor=cast.actor("viewer"), arm=arm).state == "none"

    def refuse(*_, **__):
        raise EmbeddingError("embedder_auth_failed", "The key was refused.")

    monkeypatch.setattr(tasks, "embedder_of_setting", refuse)
    group(cast, arm)
    text = client.get(page).content.decode()
    assert "The key was refused." in text
    assert "Try again" in text
    with tenant_scope(cast.other_tenant.pk):
        assert not FailureGroups.objects.exists()


@pytest.mark.django_db
def test_a_paid_embedder_is_paid_by_who_asked(cast, arm, monkeypatch):
    monkeypatch.setattr(tasks, "embedder_of_setting", lambda *_, **__: Vectors("openai"))
    group(cast, arm)
    with tenant_scope(cast.tenant.pk):
        used = UsageRecord.objects.get(kind="embedding")
        assert (used.input_tokens, used.user_id) == (1_000, cast.user("member").pk)
        judged_again(cast, arm)
        budget_set(
            tenant=cast.tenant, actor=cast.actor("owner"), kind="tenant", amount_usd=Decimal("0.000001")
        )
    group(cast, arm)
    with tenant_scope(cast.tenant.pk):
        found = arm_failures(actor=cast.actor("viewer"), arm=arm)
        assert found.state == "failed"
        assert "budget" in found.problem
        assert UsageRecord.objects.filter(kind="embedding").count() == 1


@pytest.mark.django_db
def test_people_tag_failures_and_make_a_dataset_of_a_tag(cast, arm, client):
    with tenant_scope(cast.tenant.pk):
        first, second, *_, fine = Trial.objects.filter(arm=arm).order_by("position")
        who = {"tenant": cast.tenant, "actor": cast.actor("member")}
        assert failure_tags_change(**who, trial=first, add=["  Wrong  Chapter "]) == ["wrong chapter"]
        assert failure_tags_change(**who, trial=first, add=["wrong chapter", "law"]) == [
            "law",
            "wrong chapter",
        ]
        assert failure_tags_change(**who, trial=second, add=["wrong chapter"]) == ["wrong chapter"]
        found = arm_failures(actor=cast.actor("viewer"), arm=arm)
        by_tag = {one.tag: (one.failing, one.rows, one.is_own) for one in found.tags}
        assert by_tag["wrong chapter"] == (2, 2, True)
        assert by_tag["law"] == (3, 7, False)  # the rows' own and people's are one tag
        version = failures_collect(**who, arm=arm, name="Chapters", tag="wrong chapter")
        kept = [row.record for row in version_rows(actor=cast.actor("member"), version=version)]
        assert {row.question for row in kept} == set(DUTIES[:2])
        with pytest.raises(Conflict, match="this one passes"):
            failure_tags_change(**who, trial=fine, add=["x"])
        for wrong in (" ", "x" * 41):
            with pytest.raises(Invalid):
                failure_tags_change(**who, trial=first, add=[wrong])
        with pytest.raises(Invalid, match="at most 20"):
            failure_tags_change(**who, trial=first, add=[f"t{n}" for n in range(19)])
        with pytest.raises(Denied):
            failure_tags_change(**{**who, "actor": cast.actor("viewer")}, trial=first, add=["x"])
        told = AuditEvent.objects.filter(action="trial.tag").order_by("pk").values_list("data", flat=True)
        assert [row["added"] for row in told] == [["wrong chapter"], ["law"], ["wrong chapter"]]
    page = reverse("evaluations:failures", args=[cast.tenant.slug, arm.pk])
    at = reverse("evaluations:trial-tags", args=[cast.tenant.slug, first.pk])
    client.force_login(cast.user("member"))
    shown = client.get(f"{page}?tag=wrong+chapter").content.decode()
    listed = shown.partition('id="tagged-h"')[2]
    assert [q in listed for q in DUTIES] == [True, True, False]
    assert "No failing questions have this tag" in client.get(f"{page}?tag=%3Cb%3E").content.decode()
    answer = client.post(at, {"remove": "law"}, headers={"hx-request": "true"}).content.decode()
    assert "Undo" in answer
    assert 'name="add" value="law"' in answer
    client.post(at, {"add": "law"})  # the way back
    assert client.post(at, {"add": ""}).status_code == 400
    client.force_login(cast.user("outsider"))
    assert client.post(at, {"add": "x"}).status_code == 404
    with tenant_scope(cast.tenant.pk):
        assert set(FailureTag.objects.filter(trial=first).values_list("name", flat=True)) == {
            "law",
            "wrong chapter",
        }
    with tenant_scope(cast.other_tenant.pk):
        assert not FailureTag.objects.exists()


@pytest.mark.django_db
def test_a_row_without_an_answer_fails_too(cast, arm):
    with tenant_scope(cast.tenant.pk):
        Trial.objects.filter(arm=arm, position=9).update(state="failed", error="No model answered.")
        found = arm_failures(actor=cast.actor("viewer"), arm=arm)
        assert (found.scored, found.failing, found.unanswered) == (10, 6, 1)
        assert (found.rows[0].question, found.rows[0].reason) == (FINE[4], "No model answered.")


@pytest.mark.django_db
def test_every_failing_row_is_on_a_page_and_a_page_is_grouped_by_itself(cast, arm, client, monkeypatch):
    monkeypatch.setattr("apps.evaluations.failures.selectors.PAGE_ROWS", 2)
    monkeypatch.setattr("apps.evaluations.failures.views.PAGE_ROWS", 2)
    monkeypatch.setattr(tasks, "embedder_of_setting", lambda *_, **__: Vectors())
    who = {"tenant": cast.tenant, "actor": cast.actor("member"), "arm": arm}
    with tenant_scope(cast.tenant.pk):
        pages = [arm_failures(actor=cast.actor("viewer"), arm=arm, page=n) for n in (1, 2, 3, 9)]
        assert [found.page for found in pages] == [1, 2, 3, 3]
        seen = [row.question for found in pages[:3] for row in found.rows]
        assert seen == [*DUTIES, *NOTICES]
        last = Trial.objects.get(arm=arm, position=4)
        failure_tags_change(tenant=who["tenant"], actor=who["actor"], trial=last, add=["far down"])
        tagged = arm_failures(actor=cast.actor("viewer"), arm=arm, tag="far down")
        assert ([row.question for row in tagged.rows], tagged.pages) == ([NOTICES[1]], 1)
        # What is collected is all of it, not what one page shows.
        assert failures_collect(**who, name="All").row_count == 5
        assert failures_collect(**who, name="Law", tag="law").row_count == 2
        failures_group(**who, page=3)
        with pytest.raises(Invalid, match="page of failing rows"):
            failures_group(**who, page=4)
    assert run_jobs(cast) == 1
    with tenant_scope(cast.tenant.pk):
        states = [arm_failures(actor=cast.actor("viewer"), arm=arm, page=n).state for n in (1, 2, 3)]
        assert states == ["none", "none", "ready"]
        with pytest.raises(Missing):
            failures_collect(**who, name="Nothing", group=1, page=3)  # alone on its page: no group
    page = reverse("evaluations:failures", args=[cast.tenant.slug, arm.pk])
    client.force_login(cast.user("member"))
    shown = client.get(f"{page}?page=2").content.decode()
    assert "3 to 4 of 5" in shown
    assert DUTIES[2] in shown
    assert DUTIES[0] not in shown.partition('id="groups"')[2]
    assert "tag=law&amp;page=" not in client.get(f"{page}?tag=law").content.decode()  # two rows: one page
    assert client.get(f"{page}?page=x").status_code == 400
    assert client.post(f"{page}group/", {"page": "2"})["Location"] == f"{page}?page=2"
    said = {"X-Tenant": cast.tenant.slug}
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    body = client.get(f"/api/v1/arms/{arm.pk}/failures?page=2", headers=said).json()
    assert (body["page"], body["pages"], body["listed"], len(body["rows"])) == (2, 3, 5, 2)
