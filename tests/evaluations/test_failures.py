"""Which rows an arm fails: by tag, in groups of rows that are alike, and as a dataset of their own."""

from __future__ import annotations

import numpy as np
import pytest
from django.urls import reverse

from apps.datasets.models import Dataset, DatasetCheck, DatasetRow
from apps.datasets.record import Record, RowType
from apps.datasets.selectors import version_rows
from apps.evaluations.failures import arm_failures, groups_of
from apps.evaluations.models import Arm, Score, Trial
from apps.evaluations.services.failures import failures_collect
from basics.errors import Denied, Missing
from tenancy.scope import tenant_scope
from tests.collections.test_summaries_model import run_job
from tests.evaluations.support import make_experiment, make_version

DUTIES = ("What is the customs duty on cars?", "What is the customs duty on trucks?", "Which customs duty do bicycles pay?")  # fmt: skip
NOTICES = ("How long is the notice period of a tenant?", "How long is the notice period of a landlord?")  # fmt: skip
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
    experiment = make_experiment(cast, version, {"kind": "model", "model": "extractive"}, concurrency=1)  # fmt: skip
    with tenant_scope(cast.tenant.pk):
        Score.objects.bulk_create(
            Score(
                tenant=cast.tenant, trial=t, name="token_f1", value=1.0 if t.position >= 5 else 0.1 * (t.position + 1),
                reason=f"<b>wrong {t.position}</b>", author_kind="rule", author="token_f1@1",
            )
            for t in Trial.objects.filter(experiment=experiment)
        )  # fmt: skip
        return Arm.objects.select_related("experiment").get(experiment=experiment)


@pytest.mark.django_db
def test_failures_are_told_by_tag_and_in_groups_and_become_a_dataset(cast, arm, client):
    with tenant_scope(cast.tenant.pk):
        found = arm_failures(tenant=cast.tenant, actor=cast.actor("viewer"), arm=arm)
        assert (found.scored, found.failing, found.left_out) == (10, 5, 0)
        by_tag = {one.tag: (one.failing, one.rows, one.lift) for one in found.tags}
        assert by_tag == {"factual": (3, 3, 2.0), "duty": (3, 3, 2.0), "law": (2, 7, pytest.approx(4 / 7))}  # fmt: skip
        groups = [{row.question for row in one.rows} for one in found.groups]
        assert groups[0] == set(DUTIES)
        assert set(NOTICES) in groups
        assert "customs" in found.groups[0].terms
        assert found.groups[0].rows[0].reason.startswith("<b>wrong")
        who = {"tenant": cast.tenant, "actor": cast.actor("member"), "arm": arm}
        version = failures_collect(**who, name="Duties", tag="duty")
        kept = [row.record for row in version_rows(actor=cast.actor("member"), version=version)]
        assert {row.question for row in kept} == set(DUTIES)
        assert {row.tags for row in kept} == {("duty",)}
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
