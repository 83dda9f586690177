"""The portal's pages of collections, and what they must never show."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.collections.models import Chunk, Collection, Document, Import
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, first_chunk, ingest, upload
from tests.collections.ingestion.files import make_pdf
from tests.factories import make_collection
from tests.markup import flat

pytestmark = pytest.mark.django_db
BY_DOCUMENT = [
    ("document", "get"),
    ("document-download", "get"),
    ("document-retry", "post"),
    ("document-cancel", "post"),
    ("document-delete", "post"),
]
BY_COLLECTION = [
    ("detail", "get"),
    ("settings", "get"),
    ("settings", "post"),
    ("delete", "post"),
    ("upload", "post"),
    ("search", "get"),
    ("chunks", "get"),
]


def url(cast: Cast, name: str, *args: int) -> str:
    return reverse(f"collections:{name}", args=[cast.tenant.slug, *args])


@pytest.fixture
def theirs(cast: Cast, collection: Collection) -> Document:
    """A ready document of the other tenant."""
    foreign = make_collection(cast.other_tenant, "Theirs")
    with tenant_scope(cast.other_tenant.pk):
        document = Document.objects.create(
            tenant=cast.other_tenant,
            collection=foreign,
            name="secret.txt",
            media_type="text/plain",
            size=1,
            sha256="0" * 64,
            file="x",
            status="ready",
        )
        Chunk.objects.create(
            tenant=cast.other_tenant,
            collection=foreign,
            document=document,
            index=0,
            text="secret",
            char_start=0,
            char_end=6,
        )
    return document


@pytest.mark.parametrize(("name", "method"), BY_COLLECTION)
def test_foreign_collection_is_not_found(
    cast: Cast, client: Client, theirs: Document, name: str, method: str
) -> None:
    client.force_login(cast.user("owner"))
    answer = getattr(client, method)(url(cast, name, theirs.collection_id))
    assert answer.status_code == 404
    assert b"Theirs" not in answer.content


@pytest.mark.parametrize(("name", "method"), BY_DOCUMENT)
def test_foreign_document_is_not_found(
    cast: Cast, client: Client, collection: Collection, theirs: Document, name: str, method: str
) -> None:
    client.force_login(cast.user("owner"))
    for pk in (theirs.collection_id, collection.pk):
        answer = getattr(client, method)(url(cast, name, pk, theirs.pk))
        assert answer.status_code == 404
    assert client.get(url(cast, "page-image", collection.pk, theirs.pk, 1)).status_code == 404


def test_document_is_not_found_under_another_collection(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    other = make_collection(cast.tenant)
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
    assert member_client.get(url(cast, "document", other.pk, document.pk)).status_code == 404


def test_foreign_chunk_is_not_shown_in_own_document(
    cast: Cast, member_client: Client, collection: Collection, theirs: Document
) -> None:
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
    with tenant_scope(cast.other_tenant.pk):
        chunk = Chunk.objects.get(document=theirs)
    page = url(cast, "document", collection.pk, document.pk)
    assert member_client.get(f"{page}?chunk={chunk.pk}").status_code == 404
    assert member_client.get(f"{page}?chunk=nonsense").status_code == 404


@pytest.mark.parametrize("name", ["settings", "upload", "delete", "create"])
def test_viewer_may_only_look(cast: Cast, client: Client, collection: Collection, name: str) -> None:
    client.force_login(cast.user("viewer"))
    args = [] if name == "create" else [collection.pk]
    assert client.post(url(cast, name, *args)).status_code == 403
    page = client.get(url(cast, "detail", collection.pk))
    assert page.status_code == 200
    assert b"data-upload" not in page.content


def test_member_may_not_delete_a_collection(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    answer = member_client.post(url(cast, "delete", collection.pk), {"confirm": "Trade"})
    assert answer.status_code == 403


def test_collection_is_made_changed_and_deleted(
    cast: Cast, client: Client, collection: Collection, monkeypatch
) -> None:
    from tests.factories import make_space

    monkeypatch.setattr("apps.collections.collection.services.space_default", lambda *, tenant: make_space())
    client.force_login(cast.user("admin"))
    values = {"name": "Rules", "description": "", "chunk_size": 800, "chunk_overlap": 100}
    made = client.post(url(cast, "create"), values)
    assert made.status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = Collection.objects.get(name="Rules")
    assert made["Location"] == url(cast, "detail", row.pk)
    taken = client.post(url(cast, "create"), values | {"name": "rules"})
    assert taken.status_code == 422
    assert "This name is already taken." in taken.content.decode()
    bad = client.post(url(cast, "settings", row.pk), values | {"chunk_overlap": 400})
    assert bad.status_code == 422
    assert "less than half" in bad.content.decode()
    client.post(url(cast, "settings", row.pk), values | {"name": "Law"})
    client.post(url(cast, "delete", row.pk), {"confirm": "wrong"})
    with tenant_scope(cast.tenant.pk):
        assert Collection.objects.get(pk=row.pk).name == "Law"
    client.post(url(cast, "delete", row.pk), {"confirm": "Law"})
    with tenant_scope(cast.tenant.pk):
        assert not Collection.objects.filter(pk=row.pk).exists()
        actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"collection.create", "collection.update", "collection.delete"} <= actions


def test_upload_answers_with_the_row_and_says_when_it_is_there_already(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    def send():
        file = SimpleUploadedFile("lamps.md", LAMPS)
        return member_client.post(url(cast, "upload", collection.pk), {"file": file})

    first, again = send(), send()
    assert (first.status_code, again.status_code) == (201, 200)
    assert b'<tr id="doc-' in first.content
    assert b"Queued" in first.content
    assert member_client.post(url(cast, "upload", collection.pk)).status_code == 400


def test_archive_dropped_among_files_is_imported(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/lamps.md", LAMPS)
    file = SimpleUploadedFile("Handbook.ZIP", packed.getvalue())
    answer = member_client.post(url(cast, "upload", collection.pk), {"file": file})
    assert answer.status_code == 202
    with tenant_scope(cast.tenant.pk):
        row = Import.objects.get(collection=collection)
        assert (row.source, Document.objects.count()) == ("archive", 0)
    assert f"/imports/{row.pk}/".encode() in answer.content


def test_lists_need_the_same_queries_however_many_rows(
    cast: Cast,
    member_client: Client,
    collection: Collection,
    django_assert_max_num_queries,
    django_assert_num_queries,
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert member_client.get(path).status_code == 200
        return len(queries)

    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "lamps.md", LAMPS)
    paths = [url(cast, "list"), url(cast, "detail", collection.pk), url(cast, "chunks", collection.pk)]
    [count(path) for path in paths]  # caches of the first request
    before = [count(path) for path in paths]
    for number in range(5):
        make_collection(cast.tenant)
        with tenant_scope(cast.tenant.pk):
            ingest(cast, collection, f"{number}.md", LAMPS + b"Number %d\n" % number)
    assert [count(path) for path in paths] == before
    assert max(before) <= 15


def test_passage_is_marked_in_the_text_of_its_page(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "a<b>.md", LAMPS)
        chunk = Chunk.objects.filter(document=document).order_by("-index")[0]
    answer = member_client.get(url(cast, "document", collection.pk, document.pk) + f"?chunk=c{chunk.pk}")
    html = answer.content.decode()
    assert flat(f'<mark id="passage" tabindex="-1" autofocus>{chunk.text[:20]}') in flat(html)
    assert "a&lt;b&gt;.md" in html
    assert "<b>.md" not in html


def test_page_of_a_pdf_is_drawn_with_the_passage_marked(
    cast: Cast, member_client: Client, collection: Collection, tmp_path: Path
) -> None:
    pdf = make_pdf(
        tmp_path / "a.pdf",
        [
            ["The duty on lamps of heading 8539.50.00 is two percent."] * 3,
            ["Second page about the pumps that move liquids."] * 3,
        ],
    )
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "a.pdf", pdf.read_bytes())
        chunk = first_chunk(document)
    html = member_client.get(
        url(cast, "document", collection.pk, document.pk) + f"?chunk={chunk.pk}"
    ).content.decode()
    image = url(cast, "page-image", collection.pk, document.pk, 1)
    assert f'<image href="{image}"' in flat(html)
    assert flat(html).count("<rect ") >= 3
    assert " style=" not in html
    first, second = member_client.get(image), member_client.get(image)
    assert first["Content-Type"] == "image/webp"
    assert first.content[:4] == b"RIFF"
    assert first.content == second.content
    assert len(list((tmp_path / "cache").rglob("*.webp"))) == 1
    missing = url(cast, "page-image", collection.pk, document.pk, 3)
    assert member_client.get(missing).status_code == 404


def test_page_image_goes_with_the_document(
    cast: Cast,
    member_client: Client,
    collection: Collection,
    tmp_path: Path,
    django_capture_on_commit_callbacks,
) -> None:
    pdf = make_pdf(tmp_path / "a.pdf", [["The duty on lamps of heading 8539.50.00 is two percent."] * 3])
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "a.pdf", pdf.read_bytes())
    member_client.get(url(cast, "page-image", collection.pk, document.pk, 1))
    with django_capture_on_commit_callbacks(execute=True):
        answer = member_client.post(
            url(cast, "document-delete", collection.pk, document.pk), headers={"HX-Request": "true"}
        )
    assert (answer.status_code, answer["HX-Reswap"], answer.content) == (200, "delete", b"")
    assert list((tmp_path / "cache").rglob("*.*")) == []


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_original_is_only_ever_a_download(cast: Cast, member_client: Client, collection: Collection) -> None:
    page = b"<html><script>alert(1)</script><p>A page with a few words about lamps and duties.</p></html>"
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, 'x";\r\n.html', page)
    answer = member_client.get(url(cast, "document-download", collection.pk, document.pk))
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment;")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert b"".join(answer) == page


def test_failed_document_can_be_retried_and_ready_one_cannot(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    with tenant_scope(cast.tenant.pk):
        failed = ingest(cast, collection, "empty.txt", b"")
        ready = ingest(cast, collection, "lamps.md", LAMPS)
    answer = member_client.post(url(cast, "document-retry", collection.pk, failed.pk))
    assert answer.status_code == 200
    assert b"Queued" in answer.content
    assert member_client.post(url(cast, "document-retry", collection.pk, ready.pk)).status_code == 409
    assert member_client.post(url(cast, "document-cancel", collection.pk, ready.pk)).status_code == 409


def test_search_page_shows_passages_and_marks_words(
    cast: Cast, member_client: Client, collection: Collection
) -> None:
    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "lamps.md", LAMPS)
    path = url(cast, "search", collection.pk)
    html = member_client.get(path, {"q": "8539.50.00 lamp"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in html
    assert "exact code" in html
    assert "<mark>lamps</mark>" in flat(html)
    assert "<html" in member_client.get(path).content.decode()
    with tenant_scope(cast.tenant.pk):
        upload(cast, collection, "x", b"x")


def test_status_and_name_filter_the_list(cast: Cast, member_client: Client, collection: Collection) -> None:
    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "empty.txt", b"")
        ingest(cast, collection, "lamps.md", LAMPS)
    path = url(cast, "detail", collection.pk)
    failed = member_client.get(path, {"status": "failed"}).content.decode()
    assert "empty.txt" in failed
    assert "lamps.md" not in failed
    assert "lamps.md" in member_client.get(path, {"q": "LAMP"}).content.decode()
    assert member_client.get(path, {"q": "\x00", "page": "99999999999999999999"}).status_code == 200
