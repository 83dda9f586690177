"""The job that finds failing rows which are alike: their texts become vectors once, and what is near belongs together."""

from __future__ import annotations

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from apps.collections.index.billing import EmbeddingBill, billing_account_of
from apps.collections.index.embedding import default_setting, embedder_of_setting
from apps.evaluations.failures.selectors import arm_failures, groups_key
from apps.evaluations.failures.services import GROUP_JOB, groups_fail, groups_keep
from apps.evaluations.models import FailureGroups
from apps.evaluations.results.actors import kept_actor
from basics.texts import gettext as _
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job

_ALIKE = 0.5
"""Cosine of two vectors from which their rows belong together."""


def group_ended(ended: Job) -> None:
    """Say why there are no groups when the job ended without them."""
    groups_fail(ended.payload["groups_id"], ended.error_message or _("The work was abandoned."))


@job(GROUP_JOB, lane="cpu", max_attempts=3, on_end=group_ended)
def failures_group(ctx: JobContext, *, groups_id: int) -> None:
    """Group a page of the failing rows of an arm as they are now; safe to run again."""
    kept = FailureGroups.objects.select_related("arm__experiment", "tenant").filter(pk=groups_id)
    row = kept.first()
    if row is None:
        return
    actor = kept_actor(row.tenant_id, row.created_by_id, row.actor)
    failing = arm_failures(actor=actor, arm=row.arm, page=row.page).rows
    texts = [one.text for one in failing]
    groups: list[list[int]] = []
    if texts:
        embedder = embedder_of_setting(default_setting(), tenant=row.tenant)
        with EmbeddingBill(
            embedder, tenant=row.tenant, billing_account=billing_account_of(actor), texts=texts
        ):
            vectors = embedder.embed_documents(texts, on_progress=lambda *_: ctx.check())
        groups = [[failing[at].row for at in places] for places in groups_of(vectors)]
    with transaction.atomic():
        ctx.hold()
        groups_keep(row, key=groups_key(failing), groups=groups)
        ctx.complete()


def groups_of(vectors: NDArray[np.float32], *, alike: float = _ALIKE) -> list[list[int]]:
    """Return groups of rows: again and again the row with most neighbours among those left, with these neighbours.

    Args:
        vectors: of length 1, one a row.
        alike: least cosine of neighbours.

    Returns:
        Places of the rows, the most typical of each group first, the largest group first; every row once.
    """
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, 1.0)
    near = similar >= alike
    left = np.ones(len(vectors), dtype=bool)
    found = []
    while left.any():
        # Neighbours weighted by how near they are: of rows with as many, the middle one.
        weights = (similar * (near & left)).sum(axis=1) * left
        middle = int(weights.argmax())
        members = np.flatnonzero(near[middle] & left)
        order = np.argsort(-similar[middle, members], kind="stable")
        found.append([int(members[n]) for n in order])
        left[members] = False
    return sorted(found, key=lambda one: (-len(one), one[0]))
