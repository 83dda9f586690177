"""Chosen rows go into a split with all rows of their documents, over services, REST and pages; and nothing else moves."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.checks.splits import leaks, split_item
from apps.datasets.curation import reviews
from apps.datasets.curation import services as curation_services
from apps.datasets.curation.dividing import splits_run
from apps.datasets.curation.finding_lines import findings_of
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow, GenerationItem, GenerationJob
from apps.datasets.records.columns import record_of
from apps.datasets.records.parts import RecordSource, RowType, Split
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.selectors import RowFilter, row_count, row_list, row_page
from apps.datasets.rows.services import NewRow
from basics.errors import Conflict, Denied, Invalid
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.pipeline.test_summaries_model import run_job
from tests.markup import flat

pytestmark = pytest.mark.django_db
# The first and the third share no document: the second brings the third along. The last rows are strangers.
DOCUMENTS = (("a",), ("a", "b"), ("b",), ("c",), ("d",), ("d",))


@pytest.fixture
def rows(cast: Cast) -> list[int]:
    records = [
        NewRow(
            Record(
                f"Question {n} of {'+'.join(names)}?",
                "An answer.",
                type=RowType.HOW_TO if n == 0 else RowType.FACTUAL,
                split=Split.TRAIN if n < 4 else "",
                sources=tuple(RecordSource(f"{name}.pdf", f"Passage {n}.") for name in names),
            ),
            "rejected" if n == 5 else "approved",
        )
        for n, names in enumerate(DOCUMENTS)
    ]
    with tenant_scope(cast.tenant.pk):
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
        dataset = dataset_services.dataset_create(**who, name="Duties")
        return rows_services.rows_add(**who, dataset=dataset, rows=records, source="test").created


def ended(check: DatasetCheck) -> DatasetCheck:
    assert check.job is not None
    run_job(check.job)
    check.refresh_from_db()
    assert check.status == "completed", check.error_message
    return check


def splits_of(pks: list[int]) -> list[str]:
    found = dict(DatasetRow.objects.filter(pk__in=pks).values_list("pk", "split"))
    return [found[pk] for pk in pks]


def test_rows_of_one_document_move_together_and_are_named(cast: Cast, rows: list[int]) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset = Dataset.objects.get(name="Duties")
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        check = curation_services.split_assign(**who, into="test", only=RowFilter(type="how_to"))
        with pytest.raises(Conflict):
            curation_services.split_assign(**who, into="test", row_pks=rows[:1])
        result = ended(check).result
        assert splits_of(rows) == ["test", "test", "test", "train", "", ""]
        assert (result["chosen"], result["along"], result["moved"], result["leaks"]) == (1, 2, 3, 0)
        assert result["rows_along"] == [
            {"row": str(rows[1]), "before": "train", "document": "a.pdf"},
            {"row": str(rows[2]), "before": "train", "document": "b.pdf"},
        ]
        lines = findings_of(actor=who["actor"], dataset=dataset, check=check).lines
        assert [(x.row and x.row.pk, x.kind, x.found, x.is_open) for x in lines] == [
            (rows[1], "from train", "a.pdf", False),
            (rows[2], "from train", "b.pdf", False),
        ]
        # Of the document "d" one row is rejected: it is no row of any split.
        again = ended(curation_services.split_assign(**who, into="validation", row_pks=rows[3:])).result
        assert (again["chosen"], again["along"]) == (2, 0)
        assert splits_of(rows)[3:] == ["validation", "validation", ""]
        assert {row.status for row in DatasetRow.objects.filter(pk__in=rows[:5])} == {"approved"}
        assert not leaks((r.split, split_item(r).documents) for r in _records(dataset))
        for wrong in (
            {"into": "all", "row_pks": rows},
            {"into": "test"},
            {"into": "test", "only": RowFilter()},
            {"into": "test", "row_pks": rows[5:]},
            {"into": "test", "only": RowFilter(text="zebra")},
            {"into": "test", "row_pks": list(range(1, 1002))},
            {"into": "test", "row_pks": rows, "only": RowFilter(type="code")},
        ):
            with pytest.raises(Invalid):
                curation_services.split_assign(**who, **wrong)
        with pytest.raises(Denied):
            curation_services.split_assign(
                **{**who, "actor": cast.actor("viewer")}, into="test", row_pks=rows
            )


def test_a_contaminated_row_takes_its_documents_to_training(cast: Cast, rows: list[int]) -> None:
    """Alone it would leave its document in two splits."""
    with tenant_scope(cast.tenant.pk):
        dataset = Dataset.objects.get(name="Duties")
        DatasetRow.objects.filter(dataset=dataset).update(split="test")
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        assert reviews.rows_settle(**who, row_pks=rows[2:3], act="train") == 3
        assert splits_of(rows) == ["train", "train", "train", "test", "test", "test"]
        assert reviews.rows_settle(**who, row_pks=rows[4:5], act="train") == 1
        assert splits_of(rows)[4:] == ["train", "test"], "a rejected row is no row of any split"


def _records(dataset: Dataset) -> list[Record]:

    return [record_of(row) for row in DatasetRow.objects.filter(dataset=dataset)]


def test_rows_of_a_generation_are_found_and_split_over_rest_and_pages(cast: Cast, rows: list[int]) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset = Dataset.objects.get(name="Duties")
        job = GenerationJob.objects.create(
            tenant=cast.tenant,
            dataset=dataset,
            model="extractive",
            options={"collections": []},
            state="completed",
        )
        GenerationItem.objects.create(
            tenant=cast.tenant,
            job=job,
            slot=0,
            type="factual",
            difficulty="easy",
            chunks=[],
            state="kept",
            row_id=rows[3],
        )
        actor = cast.actor("viewer")
        for text in ("", "question"):
            only = RowFilter(job=str(job.pk), text=text)
            page = row_page(actor=actor, dataset=dataset, only=only)
            assert [row.pk for row in page.rows] == [rows[3]]
            assert row_count(actor=actor, dataset=dataset, only=only) == 1
        assert not row_list(actor=actor, dataset=dataset, only=RowFilter(job="7; --"))
    client = Client()
    client.force_login(cast.user("member"))
    api = f"/api/v1/datasets/{dataset.pk}/rows"
    head = {"X-Tenant": cast.tenant.slug}
    listed = client.get(f"{api}?job={job.pk}", headers=head).json()["results"]
    assert [row["id"] for row in listed] == [rows[3]]
    sent: dict[str, Any] = {"headers": head, "content_type": "application/json"}
    started = client.post(f"{api}/split", {"into": "test", "only": {"job": str(job.pk)}}, **sent)
    assert started.status_code == 202, started.content
    for wrong in (
        {"into": "test"},
        {"into": "test", "only": {"job": "x"}},
        {"into": "test", "rows": []},
        {"into": "", "rows": rows},
    ):
        assert client.post(f"{api}/split", wrong, **sent).status_code == 400
    with tenant_scope(cast.tenant.pk):
        ended(DatasetCheck.objects.get(pk=started.json()["id"]))
        assert splits_of(rows) == ["train", "train", "train", "test", "", ""]

    page_url = reverse("datasets:detail", args=[cast.tenant.slug, dataset.pk])
    assert "Put 1 row into it" in flat(client.get(f"{page_url}?type=how_to").content.decode())
    assert "into it" not in flat(client.get(page_url).content.decode())
    split_url = reverse("datasets:rows-split", args=[cast.tenant.slug, dataset.pk])
    refused = client.post(split_url, {"into": "nowhere", "type": "how_to"}, follow=True)
    assert "Choose a split" in refused.content.decode()
    assert refused.redirect_chain[-1][0].endswith("?type=how_to")
    assert client.post(split_url, {"into": "test", "type": "how_to"}).status_code == 302

    def told_now() -> tuple[str, DatasetCheck]:
        with tenant_scope(cast.tenant.pk):
            check = ended(DatasetCheck.objects.latest("pk"))
        page = client.get(reverse("datasets:checks", args=[cast.tenant.slug, dataset.pk]))
        return " ".join(page.content.decode().split()), check

    told, trial = told_now()
    assert "Preview: nothing has moved yet.</b> 3 of 5 rows would move." in told
    assert (
        "1 row would go into test; 2 more would have to move along, because they use the same documents."
        in told
    )
    assert "Move 3 rows" in told
    assert "from train" in told
    with tenant_scope(cast.tenant.pk):
        assert splits_of(rows) == ["train", "train", "train", "test", "", ""]

    def move(name: str, check: DatasetCheck) -> None:
        url = reverse(f"datasets:split-{name}", args=[cast.tenant.slug, dataset.pk, check.pk])
        assert client.post(url).status_code == 302

    move("apply", trial)
    told, division = told_now()
    assert "1 row put into test; 2 more had to move along, because they use the same documents." in told
    with tenant_scope(cast.tenant.pk):
        assert splits_of(rows) == ["test", "test", "test", "test", "", ""]
    move("undo", division)
    assert "Division undone.</b> 3 rows moved back." in told_now()[0]
    with tenant_scope(cast.tenant.pk):
        assert splits_of(rows) == ["train", "train", "train", "test", "", ""]
    client.force_login(cast.user("outsider"))
    assert client.post(split_url, {"into": "test", "type": "how_to"}).status_code == 404


def test_a_division_is_tried_carried_out_and_taken_back(cast: Cast, rows: list[int]) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset = Dataset.objects.get(name="Duties")
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
        _put(cast, rows[1], "test")  # Its documents stand in two splits.
        before = splits_of(rows)
        division: dict[str, Any] = {"kind": "splits", "shares": {"train": 0.5, "test": 0.5}}
        trial = ended(curation_services.check_start(**who, dataset=dataset, **division, is_trial=True))
        assert splits_of(rows) == before
        assert (trial.result["leaks"], trial.result["leaking"]) == (0, [])
        with pytest.raises(Conflict, match="moved no row"):
            curation_services.split_undo(**who, check=trial)
        made = curation_services.split_apply(**who, check=trial)
        with pytest.raises(Conflict):
            curation_services.split_undo(**who, check=made)  # It has not ended.
        made = ended(made)
        assert {**made.result, "is_trial": True} == trial.result
        after = splits_of(rows)
        assert after != before
        with pytest.raises(Conflict, match="Preview"):
            curation_services.split_apply(**who, check=made)
        # Run again, as after a crash, it says the same and still knows how things stood.
        assert splits_run(_Unhurried(), made) == made.result
        _put(cast, rows[3], "validation")
        undone = ended(curation_services.split_undo(**who, check=made))
        changed = [n for n in range(6) if before[n] != after[n]]
        expected = [*before[:3], "validation", *before[4:]]
        assert splits_of(rows) == expected
        assert undone.result["stayed"] == (3 in changed)
        assert undone.result["leaks"] == 2, "as it was before"
        assert [leak["document"] for leak in undone.result["leaking"]] == ["a.pdf", "b.pdf"]
        ended(curation_services.split_undo(**who, check=undone))
        assert splits_of(rows) == [*after[:3], "validation", *after[4:]]
        with pytest.raises(Denied):
            curation_services.split_undo(tenant=cast.tenant, actor=cast.actor("viewer"), check=undone)
        kept = DatasetRow.objects.filter(dataset=dataset)
        assert all(record_of(row).content_hash == row.content_hash for row in kept)


def _put(cast: Cast, pk: int, split: str) -> None:
    row = DatasetRow.objects.get(pk=pk)
    rows_services.row_update(
        tenant=cast.tenant, actor=cast.actor("member"), row=row, changes={"split": split}
    )


class _Unhurried:
    """A job's context that lets everything go on."""

    job_id = 0
    topic = ""

    def check(self) -> None: ...

    def hold(self) -> None: ...

    def advanced(self) -> None: ...

    def complete(self) -> None: ...

    def progress(self, current: int, total: int, message: str = "") -> None: ...
