"""Grants: given and taken back, never changed, so that the audit trail tells what held when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.collections.models import Collection
from apps.tools.models import ToolGrant, Toolkit
from apps.tools.policy.conditions import Unevaluable, conditions_compile
from apps.tools.policy.reasons import DEFAULT_NOTE
from apps.tools.toolset.bundles import BUILTIN, COLLECTIONS
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from runs.models import ApproverKind
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Role, Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from toolloop.storable import json_storable

MAX_GRANTS = 2_000
MAX_APPROVAL_HOURS = 24 * 365
# (effect, group, calls): what every workspace starts with; all else is denied.
DEFAULTS = (
    ("allow", BUILTIN, "read_only"),
    ("allow", COLLECTIONS, "read_only"),
    ("ask", BUILTIN, "side_effects"),
    ("ask", COLLECTIONS, "side_effects"),
)


def default_grants(tenant: Tenant) -> None:
    """Give a new workspace what it starts with, inside the transaction that makes it."""
    with tenant_scope(tenant.pk):
        ToolGrant.objects.bulk_create(
            ToolGrant(
                tenant=tenant,
                effect=effect,
                target_kind=ToolGrant.Target.GROUP,
                target=group,
                calls=calls,
                note=DEFAULT_NOTE,
            )
            for effect, group, calls in DEFAULTS
        )


@transaction.atomic
def grant_create(
    *,
    tenant: Tenant,
    actor: Actor,
    effect: str,
    target_kind: str,
    target: str = "",
    toolkit: int | None = None,
    calls: str = "any",
    subject_kind: str = "everyone",
    subject: str = "",
    collection: int | None = None,
    arguments: Any = None,
    expires_at: datetime | None = None,
    note: str = "",
    replaces: int | None = None,
    approver_kind: str = "self",
    approver: str = "",
    approval_hours: int | None = None,
    needs_reason: bool = False,
) -> ToolGrant:
    """Add a rule about who may call what.

    Args:
        effect: allow, ask or deny.
        target_kind: tool, group, pattern or toolkit; ``target`` names it, ``toolkit`` is the id of one.
        calls: any, read_only or side_effects.
        subject_kind: everyone, role, member or api_key; ``subject`` is the role, or the id of the person or key.
        collection: id of the one collection it is about; None for all.
        arguments: conditions on the call's arguments, see ``apps.tools.policy.conditions``.
        replaces: id of the rule whose place it takes, for the history.
        approver_kind: with ask, who decides: self (the requester), role (somebody else who has at least it) or member;
            ``approver`` is the role, or the id of the person.
        approval_hours: how long a call may wait; None takes the server's setting.
        needs_reason: whether a rejection must say why.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: a field cannot be used; ``data["fields"]`` says which.
        Missing: no such collection or toolkit.
    """
    actor.require("tool.manage")
    for field, value, kinds in (
        ("effect", effect, ToolGrant.Effect.values),
        ("target_kind", target_kind, ToolGrant.Target.values),
        ("calls", calls, ToolGrant.Calls.values),
        ("subject_kind", subject_kind, ToolGrant.SubjectKind.values),
        ("approver_kind", approver_kind, ApproverKind.values),
    ):
        if value not in kinds:
            raise _invalid(field, _("Use one of %(known)s.") % {"known": ", ".join(kinds)})
    target = target.strip()
    if (target_kind == ToolGrant.Target.TOOLKIT) != (toolkit is not None):
        raise _invalid("toolkit", _("Choose a toolkit only for a rule about a toolkit; it needs one."))
    if (toolkit is None) == (not target) or len(target) > 120 or "\x00" in target:
        raise _invalid("target", _("Name the tool, group or pattern; a toolkit needs no name."))
    conditions = [] if arguments is None else arguments
    try:
        conditions_compile(conditions, needs_all=effect == "allow")
    except Unevaluable as error:
        raise _invalid(
            "arguments", _("These conditions cannot be used: %(error)s.") % {"error": error}
        ) from error
    if json_storable(conditions) != conditions:
        raise _invalid("arguments", _("Conditions can contain only plain text and finite numbers."))
    if expires_at is not None and expires_at <= timezone.now():
        raise _invalid("expires_at", _("This time is in the past. Choose a later one."))
    if len(note) > 200 or "\x00" in note:
        raise _invalid("note", _("A note has at most 200 characters of plain text."))
    if effect != ToolGrant.Effect.ASK and (
        approver_kind != "self" or approval_hours is not None or needs_reason
    ):
        raise _invalid("approver_kind", _("Only a rule that asks can name an approver."))
    if approval_hours is not None and not 1 <= approval_hours <= MAX_APPROVAL_HOURS:
        raise _invalid(
            "approval_hours", _("Give 1 to %(most)s hours.") % {"most": number_told(MAX_APPROVAL_HOURS)}
        )
    with tenant_scope(tenant.pk):
        if ToolGrant.objects.filter(tenant=tenant).count() >= MAX_GRANTS:
            raise _invalid(
                "effect",
                _("This workspace already has %(most)s rules. Remove one first.")
                % {"most": number_told(MAX_GRANTS)},
            )
        _check_subject(tenant, subject_kind, subject)
        _check_approver(tenant, approver_kind, approver)
        if collection is not None and not Collection.objects.visible_to(actor).filter(pk=collection).exists():
            raise Missing("collection")
        if toolkit is not None and not Toolkit.objects.filter(tenant=tenant, pk=toolkit).exists():
            raise Missing("toolkit")
        row: ToolGrant = ToolGrant.objects.create(
            tenant=tenant,
            effect=effect,
            target_kind=target_kind,
            target=target,
            toolkit_id=toolkit,
            calls=calls,
            subject_kind=subject_kind,
            subject=subject,
            collection_id=collection,
            arguments=conditions,
            expires_at=expires_at,
            note=note.strip(),
            approver_kind=approver_kind,
            approver=approver,
            approval_hours=approval_hours,
            needs_reason=needs_reason,
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_grant.create",
            object=row,
            data={"replaces": replaces, "before": None, "after": grant_kept(row)},
        )
    return row


@transaction.atomic
def grant_delete(*, tenant: Tenant, actor: Actor, pk: int) -> dict[str, Any]:
    """Take a rule back.

    Returns:
        What ``grant_create`` takes to give it again.

    Raises:
        Denied, Missing: without the right; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = ToolGrant.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("grant")
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_grant.delete",
            object=row,
            data={"before": grant_kept(row), "after": None},
        )
        row.delete()
    return grant_terms(row)


def grant_terms(row: ToolGrant) -> dict[str, Any]:
    """Return a grant as the arguments that ``grant_create`` takes."""
    return {
        "effect": row.effect,
        "target_kind": row.target_kind,
        "target": row.target,
        "toolkit": row.toolkit_id,
        "calls": row.calls,
        "subject_kind": row.subject_kind,
        "subject": row.subject,
        "collection": row.collection_id,
        "arguments": row.arguments,
        "expires_at": row.expires_at,
        "note": row.note,
        "approver_kind": row.approver_kind,
        "approver": row.approver,
        "approval_hours": row.approval_hours,
        "needs_reason": row.needs_reason,
    }


@dataclass(frozen=True, slots=True)
class GrantsChange:
    """What a change of grants did: the facts of those taken back, as ``grant_create`` takes them, and those given."""

    removed: list[dict[str, Any]]
    added: list[ToolGrant]


@transaction.atomic
def grants_change(
    *, tenant: Tenant, actor: Actor, remove: Sequence[int] = (), add: Sequence[Mapping[str, Any]] = ()
) -> GrantsChange:
    """Take grants back and give others in one step, so that no call is held against only half of it.

    To edit a rule is to replace it; to undo a change is to remove what it added and to add what it removed.

    Args:
        remove: ids; one that is gone already stops the change.
        add: for each new grant, the arguments of ``grant_create``.

    Raises:
        Denied, Missing, Invalid: as ``grant_create`` and ``grant_delete``.
    """
    removed = [grant_delete(tenant=tenant, actor=actor, pk=pk) for pk in remove]
    added = [grant_create(tenant=tenant, actor=actor, **facts) for facts in add]
    return GrantsChange(removed, added)


def _check_subject(tenant: Tenant, kind: str, subject: str) -> None:
    if kind == ToolGrant.SubjectKind.EVERYONE:
        if subject:
            raise _invalid("subject", _("“Everyone” needs no name. Leave it empty."))
        return
    if kind == ToolGrant.SubjectKind.ROLE:
        if subject not in Role.values:
            raise _invalid(
                "subject", _("Use one of the roles %(roles)s.") % {"roles": ", ".join(Role.values)}
            )
        return
    if not _is_id(subject):
        raise _invalid("subject", _("Give the id of the person or key."))
    if kind == ToolGrant.SubjectKind.MEMBER:
        known = Membership.objects.filter(tenant=tenant, user_id=int(subject)).exists()
    else:
        known = ApiKey.objects.filter(tenant=tenant, pk=int(subject)).exists()
    if not known:
        raise Missing("member" if kind == ToolGrant.SubjectKind.MEMBER else "key")


def grant_kept(row: ToolGrant) -> dict[str, Any]:
    """Return a grant's terms as the audit trail keeps them: plain JSON."""
    terms = grant_terms(row)
    return terms | {"expires_at": row.expires_at.isoformat() if row.expires_at else None}


def _is_id(text: str) -> bool:
    """Tell whether this is an id as the engine spells it: with a leading zero, a rule would never apply."""
    return text.isascii() and text.isdigit() and len(text) < 19 and str(int(text)) == text


def _check_approver(tenant: Tenant, kind: str, approver: str) -> None:
    if kind == ApproverKind.SELF:
        if approver:
            raise _invalid("approver", _("Leave the name empty: the requester needs none."))
    elif kind == ApproverKind.ROLE:
        if approver not in Role.values:
            raise _invalid(
                "approver", _("Use one of the roles %(roles)s.") % {"roles": ", ".join(Role.values)}
            )
    elif not _is_id(approver):
        raise _invalid("approver", _("Give the id of the person."))
    elif not Membership.objects.filter(tenant=tenant, user_id=int(approver)).exists():
        raise Missing("member")


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("grant_invalid", message, data={"fields": {field: [message]}})
