"""What is done about findings, and licences of sources: all or none, in one's own dataset, with the rules of reviews."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.datasets.curation import reviews
from apps.datasets.curation.finding_lines import findings_of
from apps.datasets.licences import services as licences_services
from apps.datasets.licences.selectors import source_list
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow, RowReview
from apps.datasets.records.parts import RecordSource, Split
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.services import NewRow
from basics.errors import Denied, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def dataset_of(cast: Cast, *records: Record) -> tuple[Dataset, list[int]]:
    """Return a dataset with these rows, approved; call inside the tenant's scope."""
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    dataset = dataset_services.dataset_create(**who, name=f"D{DatasetRow.objects.count()}")
    rows = [NewRow(record, "approved") for record in records]
    return dataset, rows_services.rows_add(**who, dataset=dataset, rows=rows, source="test").created


def test_findings_are_settled_by_the_rules_of_reviews(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset, (one, two, three) = dataset_of(
            cast,
            Record("Why?", "So.", split=Split.TRAIN),
            Record("Why ?", "Thus.", split=Split.TEST),
            Record("Who?", "jane@acme-corp.com"),
        )
        _, (foreign,) = dataset_of(cast, Record("Else?", "No."))
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        with pytest.raises(Missing):
            reviews.rows_settle(**who, row_pks=[one, foreign], act="train")
        with pytest.raises(Invalid):  # a rejection needs a reason; the other row stays too
            reviews.rows_settle(**who, row_pks=[one, two], act="reject")
        for act, rows in (("delete", [one]), ("train", [])):
            with pytest.raises(Invalid):
                reviews.rows_settle(**who, row_pks=rows, act=act)
        with pytest.raises(Denied):
            reviews.rows_settle(**{**who, "actor": cast.actor("viewer")}, row_pks=[one], act="train")
        assert not RowReview.objects.exists()

        check = DatasetCheck.objects.create(
            tenant=cast.tenant,
            dataset=dataset,
            kind="contamination",
            status="completed",
            result={"overlaps": [{"evaluated": str(two), "seen": str(one), "words": 0, "text": "why"}]},
        )
        found = findings_of(actor=who["actor"], dataset=dataset, check=check)
        assert [(x.row.pk, x.other.pk, x.kind, x.is_open) for x in found.lines if x.row and x.other] == [
            (two, one, "the same question", True)
        ]
        assert reviews.rows_settle(**who, row_pks=[one, two], act="train") == 1
        assert not findings_of(actor=who["actor"], dataset=dataset, check=check).is_open
        assert reviews.rows_settle(**who, row_pks=[two], act="reject", note="Says the same.") == 1
        assert reviews.rows_settle(**who, row_pks=[three], act="redact") == 1
        after = DatasetRow.objects.in_bulk([one, two, three])
    assert [after[pk].status for pk in (one, two, three)] == ["approved", "rejected", "review"]
    assert after[three].answer == "[EMAIL]"


def test_a_licence_is_set_in_every_row_that_quotes_the_document(cast: Cast) -> None:
    quoted = (RecordSource("hts.pdf", "1509", license="MIT"), RecordSource("b.pdf", "x"))
    with tenant_scope(cast.tenant.pk):
        dataset, (one, _) = dataset_of(
            cast, Record("A?", "B.", sources=quoted), Record("C?", "D.", sources=quoted[:1])
        )
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "dataset": dataset}
        before = DatasetRow.objects.get(pk=one).content_hash
        assert licences_services.source_license_set(**who, document="hts.pdf", licence=" CC0-1.0 ") == 2
        assert licences_services.source_license_set(**who, document="hts.pdf", licence="CC0-1.0") == 0
        row = DatasetRow.objects.get(pk=one)
        assert [source["license"] for source in row.sources] == ["CC0-1.0", ""]
        assert (row.status, row.content_hash != before) == ("approved", True)
        lines = source_list(actor=cast.actor("viewer"), dataset=dataset)
        assert [(x.document, x.licenses, x.rows) for x in lines] == [
            ("b.pdf", [""], 1),
            ("hts.pdf", ["CC0-1.0"], 2),
        ]
        assert source_list(actor=cast.actor("viewer"), dataset=dataset, after="b.pdf") == lines[1:]
        assert AuditEvent.objects.filter(action="dataset.source_license").count() == 2
        for document, licence in (("", "MIT"), ("none.pdf", "MIT"), ("hts.pdf", "x" * 121)):
            with pytest.raises(Invalid):
                licences_services.source_license_set(**who, document=document, licence=licence)
    client = Client()
    client.force_login(cast.user("viewer"), "django.contrib.auth.backends.ModelBackend")
    url = f"/t/{cast.tenant.slug}/datasets/{dataset.pk}/sources/"
    assert "CC0-1.0" in client.get(url).content.decode()
    assert client.post(url, {"document": "hts.pdf", "license": "MIT"}).status_code == 403


def test_a_version_says_whether_its_signature_holds(cast: Cast, settings: Any) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset, _ = dataset_of(cast, Record("A?", "B.", split=Split.TEST), Record("C?", "D."))
    client = Client()
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    root = f"/t/{cast.tenant.slug}/datasets/{dataset.pk}/versions/"
    assert "No version yet" in client.get(root).content.decode()
    made = client.post(root, {"note": "First"}, follow=True).content.decode()
    assert "Valid signature" in made
    assert "1 test" in made
    session = {name: morsel.value for name, morsel in client.cookies.items()}
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another"
    client.cookies.load(session)
    assert "Invalid signature" in client.get(f"{root}1/").content.decode()
