"""Erase a person: what is theirs goes, what they did for a workspace stays under a pseudonym."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.sessions.models import Session
from django.db import models, transaction

from basics.errors import Conflict
from basics.texts import gettext as _
from basics.texts import gettext_noop
from erasure.holds import tenants_held
from erasure.names import Identity, identity_of, names_kept, names_replace
from erasure.reports import KEPT, REMOVED, REPLACED, Report
from erasure.rules import models_all, person_hooks
from erasure.trail import trail_redact
from tenancy.database.base import as_login_role
from tenancy.losses import loss_tell
from tenancy.models import Invite, Membership, Role, User
from tenancy.scope import platform_scope, tenant_scope

_PASSES = 5
"""How often names are looked for that others wrote while they were being replaced."""
_CONTENT_WHY = gettext_noop(
    "content of a workspace, which decides about it; erase the document or conversation it is in"
)
_NUMBER_WHY = gettext_noop("only the number, which no longer refers to anyone")


def person_refuse(user: User) -> None:
    """Raise Conflict where a person can't be erased now: a legal hold, or a workspace that would have no owner.

    Raises:
        Conflict: ``legal_hold`` or ``last_owner``; the message names the workspaces.
    """
    with platform_scope():
        mine = Membership.objects.filter(user=user).select_related("tenant")
        held = [m.tenant.name for m in mine.filter(tenant__in=tenants_held())]
        others = Membership.objects.filter(
            tenant=models.OuterRef("tenant"), role=Role.OWNER, user__is_active=True
        )
        alone = [
            m.tenant.name
            for m in mine.filter(
                ~models.Exists(others.exclude(user=user)), role=Role.OWNER, tenant__is_active=True
            )
        ]
    if held:
        raise Conflict(
            "legal_hold",
            _(
                "A legal hold keeps everything in %(workspaces)s, so this person can't be erased until it is released."
            )
            % {"workspaces": _named(held)},
        )
    if alone:
        raise Conflict(
            "last_owner",
            _(
                "This person is the only owner of %(workspaces)s. Make someone else an owner, or erase the workspace "
                "first."
            )
            % {"workspaces": _named(alone)},
        )


def _named(names: list[str]) -> str:
    return ", ".join(f"“{name}”" for name in sorted(names)[:5])


def person_close(user: User) -> None:
    """Let a person in nowhere any more, and end what goes on in their name."""
    with platform_scope(), transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=False)
        tenants = list(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))
    for tenant_id in tenants:
        with tenant_scope(tenant_id), transaction.atomic():
            loss_tell(tenant_id=tenant_id, user_id=user.pk)


def person_rows_erase(user: User, report: Report) -> Identity:
    """Delete what is a person's, and replace their names everywhere else, in one transaction.

    The person's row is locked first: a reference that someone adds meanwhile waits for it, and is then refused.

    Returns:
        What to look for again afterwards (``person_names_erase``).
    """
    with platform_scope(), transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        who = identity_of(user)
        report.add("sessions", REMOVED, _sessions(user.pk))
        mails = {user.email, *EmailAddress.objects.filter(user=user).values_list("email", flat=True)}
        for mail in mails:
            report.add("tenancy.Invite", REMOVED, Invite.objects.filter(email__iexact=mail).delete()[0])
        for hook in person_hooks():
            report.add_all(hook(user), REMOVED)
        with as_login_role():
            _references_report(user, report)
            gone = user.delete()[1]
            report.add_all(dict(sorted(gone.items())), REMOVED)
    return who


def person_names_erase(user_id: int, who: Identity, report: Report) -> None:
    """Replace a person's names wherever they still are, until none is found."""
    for _pass in range(_PASSES):
        with platform_scope(), transaction.atomic():
            with as_login_role():
                replaced = names_replace(who)
            events = trail_redact(user_id, who)
        report.add_all(replaced, REPLACED)
        report.add("tenancy.AuditEvent", REPLACED, events)
        if not replaced and not events:
            break
    with as_login_role():
        report.add_all(names_kept(who), KEPT, _CONTENT_WHY)
        for model in models_all():
            for field in model._meta.concrete_fields:
                if field.name == "user_id" and not field.is_relation:
                    count = model._base_manager.filter(user_id=user_id).count()
                    report.add(f"{model._meta.label}.user_id", KEPT, count, _NUMBER_WHY)


def _references_report(user: User, report: Report) -> None:
    for model in models_all():
        for field in model._meta.concrete_fields:
            reference: Any = field.remote_field
            if field.related_model is User and field.null and reference.on_delete is models.SET_NULL:
                count = model._base_manager.filter(**{field.name: user}).count()
                report.add(f"{model._meta.label}.{field.name}", REPLACED, count)


def _sessions(user_id: int) -> int:
    mine = [s.pk for s in Session.objects.iterator(chunk_size=500) if _is_of(s, user_id)]
    return Session.objects.filter(pk__in=mine).delete()[0]


def _is_of(session: Session, user_id: int) -> bool:
    return str(session.get_decoded().get("_auth_user_id", "")) == str(user_id)
