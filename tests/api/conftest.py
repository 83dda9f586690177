"""A real web server and a tenant with one of everything, for tests that speak to the REST API from outside."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_cancel, document_upload
from apps.collections.models import (
    Chunk,
    ChunkRevision,
    Collection,
    CollectionSnapshot,
    Document,
    Import,
    SearchCase,
    SpaceSwap,
)
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create
from apps.conversations.attachments.services import attachment_add
from apps.conversations.models import ConversationShare, QueuedQuestion, Turn
from apps.conversations.turns.conversations import conversation_create
from apps.conversations.turns.services import turn_stop, turn_submit
from apps.datasets.curation.dividing import Move, moves_keep
from apps.datasets.models import DatasetCheck, DatasetExport, DatasetImport, GenerationJob, RowContent
from apps.datasets.records.record import Record
from apps.datasets.rows.dataset_services import dataset_create
from apps.datasets.rows.services import NewRow, rows_add
from apps.datasets.versions.services import version_create
from apps.evaluations.models import AnnotationItem, Arm, Assignment, Experiment, Score, Trial
from apps.evaluations.sampling.services import sampling_rule_create
from apps.tools.catalog.services import entry_set
from apps.tools.limits.services import tool_limit_set
from apps.tools.models import ContractTest, ToolCredential, ToolSource, ToolVersion
from apps.tools.permissions.services import grant_create
from apps.tools.toolkits.services import toolkit_set
from budgets.services import budget_set
from jobs.models import ACTIVE, Job
from runs.models import PendingDecision, ToolCall
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast, make_cast
from tests.permissions.world import make_row
from tests.servers import Stack, wait_for
from tests.shared_database import shared_database
from tests.sweeping import restart_ids
from webhooks.services import webhook_create

transactional_db = shared_database("package")


@dataclass(frozen=True)
class Api:
    """The running API, and a key that may do everything a key may.

    Attributes:
        ids: of what there is, by the part of a path they stand behind, or by the whole operation where that one needs
            a row in a state of its own.
    """

    url: str
    key: str
    ids: dict[str, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def _begin_empty() -> None:
    """Keep the rows of ``api``, which are there for all modules of this package and swept at its end."""


@pytest.fixture(scope="package")
def cast(transactional_db: None) -> Cast:
    """The cast, in a database whose ids begin at 1: made-up requests hit the same rows in every run."""
    restart_ids()
    return make_cast()


@pytest.fixture(scope="package")
def api(cast: Cast, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(cast, tmp_path_factory.mktemp("servers")) as api:
        yield api


@contextmanager
def serving(cast: Cast, folder: Path) -> Iterator[Api]:
    """Serve a tenant in which every operation can succeed; logs go to the folder."""
    _, key = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="tests", scopes=sorted(KEY_SCOPES)
    )
    stack = Stack(folder)
    try:
        stack.start_web()
        ids = _rows(cast)
        stack.start_worker()
        with tenant_scope(cast.tenant.pk):
            waiting = Job.objects.filter(status__in=ACTIVE).exclude(kind__startswith="webhooks.")
            wait_for(lambda: not waiting.exists(), "the documents and the answer")
            chunk = Chunk.objects.filter(document=ids[""]["documents"]).first()
            assert chunk is not None
            said = {"text": chunk.text, "is_disabled": False}
            change = ChunkRevision.objects.create(
                tenant=cast.tenant, chunk=chunk, document_id=chunk.document_id, before=said, after=said
            )
        ids[""] |= {"chunks": chunk.pk, "chunk-changes": change.pk}
        yield Api(stack.url, key, ids)
    finally:
        stack.stop()
        for log in folder.glob("*.log"):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


def _rows(cast: Cast) -> dict[str, dict[str, Any]]:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    text = "The duty on lamps of heading 8539.50.00 is four percent from the first of July. " * 30

    def collection(name: str) -> Collection:
        return collection_create(**who, name=name)

    def document(where: Collection, content: str, name: str = "") -> Document:
        return document_upload(
            **who,
            collection=where,
            name=name or f"lamps-{uuid.uuid4().hex[:8]}.txt",
            chunks=[content.encode()],
        ).document

    def turn() -> Turn:
        conversation = conversation_create(**who, model="extractive")
        return turn_submit(
            **who, conversation=conversation, text="The duty on lamps?", client_id=uuid.uuid4()
        )

    def attached(content: str = text) -> int:
        name = f"{uuid.uuid4().hex[:8]}.txt"
        return attachment_add(
            **who, conversation=answered.conversation, name=name, chunks=[content.encode()]
        ).pk

    def assistant(name: str) -> int:
        return assistant_create(**who, name=name, spec=VersionSpec()).pk

    def webhook() -> int:  # this name is public in form only, so that no ping leaves the machine
        return webhook_create(**who, url="http://localhost/hook", events=["run.finished"])[0].pk

    def grant() -> int:
        return grant_create(**who, effect="ask", target_kind="tool", target="look").pk

    def limit(period: str) -> int:
        return tool_limit_set(**who, kind="tenant", period=period, calls=10**6).pk

    def budget(period: str) -> int:
        return budget_set(**who, kind="tenant", amount_usd=Decimal(9), period=period).pk

    def sampling_rule() -> int:
        rule = sampling_rule_create(
            **who, name="All", rate=1, scorers=[{"kind": "faithfulness"}], budget_usd=Decimal(1)
        )
        return rule.pk

    with tenant_scope(cast.tenant.pk):
        hook = webhook()
        first = collection("Tariffs")
        answered, stopped = turn(), turn()
        turn_stop(**who, turn=stopped)
        cancelled = document(first, text + "cancelled")
        document_cancel(**who, document=cancelled)
        retired = document(first, text + "old", "versions.txt")
        Document.objects.filter(pk=retired.pk).update(live_to=timezone.now())
        document(first, text + "new", "versions.txt")
        rows = _facts(cast, first)
        rows["tool-calls"] = ToolCall.objects.create(
            tenant=cast.tenant,
            run_id=answered.run_id,
            user_id=cast.owner.user_id,
            step=0,
            call_id="c",
            name="look",
        ).pk
        rows["approvals"] = PendingDecision.objects.create(
            tenant=cast.tenant,
            run_id=answered.run_id,
            step=0,
            call_id="c",
            name="look",
            kind="approval",
            status="approved",
            expires_at=timezone.now(),
        ).pk
        source, other = _source(cast), _source(cast, "other")
        rows["tool-limits"] = limit("day")
        rows["tool-grants"], rows["budgets"] = grant(), budget("month")
        rows["toolkits"] = toolkit_set(**who, name="Sums", tools=["calculate"]).pk
        rows["tool-entries"] = entry_set(**who, name="calculate", title="Sums").pk
        dataset = _dataset(cast, "Lamps")
        arm: Arm = make_row(Arm, cast.tenant, cast.owner.user)
        Experiment.objects.filter(pk=arm.experiment_id).update(
            scorers=[{"kind": "pairwise"}, {"kind": "attack"}]
        )
        share: ConversationShare = make_row(
            ConversationShare,
            cast.tenant,
            cast.owner.user,
            conversation=answered.conversation,
            snapshot={"turns": []},
        )
        queued: QueuedQuestion = make_row(
            QueuedQuestion,
            cast.tenant,
            cast.owner.user,
            conversation=answered.conversation,
            problem="It was refused.",
        )
        return {
            "": {
                "arms": arm.pk,
                "experiments": arm.experiment_id,
                "share_pk": share.pk,
                "key": str(share.key),
                "queued_pk": queued.pk,
                "model": "extractive",
                **source,
                **dataset,
                **_annotated(cast),
                "sampling-rules": sampling_rule(),
                "collections": first.pk,
                "documents": document(first, text).pk,
                "conversations": answered.conversation_id,
                "turn_pk": answered.pk,
                "attachment_pk": attached(),
                "runs": answered.run_id,
                "webhooks": hook,
                "assistants": assistant("Clerk"),
                "number": 1,
                **rows,
            },
            "POST /api/v1/documents/{id}/restore": {"documents": retired.pk},
            "POST /api/v1/documents/{id}/reindex": {"documents": document(first, text + "i").pk},
            "POST /api/v1/documents/{id}/move": {"documents": document(first, text + "m").pk},
            "PUT /api/v1/documents/{id}/access": {"documents": document(first, text + "a").pk},
            "POST /api/v1/documents/{id}/retry": {"documents": document(first, "").pk},
            "POST /api/v1/documents/{id}/cancel": {"documents": cancelled.pk},
            "POST /api/v1/conversations/{id}/turns/{turn_pk}/retry": {
                "conversations": stopped.conversation_id,
                "turn_pk": stopped.pk,
            },
            "POST /api/v1/conversations/{id}/attachments/{attachment_pk}/retry": {
                "attachment_pk": attached("")
            },
            "DELETE /api/v1/conversations/{id}/attachments/{attachment_pk}": {"attachment_pk": attached()},
            "DELETE /api/v1/tool-sources/{id}": {"tool-sources": _source(cast, "gone")["tool-sources"]},
            "DELETE /api/v1/tool-sources/{id}/credentials/{credential_pk}": other,
            "DELETE /api/v1/tool-sources/{id}/contract-tests/{test_pk}": other,
            "DELETE /api/v1/tool-limits/{id}": {"tool-limits": limit("month")},
            "DELETE /api/v1/budgets/{id}": {"budgets": budget("day")},
            "DELETE /api/v1/sampling-rules/{id}": {"sampling-rules": sampling_rule()},
            "DELETE /api/v1/webhooks/{id}": {"webhooks": webhook()},
            "DELETE /api/v1/tool-grants/{id}": {"tool-grants": grant()},
            "DELETE /api/v1/toolkits/{id}": {"toolkits": toolkit_set(**who, name="Gone", tools=["look"]).pk},
            "DELETE /api/v1/tool-entries/{id}": {
                "tool-entries": entry_set(**who, name="date_info", title="Days").pk
            },
            "DELETE /api/v1/collections/{id}": {"collections": collection("Deleted").pk},
            "DELETE /api/v1/documents/{id}": {"documents": document(first, text + "deleted").pk},
            "DELETE /api/v1/datasets/{id}": _dataset(cast, "Gone"),
            "POST /api/v1/dataset-checks/{id}/undo": {"dataset-checks": _divided(cast, "Divided")},
            "POST /api/v1/generations/{id}/pause": _dataset(cast, "Running", "running"),
            "POST /api/v1/generations/{id}/resume": _dataset(cast, "Paused", "paused"),
            "POST /api/v1/generations/{id}/stop": _dataset(cast, "Stopping", "paused"),
            "DELETE /api/v1/assistants/{id}": {"assistants": assistant("Gone")},
            "DELETE /api/v1/assistants/{id}/publish": {"assistants": assistant("Hidden")},
            "DELETE /api/v1/conversations/{id}": {"conversations": turn().conversation_id},
        }


def _dataset(cast: Cast, name: str, state: str = "completed") -> dict[str, int]:
    """Create a dataset with a row, a version and a generation job in a state."""
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    dataset = dataset_create(**who, name=name)
    record = Record(question="What is the duty on lamps?", answer="Four percent.")
    added = rows_add(**who, dataset=dataset, rows=[NewRow(record)], source="test")
    version = version_create(**who, dataset=dataset)
    work: dict[str, Any] = {"tenant": cast.tenant, "dataset": dataset, "status": "completed"}
    job = GenerationJob.objects.create(
        tenant=cast.tenant, dataset=dataset, model="extractive", options={"collections": []}, state=state
    )
    return {
        "datasets": dataset.pk,
        "row_pk": added.created[0],
        "generations": job.pk,
        "older": version.number,
        "newer": version.number,
        "dataset-exports": DatasetExport.objects.create(**work, version=version, format="jsonl").pk,
        "dataset-imports": DatasetImport.objects.create(**work, format="jsonl", name="a").pk,
        "dataset-checks": DatasetCheck.objects.create(**work, kind="secrets").pk,
    }


def _divided(cast: Cast, name: str) -> int:
    """Make a division of a dataset into splits that can be taken back."""
    check = DatasetCheck.objects.get(pk=_dataset(cast, name)["dataset-checks"])
    DatasetCheck.objects.filter(pk=check.pk).update(kind="splits")
    moves_keep(check, [Move("1", "", "test")], hold=lambda: None)
    return check.pk


def _annotated(cast: Cast) -> dict[str, int]:
    """Make an answer that the owner is grading."""
    content = RowContent.objects.filter(tenant=cast.tenant).first()
    given: tuple[Any, Any] = (cast.tenant, cast.owner.user)
    trial = make_row(Trial, *given, content=content, state="done", answer="Four percent.")
    item = make_row(AnnotationItem, *given, trial=trial)
    assignment = make_row(Assignment, *given, item=item, user=cast.owner.user)
    version = item.queue.rubric_version
    make_row(Score, *given, trial=trial, name="token_f1", value=0.1)
    return {
        "annotation-queues": item.queue_id,
        "trials": trial.pk,
        "assignments": assignment.pk,
        "rubrics": version.rubric_id,
        "rubric-versions": version.pk,
    }


def _source(cast: Cast, name: str = "shop") -> dict[str, int]:
    """Make a source with one of each thing below it; what it calls is public in form only."""
    shared: dict[str, Any] = {"tenant": cast.tenant}
    row = ToolSource.objects.create(
        **shared, kind="openapi", name=name, url="http://localhost", document="{}"
    )
    shared["source"] = row
    spec: dict[str, Any] = {
        "name": f"{name}_get",
        "description": "Get.",
        "parameters": {"type": "object"},
        "wire": {"method": "GET", "path": "/"},
    }
    version = ToolVersion.objects.create(**shared, tool_name=spec["name"], number=1, spec=spec, digest="d")
    test = ContractTest.objects.create(**shared, tool_name=spec["name"], name="One")
    secret = ToolCredential.objects.create(**shared, placement="bearer", secret_encrypted=b"x")
    return {"tool-sources": row.pk, "version_pk": version.pk, "test_pk": test.pk, "credential_pk": secret.pk}


def _facts(cast: Cast, collection: Collection) -> dict[str, int]:
    """Make the rows that hang below a collection: a swap that has ended, an import, a snapshot, a case."""
    shared: dict[str, Any] = {"tenant": cast.tenant, "collection": collection}
    swap = SpaceSwap.objects.create(
        **shared, from_space=collection.space, to_space=collection.space, status="dropped"
    )
    return {
        "swaps": swap.pk,
        "imports": Import.objects.create(**shared, source="archive", name="a.zip", status="completed").pk,
        "snapshots": CollectionSnapshot.objects.create(**shared, name="First").pk,
        "search-cases": SearchCase.objects.create(**shared, query="The duty on lamps?").pk,
    }
