"""Decide about rows: approve, reject, send back; with the two-person rule where the dataset has it. And mend findings."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext_noop

from apps.datasets.checks.scan import redact
from apps.datasets.checks.splits import document_key
from apps.datasets.models import Dataset, DatasetRow, RowReview, RowStatus, Split
from apps.datasets.records.columns import record_of
from apps.datasets.records.record import to_values
from apps.datasets.rows.selectors import RowFilter, row_list
from apps.datasets.rows.services import row_update
from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_NOTE = 2_000
NEEDED = 2
MAX_SETTLED = 200
MOST_ALONG = 1_000
"""Rows that move with others in the request of a person; more take the job that divides."""
SETTLEMENTS = {
    "reject": gettext_noop("Reject"),
    "train": gettext_noop("Move to training"),
    "redact": gettext_noop("Hide what was found"),
}
"""What can be done with rows that a check has found, and how it is called in English; pages translate it."""


def row_review(
    *, tenant: Tenant, actor: Actor, row: DatasetRow, verdict: str, content_hash: str, note: str = ""
) -> DatasetRow:
    """Record what a person says about a row, and approve or reject it when that is enough.

    With the two-person rule a row is approved when two people have approved its present content; an edit starts over.

    Args:
        verdict: ``approve`` or ``reject``.
        content_hash: of the content that the person saw.

    Raises:
        Denied: the actor stands for no person.
        Conflict: ``row_changed``, the row has other content by now.
        Invalid: an unknown verdict, or a rejection without a reason.
    """
    actor.require("dataset.write")
    if actor.user_id is None:
        raise Denied("person_needed", _("Only a person can review rows. Use a key that acts for a person."))
    if verdict not in RowReview.Verdict.values:
        raise Invalid("verdict_unknown", _("Choose approve or reject."))
    note = note.strip()[:MAX_NOTE]
    if verdict == RowReview.Verdict.REJECT and not note:
        message = _("Say why the row is rejected.")
        raise Invalid("note_empty", message, data={"fields": {"note": [message]}})
    with transaction.atomic():
        locked: DatasetRow | None = (
            DatasetRow.objects.visible_to(actor)
            .select_for_update(of=("self",))
            .select_related("dataset")
            .filter(pk=row.pk)
            .first()
        )
        if locked is None:
            raise Missing("row")
        if locked.content_hash != content_hash:
            raise Conflict(
                "row_changed", _("Another member changed this row in the meantime. Look at it again.")
            )
        RowReview.objects.create(
            tenant=tenant,
            row=locked,
            user_id=actor.user_id,
            verdict=verdict,
            note=note,
            content_hash=content_hash,
        )
        locked.status = _status(locked, verdict)
        locked.save(update_fields=["status", "updated_at"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="dataset_row.review",
            object=locked,
            data={"verdict": verdict, "status": locked.status, "content": content_hash},
        )
    return locked


def rows_settle(
    *, tenant: Tenant, actor: Actor, dataset: Dataset, row_pks: Sequence[int], act: str, note: str = ""
) -> int:
    """Do one thing with rows that a check has found; returns how many have changed. All or none.

    Args:
        act: ``reject`` (needs a note), ``train`` moves them to that split with all rows of their documents, ``redact``
            hides personal data and secrets; an approved row that is redacted goes back to review.

    Raises:
        Invalid: an unknown act, no row, more than ``MAX_SETTLED``, or a rejection without a reason.
        Missing: the dataset has no such row.
        Conflict: more than ``MOST_ALONG`` rows would have to move.
    """
    actor.require("dataset.write")
    if act not in SETTLEMENTS:
        raise Invalid(
            "act_unknown", _("Choose one of %(settlements)s.") % {"settlements": ", ".join(SETTLEMENTS)}
        )
    wanted = set(row_pks)
    if not wanted or len(wanted) > MAX_SETTLED:
        raise Invalid("rows_none", _("Choose 1 to %(max_settled)s rows.") % {"max_settled": MAX_SETTLED})
    changed = 0
    with transaction.atomic():
        rows = DatasetRow.objects.visible_to(actor).select_for_update(of=("self",))
        found = list(rows.filter(dataset=dataset, pk__in=wanted).order_by("pk"))
        if len(found) < len(wanted):
            raise Missing("row")
        if act == "train":
            found = _of_their_documents(actor, dataset, found)
        for row in found:
            changed += _settled(tenant, actor, row, act, note)
    return changed


def _of_their_documents(actor: Actor, dataset: Dataset, rows: list[DatasetRow]) -> list[DatasetRow]:
    """Return rows with all that share a document with them, even by way of another: none may stand in another split."""
    found = {row.pk: row for row in rows}
    waiting = {document_key(s): s.document for row in rows for s in record_of(row).sources}
    seen: set[str] = set()
    while waiting:
        key, name = waiting.popitem()
        seen.add(key)
        others = row_list(actor=actor, dataset=dataset, only=RowFilter(source=name))
        for row in others.exclude(status=RowStatus.REJECTED).exclude(pk__in=found)[:MOST_ALONG]:
            documents = {document_key(s): s.document for s in record_of(row).sources}
            if key in documents:
                found[row.pk] = row
                waiting |= {k: name for k, name in documents.items() if k not in seen}
        if len(found) >= MOST_ALONG:
            raise Conflict(
                "rows_many",
                _("%(most_along)s rows or more use the same documents. Divide the rows by document again.")
                % {"most_along": number_told(MOST_ALONG)},
            )
    return list(found.values())


def _settled(tenant: Tenant, actor: Actor, row: DatasetRow, act: str, note: str) -> bool:
    if act == "reject":
        if row.status == RowStatus.REJECTED:
            return False
        row_review(
            tenant=tenant,
            actor=actor,
            row=row,
            verdict=RowReview.Verdict.REJECT,
            content_hash=row.content_hash,
            note=note,
        )
        return True
    if act == "train":
        changes = {"split": Split.TRAIN.value} if row.split != Split.TRAIN else {}
    else:
        before = record_of(row)
        old, new = to_values(before), to_values(redact(before)[0])
        changes = {name: new[name] for name in new if name != "id" and new[name] != old[name]}
    if changes:
        row_update(tenant=tenant, actor=actor, row=row, changes=changes)
    return bool(changes)


def _status(row: DatasetRow, verdict: str) -> str:
    if verdict == RowReview.Verdict.REJECT:
        return RowStatus.REJECTED.value
    if not row.dataset.needs_two_people:
        return RowStatus.APPROVED.value
    latest: dict[int | None, str] = {}
    said = RowReview.objects.filter(row=row, content_hash=row.content_hash).order_by("pk")
    latest.update(said.values_list("user_id", "verdict"))
    approving = sum(1 for found in latest.values() if found == RowReview.Verdict.APPROVE)
    return RowStatus.APPROVED.value if approving >= NEEDED else RowStatus.REVIEW.value
