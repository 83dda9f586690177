"""Every page and every address that can be read, fetched by somebody who has lost a document: none says a word of it.

The document's words have gone the ways words go here first: passages, searches, answers, calls of tools, approvals, rows of
datasets with versions, exports and checks, experiments with answers and scores, annotation. The rows of the matrix are the
list of addresses, so a new address is swept too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.collections.documents.access import document_access_set
from apps.collections.models import Document, Page
from apps.conversations.models import Conversation, Turn
from apps.conversations.sharing.services import share_create
from apps.conversations.turns.lost_titles import titles_withhold
from apps.datasets.models import DatasetCheck, DatasetExport, DatasetRow, DatasetVersion, GenerationItem
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from apps.datasets.rows.files import dataset_file_key
from apps.evaluations.models import AnnotationItem, Score, Trial
from runs.models import PendingDecision, Run, ToolCall
from runs.stream import aclose
from tenancy.permissions import ROLE_ACTIONS
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found as found  # fixture
from tests.conversations.support import Library, answer, ask, make_library
from tests.evaluations.support import make_experiment, make_version
from tests.permissions.rows import API, PORTAL, Row
from tests.permissions.test_matrix import signed_in, url_arguments
from tests.permissions.world import Side
from tests.runs.conftest import _streams_closed, lane_threads  # noqa: F401 - fixtures
from toolloop.providers.scripted import call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
CANARY, NAMED = "zebrafalcon", "heronquartz"
SECRET = f"The reserve price of the {CANARY} is 77341 crowns."
OPEN = "The notice period is 30 days."
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,}")
LOSER = "admin"
"""Who loses the document: the highest role that has no Django admin, where owners see the whole workspace."""
# Addresses that say words of the document while it may be read: without them, silence afterwards would prove nothing.
SAYING = [
    "collections:detail",
    "collections:document",
    "collections:document-about",
    "collections:document-download",
    "collections:chunk",
    "conversations:detail",
    "conversations:shared",
    "conversations:export",
    "conversations:turn-answer",
    "conversations:run-trace",
    "conversations:run-output",
    "conversations:source",
    "datasets:detail",
    "datasets:row",
    "datasets:review",
    "datasets:sources",
    "datasets:export",
    "datasets:export-file",
    "datasets:checks",
    "datasets:diff",
    "datasets:job",
    "evaluations:failures",
    "evaluations:trial",
    "evaluations:compare",
    "evaluations:annotate",
    "web:palette",
    "web:settings-audit",
    "tools:calls",
    "tools:calls-file",
    "tools:call",
    "tools:reads",
    "tools:approvals",
    "tools:approval",
    "api:documents-detail",
    "api:documents-chunks",
    "api:chunks-detail",
    "api:conversations-detail",
    "api:turns-detail",
    "api:conversations-export",
    "api:shares-list",
    "api:shares-read",
    "api:dataset-rows-detail",
    "api:dataset-exports-detail",
    "api:dataset-exports-file",
    "api:dataset-checks-list",
    "api:dataset-sources-list",
    "api:experiment-trials",
    "api:arms-failures",
    "api:runs-detail",
    "api:runs-trace",
    "api:decisions-list",
    "api:tool-calls-list",
    "api:tool-calls-file",
    "api:tool-calls-read",
    "api:reads-list",
]


def body(response: Any) -> str:
    if not response.streaming:
        return str(response.content.decode(errors="replace"))
    if not response.is_async:
        return b"".join(response.streaming_content).decode(errors="replace")

    async def read() -> bytes:
        try:
            return b"".join([part async for part in response.streaming_content])
        finally:
            await aclose()  # a pool that is opening when its loop ends can hold the end up for ever

    return asyncio.run(read()).decode(errors="replace")


def readable_rows() -> list[Row]:
    """Return the rows of everything that the loser may fetch."""
    return [
        row
        for row in (*PORTAL, *API)
        if row.method == "GET" and not row.is_stream and (not row.action or row.action in ROLE_ACTIONS[LOSER])
    ]


def telling(side: Side, rows: Iterable[Row]) -> dict[str, str]:
    """Return which addresses say a word of the document, each with what stands around it."""
    client, told = signed_in(side, LOSER), {}
    for row in rows:
        address, text = fetch(client, side, row)
        places = [text.find(word) for word in (CANARY, NAMED, "77341 crowns") if word in text]
        if places:
            told[f"{row.url} {address}"] = text[max(0, min(places) - 60) : min(places) + 60]
    return told


def fetch(client: Client, side: Side, row: Row) -> tuple[str, str]:
    kwargs = url_arguments(row, slug=side.tenant.slug, ids=side, role=LOSER)
    data = dict(row.data(side, LOSER)) if row.data else {}
    if row.url.endswith(":diff") or row.url.endswith("versions-diff"):
        kwargs |= {"older": 1, "newer": 2}
    headers = {"X-Tenant": side.tenant.slug} if row.url.startswith("api:") else {}
    address = reverse(row.url, kwargs=kwargs)
    response = client.get(address, data, headers=headers)
    assert response.status_code < 500, address
    return address, body(response).lower()


class World:
    """The loser's rows, full of the words of a document."""

    def __init__(self, cast: Cast, turn: Turn, secret: Library, kept: Library) -> None:
        self.cast, self.secret, self.kept = cast, secret, kept
        self.of = {"tenant": cast.tenant}
        self.side = Side(cast.tenant)
        self.side.people.update({LOSER: cast.admin, "owner": cast.owner})
        with tenant_scope(cast.tenant.pk):
            self._document()
            self._talk(turn)
        version = make_version(cast, [self._record(secret, SECRET), self._record(kept, OPEN)])
        target = {"kind": "model", "model": "extractive"}
        experiment = make_experiment(
            cast,
            version,
            target,
            {**target, "system": "Be brief."},
            role="owner",
            concurrency=1,
            scorers=[{"kind": "token_f1"}],
        )
        with tenant_scope(cast.tenant.pk):
            self._measured(experiment)
            self._worked_on(version)
        with platform_scope():
            queue = self.side.row("evaluations.AnnotationQueue", LOSER)
            queue.experiment = experiment
            queue.save()
            trial = self.side.row("evaluations.Trial", LOSER)
            AnnotationItem.objects.create(**self.of, queue=queue, trial=trial, position=0)

    def _take(self, *rows: Any) -> None:
        self.side._rows |= {(row._meta.label, LOSER): row for row in rows}

    def _document(self) -> None:
        document, chunk = self.secret.document, self.secret.chunks[0]
        chunk.headings = [f"On the {CANARY}"]
        chunk.save()
        rows = Document.objects.filter(pk=document.pk)
        rows.update(title=f"All of {CANARY}", live_from=timezone.now())
        Page.objects.create(**self.of, document=document, number=1, text=SECRET, char_start=0)
        path = Path(settings.MEDIA_ROOT) / document.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
        self._take(self.secret.collection, document, chunk)

    def _talk(self, turn: Turn) -> None:
        run, talk = (Run.objects.get(pk=turn.run_id), Conversation.objects.get(pk=turn.conversation_id))
        talk.title = f"On the {CANARY}"
        talk.save()
        asked = PendingDecision.objects.create(
            **self.of,
            run=run,
            step=1,
            call_id="b",
            name="pay",
            kind="approval",
            arguments={"text": SECRET},
            reason=f"Pays for the {CANARY}.",
            expires_at="2999-01-01T00:00:00Z",
            approver_kind="role",
            approver="admin",
        )
        shared = share_create(tenant=talk.tenant, actor=self.cast.actor(LOSER), conversation=talk)
        said = ToolCall.objects.filter(run=run).order_by("pk").last()
        self._take(turn, run, talk, asked, shared, said, turn.citations.order_by("number").first())

    def _record(self, library: Library, text: str) -> Record:
        name, pk = library.document.name, library.document.pk
        source = RecordSource(name, text, document_id=pk, start=0, end=len(text))
        return Record(question=f"What says “{text[:40]}”?", answer=text, sources=(source,))

    def _measured(self, experiment: Any) -> None:
        name, pk = self.secret.document.name, self.secret.document.pk
        passage = {
            "chunk_id": self.secret.chunks[0].pk,
            "document_id": pk,
            "start": 0,
            "end": 9,
            "text": SECRET,
            "document": name,
        }
        claim = {"claim": SECRET, "verdict": "supported", "quote": SECRET, "start": 0, "end": 5}
        trials = Trial.objects.filter(experiment=experiment).select_related("arm")
        ordered = list(trials.order_by("position", "arm__position"))
        for trial in ordered:
            is_secret = trial.position == ordered[0].position
            trial.state, trial.job, trial.answer = "done", None, SECRET if is_secret else OPEN
            trial.outcome = {"retrieved": [passage], "citations": [passage]} if is_secret else {}
            trial.save()
            Score.objects.create(
                **self.of,
                trial=trial,
                name="faithfulness",
                value=0.1,
                author_kind="judge",
                author="judge:six@1:m",
                reason=f"Tells of the {CANARY}." if is_secret else "So.",
                details={"claims": [{**claim, "document": name}]} if is_secret else {},
            )
        experiment.state = "completed"
        experiment.save()
        self._take(experiment, ordered[0], ordered[0].arm)

    def _worked_on(self, version: DatasetVersion) -> None:
        dataset, name = version.dataset, self.secret.document.name
        row = DatasetRow.objects.filter(dataset=dataset).earliest("pk")
        row.answer += " Indeed."
        row.save()
        DatasetVersion.objects.create(**self.of, dataset=dataset, number=2, row_count=0, content_hash="x")
        key = dataset_file_key(dataset.tenant_id, dataset.pk, "file")
        path = Path(settings.MEDIA_ROOT) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
        export = DatasetExport.objects.create(
            **self.of,
            dataset=dataset,
            version=version,
            format="jsonl",
            status="completed",
            file=key,
            problems=[f"Row 1: {SECRET}"],
        )
        hit = {"row": str(row.pk), "kind": "email", "field": "answer", "shown": CANARY}
        covered = {
            "id": self.secret.document.pk,
            "collection_id": 1,
            "document": name,
            "chunks": 1,
            "asked": 0,
            "stretches": [],
        }
        counts = {"passages with a question": 0, "without": 1, "documents": 1, "documents without any": 1}
        for kind, result in (
            ("secrets", {"rows": 2, "counts": {"email": 1}, "findings": [hit]}),
            ("coverage", {"counts": counts, "documents": [covered]}),
        ):
            DatasetCheck.objects.create(
                **self.of, dataset=dataset, kind=kind, status="completed", result=result
            )
        self._take(dataset, row, version, export)
        job = self.side.row("datasets.GenerationJob", LOSER)
        job.options, job.state = {"collections": []}, "completed"
        job.save()
        GenerationItem.objects.create(
            **self.of,
            job=job,
            slot=0,
            type="factual",
            difficulty="easy",
            state="kept",
            row=row,
            data={"question": f"What of {CANARY}?"},
            chunks=[self.secret.chunks[0].pk],
        )


@pytest.mark.usefixtures("found")
async def test_words_of_a_lost_document_are_at_no_address(
    cast: Cast,
    lane_threads: Executor,  # noqa: F811 - fixture
    monkeypatch: Any,
) -> None:
    def libraries() -> tuple[Library, Library, Turn]:
        secret = make_library(cast, "Secrets", f"{NAMED}.pdf", [SECRET])
        kept = make_library(cast, "Rules", "Notice.pdf", [OPEN])
        return secret, kept, ask(cast, "What do we know?", role=LOSER)

    secret, kept, turn = await sync_to_async(libraries)()
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            calls(call("search_documents", query="what do we know")),
            says(f"I look for {CANARY}. ", call("search_documents", query=f"price of {CANARY}")),
            says(
                f"{SECRET[:-1]} [c{secret.chunks[0].pk}]. {OPEN[:-1]} [c{kept.chunks[0].pk}]. So {CANARY} it is."
            ),
        ],
    )

    def look() -> None:
        side = World(cast, turn, secret, kept).side
        rows = readable_rows()
        before = telling(side, (row for row in rows if row.url in SAYING))
        assert set(SAYING) - {name.split()[0] for name in before} == set()
        with tenant_scope(cast.tenant.pk):
            document_access_set(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                document=secret.document,
                is_restricted=True,
                roles=["owner"],
            )
            titles_withhold(tenant=cast.tenant, actor=cast.actor("owner"), document=secret.document.pk)
        assert telling(side, rows) == {}
        # Nor can its words be guessed: what they are asked for in a search changes nothing.
        client, page = signed_in(side, LOSER), f"/t/{cast.tenant.slug}"
        rows_of = side.row("datasets.Dataset", LOSER).pk
        for address in (
            f"{page}/tools/calls/?text=",
            f"{page}/datasets/{rows_of}/?text=",
            f"{page}/chat/all/?q=",
        ):
            told = [
                _TOKEN.sub("", body(client.get(address + word)).replace(word, ""))
                for word in (CANARY, "nosuchword")
            ]
            assert told[0] == told[1], address

    await sync_to_async(look, thread_sensitive=False)()
