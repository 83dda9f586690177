"""What ``workspace_move`` does on one of its two servers, each time in a process with that server's settings.

Run: python -m benchmarks._move_side make|told|fill ... ; the answer is the last line of the output, as JSON.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402

from tenancy.database.base import as_login_role  # noqa: E402
from tenancy.models import Tenant, User  # noqa: E402
from tenancy.scope import platform_scope, tenant_scope  # noqa: E402

EVERYTHING, LIVELY, LARGE = "everything", "lively", "large"
QUERIES = ("LED lamps of heading 8539.50.00", "bill of lading", "INV-100234")
PER_DOCUMENT = 1_000


def make() -> dict[str, Any]:
    """Make a workspace with a row of every table and files, and one in which people have worked."""
    from apps.collections.embedders.minilm import prepare_model, space_of
    from apps.collections.models import EmbeddingSpace
    from tests import factories
    from tests.cast import make_cast
    from tests.erasure.conftest import rows_of
    from tests.exports.moved import OLD, sequences_begin
    from tests.exports.test_import import files_name
    from tests.exports.test_import_lively import lively
    from tests.permissions.world import Side

    prepare_model(settings.DATA_DIR)
    own = space_of("int8")
    space = EmbeddingSpace.objects.create(
        provider=own.provider, model=own.model, dimensions=own.dims, fingerprint=own.precision
    )
    factories.make_space = lambda *_, **__: space
    sequences_begin(OLD)
    side = Side()
    rows_of(side)
    files = files_name(side)
    cast = make_cast()
    with ThreadPoolExecutor(4) as lane:
        lively(cast, lane)
    with platform_scope():
        Tenant.objects.filter(pk=side.tenant.pk).update(slug=EVERYTHING)
        Tenant.objects.filter(pk=cast.tenant.pk).update(slug=LIVELY)
    return {"files": len(files)}


def begin() -> dict[str, Any]:
    """Let numbers of this server begin where those of no other do."""
    from apps.collections.embedders.minilm import prepare_model
    from tests.exports.moved import NEW, sequences_begin

    prepare_model(settings.DATA_DIR)
    sequences_begin(NEW)
    return {}


def told(slug: str) -> dict[str, Any]:
    """Do the jobs of a workspace, search in it, open its first citation in a browser's way, and count what is left of old numbers."""
    from django.test import Client

    from apps.conversations.models import Citation
    from tests.exports.moved import old_numbers
    from tests.exports.test_import_lively import found, jobs_do

    with platform_scope():
        tenant = Tenant.objects.get(slug=slug)
    is_lively = slug.startswith(LIVELY)
    hits: list[Any] = []
    opened: dict[str, Any] = {}
    if is_lively:
        jobs_do(tenant)
        hits = [found(tenant, query) for query in QUERIES]
        with tenant_scope(tenant.pk):
            cited = Citation.objects.select_related("turn").order_by("pk").first()
        client = Client(HTTP_HOST="localhost")
        client.force_login(_owner(tenant), "django.contrib.auth.backends.ModelBackend")
        source = f"{cited.turn.run_id}-{cited.number}"
        page = client.get(f"/t/{slug}/chat/{cited.turn.conversation_id}/sources/{source}/")
        opened = {"status": page.status_code, "has_quote": cited.quote[:40] in page.content.decode()}
    return {
        "hits": hits,
        "opened": opened,
        "people": _people(tenant),
        "old_numbers": old_numbers(tenant.pk),
    }


def _owner(tenant: Tenant) -> User:
    from tenancy.models import Membership

    with tenant_scope(tenant.pk):
        return Membership.objects.select_related("user").filter(role="owner").order_by("pk")[0].user


def _people(tenant: Tenant) -> list[Any]:
    from tenancy.models import Membership

    with tenant_scope(tenant.pk):
        return sorted(Membership.objects.values_list("user__email", "role"))


def fill(slug: str, passages: str) -> dict[str, Any]:
    """Make a workspace with so many fabricated passages, and citations and reads that name them."""
    from apps.collections.models import Document
    from tests.factories import make_collection, make_tenant

    count = int(passages)
    tenant = make_tenant(slug=slug)
    collection = make_collection(tenant, "Large")
    with tenant_scope(tenant.pk):
        documents = Document.objects.bulk_create(
            Document(
                tenant=tenant,
                collection=collection,
                name=f"d{n}.txt",
                path=f"d{n}.txt",
                media_type="text/plain",
                size=1,
                sha256=f"{n:064x}",
                status="ready",
            )
            for n in range(count // PER_DOCUMENT)
        )
    with as_login_role(), connection.cursor() as cursor:
        for document in documents:
            cursor.execute(
                """
                INSERT INTO collections_chunk (tenant_id, collection_id, document_id, index, kind, text,
                    char_start, char_end, headings, metadata, qualified_name)
                SELECT %s, %s, %s, n, 'doc', repeat('Passage ' || n || ' of the duties. ', 20), n * 500, n * 500 + 500,
                    '["A heading"]', '{}', '' FROM generate_series(0, %s) n
                """,
                [tenant.pk, collection.pk, document.pk, PER_DOCUMENT - 1],
            )
        cursor.execute(
            "INSERT INTO runs_chunkread (tenant_id, run_id, chunk_id, document_id, document_name, collection_name, tool) "
            "SELECT tenant_id, 1, id, document_id, 'd', 'Large', 'search' FROM collections_chunk WHERE tenant_id = %s",
            [tenant.pk],
        )
    return {"passages": count}


if __name__ == "__main__":
    done = {"make": make, "begin": begin, "told": told, "fill": fill}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(done))
