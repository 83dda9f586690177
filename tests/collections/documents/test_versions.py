"""A changed file becomes a new version: the old one answers until the new one is ready, and never after."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.collections.documents import services as documents_services
from apps.collections.documents import versions
from apps.collections.models import ChunkLink, ChunkTerms, Collection, Document, DocumentAccess, TermFrequency
from apps.collections.search import search_run
from basics.errors import Conflict, Invalid
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, upload

pytestmark = pytest.mark.django_db

OLD = b"# Duties\n\nThe duty on zirconium tubes is five percent.\n"
NEW = b"# Duties\n\nThe duty on zirconium tubes is nine percent.\n"


def _found(cast: Cast, collection: Collection) -> list[str]:
    hits = search_run(
        tenant=cast.tenant, actor=cast.actor("viewer"), collections=[collection], query="duty on zirconium"
    ).hits
    return [hit.text for hit in hits]


def test_old_version_answers_until_the_new_one_is_ready(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = upload(cast, collection, "duties.md", OLD)
        attempt(old)
        new = upload(cast, collection, "duties.md", NEW)
        assert new.version == 2
        assert "five" in _found(cast, collection)[0]
        attempt(new)
        found = _found(cast, collection)
        assert len(found) == 1
        assert "nine" in found[0]
        old.refresh_from_db()
        new.refresh_from_db()
        assert old.live_to is not None
        assert new.live_to is None
        assert new.live_from is not None


def test_statistics_count_the_live_version_only(cast: Cast, collection: Collection, storage: Path) -> None:
    with tenant_scope(cast.tenant.pk):
        for content in (OLD, NEW):
            attempt(upload(cast, collection, "duties.md", content))
        collection.refresh_from_db()
        live = ChunkTerms.objects.filter(document_id__in=Document.objects.current().values("pk"))
        assert collection.chunk_total == live.count() == 1
        assert collection.term_total == sum(live.values_list("length", flat=True))
        assert ChunkTerms.objects.count() == 2  # the old one's stay, to be searched as of then
        assert set(TermFrequency.objects.values_list("chunks", flat=True)) == {1}


def test_version_that_cannot_be_read_leaves_the_old_one_in_place(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        attempt(upload(cast, collection, "duties.md", OLD))
        attempt(upload(cast, collection, "duties.md", b""))
        assert "five" in _found(cast, collection)[0]


def test_links_and_points_are_labelled_as_made_by_rule(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    text = "\n\n".join(
        f"# Part {i}\n\n" + f"Zirconium tube number {i} has its own rule about entry. " * 12 for i in range(4)
    )
    with tenant_scope(cast.tenant.pk):
        document = upload(cast, collection, "long.md", text.encode())
        attempt(document)
        chunks = list(document.chunks.order_by("index"))
        assert len(chunks) > 2
        assert {chunk.points_by for chunk in chunks} == {"rule"}
        assert all(chunk.key_points for chunk in chunks)
        links = list(ChunkLink.objects.filter(document=document))
        assert {link.made_by for link in links} == {"rule"}
        pairs = {(x.chunk_id, x.target_id, x.relation) for x in links}
        assert (chunks[0].pk, chunks[1].pk, "next") in pairs
        assert (chunks[1].pk, chunks[0].pk, "previous") in pairs


def _versions(collection: Collection) -> list[tuple[int, bool, str]]:
    rows = Document.objects.filter(collection=collection).order_by("path", "version")
    return [(d.version, d.live_from is not None and d.live_to is None, d.status) for d in rows]


def test_index_again_keeps_the_old_version_until_the_new_one_is_ready(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = attempt(upload(cast, collection, "duties.md", OLD))
        Collection.objects.filter(pk=collection.pk).update(chunk_size=300)
        actor = cast.actor("member")
        new = versions.document_reindex(tenant=cast.tenant, actor=actor, document=old)
        same = versions.document_reindex(tenant=cast.tenant, actor=actor, document=old)
        assert (same.pk, new.version) == (new.pk, 2)
        assert "five" in _found(cast, collection)[0]
        attempt(new)
        assert _versions(collection) == [(1, False, "ready"), (2, True, "ready")]
        assert len(_found(cast, collection)) == 1


def test_whole_collection_is_read_again(cast: Cast, collection: Collection, storage: Path) -> None:
    with tenant_scope(cast.tenant.pk):
        for name in ("a.md", "b.md"):
            attempt(upload(cast, collection, name, OLD))
        upload(cast, collection, "c.md", OLD)  # was never ready: it is on its way anyway
        count = versions.collection_reindex(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection
        )
        assert count == 2
        assert Document.objects.filter(version=2, status="queued").count() == 2


def test_restored_version_answers_again_as_the_newest(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = attempt(upload(cast, collection, "duties.md", OLD))
        attempt(upload(cast, collection, "duties.md", NEW))
        old.refresh_from_db()
        actor = cast.actor("member")
        restored = versions.document_restore(tenant=cast.tenant, actor=actor, document=old)
        attempt(restored)
        assert "five" in _found(cast, collection)[0]
        assert (restored.version, restored.restored_from_id) == (3, old.pk)
        with pytest.raises(Conflict):
            versions.document_restore(tenant=cast.tenant, actor=actor, document=restored)


def test_upload_of_the_live_bytes_changes_nothing_and_of_older_ones_is_a_new_version(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = attempt(upload(cast, collection, "duties.md", OLD))
        assert upload(cast, collection, "duties.md", OLD).pk == old.pk
        attempt(upload(cast, collection, "duties.md", NEW))
        assert upload(cast, collection, "duties.md", OLD).version == 3


def test_deleting_the_current_version_deletes_all_of_them(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        attempt(upload(cast, collection, "duties.md", OLD))
        new = attempt(upload(cast, collection, "duties.md", NEW))
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=new)
        assert not Document.objects.exists()
        assert not ChunkTerms.objects.exists()
        assert not TermFrequency.objects.exists()
        collection.refresh_from_db()
        assert (collection.chunk_total, collection.term_total) == (0, 0)


def test_deleting_an_earlier_version_leaves_the_others_and_the_statistics(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = attempt(upload(cast, collection, "duties.md", OLD))
        attempt(upload(cast, collection, "duties.md", NEW))
        old.refresh_from_db()
        documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=old)
        collection.refresh_from_db()
        assert collection.chunk_total == 1
        assert _versions(collection) == [(2, True, "ready")]


def test_versions_beyond_the_number_kept_are_removed(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        Collection.objects.filter(pk=collection.pk).update(keep_versions=1)
        for number in range(4):
            attempt(upload(cast, collection, "duties.md", OLD + b"Note %d." % number))
        collection.refresh_from_db()
        removed = versions.versions_prune(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection
        )
        assert removed == 2
        assert [v for v, _, _ in _versions(collection)] == [3, 4]
        assert Job.objects.filter(kind="collections.versions_prune").count() == 1


def test_moved_document_keeps_its_versions_and_its_place_is_free(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        attempt(upload(cast, collection, "duties.md", OLD))
        new = attempt(upload(cast, collection, "duties.md", NEW))
        attempt(upload(cast, collection, "taken.md", OLD))
        actor = cast.actor("member")
        with pytest.raises(Conflict):
            versions.document_move(tenant=cast.tenant, actor=actor, document=new, path="taken.md")
        moved = versions.document_move(tenant=cast.tenant, actor=actor, document=new, path="rates/./now.md")
        assert (moved.path, moved.name) == ("rates/now.md", "now.md")
        assert Document.objects.filter(path="rates/now.md").count() == 2
        assert upload(cast, collection, "duties.md", OLD).version == 1


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a\x00b", "a/" + "x" * 256, "\u202etxt"]
)
def test_path_that_leads_elsewhere_is_refused(
    cast: Cast, collection: Collection, storage: Path, path: str
) -> None:
    with tenant_scope(cast.tenant.pk):
        document = upload(cast, collection, "duties.md", OLD)
        with pytest.raises(Invalid):
            versions.document_move(
                tenant=cast.tenant, actor=cast.actor("member"), document=document, path=path
            )


def test_new_version_is_seen_by_those_who_saw_the_old_one_only(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    with tenant_scope(cast.tenant.pk):
        old = attempt(upload(cast, collection, "duties.md", OLD))
        Document.objects.filter(pk=old.pk).update(is_restricted=True)
        DocumentAccess.objects.create(tenant=cast.tenant, document=old, role="owner")
        new = upload(cast, collection, "duties.md", NEW)
        seen = Document.objects.visible_to(cast.actor("viewer"))
        assert not seen.filter(pk=new.pk).exists()
        assert Document.objects.visible_to(cast.actor("owner")).filter(pk=new.pk).exists()
