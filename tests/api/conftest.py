"""A real web server and a tenant with one of everything, for tests that speak to the REST API from outside."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apps.collections.models import Chunk, Collection, Document
from apps.collections.services import collection_create, document_cancel, document_upload
from apps.conversations.models import Turn
from apps.conversations.services import conversation_create, turn_stop, turn_submit
from jobs.models import ACTIVE, Job
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast, make_cast
from tests.servers import Stack, wait_for


@dataclass(frozen=True)
class Api:
    """The running API, and a key that may do everything a key may.

    Attributes:
        ids: of what there is, by the part of a path they stand behind, or by the whole operation where that one needs
            a row in a state of its own.
    """

    url: str
    key: str
    ids: dict[str, dict[str, int]]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def api(cast: Cast, tmp_path: Path) -> Iterator[Api]:
    """Serve a tenant in which every operation can succeed."""
    _, key = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="tests", scopes=sorted(KEY_SCOPES)
    )
    stack = Stack(tmp_path)
    try:
        stack.start_web()
        ids = _rows(cast)
        stack.start_worker()
        with tenant_scope(cast.tenant.pk):
            waiting = Job.objects.filter(status__in=ACTIVE)
            wait_for(lambda: not waiting.exists(), 60, "the documents and the answer")
            chunk = Chunk.objects.filter(document=ids[""]["documents"]).first()
        assert chunk is not None
        ids[""]["chunks"] = chunk.pk
        yield Api(stack.url, key, ids)
    finally:
        stack.stop()
        for log in tmp_path.glob("*.log"):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


def _rows(cast: Cast) -> dict[str, dict[str, int]]:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    text = "The duty on lamps of heading 8539.50.00 is four percent from the first of July. " * 30

    def collection(name: str) -> Collection:
        return collection_create(**who, name=name)

    def document(where: Collection, content: str) -> Document:
        return document_upload(
            **who, collection=where, name="lamps.txt", chunks=[content.encode()]
        ).document

    def turn() -> Turn:
        conversation = conversation_create(**who, model="extractive")
        return turn_submit(
            **who, conversation=conversation, text="The duty on lamps?", client_id=uuid.uuid4()
        )

    with tenant_scope(cast.tenant.pk):
        first = collection("Tariffs")
        answered, stopped = turn(), turn()
        turn_stop(**who, turn=stopped)
        cancelled = document(first, text + "cancelled")
        document_cancel(**who, document=cancelled)
        return {
            "": {
                "collections": first.pk,
                "documents": document(first, text).pk,
                "conversations": answered.conversation_id,
                "turn_pk": answered.pk,
                "runs": answered.run_id,
            },
            "POST /api/v1/documents/{id}/retry": {"documents": document(first, "").pk},
            "POST /api/v1/documents/{id}/cancel": {"documents": cancelled.pk},
            "POST /api/v1/conversations/{id}/turns/{turn_pk}/retry": {
                "conversations": stopped.conversation_id,
                "turn_pk": stopped.pk,
            },
            "DELETE /api/v1/collections/{id}": {"collections": collection("Deleted").pk},
            "DELETE /api/v1/documents/{id}": {"documents": document(first, text + "deleted").pk},
            "DELETE /api/v1/conversations/{id}": {"conversations": turn().conversation_id},
        }
