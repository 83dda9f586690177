"""People grade answers: who gets which, what they see, what counts, and who may not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.collections.models import Document
from apps.conversations.models import Citation
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from apps.evaluations.annotation import selectors as reads
from apps.evaluations.annotation import services
from apps.evaluations.annotation.services import HELD, queue_create
from apps.evaluations.compare.comparison import arms_compare
from apps.evaluations.compare.gate import advisory_names, gate_run
from apps.evaluations.compare.gate_reports import to_junit
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.judges.trust import agreement_list, arm_agreements, enough_told, queue_agreement
from apps.evaluations.models import (
    AnnotationItem,
    AnnotationQueue,
    Assignment,
    Experiment,
    Rubric,
    Score,
    Trial,
)
from apps.evaluations.results.selectors import arm_scores
from apps.evaluations.statistics.values import Estimate
from basics.errors import Conflict, Denied, Invalid, Missing
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.evaluations.support import make_compared, make_experiment, make_version
from tests.markup import flat
from tests.permissions.world import make_row

pytestmark = pytest.mark.django_db
SIX = ("completeness", "accuracy", "relevance", "clarity", "specificity", "reasoning")


@pytest.fixture
def arms(cast):
    return make_compared(cast, rows=24)


def who(cast, role="member") -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor(role)}


def make_queue(cast, arms, **given: Any):
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(**who(cast))
        return queue_create(
            **who(cast),
            name="Check",
            rubric_version=rubric,
            experiment=Experiment.objects.get(pk=arms[0].experiment_id),
            **given,
        )


def take(cast: Cast, queue: AnnotationQueue, role: str = "member") -> Assignment:
    """Take the next answer, which must be there."""
    taken = services.assignment_take(**who(cast, role), queue=queue)
    assert taken is not None
    return taken


def grade_all(cast, queue, role, level) -> int:
    """Grade until nothing is left; ``level`` gives each from trial and criterion."""
    done = 0
    with tenant_scope(cast.tenant.pk):
        while (taken := services.assignment_take(**who(cast, role), queue=queue)) is not None:
            trial = Trial.objects.get(pk=AnnotationItem.objects.get(pk=taken.item_id).trial_id)
            services.assignment_grade(
                **who(cast, role), assignment=taken, levels={n: level(trial, n) for n in SIX}
            )
            done += 1
    return done


def judged(trial: Trial, name: str) -> int:
    return round(Score.objects.get(trial=trial, name=name, author_kind="judge").level or 0)


def test_each_answer_is_graded_by_so_many_and_by_nobody_twice(cast, arms):
    queue = make_queue(cast, arms, reviews=2, most=10)
    with tenant_scope(cast.tenant.pk):
        first = take(cast, queue)
        assert services.assignment_take(**who(cast), queue=queue) == first
        other = take(cast, queue, "owner")
        assert other.item_id == first.item_id
        third = take(cast, queue, "admin")
        assert third.item_id != first.item_id  # two people hold the first
        Assignment.objects.filter(pk__in=[first.pk, other.pk]).update(created_at=timezone.now() - 2 * HELD)
        services.assignment_skip(**who(cast, "admin"), assignment=third)
        again = take(cast, queue, "admin")
        assert again.item_id == first.item_id  # left lying for an hour
        services.assignment_skip(**who(cast, "admin"), assignment=again)
    assert [grade_all(cast, queue, role, lambda t, n: 4) for role in ("member", "owner")] == [10, 10]
    with tenant_scope(cast.tenant.pk):
        progress = reads.queue_progress(actor=cast.actor("viewer"), queue=queue)
    assert (progress.complete, progress.grades, progress.wanted) == (10, 20, 20)
    assert sorted(g.skipped for g in progress.graders) == [0, 0, 2]


def test_rest_says_that_two_arms_have_no_such_score_in_common(cast, arms, client):
    a, b = arms
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    path = f"/api/v1/arms/{a.pk}/comparison?against={b.pk}"
    said = {"X-Tenant": cast.tenant.slug}
    compared = client.get(path, headers=said)
    assert compared.status_code == 200
    rows = [need["rows"] for need in compared.json()["needs"]]
    assert rows == sorted(rows, reverse=True)
    assert len(rows) == 5
    answer = client.get(path + "&score=nope", headers=said)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_comparable")


def test_grades_decide_whether_a_judge_may_stop_a_release(cast, arms):
    a, b = arms
    queue = make_queue(cast, arms, reviews=2)

    def verdicts() -> dict[str, str]:
        with tenant_scope(cast.tenant.pk):
            result = gate_run(actor=cast.actor("member"), arm=a)
            other, mine = (arm_scores(actor=cast.actor("member"), arm=x) for x in (b, a))
            found = arms_compare(other, mine)
            advisory = advisory_names(actor=cast.actor("member"), arm=a, scores=mine, found=found)
        by_name = {c.name: c for c in result.checks}
        assert {n for n, c in by_name.items() if c.verdict == "advisory"} == advisory
        assert to_junit(result).decode().count("Advisory: this judge") == len(advisory)
        return {n: c.verdict for n, c in by_name.items()}

    with tenant_scope(cast.tenant.pk):
        baseline_set(**who(cast), arm=b)
    before = verdicts()
    assert set(before.values()) == {"advisory"}
    for role in ("member", "owner"):  # they agree with the judge, but for clarity
        grade_all(
            cast,
            queue,
            role,
            lambda t, n: 1 + (t.position * 7 + t.arm_id) % 5 if n == "clarity" else judged(t, n),
        )
    with tenant_scope(cast.tenant.pk):
        agreed = queue_agreement(actor=cast.actor("viewer"), queue=queue)
    assert {name for name, _ in agreed} == set(SIX)
    assert {alpha.value for _, alpha in agreed} == {1}  # both gave the same levels
    assert "More grades would change little" in enough_told(agreed)
    loose = [("accuracy", Estimate(0.5, 0.3, 0.7)), *agreed]
    assert (
        enough_told(loose)
        == "People's agreement isn't precise enough yet: alpha of accuracy is 0.50, 95 % interval 0.30 to 0.70. More grades will narrow it."
    )
    assert enough_told([]) == ""
    after = verdicts()
    assert after["clarity"] == after["overall"] == "advisory"
    assert "failed" in after.values()
    with tenant_scope(cast.tenant.pk):
        by_name = {
            o.name: o for o in agreement_list(actor=cast.actor("viewer"), version=queue.rubric_version)
        }
        facts = arm_agreements(
            actor=cast.actor("viewer"), arm=a, scores=arm_scores(actor=cast.actor("viewer"), arm=a)
        )
    one = by_name["accuracy"]
    assert one.judge_human is not None
    assert one.people.alpha is not None
    assert one.people.fleiss is not None
    assert one.percent is not None
    assert (one.n, one.percent.value, one.judge_human.value) == (48, 1, 1)
    assert (one.people.alpha.value, one.people.cohen, one.people.fleiss.value) == (1, 1, 1)
    assert facts["accuracy"][0].is_trusted()
    assert not by_name["clarity"].is_trusted()


def test_an_undone_grade_counts_no_more_and_is_not_lost(cast, arms):
    queue = make_queue(cast, arms, reviews=1, most=1)

    def levels(value: int) -> dict[str, int]:
        return dict.fromkeys(SIX, value)

    with tenant_scope(cast.tenant.pk):
        taken = take(cast, queue)
        services.assignment_grade(**who(cast), assignment=taken, levels=levels(1), note="a")
        with pytest.raises(Conflict):
            services.assignment_grade(**who(cast), assignment=taken, levels=levels(2))

        def read():
            found = agreement_list(actor=cast.actor("viewer"), version=queue.rubric_version)
            return next((o.pairs for o in found if o.name == "accuracy"), ())

        assert [people for _, people in read()] == [1]
        undone = services.assignment_undo(**who(cast), queue=queue)
        assert undone.pk == taken.pk
        assert read() == ()
        sheet = reads.sheet_get(actor=cast.actor("member"), assignment=undone)
        assert {level for _, level in sheet.criteria} == {1}
        services.assignment_grade(**who(cast), assignment=undone, levels=levels(5))
        assert [people for _, people in read()] == [5]
        assert Score.objects.filter(assignment=taken).count() == 12
        assert services.assignment_take(**who(cast), queue=queue) is None


def test_known_answers_check_who_grades(cast, arms):
    queue = make_queue(cast, arms, reviews=1, most=3)
    with tenant_scope(cast.tenant.pk):
        taken = take(cast, queue)
        with pytest.raises(Conflict):
            services.gold_set(**who(cast), assignment=taken)
        services.assignment_grade(**who(cast), assignment=taken, levels=dict.fromkeys(SIX, 3))
        with pytest.raises(Missing):
            services.gold_set(**who(cast, "owner"), assignment=taken)
        services.gold_set(**who(cast), assignment=taken)
        given = take(cast, queue, "owner")
        assert given.item_id == taken.item_id  # enough people graded it, and yet
        levels = {**dict.fromkeys(SIX, 3), "accuracy": 1}
        services.assignment_grade(**who(cast, "owner"), assignment=given, levels=levels)
        progress = reads.queue_progress(actor=cast.actor("viewer"), queue=queue)
    right = {g.name: (g.gold_right, g.gold_total) for g in progress.graders}
    assert right == {cast.user("member").email: (6, 6), cast.user("owner").email: (5, 6)}


def test_what_judges_dispute_most_comes_first_and_who_was_asked_is_named(cast, arms):
    with tenant_scope(cast.tenant.pk):
        trials = list(Trial.objects.filter(arm=arms[1]).order_by("pk")[:3])
        for trial, votes in zip(trials, ([0.5, 0.75, None], [0.0, 1.0], None), strict=True):
            known = Score.objects.get(trial=trial, name="clarity")
            Score.objects.create(
                tenant=cast.tenant,
                trial=trial,
                name="clarity",
                author_kind="judge",
                author="judge:other@1:m",
                value=known.value if votes else abs((known.value or 0) - 0.5),
                details={"votes": votes, "needs_person": True} if votes else {},
            )
        people = [cast.user("owner").pk, cast.user("member").pk]
        queue = make_queue(cast, arms, most=4, disputed_first=True, assignees=people)
        items = list(AnnotationItem.objects.filter(queue=queue).order_by("position"))
        assert [i.trial_id for i in items[:3]] == [trials[1].pk, trials[2].pk, trials[0].pk]
        progress = reads.queue_progress(actor=cast.actor("viewer"), queue=queue)
    assert {g.name: g.done for g in progress.graders} == {
        cast.user("owner").email: 0,
        cast.user("member").email: 0,
    }


def test_what_is_refused(cast, arms):
    for change in ({"reviews": 0}, {"most": 0}, {"reviews": 2, "assignees": [cast.user("owner").pk]}):
        with pytest.raises(Invalid):
            make_queue(cast, arms, **change)
    with pytest.raises(Missing):
        make_queue(cast, arms, assignees=[cast.user("outsider").pk])
    queue = make_queue(cast, arms, reviews=1, assignees=[cast.user("owner").pk])
    with tenant_scope(cast.tenant.pk):
        with pytest.raises(Conflict):
            services.assignment_take(**who(cast), queue=queue)
        with pytest.raises(Denied):
            services.assignment_take(**who(cast, "viewer"), queue=queue)
        taken = take(cast, queue, "owner")
        with pytest.raises(Missing):
            services.assignment_skip(**who(cast), assignment=taken)
        for levels in ({}, {**dict.fromkeys(SIX, 3), "tone": 3}, {**dict.fromkeys(SIX, 3), "clarity": 6}):
            with pytest.raises(Invalid):
                services.assignment_grade(**who(cast, "owner"), assignment=taken, levels=levels)
        services.queue_close(**who(cast), queue=queue)
        with pytest.raises(Conflict):
            services.assignment_skip(**who(cast, "owner"), assignment=taken)
    with tenant_scope(cast.other_tenant.pk), pytest.raises(Missing):
        services.assignment_take(tenant=cast.other_tenant, actor=cast.actor("outsider"), queue=queue)


def client_of(cast, role):
    client = Client()
    client.force_login(cast.user(role))
    return client


def test_the_page_is_blind_and_grades(cast, arms):
    queue = make_queue(cast, arms, most=2)
    base = f"/t/{cast.tenant.slug}/evaluations/annotation/"
    url = f"{base}{queue.pk}/grade/"
    client = client_of(cast, "member")
    page = client.get(url)
    text = page.content.decode()
    assert "Answer to grade" in text
    assert "&lt;item&gt;" in text
    for hidden in ("misreads the note", "judge:", "extractive", *(arm.name for arm in arms)):
        assert hidden not in text
    at = {"assignment": page.context["sheet"].assignment.pk}
    levels = {f"level-{name}": "4" for name in SIX}
    refused = client.post(url, {**at, "do": "grade", **levels, "level-clarity": "x", "note": "why"})
    assert refused.status_code == 422
    assert 'value="why"' in refused.content.decode()
    assert refused.content.decode().count("aria-invalid") == 1
    assert client.post(url, {**at, "do": "grade", **levels}).status_code == 302
    assert client.post(url, {**at, "do": "grade", **levels}).status_code == 302  # sent twice
    assert client.post(url, {"do": "drop"}).status_code == 422
    assert client.post(url, {"do": "undo"}).status_code == 302
    assert client.get(url).context["sheet"].assignment.pk == at["assignment"]
    assert client_of(cast, "viewer").get(url).status_code == 403
    assert "1 of 4 grades" not in client_of(cast, "viewer").get(f"{base}{queue.pk}/").content.decode()
    trust = client.get(f"/t/{cast.tenant.slug}/evaluations/trust/").content.decode()
    assert "No judge has been checked against people" in trust
    client.post(url, {**at, "do": "grade", **levels})
    trust = client.get(f"/t/{cast.tenant.slug}/evaluations/trust/?score=accuracy").content.decode()
    assert "People have graded 1 of the answers" in trust
    assert "Advisory" in trust
    form = {
        "name": "Another",
        "source": f"experiment-{arms[0].experiment_id}",
        "rubric": queue.rubric_version_id,
        "reviews": 2,
        "most": 5,
        "judge": "lexical",
    }
    made = client.post(f"{base}new/", form)
    assert made.status_code == 302
    assert re.search(r"annotation/\d+/$", made["Location"])


def test_a_dataset_version_is_graded_as_it_stands(cast, arms):
    with tenant_scope(cast.tenant.pk):
        rubric = rubric_seed(**who(cast))
        version = Experiment.objects.get(pk=arms[0].experiment_id).version
        queue = queue_create(
            **who(cast), name="Rows", rubric_version=rubric, version=version, reviews=1, most=5
        )
        assert queue.experiment.arms.get().target == {"kind": "reference"}
        assert services.assignment_take(**who(cast), queue=queue) is None  # not read yet
        progress = reads.queue_progress(actor=cast.actor("viewer"), queue=queue)
        assert (progress.items, progress.waiting) == (5, 5)


def test_rubrics_are_written_changed_and_compared(cast):
    base = f"/t/{cast.tenant.slug}/evaluations/rubrics/"
    client = client_of(cast, "member")
    posted = {
        "name": "Tone",
        "c-TOTAL_FORMS": "2",
        "c-INITIAL_FORMS": "0",
        "c-0-name": "kind",
        "c-0-question": "Is it kind?",
        "c-0-weight": "1",
        "c-1-name": "",
        **{f"c-0-level_{n}": f"Level {n}" for n in range(1, 6)},
    }
    refused = client.post(f"{base}new/", {**posted, "c-0-level_3": ""})
    assert refused.status_code == 422
    assert "needs a question and a text" in refused.content.decode()
    assert client.post(f"{base}new/", posted).status_code == 302
    with tenant_scope(cast.tenant.pk):
        rubric = Rubric.objects.get(slug="tone")
    changed = {**posted, "note": "Stricter", "c-0-level_5": "Warm and kind"}
    assert client.post(f"{base}{rubric.pk}/change/", changed).status_code == 302
    page = client_of(cast, "viewer").get(f"{base}{rubric.pk}/").content.decode()
    assert "Changed since version 1" in page
    assert "<ins>Warm and kind</ins>" in flat(page)
    assert client.get(f"{base}{rubric.pk}/?version=7").status_code == 404
    other = f"/t/{cast.other_tenant.slug}/evaluations/rubrics/{rubric.pk}/"
    assert client_of(cast, "outsider").get(other).status_code == 404


def test_disputes_about_what_people_ask_come_first(cast):
    member = cast.user("member")
    with tenant_scope(cast.tenant.pk):
        document = make_row(Document, cast.tenant, member)
        for _ in range(2):
            make_row(Citation, cast.tenant, member, document=document)
        old = make_row(Citation, cast.tenant, member, document=document)
        Run.objects.filter(pk=old.turn.run_id).update(created_at=timezone.now() - 2 * reads.LIVE)
    source = RecordSource("Duties", "x", document_id=document.pk)
    rows = [Record(question="Asked", answer="a", sources=(source,)), Record(question="Not", answer="a")]
    experiment = make_experiment(
        cast, make_version(cast, rows), {"kind": "model", "model": "extractive"}, concurrency=1
    )
    with tenant_scope(cast.tenant.pk):
        asked, other = Trial.objects.filter(experiment=experiment).order_by("position")
        for trial, values in ((asked, (0.5, 0.75)), (other, (0.5, 1.0))):
            for judge, value in zip("xy", values, strict=True):
                Score.objects.create(
                    tenant=cast.tenant,
                    trial=trial,
                    name="accuracy",
                    value=value,
                    author_kind="judge",
                    author=judge,
                )
        given = reads.traffic(actor=cast.actor("viewer"), trials=[asked.pk, other.pk])
        assert given == {asked.pk: 2}
        queue = queue_create(
            **who(cast),
            name="Hard",
            rubric_version=rubric_seed(**who(cast)),
            experiment=experiment,
            disputed_first=True,
        )
        items = AnnotationItem.objects.filter(queue=queue).order_by("position")
        assert list(items.values_list("trial_id", flat=True)) == [asked.pk, other.pk]
