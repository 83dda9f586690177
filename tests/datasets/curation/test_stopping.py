"""Imports, exports and checks that somebody stops, by a click and by REST: they end, and nothing of them stays half visible."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, TestCase
from django.urls import reverse

from apps.datasets.curation import services
from apps.datasets.models import Dataset, DatasetCheck, DatasetExport, DatasetImport, DatasetRow, Work
from apps.datasets.records.parts import RecordSource, Split
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.versions.services import version_create
from basics.errors import DomainError
from jobs import registry, runner
from jobs.context import JobCancelled, JobContext
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.pipeline.test_summaries_model import run_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("dataset_storage")]
MANY = 1200  # more than two batches


@pytest.fixture
def dataset(cast: Cast) -> Iterator[Dataset]:
    with tenant_scope(cast.tenant.pk):
        yield dataset_services.dataset_create(tenant=cast.tenant, actor=cast.actor("member"), name="Trade")


@pytest.fixture
def member(client: Client, cast: Cast) -> Client:
    client.force_login(cast.user("member"))
    return client


def lines(count: int) -> bytes:
    return "".join(json.dumps({"question": f"Q {n}?", "answer": "A."}) + "\n" for n in range(count)).encode()


def import_begun(cast: Cast, dataset: Dataset, count: int = MANY) -> DatasetImport:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
    return services.import_start(**who, form="jsonl", name="rows.jsonl", chunks=[lines(count)])


def rows_added(cast: Cast, dataset: Dataset, count: int, split: Split | str = "") -> None:
    records = [
        Record(f"R {n}?", "A.", sources=(RecordSource(f"{n}.pdf", "A."),), split=split)  # type: ignore[arg-type]
        for n in range(count)
    ]
    rows_services.rows_add(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        dataset=dataset,
        rows=[rows_services.NewRow(record, "approved") for record in records],
        source="test",
    )


class StoppedOnTheWay(JobContext):
    """Clicks Stop as soon as it is due when the job asks whether it may go on; the worker hears of it at once."""

    is_due: Callable[[], bool]
    click: Callable[[], None]

    def check(self) -> None:
        if self.is_due():
            self.click()
            self.cancelled.set()
        super().check()


def stopped_on_the_way(
    work: Work,
    click: Callable[[], None],
    *,
    when: Callable[[], bool],
    raises: type[Exception] = JobCancelled,
) -> None:
    """Run the work's job as a worker does, and click as soon as it is time to."""
    assert work.job is not None
    claimed = runner.claim(work.tenant_id, work.job.pk)
    assert claimed is not None
    context = StoppedOnTheWay(claimed)
    context.is_due, context.click = when, click
    with pytest.raises(raises) as raised:
        registry.get(claimed.kind).handler(context, **claimed.payload)
    with TestCase.captureOnCommitCallbacks(execute=True):
        runner._finish(context, claimed, raised.value)
    work.refresh_from_db()


def rows_there(dataset: Dataset, **only: str) -> int:
    return DatasetRow.objects.filter(dataset=dataset, **only).count()


def page_of(client: Client, name: str, cast: Cast, *args: int) -> str:
    answer = client.get(reverse(f"datasets:{name}", args=[cast.tenant.slug, *args]))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def stop(client: Client, name: str, cast: Cast, *args: int, follow: bool = True) -> Any:
    return client.post(reverse(f"datasets:{name}-stop", args=[cast.tenant.slug, *args]), follow=follow)


def test_waiting_check_ends_at_the_click(cast: Cast, dataset: Dataset, member: Client) -> None:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
    check = services.check_start(**who, kind="secrets")
    assert 'aria-label="Stop looking for ' in page_of(member, "checks", cast, dataset.pk)
    page = stop(member, "check", cast, dataset.pk, check.pk)
    assert page.redirect_chain[-1][0].endswith("#check-secrets")
    assert "Stopped" in page.content.decode()
    assert 'aria-label="Stop looking for ' not in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        check.refresh_from_db()
        assert (check.status, check.error_message) == ("cancelled", "")
        (event,) = AuditEvent.objects.filter(action="dataset_check.stop")
        assert event.data == {"id": check.pk}
    again = stop(member, "check", cast, dataset.pk, check.pk)
    assert "This has already ended." in again.content.decode()


def test_running_import_takes_its_rows_back(cast: Cast, dataset: Dataset, member: Client) -> None:
    work = import_begun(cast, dataset)

    def click() -> None:
        first, second = DatasetRow.objects.filter(dataset=dataset).order_by("pk")[:2]
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
        rows_services.row_update(**who, row=first, changes={"answer": "B."})
        DatasetRow.objects.filter(pk=second.pk).update(status="approved")
        page = stop(member, "import", cast, dataset.pk, work.pk).content.decode()
        assert "Stopping" in page
        assert stop(member, "import", cast, dataset.pk, work.pk).status_code == 200, "twice does no harm"

    with tenant_scope(cast.tenant.pk):
        upload = Path(settings.MEDIA_ROOT) / work.file
        assert upload.exists()
        stopped_on_the_way(work, click, when=lambda: rows_there(dataset) == 1000)
        assert (work.status, work.created) == ("cancelled", 2)
        assert DatasetRow.objects.filter(dataset=dataset).count() == 2
        assert not upload.exists(), "the upload was kept"
        assert AuditEvent.objects.filter(action="dataset_import.stop").count() == 1
    told = page_of(member, "import", cast, dataset.pk, work.pk)
    assert "2 were changed or reviewed by someone and stay; the others were removed." in told


def test_stopped_import_can_be_made_again(cast: Cast, dataset: Dataset, member: Client) -> None:
    with tenant_scope(cast.tenant.pk):
        work = import_begun(cast, dataset)
        stopped_on_the_way(
            work,
            lambda: stop(member, "import", cast, dataset.pk, work.pk, follow=False),
            when=lambda: rows_there(dataset) > 0,
        )
        assert DatasetRow.objects.filter(dataset=dataset).count() == 0
        again = import_begun(cast, dataset)
        assert again.job is not None
        run_job(again.job)
        again.refresh_from_db()
        assert (again.status, again.created, again.duplicates) == ("completed", MANY, 0)
    assert "Nothing was kept." in page_of(member, "import", cast, dataset.pk, work.pk)


def test_import_that_fails_halfway_takes_its_rows_back_too(
    cast: Cast, dataset: Dataset, member: Client
) -> None:
    def fail() -> None:
        raise DomainError("storage_full", "The server's storage is full.", status=507)

    with tenant_scope(cast.tenant.pk):
        work = import_begun(cast, dataset)
        stopped_on_the_way(work, fail, when=lambda: rows_there(dataset) > 0, raises=DomainError)
        assert (work.status, work.error_code, work.created) == ("failed", "storage_full", 0)
        assert rows_there(dataset) == 0
    told = page_of(member, "import", cast, dataset.pk, work.pk)
    assert "storage is full" in told
    assert "Nothing was kept." in told
    assert "unreadable" not in told, "nobody counted them"


@pytest.mark.parametrize("is_written", [False, True])
def test_running_export_leaves_no_file(
    cast: Cast, dataset: Dataset, member: Client, is_written: bool
) -> None:
    with tenant_scope(cast.tenant.pk):
        rows_added(cast, dataset, 3)
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        version = version_create(**who)
        work = services.export_start(**who, version=version, form="jsonl")
        folder = Path(settings.MEDIA_ROOT) / f"datasets/t{cast.tenant.pk}/{dataset.pk}"
        stopped_on_the_way(
            work,
            lambda: stop(member, "export", cast, dataset.pk, work.pk, follow=False),
            when=lambda: not is_written or any(folder.glob("export-*")),
        )
        assert (work.status, work.file) == ("cancelled", "")
        assert [path.name for path in folder.glob("export-*")] == []
    assert "No file was kept." in page_of(member, "export", cast, dataset.pk, work.pk)


def test_stopped_division_moves_its_rows_back(cast: Cast, dataset: Dataset, member: Client) -> None:
    with tenant_scope(cast.tenant.pk):
        rows_added(cast, dataset, MANY)
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        check = services.check_start(**who, kind="splits", shares={"test": 1.0})
        moved: list[int] = []

        def click() -> None:
            moved.append(DatasetRow.objects.filter(dataset=dataset, split="test").count())
            stop(member, "check", cast, dataset.pk, check.pk, follow=False)

        stopped_on_the_way(check, click, when=lambda: rows_there(dataset, split="test") > 0)
        assert 0 < moved[0] < MANY
        assert check.status == "cancelled"
        back = DatasetCheck.objects.filter(dataset=dataset).latest("pk")
        assert back.options == {"undo": check.pk}
        refused = stop(member, "check", cast, dataset.pk, back.pk).content.decode()
        assert "can&#x27;t be stopped halfway" in refused
        assert back.job is not None
        run_job(back.job)
        assert DatasetRow.objects.filter(dataset=dataset, split="").count() == MANY


def test_rest_stops_what_waits(cast: Cast, dataset: Dataset, member: Client) -> None:
    with tenant_scope(cast.tenant.pk):
        rows_added(cast, dataset, 1)
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        started: dict[str, Work] = {
            "exports": services.export_start(**who, version=version_create(**who), form="jsonl"),
            "imports": import_begun(cast, dataset, 1),
            "checks": services.check_start(**who, kind="secrets"),
        }
    head = {"HTTP_X_TENANT": cast.tenant.slug, "content_type": "application/json"}
    for name, work in started.items():
        url = reverse(f"api:dataset-{name}-stop", args=[work.pk])
        found = member.post(url, **head)  # type: ignore[arg-type]
        assert (found.status_code, found.json()["status"]) == (200, "cancelled"), found.json()
        again = member.post(url, **head)  # type: ignore[arg-type]
        assert (again.status_code, again.json()["code"]) == (409, "work_ended")
    with tenant_scope(cast.tenant.pk):
        assert DatasetExport.objects.get(dataset=dataset).status == "cancelled"


def test_viewers_see_no_button_and_stop_nothing(cast: Cast, dataset: Dataset, client: Client) -> None:
    with tenant_scope(cast.tenant.pk):
        work = import_begun(cast, dataset, 1)
    client.force_login(cast.user("viewer"))
    assert stop(client, "import", cast, dataset.pk, work.pk).status_code == 403
    with tenant_scope(cast.tenant.pk):
        work.refresh_from_db()
        assert work.status == "queued"
