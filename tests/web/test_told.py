"""Why work failed is told to each reader in their own language, and to programs in English."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, models
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from apps.collections.imports.reasons import problems_named
from apps.collections.ingestion.detect import detect
from apps.collections.ingestion.sources.base import Reason
from apps.collections.ingestion.types import ReadFailure
from apps.collections.models import Document, Import
from apps.datasets.models import DatasetImport, GenerationItem, GenerationJob
from apps.evaluations.models import Experiment
from apps.tools.models import ToolSource
from basics import texts
from basics.texts import english, gettext
from jobs.context import failure_of
from jobs.models import Job
from jobs.services import job_end
from tenancy.models import User
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.catalogs import catalog_write, languages_in
from tests.permissions.world import make_row

FILE = "The file %(name)s is <b>damaged</b>."
STOPPED = "Stopped by hand."
NAME = "Müller & Söhne.pdf"
ENGLISH, GERMAN = f"The file {NAME} is <b>damaged</b>.", f"Beschädigt & kaputt ist die Datei {NAME}."


@pytest.fixture(autouse=True)
def german(tmp_path: Path) -> Iterator[None]:
    said = {
        FILE: "Beschädigt & kaputt ist die Datei %(name)s.",
        STOPPED: "Von Hand angehalten.",
        "The file is empty (0 bytes). Check it and upload it again.": "Die Datei ist leer.",
        "Something went wrong on our side (%(error)s). It was logged; try again, and tell the operator if it "
        "happens again.": "Bei uns ging etwas schief (%(error)s).",
    }
    catalog_write(tmp_path, "de", said)
    with languages_in(tmp_path):
        texts._forms.cache_clear()
        yield
    texts._forms.cache_clear()


def page_text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return english(answer.content.decode())


@pytest.mark.django_db
def test_every_room_tells_why_in_the_readers_language(cast: Cast) -> None:
    """One row of each kind with the same reason, on its page in two languages; and an old one, which stays English."""
    owner = cast.user("owner")
    tenant, why = cast.tenant, gettext(FILE) % {"name": NAME}
    with tenant_scope(tenant.pk):

        def row(model: type[models.Model], **given: Any) -> Any:
            return make_row(model, tenant, owner, **given)

        document = row(
            Document, status="failed", error_code="corrupt_file", error_message=why, warnings=[why]
        )
        problems = [{"path": "a", "reason": "damaged", "message": why, "count": 1, "is_skip": False}]
        brought = row(Import, status="failed", error_message=why, problems=problems)
        lines = [{"row": 1, "message": why, "text": "x"}]
        rows = row(DatasetImport, status="failed", error_message=why, problems=lines, failed=1)
        job = row(GenerationJob, state="paused", reason=why)
        item = row(GenerationItem, job=job, state="failed", reason=why)
        experiment = row(Experiment, state="paused", reason=why)
        source = row(ToolSource, status="failed", problem=why)
        old = row(Experiment, state="paused", reason=english(why.kept))
        fixed = row(Experiment, state="stopped", reason=STOPPED)
    t = f"/t/{tenant.slug}"
    collection = f"{t}/collections/{document.collection_id}"
    pages = {
        f"{collection}/": 2,
        f"{collection}/documents/{document.pk}/about/": 1,
        f"{t}/collections/{brought.collection_id}/imports/{brought.pk}/": 2,
        f"{t}/datasets/{rows.dataset_id}/imports/{rows.pk}/": 2,
        f"{t}/datasets/{job.dataset_id}/jobs/{job.pk}/?item={item.pk}": 1,
        f"{t}/evaluations/{experiment.pk}/": 1,
        f"{t}/tools/sources/{source.pk}/": 1,
    }
    client = Client()
    client.force_login(owner)
    for language, shown in (("en", ENGLISH), ("de", GERMAN)):
        User.objects.filter(pk=owner.pk).update(language=language)
        escaped = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        found = {path: page_text(client, path).count(escaped) for path in pages}
        assert {path: count >= pages[path] for path, count in found.items()} == dict.fromkeys(pages, True), (
            found
        )
        assert ENGLISH.replace("&", "&amp;").split(" is ")[0] in page_text(
            client, f"{t}/evaluations/{old.pk}/"
        )
    assert "Von Hand angehalten." in page_text(client, f"{t}/evaluations/{fixed.pk}/")
    with tenant_scope(tenant.pk):
        _key, secret = api_key_create(
            tenant=tenant, actor=cast.actor("owner"), name="x", scopes=sorted(KEY_SCOPES)
        )
    headers = {"Authorization": f"Bearer {secret}", "Accept-Language": "de"}
    said = Client(headers=headers).get(f"/api/v1/documents/{document.pk}").json()
    assert (said["error_code"], said["error_message"]) == ("corrupt_file", ENGLISH)
    assert said["warnings"] == [ENGLISH]
    with tenant_scope(tenant.pk):
        assert Document.objects.get(pk=document.pk).error_message == ENGLISH
        assert Import.objects.values_list("problems", flat=True).get(pk=brought.pk)[0]["message"] == ENGLISH


@pytest.mark.django_db
def test_a_real_failure_comes_through_its_job(cast: Cast, tmp_path: Path) -> None:
    """The reader's refusal, and a fault of ours, as a job ends with them."""
    empty = tmp_path / "empty.pdf"
    empty.touch()
    with pytest.raises(ReadFailure) as refused:
        detect(empty, "empty.pdf", max_bytes=10)
    with tenant_scope(cast.tenant.pk):
        for error, code, said in (
            (refused.value, "empty_file", "Die Datei ist leer."),
            (ZeroDivisionError("x"), "internal_error", "Bei uns ging etwas schief (ZeroDivisionError)."),
        ):
            job = make_row(Job, cast.tenant, cast.owner.user, kind="unknown")
            job_end(job, "failed", *failure_of(error))
            job.refresh_from_db()
            assert job.error_code == code
            assert job.error_message.isascii()
            with override("de"):
                assert english(texts.told(job.error_message)) == said
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT error_message FROM jobs_job WHERE tenant_id = %s AND id = %s",
                    [cast.tenant.pk, job.pk],
                )
                assert english(cursor.fetchone()[0]) == job.error_message


def test_every_reason_of_an_import_has_a_name() -> None:
    row = Import(problems=[{"reason": str(reason)} for reason in Reason] + [{"reason": "of_later"}])
    *named, unknown = (problem["name"] for problem in problems_named(row))
    assert not [name for name in named if "_" in str(name)]
    assert unknown == "of_later"


def test_a_short_column_cuts_the_value_and_not_our_words() -> None:
    field = Experiment._meta.get_field("reason")
    for length in (272, 500):
        kept = field.get_prep_value(gettext(FILE) % {"name": "x" * length})
        assert len(kept) == 300
        before, _, after = FILE.partition("%(name)s")
        assert kept.startswith(f"{before}\u2068xx")
        assert kept.endswith(f"x…\u2069{after}")
    assert field.deconstruct()[1] == "django.db.models.CharField"


@pytest.mark.django_db
def test_operators_find_a_text_as_they_read_it(cast: Cast) -> None:
    """Its values are between marks in the row: words on both sides of one stand together on the page."""
    said = texts.gettext("“%(name)s” has more than %(most)s pages.") % {"name": "Lease 50%_a", "most": 30}
    with tenant_scope(cast.tenant.pk):
        job = make_row(Job, cast.tenant, cast.owner.user, kind="unknown", error_message=said)
    client = Client()
    client.force_login(cast.user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    for wanted, found in (
        ('"lease 50%_a” has more than 30 PAGES"', True),
        ('"\u2068Lease 50%_a\u2069” has"', True),
        ('"Lease 50%xa"', False),
    ):
        page = client.get(reverse("admin:jobs_job_changelist"), {"q": wanted}).content.decode()
        assert (f"/jobs/job/{job.pk}/" in page) is found, wanted
