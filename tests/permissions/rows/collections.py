"""The permission rows of collections, documents, files and search."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from apps.collections.files.services import file_write
from apps.collections.files.undo import batch_undo
from tenancy.actors import system_actor
from tenancy.scope import platform_scope, tenant_scope
from tests.permissions.rows.common import COLLECTION, Row, pk_of, send, uploaded_file
from tests.permissions.world import Side

IMPORT = {"pk": "collections.Collection", "import_pk": "collections.Import"}
DOCUMENT = {"pk": "collections.Collection", "doc_pk": "collections.Document"}
ONE_CHUNK = {"pk": "collections.Collection", "chunk_pk": "collections.Chunk"}
ONE_DOCUMENT = {"pk": "collections.Document"}
CHUNK = {"pk": "collections.Chunk"}
REVISION = {"pk": "collections.ChunkRevision"}
SWAP = {"pk": "collections.SpaceSwap"}
READ = ("collection.read",)


def _status(status: str) -> Callable[[Side, str], None]:
    def change(side: Side, role: str) -> None:
        document = side.row("collections.Document", role)
        document.status = status
        with platform_scope():
            document.save()

    return change


def _live(is_current: bool) -> Callable[[Side, str], None]:
    """The document is the live version, or an earlier one."""

    def change(side: Side, role: str) -> None:
        document = side.row("collections.Document", role)
        document.live_from, document.live_to = timezone.now(), None
        if not is_current:
            document.live_to = timezone.now()
        with platform_scope():
            document.save()

    return change


def _disabled_once(side: Side, role: str) -> None:
    """The chunk was left out of search by this change, which can be taken back."""
    revision = side.row("collections.ChunkRevision", role)
    text = side.row("collections.Chunk", role).text
    revision.before = {"text": text, "is_disabled": True}
    revision.after = {"text": text, "is_disabled": False}
    with platform_scope():
        revision.save()


def _import(status: str) -> Callable[[Side, str], None]:
    def change(side: Side, role: str) -> None:
        row = side.row("collections.Import", role)
        row.status, row.source, row.options = status, "url", {"urls": ["https://example.org/"]}
        with platform_scope():
            row.save()

    return change


def _a_file(side: Side, role: str) -> None:
    """The collection has a file there.py."""
    with tenant_scope(side.tenant.pk):
        file_write(
            tenant=side.tenant,
            actor=system_actor(side.tenant.pk),
            path="there.py",
            content="x = 1\n",
            collection=side.row("collections.Collection", role),
        )


def _an_undone_file(side: Side, role: str) -> None:
    """The file there.py was written and taken back."""
    _a_file(side, role)
    with tenant_scope(side.tenant.pk):
        batch_undo(
            tenant=side.tenant,
            actor=system_actor(side.tenant.pk),
            collection=side.row("collections.Collection", role),
        )


PORTAL: tuple[Row, ...] = (
    Row("collections:list", action="collection.read"),
    Row("collections:create", action="collection.write"),
    Row("collections:sample", "POST", "collection.write", ok=302),
    Row(
        "collections:create",
        "POST",
        "collection.write",
        data=send(name="New", chunk_size=1200, chunk_overlap=200),
        ok=302,
    ),
    Row("collections:detail", "GET", "collection.read", COLLECTION),
    Row("collections:settings", "GET", "collection.write", COLLECTION),
    Row(
        "collections:settings",
        "POST",
        "collection.write",
        COLLECTION,
        data=send(name="Renamed", chunk_size=1200, chunk_overlap=200),
        ok=302,
    ),
    Row(
        "collections:delete",
        "POST",
        "collection.delete",
        COLLECTION,
        data=send(confirm=lambda s, r: s.row("collections.Collection", r).name),
        ok=302,
    ),
    Row("collections:imports", "GET", "document.write", COLLECTION),
    Row(
        "collections:imports",
        "POST",
        "document.write",
        COLLECTION,
        data=send(source="url", urls="https://example.org/"),
        ok=302,
    ),
    Row("collections:import", "GET", "document.write", IMPORT),
    Row("collections:import-cancel", "POST", "document.write", IMPORT, before=_import("queued")),
    Row("collections:import-retry", "POST", "document.write", IMPORT, before=_import("failed")),
    Row("collections:upload", "POST", "document.write", COLLECTION, data=send(file=uploaded_file), ok=201),
    Row("collections:stream", "GET", "collection.read", COLLECTION, is_stream=True),
    Row("collections:search", "GET", "search.run", COLLECTION),
    Row("collections:chunks", "GET", "collection.read", COLLECTION),
    Row("collections:files", "GET", "collection.read", COLLECTION),
    Row("collections:file", "GET", "collection.read", COLLECTION, data=send(path="there.py"), before=_a_file),
    Row("collections:file-edit", "GET", "document.write", COLLECTION),
    Row(
        "collections:file-edit",
        "POST",
        "document.write",
        COLLECTION,
        data=send(path="new.txt", content="New."),
        ok=302,
    ),
    Row(
        "collections:file-delete",
        "POST",
        "document.write",
        COLLECTION,
        data=send(path="there.py"),
        ok=302,
        before=_a_file,
    ),
    Row("collections:file-history", "GET", "collection.read", COLLECTION),
    Row(
        "collections:file-revision",
        "GET",
        "collection.read",
        COLLECTION | {"revision": "collections.FileRevision"},
    ),
    Row("collections:file-undo", "POST", "document.write", COLLECTION, ok=302, before=_a_file),
    Row("collections:file-redo", "POST", "document.write", COLLECTION, ok=302, before=_an_undone_file),
    Row(
        "collections:file-restore",
        "POST",
        "document.write",
        COLLECTION,
        data=send(revision=pk_of("collections.FileRevision")),
        ok=302,
    ),
    Row("collections:file-search", "GET", "collection.read", COLLECTION, data=send(q="x")),
    Row("collections:file-structure", "GET", "collection.read", COLLECTION),
    Row("collections:file-rules", "GET", "collection.write", COLLECTION),
    Row(
        "collections:file-rules",
        "POST",
        "collection.write",
        COLLECTION,
        data=send(max_file_bytes="1", max_total_bytes="10", max_files="10"),
        ok=302,
    ),
    Row("collections:git", "GET", "collection.read", COLLECTION),
    Row("collections:git-diff", "GET", "collection.read", COLLECTION),
    Row("collections:git-blame", "GET", "collection.read", COLLECTION),
    Row("collections:git-commit", "POST", "document.write", COLLECTION, data=send(message="x"), ok=200),
    Row(
        "collections:chunks",
        "GET",
        "collection.read",
        COLLECTION,
        data=send(document=pk_of("collections.Document")),
        body_ids=404,
    ),
    Row("collections:type-rules", action="collection.write"),
    Row("collections:code-patterns", action="collection.write"),
    Row("collections:code-patterns", "POST", "collection.write", data=send(patterns=""), ok=302),
    Row("collections:type-rules", "POST", "collection.write", data=send(rules=""), ok=302),
    Row("collections:recognition", "GET", "collection.delete"),
    Row("collections:recognition", "POST", "collection.delete", data=send(is_on="on"), ok=302),
    Row("collections:check", "GET", "collection.delete", COLLECTION),
    Row("collections:check", "POST", "collection.delete", COLLECTION),
    Row("collections:reindex", "POST", "document.write", COLLECTION, ok=302),
    Row("collections:swap", "GET", "collection.write", COLLECTION),
    Row(
        "collections:swap-start",
        "POST",
        "collection.write",
        COLLECTION,
        data=send(embedder="nonsense"),
        ok=302,
    ),
    Row(
        "collections:swap-step",
        "POST",
        "collection.write",
        COLLECTION | {"swap_pk": "collections.SpaceSwap"},
        data=send(step="cancel"),
        ok=302,
    ),
    Row("collections:snapshot-create", "POST", "collection.write", COLLECTION, data=send(name="Now"), ok=302),
    Row(
        "collections:snapshot-delete",
        "POST",
        "collection.write",
        COLLECTION | {"snapshot_pk": "collections.CollectionSnapshot"},
        ok=302,
    ),
    Row("collections:case-save", "POST", "collection.write", COLLECTION, data=send(query="Why?"), ok=302),
    Row(
        "collections:case-delete",
        "POST",
        "collection.write",
        COLLECTION | {"case_pk": "collections.SearchCase"},
        ok=302,
    ),
    Row("collections:bulk", "POST", "document.write", COLLECTION, data=send(action="tag", tag="a"), ok=302),
    Row("collections:chunk", "GET", "collection.read", ONE_CHUNK),
    Row("collections:chunk-edit", "POST", "document.write", ONE_CHUNK, data=send(text=""), ok=400),
    Row(
        "collections:chunk-disable",
        "POST",
        "document.write",
        ONE_CHUNK,
        data=send(is_disabled="true"),
        ok=302,
    ),
    Row(
        "collections:chunk-restore",
        "POST",
        "document.write",
        ONE_CHUNK | {"revision_pk": "collections.ChunkRevision"},
        before=_disabled_once,
        ok=302,
    ),
    Row("collections:document-about", "GET", "collection.read", DOCUMENT),
    Row("collections:document-describe", "POST", "document.write", DOCUMENT, data=send(tags="a, b"), ok=302),
    Row(
        "collections:document-access",
        "POST",
        "collection.delete",
        DOCUMENT,
        data=send(is_restricted="false"),
        ok=302,
    ),
    Row("collections:document-restore", "POST", "document.write", DOCUMENT, before=_live(False), ok=302),
    Row("collections:document-reindex", "POST", "document.write", DOCUMENT, before=_live(True), ok=302),
    Row("collections:document-summarise", "POST", "document.write", DOCUMENT, ok=302),
    Row("collections:document-move", "POST", "document.write", DOCUMENT, data=send(path="a/b.txt"), ok=302),
    Row("collections:document", "GET", "collection.read", DOCUMENT),
    # The page is there; that this document has no picture of it is told only to who may know of the document.
    Row("collections:page-image", "GET", "collection.read", DOCUMENT, {"page": 1}, ok=404),
    Row("collections:document-retry", "POST", "document.write", DOCUMENT, before=_status("failed")),
    Row("collections:document-cancel", "POST", "document.write", DOCUMENT, before=_status("queued")),
    Row("collections:document-delete", "POST", "document.write", DOCUMENT, ok=302),
    Row("collections:document-erase", "GET", "document.write", DOCUMENT),
    Row("collections:document-erase", "POST", "document.write", DOCUMENT, data=send(confirm="erase"), ok=302),
    Row("collections:document-download", "GET", "collection.read", DOCUMENT),
)


API: tuple[Row, ...] = (
    Row("api:collections-list", action="collection.read"),
    Row("api:collections-list", "POST", "collection.write", data=send(name="New"), ok=201, also=READ),
    Row("api:collections-detail", "GET", "collection.read", COLLECTION),
    Row("api:collections-detail", "PATCH", "collection.write", COLLECTION, data=send(name="R"), also=READ),
    Row("api:collections-detail", "DELETE", "collection.delete", COLLECTION, ok=204, also=READ),
    Row("api:collections-toolkit", "GET", "collection.read", COLLECTION),
    Row(
        "api:collections-toolkit",
        "PUT",
        "tool.manage",
        COLLECTION,
        data=send(toolkit=pk_of("tools.Toolkit")),
        also=READ,
    ),
    Row("api:documents-list", "GET", "collection.read", COLLECTION),
    Row(
        "api:documents-list",
        "POST",
        "document.write",
        COLLECTION,
        data=send(file=uploaded_file),
        ok=201,
        also=READ,
    ),
    Row("api:imports-list", "GET", "document.write", COLLECTION, also=READ),
    Row(
        "api:imports-list",
        "POST",
        "document.write",
        COLLECTION,
        data=send(source="url", urls=lambda s, r: ["https://example.org/"]),
        ok=202,
        also=READ,
    ),
    Row("api:imports-detail", "GET", "document.write", {"pk": "collections.Import"}),
    Row(
        "api:imports-cancel",
        "POST",
        "document.write",
        {"pk": "collections.Import"},
        ok=202,
        before=_import("queued"),
    ),
    Row(
        "api:imports-retry",
        "POST",
        "document.write",
        {"pk": "collections.Import"},
        ok=202,
        before=_import("failed"),
    ),
    Row("api:documents-detail", "GET", "collection.read", {"pk": "collections.Document"}),
    Row(
        "api:documents-detail", "DELETE", "document.write", {"pk": "collections.Document"}, ok=204, also=READ
    ),
    Row("api:documents-erasure", "GET", "document.write", ONE_DOCUMENT, also=READ),
    Row(
        "api:documents-erasure",
        "POST",
        "document.write",
        ONE_DOCUMENT,
        data=send(confirm="erase"),
        ok=202,
        also=READ,
    ),
    Row(
        "api:documents-retry",
        "POST",
        "document.write",
        {"pk": "collections.Document"},
        ok=202,
        before=_status("failed"),
        also=READ,
    ),
    Row(
        "api:documents-cancel",
        "POST",
        "document.write",
        {"pk": "collections.Document"},
        ok=202,
        before=_status("queued"),
        also=READ,
    ),
    Row("api:documents-detail", "PATCH", "document.write", ONE_DOCUMENT, data=send(tags=["a"]), also=READ),
    Row("api:documents-versions", "GET", "collection.read", ONE_DOCUMENT),
    Row(
        "api:documents-restore",
        "POST",
        "document.write",
        ONE_DOCUMENT,
        ok=202,
        before=_live(False),
        also=READ,
    ),
    Row(
        "api:documents-reindex", "POST", "document.write", ONE_DOCUMENT, ok=202, before=_live(True), also=READ
    ),
    Row("api:documents-move", "POST", "document.write", ONE_DOCUMENT, data=send(path="a/b.txt"), also=READ),
    Row("api:documents-access", "GET", "collection.read", ONE_DOCUMENT),
    Row(
        "api:documents-access",
        "PUT",
        "collection.delete",
        ONE_DOCUMENT,
        data=send(is_restricted=False),
        also=READ,
    ),
    Row("api:documents-chunks", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:documents-statistics", "GET", "collection.read", ONE_DOCUMENT),
    Row("api:files-list", "GET", "collection.read", COLLECTION),
    Row(
        "api:files-content", "GET", "collection.read", COLLECTION, data=send(path="there.py"), before=_a_file
    ),
    Row(
        "api:files-content",
        "PUT",
        "document.write",
        COLLECTION,
        data=send(path="new.txt", content="New."),
        also=READ,
    ),
    Row(
        "api:files-content",
        "DELETE",
        "document.write",
        COLLECTION,
        data=send(path="there.py"),
        before=_a_file,
        also=READ,
    ),
    Row(
        "api:files-edit",
        "POST",
        "document.write",
        COLLECTION,
        data=send(files=[{"path": "there.py", "edits": [{"kind": "insert", "line": 1, "text": "y = 2"}]}]),
        before=_a_file,
        also=READ,
    ),
    Row(
        "api:files-move",
        "POST",
        "document.write",
        COLLECTION,
        data=send(path="there.py", to="here.py"),
        before=_a_file,
        also=READ,
    ),
    Row("api:files-search", "GET", "collection.read", COLLECTION, data=send(query="x")),
    Row("api:files-structure", "GET", "collection.read", COLLECTION),
    Row(
        "api:files-diff",
        "GET",
        "collection.read",
        COLLECTION,
        data=send(path="there.py", other="there.py"),
        before=_a_file,
    ),
    Row("api:files-syntax", "GET", "collection.read", COLLECTION, data=send(path="there.py"), before=_a_file),
    Row("api:files-changes", "GET", "collection.read", COLLECTION),
    Row("api:files-undo", "POST", "document.write", COLLECTION, before=_a_file, also=READ),
    Row("api:files-redo", "POST", "document.write", COLLECTION, before=_an_undone_file, also=READ),
    Row(
        "api:files-restore",
        "POST",
        "document.write",
        COLLECTION,
        data=send(revision=pk_of("collections.FileRevision")),
        also=READ,
    ),
    Row("api:files-rules", "GET", "collection.read", COLLECTION),
    Row("api:files-rules", "PUT", "collection.write", COLLECTION, data=send(read_only=True), also=READ),
    Row("api:git-status", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:git-log", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:git-diff", "GET", "collection.read", COLLECTION, ok=422),
    Row("api:git-blame", "GET", "collection.read", COLLECTION, data=send(path="a.txt"), ok=422),
    Row("api:git-commit", "POST", "document.write", COLLECTION, data=send(message="x"), ok=422, also=READ),
    Row("api:chunks-list", "GET", "collection.read", COLLECTION),
    Row("api:chunks-statistics", "GET", "collection.read", COLLECTION),
    Row("api:chunks-reader", "GET", "collection.read", COLLECTION),
    Row("api:chunks-detail", "PATCH", "document.write", CHUNK, data=send(is_disabled=True), also=READ),
    Row("api:chunks-links", "GET", "collection.read", CHUNK),
    Row("api:chunks-chain", "GET", "collection.read", CHUNK),
    Row("api:chunks-neighbours", "GET", "collection.read", CHUNK),
    Row("api:chunks-graph", "GET", "collection.read", CHUNK),
    Row("api:chunks-history", "GET", "collection.read", CHUNK),
    Row("api:chunks-restore", "POST", "document.write", REVISION, before=_disabled_once, also=READ),
    Row("api:collections-reindex", "POST", "document.write", COLLECTION, ok=202, also=READ),
    Row("api:collections-check", "GET", "collection.delete", COLLECTION, also=(*READ, "document.write")),
    Row("api:collections-check", "POST", "collection.delete", COLLECTION, also=(*READ, "document.write")),
    Row("api:swaps-list", "GET", "collection.read", COLLECTION),
    Row(
        "api:swaps-list",
        "POST",
        "collection.write",
        COLLECTION,
        data=send(embedder="local/all-MiniLM-L6-v2"),
        ok=202,
        also=READ,
    ),
    Row("api:swaps-detail", "GET", "collection.read", SWAP),
    Row("api:swaps-detail", "POST", "collection.write", SWAP, data=send(step="cancel"), also=READ),
    Row("api:document-types", action="collection.read"),
    Row("api:document-types", "PUT", "collection.write", data=send(rules=None), also=READ),
    Row("api:code-patterns", action="collection.read"),
    Row("api:code-patterns", "PUT", "collection.write", data=send(patterns=None), also=READ),
    Row("api:document-types-example", action="collection.read"),
    Row("api:snapshots-list", "GET", "collection.read", COLLECTION),
    Row(
        "api:snapshots-list", "POST", "collection.write", COLLECTION, data=send(name="Now"), ok=201, also=READ
    ),
    Row(
        "api:snapshots-detail",
        "DELETE",
        "collection.write",
        {"pk": "collections.CollectionSnapshot"},
        ok=204,
        also=READ,
    ),
    Row("api:search-cases-list", "GET", "collection.read", COLLECTION),
    Row(
        "api:search-cases-list",
        "POST",
        "collection.write",
        COLLECTION,
        data=send(query="Why?"),
        ok=201,
        also=READ,
    ),
    Row("api:search-cases-detail", "GET", "collection.read", {"pk": "collections.SearchCase"}),
    Row(
        "api:search-cases-detail",
        "DELETE",
        "collection.write",
        {"pk": "collections.SearchCase"},
        ok=204,
        also=READ,
    ),
    Row("api:chunks-detail", "GET", "collection.read", {"pk": "collections.Chunk"}),
    Row(
        "api:search",
        "POST",
        "search.run",
        data=send(
            query="anything",
            legs=["lexical"],
            collections=lambda s, r: [s.row("collections.Collection", r).pk],
        ),
        body_ids=404,
        also=READ,
    ),
    Row("api:embeddings", "POST", "search.run", data=send(model="none", input="?"), ok=404),
)
