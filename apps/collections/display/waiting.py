"""What a document that waits for its turn says: why, and about how long."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.collections.models import Document
from jobs.selectors import worker_seen_at
from jobs.waits import Wait, tenant_waits

_ALIVE = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a document is not worked on at this moment.

    Attributes:
        text: for its owner.
        documents: documents of the workspace that come first.
        seconds: until its turn, by estimate; None while no worker runs.
    """

    text: str
    documents: int
    seconds: int | None


def waiting_note(documents: Iterable[Document]) -> None:
    """Set ``waiting`` on documents of one workspace: a ``Waiting`` where one waits, else None."""
    rows = list(documents)
    found = document_waits(rows)
    for row in rows:
        row.waiting = found.get(row.pk)  # type: ignore[attr-defined]


def document_waits(documents: Iterable[Document]) -> dict[int, Waiting]:
    """Return why and how long documents of one workspace wait, by document; what runs or has ended is left out.

    Documents that are limited to some people are counted as other work, for everybody.
    """
    jobs = {row.job_id: row for row in documents if row.is_active and row.job_id is not None}
    if not jobs:
        return {}
    tenant_id = next(iter(jobs.values())).tenant_id
    found = tenant_waits(tenant_id, jobs.keys())
    if not found:
        return {}
    seen = worker_seen_at()
    if seen is None or timezone.now() - seen > _ALIVE:
        told = Waiting(_("Waiting: no worker is running on the server"), 0, None)
        return {jobs[job].pk: told for job in found}
    before = {job for wait in found.values() for job in wait.before}
    counted = set(
        Document.objects.filter(tenant_id=tenant_id, job_id__in=before, is_restricted=False).values_list(
            "job_id", flat=True
        )
    )
    return {
        jobs[job].pk: _told(wait, sum(1 for one in wait.before if one in counted))
        for job, wait in found.items()
    }


def _told(wait: Wait, documents: int) -> Waiting:
    seconds = math.ceil(wait.seconds)
    others = len(wait.before) - documents
    if wait.is_later:
        return Waiting(
            _("Waiting: it failed and will be retried in %(time)s") % {"time": duration(seconds)}, 0, seconds
        )
    if not seconds:
        return Waiting(_("Waiting: next in line"), 0, 0)
    counts = {"documents": intcomma(documents), "jobs": intcomma(others), "time": duration(seconds)}
    if documents and others:
        text = _("Waiting: %(documents)s and %(jobs)s ahead of it, %(time)s")
        counts["documents"] = ngettext("%(count)s document", "%(count)s documents", documents) % {
            "count": counts["documents"]
        }
        counts["jobs"] = ngettext("%(count)s other job", "%(count)s other jobs", others) % {
            "count": counts["jobs"]
        }
    elif documents:
        text = ngettext(
            "Waiting: %(documents)s document ahead of it, %(time)s",
            "Waiting: %(documents)s documents ahead of it, %(time)s",
            documents,
        )
    elif others:
        text = ngettext(
            "Waiting: %(jobs)s other job ahead of it, %(time)s",
            "Waiting: %(jobs)s other jobs ahead of it, %(time)s",
            others,
        )
    else:
        text = _("Waiting: work of other workspaces ahead of it, %(time)s")
    return Waiting(text % counts, documents, seconds)


def duration(seconds: float) -> str:
    """Say a time that is only estimated: "about 5 s", "about 3 min", "about 2 h"."""
    if seconds <= 55:
        rounded = max(1, math.ceil(seconds / 5)) * 5 if seconds > 3 else max(1, math.ceil(seconds))
        return _("about %(seconds)s s") % {"seconds": rounded}
    if seconds < 90 * 60:
        return _("about %(minutes)s min") % {"minutes": max(1, round(seconds / 60))}
    return _("about %(hours)s h") % {"hours": round(seconds / 3600)}
