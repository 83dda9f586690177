"""Make what a sample collection comes with, step by step, and take it away again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.collections.collection.services import collection_delete
from apps.collections.models import Collection, Document, DocumentStatus
from apps.collections.storage.job_locks import collection_lock
from apps.conversations.models import Conversation, Turn
from apps.conversations.transcript.selectors import model_default, model_list
from apps.conversations.turns.conversations import conversation_remove
from apps.conversations.turns.services import conversation_ask
from apps.datasets.curation.reviews import row_review
from apps.datasets.models import Dataset, DatasetRow
from apps.datasets.rows.dataset_services import dataset_create, dataset_delete, dataset_name_free
from apps.datasets.rows.services import NewRow, rows_add
from apps.datasets.versions.services import version_create
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.example.questions import sample_records
from apps.evaluations.example.selectors import example_parts, is_busy
from apps.evaluations.experiments.retention import experiment_remove
from apps.evaluations.experiments.services import ArmSpec, experiment_create, experiment_stop
from apps.evaluations.models import EXAMPLE_ENDED, EXPERIMENT_ACTIVE, Example, ExampleStep, Experiment
from apps.evaluations.models import ExperimentState as State
from apps.evaluations.results.actors import kept_actor
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.services import job_enqueue
from notices.models import Notice
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.storable import text_storable

MAKE_JOB = "evaluations.example_make"
LOOK_S = 3.0
"""How soon is looked again at documents that are being read, and at an experiment that runs."""
MOST_S = 3600
"""How long either is waited for."""
MODEL = "extractive"
_RIGHTS = ("conversation.write", "dataset.write", "evaluation.write")
_NAMESPACE = uuid.UUID("8f1f0c1e-6a53-4c1d-9f0b-6f3a3a1f7e52")
_PASSAGES = (2, 8)


def example_begin(tenant: Tenant, actor: Actor, collection: Collection) -> None:
    """Have a job make what a sample collection comes with; nothing for who may not make all of it, or is no person."""
    if actor.user_id is None or not all(actor.can(right) for right in _RIGHTS):
        return
    with transaction.atomic():
        row = Example.objects.create(tenant=tenant, collection=collection, created_by_id=actor.user_id)
        job_enqueue(tenant=tenant, actor=actor, kind=MAKE_JOB, payload={"example_id": row.pk})


def example_go_on(ctx: JobContext, *, pk: int) -> float | None:
    """Do the next step of an example, in a transaction that also keeps that it is done.

    Returns:
        Seconds to wait before the next step, 0 for none; None when there is nothing left to do.

    Raises:
        DomainError: the step was refused; the job ends with that reason.
    """
    known = Example.objects.filter(pk=pk).values_list("collection_id", flat=True).first()
    if known is None:
        return None
    with transaction.atomic():
        ctx.hold()
        # As for everybody: the job, then the collection, then what hangs on it. Who deletes the collection waits.
        tenant = Tenant.objects.get(pk=ctx.tenant_id)
        if not Collection.objects.select_for_update(no_key=True).filter(tenant=tenant, pk=known).exists():
            return None
        row: Example | None = Example.objects.select_for_update().filter(pk=pk).first()
        if row is None or row.step in EXAMPLE_ENDED:
            return None
        actor = kept_actor(tenant.pk, row.created_by_id, {"kind": "user"})
        wait_s = _STEPS[row.step](tenant, actor, row)
        row.save()
    return wait_s


def example_fail(*, pk: int, message: str) -> None:
    """Keep why an example isn't complete, in the current transaction; what was made of it stays."""
    rows = Example.objects.filter(pk=pk).exclude(step__in=EXAMPLE_ENDED)
    rows.update(step=ExampleStep.FAILED, error=text_storable(message)[:500])


def example_remove(*, tenant: Tenant, actor: Actor, example: Example) -> list[str]:
    """Delete a sample collection and what it came with, as far as nobody has made something of their own of it.

    Each part goes in a transaction of its own: who is interrupted asks again, and the rest goes.

    Returns:
        Why something stays, a sentence each.

    Raises:
        Denied: without the rights to delete collections and datasets.
        Missing: somebody else has removed it meanwhile.
        Conflict: ``sample_busy``, its answers are still being written.
    """
    for right in ("collection.delete", "dataset.delete", "evaluation.write"):
        actor.require(right)
    with transaction.atomic():
        collection_lock(tenant, example.collection_id)
        row: Example | None = Example.objects.select_for_update().filter(pk=example.pk).first()
        if row is None:
            raise Missing("collection")
        row.step = ExampleStep.REMOVED  # the job that makes it ends at its next step
        row.save(update_fields=["step"])
        audit_record(tenant=tenant, actor=actor, action="sample.remove", object=row)
    running = Experiment.objects.filter(pk=row.experiment_id or 0, state__in=EXPERIMENT_ACTIVE).first()
    if running is not None:
        experiment_stop(tenant=tenant, actor=actor, experiment=running)
    if is_busy(row):
        raise Conflict("sample_busy", _("Its answers are still being written. Try again in a moment."))
    for part in example_parts(actor=actor, example=row):
        if not part.stays:
            _REMOVE[part.kind](tenant, actor, row)
    Example.objects.filter(pk=row.pk).delete()
    return [part.stays for part in example_parts(actor=actor, example=row) if part.stays]


def _documents(tenant: Tenant, actor: Actor, row: Example) -> float:
    statuses = set(
        Document.objects.visible_to(actor)
        .filter(collection=row.collection_id)
        .values_list("status", flat=True)
    )
    if statuses & {DocumentStatus.QUEUED, DocumentStatus.PROCESSING}:
        return _wait(row, _("Its documents weren't read within an hour."))
    if statuses != {DocumentStatus.READY}:
        raise Invalid("sample_unread", _("Its documents couldn't be read."))
    row.step = ExampleStep.CONVERSATION
    return 0


def _conversation(tenant: Tenant, actor: Actor, row: Example) -> float:
    asked = _records(actor, row)[0]
    next_model = model_default(model_list(tenant), actor)
    turn = conversation_ask(
        tenant=tenant,
        actor=actor,
        text=asked.question,
        client_id=uuid.uuid5(_NAMESPACE, f"{tenant.pk}:{row.pk}"),
        collections=[row.collection_id],
        model=MODEL,
    )
    # The next question, here and in a new conversation, is asked of what the person had before.
    Conversation.objects.filter(pk=turn.conversation_id).update(model=next_model)
    row.conversation_id, row.step = turn.conversation_id, ExampleStep.DATASET
    return 0


def _dataset(tenant: Tenant, actor: Actor, row: Example) -> float:
    who: dict[str, Any] = {"tenant": tenant, "actor": actor}
    name = dataset_name_free(actor=actor, wanted=str(row.collection.name))
    dataset = dataset_create(
        **who,
        name=name,
        description="Questions about the sample collection, each with the passage that answers it.",
    )
    new = [NewRow(record) for record in _records(actor, row)]
    added = rows_add(**who, dataset=dataset, rows=new, source="sample")
    for made in DatasetRow.objects.filter(tenant=tenant, pk__in=added.created).order_by("pk"):
        row_review(**who, row=made, verdict="approve", content_hash=made.content_hash)
    version_create(**who, dataset=dataset)
    row.dataset, row.step = dataset, ExampleStep.EXPERIMENT
    return 0


def _experiment(tenant: Tenant, actor: Actor, row: Example) -> float:
    version = row.dataset and row.dataset.versions.order_by("number").first()
    if not version:  # its person has deleted it meanwhile
        row.step = ExampleStep.DONE
        return 0
    target = {"kind": "assistant", "model": MODEL, "collections": [row.collection_id]}
    row.experiment = experiment_create(
        tenant=tenant,
        actor=actor,
        name=f"{str(row.collection.name)[:80]}: few or many passages",
        version=version,
        arms=[ArmSpec({**target, "k": k}) for k in _PASSAGES],
        scorers=[{"kind": "token_f1"}, {"kind": "retrieval", "options": {"k": 5}}, {"kind": "citations"}],
        concurrency=1,
    )
    row.step = ExampleStep.BASELINE
    return LOOK_S


def _baseline(tenant: Tenant, actor: Actor, row: Example) -> float:
    experiment = row.experiment
    if experiment is not None and experiment.state == State.RUNNING:
        return _wait(row, _("Its experiment didn't end within an hour."))
    if row.conversation_id and Turn.objects.filter(conversation=row.conversation_id, is_active=True).exists():
        return _wait(row, _("Its question wasn't answered within an hour."))
    if experiment is not None and experiment.state == State.COMPLETED:
        first = experiment.arms.order_by("position").first()
        baseline_set(tenant=tenant, actor=actor, arm=first)
    # Its person asked for a sample, not for news of each of its parts.
    for kind, pk in (("answer", row.conversation_id), ("experiment", row.experiment_id)):
        mine = Notice.objects.filter(tenant=tenant, user_id=actor.user_id or 0, kind=kind, object_id=pk or 0)
        mine.filter(read_at=None).update(read_at=timezone.now())
    row.step = ExampleStep.DONE
    return 0


_Step = Callable[[Tenant, Actor, Example], float]
_STEPS: Mapping[str, _Step] = {
    ExampleStep.DOCUMENTS: _documents,
    ExampleStep.CONVERSATION: _conversation,
    ExampleStep.DATASET: _dataset,
    ExampleStep.EXPERIMENT: _experiment,
    ExampleStep.BASELINE: _baseline,
}


def _wait(row: Example, reason: str) -> float:
    """Return how long to wait. Raises Conflict with the reason when that was long enough."""
    if (timezone.now() - row.created_at).total_seconds() > MOST_S:
        raise Conflict("sample_late", reason)
    return LOOK_S


def _records(actor: Actor, row: Example) -> list[Any]:
    found = sample_records(actor=actor, collection=row.collection)
    if not found:
        raise Invalid("sample_changed", _("Its documents no longer belong to the sample."))
    return found


def _conversation_gone(tenant: Tenant, actor: Actor, row: Example) -> None:
    """Delete the sample's conversation, whoever added the sample: nobody has written in it."""
    with transaction.atomic():
        found = Conversation.objects.select_for_update().filter(tenant=tenant, pk=row.conversation_id or 0)
        if (conversation := found.first()) is not None:
            audit_record(tenant=tenant, actor=actor, action="conversation.delete", object=conversation)
            conversation_remove(tenant, system_actor(tenant.pk, conversation.user_id), conversation)


def _experiment_gone(tenant: Tenant, actor: Actor, row: Example) -> None:
    with transaction.atomic():
        found = Experiment.objects.select_for_update(of=("self",)).filter(
            tenant=tenant, pk=row.experiment_id or 0
        )
        if (experiment := found.first()) is not None:
            experiment_remove(tenant, actor, experiment, action="experiment.delete")


def _dataset_gone(tenant: Tenant, actor: Actor, row: Example) -> None:
    dataset = Dataset.objects.filter(tenant=tenant, pk=row.dataset_id or 0).first()
    if dataset is not None:
        dataset_delete(tenant=tenant, actor=actor, dataset=dataset)


def _collection_gone(tenant: Tenant, actor: Actor, row: Example) -> None:
    collection_delete(tenant=tenant, actor=actor, collection=row.collection)


_REMOVE: Mapping[str, Callable[[Tenant, Actor, Example], None]] = {
    "conversation": _conversation_gone,
    "experiment": _experiment_gone,
    "dataset": _dataset_gone,
    "collection": _collection_gone,
}
