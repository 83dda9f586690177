"""Rows of every kind that has a retention rule, as old as a test wants them, and the rules over them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.collections.models import Document
from apps.conversations.models import Conversation
from apps.datasets.models import Dataset, DatasetVersion, RowContent
from apps.evaluations.models import Arm, Experiment, Trial
from audit.models import ContentRead
from erasure.retention import (
    Preview,
    RetentionKind,
    retention_kinds,
    retention_overview,
    retention_rules_set,
)
from jobs.models import Job
from runs.models import Run
from tenancy.models import TenantModel
from tenancy.scope import platform_scope
from tests.factories import actor_of
from tests.permissions.world import Side, make_row
from webhooks.models import WebhookDelivery

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
NAMES = ["documents", "conversations", "runs", "datasets", "experiments", "reads", "deliveries", "jobs"]


def kind_of(name: str) -> RetentionKind:
    return next(kind for kind in retention_kinds() if kind.name == name)


def rule(side: Side, name: str, days: int | None, role: str = "owner", now: datetime = NOW) -> None:
    actor = actor_of(side.people[role])
    retention_rules_set(tenant=side.tenant, actor=actor, changes={name: days}, now=now)


def preview(
    side: Side, name: str, now: datetime = NOW, changes: dict[str, int | None] | None = None
) -> Preview:
    actor = actor_of(side.people["admin"])
    found = retention_overview(tenant=side.tenant, actor=actor, changes=changes, now=now)
    return next(line for line in found.rules if line.kind.name == name)


def document(side: Side, at: datetime, path: str = "", **given: Any) -> Document:
    """Make a ready document whose only version came at a moment."""
    given = {"status": "ready", "live_from": at, "created_at": at, "size": 10, **given}
    if path:
        given["path"] = path
    made: Document = make_row(
        Document,
        side.tenant,
        side.user("owner"),
        collection=side.row("collections.Collection", "owner"),
        **given,
    )
    return made


def conversation(side: Side, at: datetime) -> Conversation:
    made: Conversation = make_row(
        Conversation, side.tenant, side.user("owner"), model="extractive", updated_at=at
    )
    return made


def run(side: Side, at: datetime) -> Run:
    made: Run = make_row(
        Run, side.tenant, side.user("owner"), model="extractive", status="completed", finished_at=at
    )
    return made


def dataset(side: Side, at: datetime, **given: Any) -> Dataset:
    made: Dataset = make_row(Dataset, side.tenant, side.user("owner"), **given)
    with platform_scope():
        Dataset.objects.filter(pk=made.pk).update(updated_at=at)
    return made


def experiment(side: Side, at: datetime, state: str = "completed") -> Experiment:
    held = dataset(side, at)
    version = make_row(DatasetVersion, side.tenant, side.user("owner"), dataset=held, created_at=at)
    made: Experiment = make_row(
        Experiment,
        side.tenant,
        side.user("owner"),
        dataset=held,
        version=version,
        state=state,
        created_at=at,
        finished_at=at,
        scorers=[],
    )
    return made


def trial(side: Side, of: Experiment, **given: Any) -> Trial:
    person = side.user("owner")
    arm = make_row(Arm, side.tenant, person, experiment=of)
    content = make_row(RowContent, side.tenant, person, dataset=of.dataset)
    made: Trial = make_row(Trial, side.tenant, person, experiment=of, arm=arm, content=content, **given)
    return made


_seq = iter(range(1, 10**6))


def read(side: Side, at: datetime) -> ContentRead:
    made: ContentRead = make_row(ContentRead, side.tenant, side.user("owner"), at=at, seq=next(_seq))
    return made


def delivery(side: Side, at: datetime) -> WebhookDelivery:
    made: WebhookDelivery = make_row(
        WebhookDelivery, side.tenant, side.user("owner"), status="delivered", created_at=at
    )
    return made


def job(side: Side, at: datetime) -> Job:
    made: Job = make_row(Job, side.tenant, side.user("owner"), status="failed", finished_at=at)
    return made


MAKERS: dict[str, Any] = {
    "documents": document,
    "conversations": conversation,
    "runs": run,
    "datasets": dataset,
    "experiments": experiment,
    "reads": read,
    "deliveries": delivery,
    "jobs": job,
}


def made(side: Side, name: str, at: datetime) -> TenantModel:
    found: TenantModel = MAKERS[name](side, at)
    if name == "reads":
        read(side, NOW)  # the newest keeps the count, and always stays
    return found


def is_there(row: TenantModel) -> bool:
    """Tell whether a row, or of a run what was said in it, is there."""
    with platform_scope():
        found = type(row)._base_manager.filter(pk=row.pk)
        if isinstance(row, Run):
            return Run.objects.filter(pk=row.pk, pruned_at=None).exists()
        return bool(found.exists())
