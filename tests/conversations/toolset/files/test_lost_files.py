"""What tools told of a file's lines goes with the right to its document: in the chat, in the log of calls and to the model."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.documents.access import document_access_set
from apps.collections.files import services
from apps.collections.models import Collection, Document
from apps.conversations.turns.conversations import conversation_create
from runs.models import ChunkRead
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import answer, ask
from tests.conversations.transcript.test_lost_access import faces
from toolloop.providers.scripted import ScriptedCall, says

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "zebrafalcon"
PATH, KEPT = "plans/reserve.txt", "plans/notice.txt"
SECRET = f"The reserve price of the {CANARY} is 77341 crowns.\n"
OPEN = "The notice period is 30 days.\n"
IN = {"collection": "Trade"}
CALLS = [
    ("read_file", {**IN, "path": PATH}),
    ("search_files", {**IN, "query": "reserve price"}),
    ("diff_files", {**IN, "path": KEPT, "other": PATH}),
]


async def test_lines_of_a_lost_file_are_on_no_face(
    cast: Cast, collection: Collection, lane_threads: Executor, monkeypatch: Any, storage: Path
) -> None:
    def begin() -> Any:
        with tenant_scope(cast.tenant.pk):
            for path, content in ((PATH, SECRET), (KEPT, OPEN)):
                services.file_write(
                    tenant=cast.tenant,
                    actor=cast.actor("owner"),
                    collection=collection,
                    path=path,
                    content=content,
                )
            talk = conversation_create(
                tenant=cast.tenant, actor=cast.actor("member"), collections=[collection.pk]
            )
        return ask(cast, "What do we know?", conversation=talk)

    turn = await sync_to_async(begin)()
    script = [
        *(says("", ScriptedCall(name, given, f"call_{name}")) for name, given in CALLS),
        says("", ScriptedCall("read_file", {**IN, "path": KEPT}, "b")),
        says(f"{SECRET.strip()} {OPEN.strip()}"),
    ]
    await answer(turn, lane_threads, monkeypatch, script)

    def look() -> None:
        before = faces(cast, turn)
        outputs = [text for path, text in before.items() if path.endswith("/output/")]
        assert sum(CANARY in text for text in outputs) == len(CALLS)
        with tenant_scope(cast.tenant.pk):
            lost = Document.objects.get(path=PATH)
            assert ChunkRead.objects.filter(document_id=lost.pk, chunk_id=None).count() == 1
            document_access_set(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                document=lost,
                is_restricted=True,
                roles=["owner"],
            )
        after = faces(cast, turn)
        assert not {path for path, text in after.items() if CANARY in text or "77341" in text}
        # What rests on the other file is still there.
        assert "notice period is 30 days" in after[f"/api/v1/runs/{turn.run_id}/events"]

    await sync_to_async(look, thread_sensitive=False)()
