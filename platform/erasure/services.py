"""Ask for an erasure, undo it, and carry out those that are due.

Each step can be done again: what was interrupted is begun again, finds less, and its report is continued. The order is:
note it in the ledger, close the doors, delete the rows in one transaction, delete the files.
"""

from __future__ import annotations

from datetime import timedelta

import psycopg
import structlog
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import gettext_noop
from blobs.errors import StoreAway
from erasure.contents import content_erase, content_subject
from erasure.holds import hold_of, hold_refuse
from erasure.kinds import content_kind, content_kind_of
from erasure.ledger import Entry, ledger_read, ledger_write, subject_of
from erasure.models import Erasure
from erasure.persons import person_close, person_names_erase, person_refuse, person_rows_erase
from erasure.reports import KEPT, Report
from erasure.workspaces import workspace_close, workspace_files_erase, workspace_rows_erase
from tenancy.actors import Actor
from tenancy.database.direct import lock_session
from tenancy.models import Tenant, TenantModel, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

log = structlog.get_logger(__name__)
AGAIN = timedelta(minutes=5)  # after a hold, a backup under way, or a place that didn't answer
_LOCK = 0x6572617365  # "erase": one erasure at a time, on whichever machine
_BACKUPS_WHY = gettext_noop(
    "older backups have it until they are pruned; one that is restored is erased again before it opens"
)
_DISK_WHY = gettext_noop(
    "Postgres overwrites deleted rows and its log over time; “manage.py erasures scrub” does it at once"
)
OPEN = (Erasure.State.WAITING, Erasure.State.RUNNING)


def workspace_erase_request(*, tenant: Tenant, actor: Actor, confirm: str, now: bool = False) -> Erasure:
    """Ask for a workspace to be erased once its time of grace is over; until then it works as before.

    Args:
        confirm: the address (slug) of the workspace, as its owner typed it.
        now: without the time of grace; for the operator's command.

    Raises:
        Denied: not an owner.
        Invalid: ``confirm`` is something else.
        Conflict: ``legal_hold`` or ``erasure_open``.
    """
    actor.require("tenant.manage")
    if now and actor.kind != "system":
        raise Denied("permission_denied", _("Only the operator can erase without the time to undo it."))
    if confirm.strip() != tenant.slug:
        raise Invalid(
            "invalid", _("Type %(address)s to confirm.") % {"address": tenant.slug}, data={"field": "confirm"}
        )
    with tenant_scope(tenant.pk), transaction.atomic():
        Tenant.objects.select_for_update().get(pk=tenant.pk)  # a hold that comes meanwhile waits
        hold_refuse(tenant.pk)
        made = _request(Erasure.Kind.WORKSPACE, tenant.pk, actor.user_id, now=now)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tenant.erase_request",
            object=tenant,
            data={"erasure": made.pk, "due_at": made.due_at.isoformat()},
        )
    return made


def workspace_erase_undo(*, tenant: Tenant, actor: Actor) -> None:
    """Take back what was asked for a workspace, as long as it hasn't begun.

    Raises:
        Denied: not an owner.
        Conflict: ``no_erasure``.
    """
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk), transaction.atomic():
        made = _undo(Erasure.Kind.WORKSPACE, tenant.pk)
        audit_record(
            tenant=tenant, actor=actor, action="tenant.erase_undo", object=tenant, data={"erasure": made.pk}
        )


def person_erase_request(*, person: User, by: User | None, confirm: str, now: bool = False) -> Erasure:
    """Ask for a person to be erased once the time of grace is over; until then they can sign in and undo it.

    Args:
        by: who asks: the person, or a superuser; None for the operator's command.
        confirm: the email address of the person, as it was typed.
        now: without the time of grace; for the operator's command.

    Raises:
        Denied: someone else's account, and no superuser.
        Invalid: ``confirm`` is something else.
        Conflict: ``legal_hold``, ``last_owner`` or ``erasure_open``.
    """
    _may(person, by)
    if now and by is not None:
        raise Denied("permission_denied", _("Only the operator can erase without the time to undo it."))
    if confirm.strip().lower() != person.email.lower():
        raise Invalid("invalid", _("Type the email address of the account."), data={"field": "confirm"})
    person_refuse(person)
    with transaction.atomic():
        return _request(Erasure.Kind.PERSON, person.pk, by.pk if by else None, now=now)


def person_erase_undo(*, person: User, by: User | None) -> None:
    """Take back what was asked for a person, as long as it hasn't begun.

    Raises:
        Denied: someone else's account, and no superuser.
        Conflict: ``no_erasure``.
    """
    _may(person, by)
    with transaction.atomic():
        _undo(Erasure.Kind.PERSON, person.pk)


CONFIRM_CONTENT = "erase"


def content_erase_request(*, tenant: Tenant, actor: Actor, subject: TenantModel, confirm: str) -> Erasure:
    """Ask for a document or conversation to be erased, with what was made of it; due at once, as deleting is.

    Args:
        subject: the document or conversation, which the caller has found with the actor's rights.
        confirm: the word that who asks has typed, ``CONFIRM_CONTENT``.

    Raises:
        Denied: without the right to delete it.
        Invalid: ``confirm`` is something else.
        Missing: it is in another workspace.
        Conflict: ``legal_hold`` or ``erasure_open``.
    """
    kind = content_kind_of(subject)
    actor.require(kind.action)
    if subject.tenant_id != tenant.pk or actor.tenant_id != tenant.pk:
        raise Missing(kind.kind.value)
    if confirm.strip().lower() != CONFIRM_CONTENT:
        raise Invalid(
            "invalid", _("Type %(word)s to confirm.") % {"word": CONFIRM_CONTENT}, data={"field": "confirm"}
        )
    with tenant_scope(tenant.pk), transaction.atomic():
        hold_refuse(tenant.pk)
        made = _request(kind.kind, subject.pk, actor.user_id, now=True, workspace=tenant.pk)
        audit_record(
            tenant=tenant,
            actor=actor,
            action=f"{kind.kind.value}.erase_request",
            object=subject,
            data={"erasure": made.pk},
        )
    return made


def content_erasure(*, actor: Actor, kind: Erasure.Kind, subject: int) -> Erasure | None:
    """Return the last erasure of a document or conversation that an actor's person asked for in their workspace."""
    if actor.user_id is None:
        return None
    mine = Erasure.objects.filter(
        workspace=actor.tenant_id, kind=kind, subject=subject, requested_by=actor.user_id
    )
    return mine.order_by("-pk").first()


def _may(person: User, by: User | None) -> None:
    if by is not None and not (by.is_active and (by.pk == person.pk or by.is_superuser)):
        raise Denied("permission_denied", _("Only the person or this server's operator can do this."))


def _request(
    kind: Erasure.Kind, subject: int, by: int | None, *, now: bool, workspace: int | None = None
) -> Erasure:
    due = timezone.now() + (timedelta() if now else timedelta(days=settings.ERASURE_GRACE_DAYS))
    try:
        with transaction.atomic():
            return Erasure.objects.create(
                kind=kind, subject=subject, workspace=workspace, requested_by=by, due_at=due
            )
    except IntegrityError:
        raise Conflict("erasure_open", _("This is already going to be erased.")) from None


def _undo(kind: Erasure.Kind, subject: int) -> Erasure:
    found = Erasure.objects.select_for_update().filter(
        kind=kind, subject=subject, state=Erasure.State.WAITING
    )
    made = found.first()
    if made is None:
        raise Conflict(
            "no_erasure",
            _("Nothing is waiting to be erased here. An erasure that has begun can't be undone."),
        )
    made.state, made.ended_at = Erasure.State.UNDONE, timezone.now()
    made.save(update_fields=["state", "ended_at"])
    return made


def erasure_open(kind: Erasure.Kind, subject: int) -> Erasure | None:
    """Return what was asked for a workspace or person and hasn't ended."""
    return Erasure.objects.filter(kind=kind, subject=subject, state__in=OPEN).first()


def erasures_round() -> int:
    """Carry out what is due, one after the other; returns how many have ended."""
    due = Erasure.objects.filter(state__in=OPEN, due_at__lte=timezone.now())
    if not due.exists():
        return 0
    with lock_session(_LOCK) as line:
        if line is None:  # a process of some machine is at it
            return 0
        return sum(erasure_carry_out(pk) for pk in list(due.order_by("due_at").values_list("pk", flat=True)))


def erasure_carry_out(pk: int) -> bool:
    """Carry out one erasure; returns whether it has ended. What is in its way is kept in ``detail``, and it is tried again."""
    with transaction.atomic():
        row = Erasure.objects.select_for_update().filter(pk=pk, state__in=OPEN).first()
        if row is None:
            return False
        problem = _in_the_way(row)
        if problem and row.state == Erasure.State.WAITING:
            _wait(row, problem)
            return False
        row.state = Erasure.State.RUNNING
        row.save(update_fields=["state"])
    report = Report()
    try:
        ended = _erase(row, report)
    except (DomainError, StoreAway, DatabaseError, psycopg.Error, OSError) as error:
        log.warning("erasure_waits", erasure=row.pk, reason=str(error)[:200])
        _wait(
            row,
            error.message if isinstance(error, DomainError) else f"{type(error).__name__}: {error}",
            report,
        )
        return False
    if not ended:
        _wait(row, _("A backup copies files at this moment; they are removed when it has ended."), report)
        return False
    report.add("backups", KEPT, 1, _BACKUPS_WHY)
    report.add("blocks and log of the database's own files", KEPT, 1, _DISK_WHY)
    row.report, row.detail = report.merged(row.report), ""
    row.state, row.ended_at = Erasure.State.DONE, timezone.now()
    row.save(update_fields=["report", "detail", "state", "ended_at"])
    log.info("erased", erasure=row.pk, kind=row.kind, subject=row.subject)
    return True


def _wait(row: Erasure, problem: str, report: Report | None = None) -> None:
    row.detail, row.due_at = problem, timezone.now() + AGAIN
    row.report = (report or Report()).merged(row.report)
    if row.workspace is not None:  # nothing of it is gone yet, so a hold that comes meanwhile stops it
        row.state = Erasure.State.WAITING
    row.save(update_fields=["detail", "due_at", "report", "state"])


def _in_the_way(row: Erasure) -> str:
    """Return why an erasure can't begin, "" where it can."""
    if row.kind != Erasure.Kind.PERSON:
        held = row.subject if row.workspace is None else row.workspace
        return _("The workspace is under a legal hold.") if hold_of(held) is not None else ""
    person = User.objects.filter(pk=row.subject).first()
    if person is None:
        return ""
    try:
        person_refuse(person)
    except Conflict as error:
        return error.message
    return ""


def _erase(row: Erasure, report: Report) -> bool:
    if row.kind == Erasure.Kind.WORKSPACE:
        return _workspace(row, report)
    return _person(row, report) if row.kind == Erasure.Kind.PERSON else _content(row, report)


def _content(row: Erasure, report: Report) -> bool:
    kind = content_kind(row.kind)
    subject = content_subject(kind, row)
    if subject is not None:
        with tenant_scope(subject.tenant_id):
            same = kind.rows(subject)
        _missed(sorted({url for one in same for url in ledger_write(one)}), report)
        found = Report()  # of a try that is rolled back nothing is told
        content_erase(kind, subject, found)
        report.lines += found.lines
    return True


def _workspace(row: Erasure, report: Report) -> bool:
    tenant = Tenant.objects.filter(pk=row.subject).first()
    if tenant is not None:
        _missed(ledger_write(tenant), report)
        workspace_close(tenant)
        workspace_rows_erase(tenant, report)
    return workspace_files_erase(row.subject, report)


def _person(row: Erasure, report: Report) -> bool:
    person = User.objects.filter(pk=row.subject).first()
    if person is not None:
        _missed(ledger_write(person), report)
        person_close(person)
        who = person_rows_erase(person, report)
        person_names_erase(row.subject, who, report)
    return True


def _missed(urls: list[str], report: Report) -> None:
    report.add(
        "ledger beside older backups",
        KEPT,
        len(urls),
        _("these places didn't answer, and a backup restored from there isn't erased again: %(places)s")
        % {"places": ", ".join(urls)},
    )


def ledger_apply(entries: list[Entry]) -> int:
    """Erase again what a ledger names and the database has; returns how many that were.

    Whatever a hold or a membership says: these were erased once, and came back with an older backup.

    Raises:
        Conflict: ``erasure_waits``, one of them couldn't be carried out to its end.
    """
    again = 0
    for entry in entries:
        with platform_scope():
            subject = subject_of(entry)
        if subject is None:
            continue
        row = erasure_open(Erasure.Kind(entry.kind), entry.subject)
        if row is None:
            row = Erasure.objects.create(
                kind=entry.kind,
                subject=entry.subject,
                workspace=subject.tenant_id if isinstance(subject, TenantModel) else None,
                due_at=timezone.now(),
                state=Erasure.State.RUNNING,
            )
        Erasure.objects.filter(pk=row.pk).update(state=Erasure.State.RUNNING)  # no hold stops it
        if not erasure_carry_out(row.pk):
            row.refresh_from_db()
            raise Conflict(
                "erasure_waits",
                _("What was erased before couldn't be erased again. %(detail)s") % {"detail": row.detail},
            )
        again += 1
    return again


def ledger_round() -> int:
    """Erase again what came back by another way than ``backup restore``; returns how many that were."""
    entries = ledger_read([settings.BACKUP_URL] if settings.BACKUP_URL else [])
    with platform_scope():
        back = [entry for entry in entries if subject_of(entry) is not None]
    ours = [e for e in back if erasure_open(Erasure.Kind(e.kind), e.subject) is None]
    if not ours:
        return 0
    with lock_session(_LOCK) as line:
        return 0 if line is None else ledger_apply(ours)


def erasure_list(*, by: User) -> list[Erasure]:
    """Return the last erasures that a person asked for, the newest first; a superuser's list has everyone's."""
    rows = Erasure.objects.all() if by.is_superuser else Erasure.objects.filter(requested_by=by.pk)
    return list(rows.order_by("-pk")[:100])


def erasure_get(*, by: User, pk: int) -> Erasure:
    """Return an erasure with its report, for who asked for it and for superusers. Raises Missing."""
    row = Erasure.objects.filter(pk=pk).first()
    if row is None or not (by.is_superuser or row.requested_by == by.pk):
        raise Missing("erasure")
    return row
