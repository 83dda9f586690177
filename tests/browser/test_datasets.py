"""Rows come in from a file, are reviewed, frozen and exported; what should not leave waits for a person's word.

With SCREENSHOT_FOLDER=<folder> each page is also kept as a picture there, light and dark, wide and narrow.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.utils import timezone
from playwright.sync_api import expect

from apps.datasets.curation.services import dataset_topic
from apps.datasets.models import DatasetImport, GenerationJob
from apps.datasets.records import record as r
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.versions import services as versions_services
from batches.lines import batch_looked, batch_sent
from batches.models import Batch
from jobs.models import Job, JobStatus
from jobs.services import job_end
from tenancy.scope import tenant_scope
from tests.browser.portal import Portal
from tests.cast import Cast
from tests.datasets.row_samples import FULL, PLAIN
from tests.datasets.support import make_open_library
from toolloop.batches.base import BatchStanding

FOLDER = os.environ.get("SCREENSHOT_FOLDER", "")


def picture(portal: Portal, name: str) -> None:
    if not FOLDER:
        return
    page = portal.page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width, height in ((1440, 900), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            page.screenshot(path=Path(FOLDER) / f"{name}-{width}-{scheme}.png")
    page.set_viewport_size({"width": 1440, "height": 900})


def test_rows_are_imported_reviewed_and_exported(portal: Portal, cast: Cast) -> None:
    page = portal.page
    with tenant_scope(cast.tenant.pk):
        dataset = dataset_services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Trade questions"
        )
    secret = r.Record("Whom may an importer ask?", "Write to jane.doe@acme-corp.com.")
    lines = "\n".join([r.to_json(FULL), "no json", r.to_json(PLAIN), r.to_json(secret)])
    portal.open(f"datasets/{dataset.pk}/imports/")
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "rows.jsonl", "mimeType": "application/json", "buffer": lines.encode()}
    )
    page.get_by_label("Try it first").uncheck()
    page.get_by_role("button", name="Read the file").click()
    expect(page.get_by_text("3 new, waiting for review")).to_be_visible()
    expect(page.get_by_text("The row isn't valid JSON")).to_be_visible()
    picture(portal, "import")
    page.get_by_role("link", name="Review the rows").click()
    picture(portal, "review")
    for left in (3, 2, 1):
        expect(page.get_by_text(f"{left} to review")).to_be_visible()
        page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("All reviewed")).to_be_visible()

    with tenant_scope(cast.tenant.pk):
        first = versions_services.version_create(
            tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset
        )
        row = dataset.rows.get(question=PLAIN.question)
        rows_services.row_update(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            row=row,
            changes={"answer": "Another answer in lines."},
        )
        second = versions_services.version_create(
            tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset
        )
    portal.open(f"datasets/{dataset.pk}/versions/{first.number}/{second.number}/")
    expect(page.locator("ins").first).to_be_visible()
    picture(portal, "diff")

    portal.open(f"datasets/{dataset.pk}/exports/")
    picture(portal, "exports")
    page.get_by_label("Format", exact=True).select_option("openai")
    page.get_by_role("button", name="Export", exact=True).click()
    expect(page.get_by_text("Needs a decision", exact=True)).to_be_visible()
    expect(page.get_by_text("jane.doe@acme-corp.com")).to_have_count(0)
    picture(portal, "blocked")
    page.get_by_label("Allowed: email").check()
    page.get_by_label("Why is this safe to export?").fill("It is a public address.")
    page.get_by_role("button", name="Allow and export again").click()
    expect(page.get_by_text("3 rows read back and equal")).to_be_visible()
    picture(portal, "export")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download").click()
    assert waiting.value.suggested_filename == "trade-questions-v2-openai.jsonl"
    assert len(Path(waiting.value.path()).read_text().splitlines()) == 3

    portal.open(f"datasets/{dataset.pk}/checks/")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("nothing has moved yet")).to_be_visible()
    page.get_by_role("button", name=re.compile(r"^Move \d+ rows?$")).click()
    expect(page.get_by_role("button", name="Undo the last division")).to_be_visible()
    expect(page.get_by_text("No document is in two splits")).to_be_visible()
    page.get_by_label("Personal data and secrets").get_by_role("button", name="Check").click()
    expect(page.get_by_text("ja…om")).to_be_visible()
    picture(portal, "checks")


def test_a_job_at_half_price_says_what_it_waits_for_as_it_changes(portal: Portal, cast: Cast) -> None:
    page = portal.page
    make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        dataset = dataset_services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Half price"
        )
        job = GenerationJob.objects.create(
            tenant=cast.tenant,
            dataset=dataset,
            model="google/gemini-3.8-flash",
            state="running",
            wanted=120,
            options={"collections": [], "delivery": "batch"},
        )
    portal.open(f"datasets/{dataset.pk}/generate/")
    page.get_by_label("When and for how much").select_option("batch")
    picture(portal, "half-price-form")
    portal.open(f"datasets/{dataset.pk}/jobs/{job.pk}/")
    expect(page.get_by_text("requests are sent to the provider in batches")).to_be_visible()
    with tenant_scope(cast.tenant.pk):
        batch = Batch.objects.create(
            tenant=cast.tenant, owner=job.topic, round=3, model=job.model, mark="m", total=120, hours=24
        )
        batch_sent(batch, {"id": "b"})
    expect(page.get_by_text("0 of 120 answers are back")).to_be_visible()
    with tenant_scope(cast.tenant.pk):
        batch_looked(batch, BatchStanding("running", 120, 41, 0))
    expect(page.get_by_text("41 of 120 answers are back")).to_be_visible()
    expect(page.get_by_text("at the latest on")).to_be_visible()
    picture(portal, "half-price-job")


def test_a_running_import_stops_at_a_click(portal: Portal, cast: Cast) -> None:
    page = portal.page
    with tenant_scope(cast.tenant.pk):
        dataset = dataset_services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Stopped"
        )
        work = DatasetImport.objects.create(
            tenant=cast.tenant, dataset=dataset, name="rows.jsonl", format="jsonl", status="running"
        )
        work.job = job = Job.objects.create(
            tenant=cast.tenant,
            kind="datasets.import_run",
            payload={"pk": work.pk},
            topic=dataset_topic(dataset.pk),
            status=JobStatus.RUNNING,
            worker="elsewhere",
            attempts=1,
            lease_expires_at=timezone.now() + timedelta(hours=1),
        )
        work.save(update_fields=["job"])
    portal.open(f"datasets/{dataset.pk}/imports/{work.pk}/")
    picture(portal, "import-running")
    page.get_by_role("button", name="Stop the import").click()
    expect(page.get_by_text("Stopping", exact=True)).to_be_visible()
    picture(portal, "import-stopping")
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        job.refresh_from_db()
        assert job.cancel_requested_at is not None
        job_end(job, JobStatus.CANCELLED, "cancelled", "Cancelled on request.")
    expect(page.get_by_text("Nothing was kept.")).to_be_visible()
    picture(portal, "import-stopped")
