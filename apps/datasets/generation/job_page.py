"""What the page of a generation job shows, for the page itself and for its stream."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from apps.datasets.generation.progress import item_trace, progress_read
from apps.datasets.models import JOB_ACTIVE, Difficulty, GenerationJob, QuestionType
from apps.datasets.rows import selectors
from runs.providers import model_label
from tenancy.actors import Actor


def job_shown(*, actor: Actor, pk: int, job_pk: int) -> GenerationJob:
    """Return a job of a dataset. Raises Missing."""
    dataset = selectors.dataset_get(actor=actor, pk=pk)
    return selectors.job_get(actor=actor, pk=job_pk, dataset=dataset)


def job_context(*, actor: Actor, job: GenerationJob, item: str = "") -> dict[str, Any]:
    """Return the context of ``datasets/_job.html``.

    Args:
        item: id of the candidate that stands open; what is no number opens none.
    """
    is_number = item.isascii() and item.isdecimal() and len(item) < 19
    return {
        "dataset": job.dataset,
        "job": job,
        "progress": progress_read(actor=actor, job=job),
        "open": item_trace(actor=actor, job=job, pk=int(item)) if is_number else None,
        "batch": selectors.job_batch(actor=actor, job=job),
        "is_batched": job.is_batched,
        "missing": [{**one, "quota": _quota(one["difficulty"], one["type"])} for one in job.shortfall],
        "is_active": job.state in JOB_ACTIVE,
        "model_label": model_label(job.model),
        "can_write": actor.can("dataset.write"),
    }


def _quota(difficulty: str, kind: str) -> str:
    labels = {"difficulty": Difficulty(difficulty).label, "type": QuestionType(kind).label}
    return (_("%(difficulty)s %(type)s") % labels).capitalize()
