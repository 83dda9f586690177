"""People grade what judges of claims count: by rubrics of their own, on one scale, and such a judge may gate where they agree."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record, from_values
from apps.evaluations.annotation import services as annotation
from apps.evaluations.annotation import services as annotation_services
from apps.evaluations.annotation.selectors import sheet_get
from apps.evaluations.compare.gate import gate_run
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.experiments.choices import scorer_checked
from apps.evaluations.judges import services as judges_services
from apps.evaluations.judges.claim_rubrics import CLAIMS
from apps.evaluations.judges.scoring import rubric_version_get, scorers_make
from apps.evaluations.judges.services import rubrics_seed
from apps.evaluations.judges.trust import agreement_list
from apps.evaluations.models import AnnotationItem, Arm, Experiment, Rubric, Score, Trial
from apps.evaluations.results.outcomes import outcome_json
from apps.evaluations.scorers.base import ScoredPassage, TargetResult
from apps.evaluations.scorers.rag import RAG
from apps.evaluations.trials.services import JudgeUse, scores_write
from basics.errors import Invalid
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_version

pytestmark = pytest.mark.django_db
ROWS = 24
TRUE, FALSE = "Passenger cars pay 2.5 percent duty.", "Bicycles need no number plate in autumn."


def who(cast) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("member")}


def judged_rows(cast, *, role: str = "member"):
    """Return a queue over rows whose answers are supported by a passage in full, by half, or not at all; the judge has scored them."""
    answers = [(TRUE, f"{TRUE} {FALSE}", FALSE)[n % 3] for n in range(ROWS)]
    version = make_version(
        cast,
        [
            Record(question=f"Who pays {n}?", answer=answer, sources=(RecordSource("Duties", TRUE),))
            for n, answer in enumerate(answers)
        ],
    )
    with tenant_scope(cast.tenant.pk):
        rubrics_seed(**who(cast))
        rubric = rubric_version_get(actor=cast.actor(role), slug=CLAIMS["faithfulness"].slug)
        queue = annotation_services.queue_create(
            **who(cast), name="Claims", rubric_version=rubric, version=version, reviews=1
        )
        experiment = Experiment.objects.get(pk=queue.experiment_id or 0)
        assert experiment.scorers[0]["kind"] == "faithfulness"
        made, _ = scorers_make(**who(cast), specs=experiment.scorers)
        for trial in Trial.objects.filter(experiment=experiment).select_related("content"):
            row = from_values(trial.content.data)
            outcome = TargetResult(
                text=row.answer, retrieved=[ScoredPassage(None, None, 0, len(TRUE), TRUE, "Duties")]
            )
            trial.answer, trial.outcome, trial.state = row.answer, outcome_json(outcome), "scoring"
            trial.save()
            scores_write(trial, [(s, v, s.score(row, outcome)) for s, v in made], JudgeUse())
        Experiment.objects.filter(pk=experiment.pk).update(state="completed")
        return queue, Arm.objects.select_related("experiment").get(experiment=experiment)


def test_every_judge_of_claims_has_a_rubric_with_its_score():
    assert set(CLAIMS) == set(RAG)
    assert all([c.name for c in one.criteria] == [kind] for kind, one in CLAIMS.items())


@pytest.mark.parametrize(("is_of_one_mind", "verdict"), [(True, "passed"), (False, "advisory")])
def test_a_judge_of_claims_gates_where_people_agree_with_it(cast, is_of_one_mind, verdict):
    queue, arm = judged_rows(cast)
    with tenant_scope(cast.tenant.pk):
        levels = set(Score.objects.filter(trial__arm=arm).values_list("name", "level", "value"))
        assert levels == {("faithfulness", 5, 1), ("faithfulness", 3, 0.5), ("faithfulness", 1, 0)}
        baseline_set(**who(cast), arm=arm)
        before = gate_run(actor=cast.actor("member"), arm=arm)
        assert [c.verdict for c in before.checks] == ["advisory"]  # nobody has graded yet
        done = 0
        while (taken := annotation.assignment_take(**who(cast), queue=queue)) is not None:
            item = AnnotationItem.objects.get(pk=taken.item_id)
            sheet = sheet_get(actor=cast.actor("member"), assignment=taken)
            assert [p.text for p in sheet.passages] == [TRUE]  # what the judge has read
            level = int(Score.objects.get(trial=item.trial_id, author_kind="judge").level or 0)
            given = level if is_of_one_mind else 1 + done % 5
            annotation.assignment_grade(**who(cast), assignment=taken, levels={"faithfulness": given})
            done += 1
        (found,) = agreement_list(actor=cast.actor("viewer"), version=queue.rubric_version)
        assert (found.author, found.n) == ("lexical:faithfulness@1", ROWS)
        assert found.is_trusted() is is_of_one_mind
        after = gate_run(actor=cast.actor("member"), arm=arm)
        assert [c.verdict for c in after.checks] == [verdict]
        assert after.arm_name == f"{arm.name} ({arm.experiment.name})"


def test_who_grades_claims_reads_the_passages(cast):
    queue, _ = judged_rows(cast)
    client = Client()
    client.force_login(cast.user("member"))
    text = client.get(reverse("evaluations:annotate", args=[cast.tenant.slug, queue.pk])).content
    assert b"Passages that were found" in text
    assert b"lexical" not in text


def test_a_rubric_of_claims_keeps_its_criterion_and_judges_nothing_else(cast):
    with tenant_scope(cast.tenant.pk):
        rubrics_seed(**who(cast))
        rubric = Rubric.objects.get(slug="claims.faithfulness")
        one = {"question": "Is it true?", "anchors": list("abcde")}
        judges_services.rubric_version_create(
            **who(cast), rubric=rubric, criteria=[{**one, "name": "faithfulness"}]
        )
        for names in (["tone"], ["faithfulness", "tone"]):
            with pytest.raises(Invalid, match="faithfulness"):
                judges_services.rubric_version_create(
                    **who(cast), rubric=rubric, criteria=[{**one, "name": name} for name in names]
                )
        spec = {"kind": "rubric", "options": {"rubric": rubric.slug}}
        with pytest.raises(Invalid, match="scorer"):
            scorer_checked(cast.tenant, cast.actor("member"), spec)
        kept = scorer_checked(cast.tenant, cast.actor("member"), {"kind": "faithfulness"})
        assert kept["options"]["number"] == 2
        made = judges_services.rubric_create(
            **who(cast), name="claims.faithfulness", criteria=[{**one, "name": "x"}]
        )
        assert made.rubric.slug == "claimsfaithfulness"
