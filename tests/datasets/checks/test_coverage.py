"""The map of passages with and without a question: by a check, on its page, and in the card of an export."""

from __future__ import annotations

import zipfile

import pytest
from django.test import Client

from apps.collections.models import Chunk, Document
from apps.datasets.checks.coverage import coverage_of, coverage_shown
from apps.datasets.curation import services as curation_services
from apps.datasets.records import parts
from apps.datasets.records import record as r
from apps.datasets.rows import dataset_services, files
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.datasets.curation.test_services import add, done, export
from tests.datasets.support import make_open_library

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("dataset_storage")]


def test_coverage_shows_which_passages_have_no_question(cast: Cast) -> None:
    library = make_open_library(cast)
    hidden = make_open_library(cast, name="Hidden")
    actor = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=hidden.document.pk).update(is_restricted=True)
        # What was asked about is found by its place, whatever the chunks are called now.
        chunk = Chunk.objects.get(pk=library.chunks[1].pk)
        source = parts.RecordSource(
            library.document.name,
            "duty",
            document_id=library.document.pk,
            start=chunk.char_start + 5,
            end=chunk.char_start + 9,
        )
        dataset = dataset_services.dataset_create(tenant=cast.tenant, actor=actor, name="Duties")
        add(cast, dataset, r.Record("What?", "That.", sources=(source,)))
        check = curation_services.check_start(
            tenant=cast.tenant, actor=actor, dataset=dataset, kind="coverage"
        )
        result = done(check).result  # type: ignore[attr-defined]
        (found,) = result["documents"]
        assert (found["chunks"], found["asked"]) == (len(library.chunks), 1)
        assert [cell["asked"] for cell in found["stretches"]] == [0, 1, 0, 0]
        shown = coverage_shown(check)
        assert shown is not None
        assert [bool(cell.fill) for cell in shown.chart.strips[0].cells] == [False, True, False, False]
        row = export(cast, dataset, "huggingface")
        assert row.status == "completed", row.problems
        with files.dataset_file(row.file) as path, zipfile.ZipFile(path) as archive:
            card = archive.read("README.md").decode()
        assert "1 of 4 passages of the collections have a question (25 %)" in card
        assert f"| {library.document.name} | █████░░░░░░░░░░░░░░░ | 1 of 4 |" in card
    client = Client()
    client.force_login(cast.user("member"))
    root = f"/t/{cast.tenant.slug}/datasets/{dataset.pk}/"
    for page in (root, f"{root}checks/"):
        text = client.get(page).content.decode()
        assert "<b>25 %</b> of the passages" in text, page
        assert "no question" in text


def test_coverage_of_others_is_none(cast: Cast) -> None:
    library = make_open_library(cast)
    source = parts.RecordSource("x", "duty", document_id=library.document.pk, start=0, end=4)
    other = cast.actor("outsider")
    with tenant_scope(cast.other_tenant.pk):
        dataset = dataset_services.dataset_create(tenant=cast.other_tenant, actor=other, name="Theirs")
        found = coverage_of(actor=other, dataset=dataset, records=[r.Record("?", "a", sources=(source,))])
        assert found.documents == ()
