"""``manage.py chunks``: what it prints is what the reader gives."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Chunk, Collection
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest

pytestmark = pytest.mark.django_db


def run(cast: Cast, *words: str, **options: Any) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("chunks", *words, tenant=cast.tenant.slug, json=True, stdout=out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_command_lists_walks_follows_and_counts(cast: Cast, collection: Collection) -> None:
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "lamps.md", LAMPS)
        own = list(Chunk.objects.filter(document=document).order_by("index"))
    ids = [c.pk for c in own]
    common = {"collection": "Trade"}
    assert [row["id"] for row in run(cast, **common)] == ids
    assert [row["id"] for row in run(cast, text="8539.50.00", **common)] == ids[:1]
    first = run(cast, "walk", limit=1, **common)
    assert first[0]["id"] == ids[0]
    rest = run(cast, "walk", cursor=first[1]["cursor"], **common)
    assert [row["id"] for row in rest[:-1]] == ids[1:]
    assert [row["id"] for row in run(cast, "chain", chunk=f"c{ids[0]}")] == ids
    assert {row["relation"] for row in run(cast, "links", chunk=f"c{ids[0]}")} >= {"next"}
    assert run(cast, "statistics", **common)[0]["chunks"] == len(ids)
    with pytest.raises(CommandError):
        run(cast, "links", chunk="nonsense")
    with pytest.raises(CommandError):
        run(cast, collection="No such")
