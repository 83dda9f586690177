"""Who decides about a call that waits: the one rule, as a condition on rows, for lists and for the decision itself.

"self" is the person the run works for. "role" is anybody who has that role or one above it, "member" one person; neither is
ever the person the run works for. A decision that was handed over may be taken by its new holder too.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import ApproverKind, PendingDecision
from tenancy.actors import Actor
from tenancy.models import Membership, Role, User
from tenancy.permissions import rank
from tenancy.selectors import role_of

APPROVALS = "approvals"
"""The topic that is notified when something begins or ceases to wait."""


def roles_up_to(role: str) -> list[str]:
    """Return the roles that somebody of a role stands for."""
    return [r for r in Role.values if rank(r) <= rank(role)]


def decidable(actor: Actor) -> Q:
    """Return the condition on ``PendingDecision`` that the actor is who decides, whether it still waits or not."""
    if actor.user_id is None:
        return Q(pk__in=())
    own = Q(run__user_id=actor.user_id)
    given = Q(assigned_to_id=actor.user_id) & ~Q(approver_kind=ApproverKind.ROLE)
    role = Q(approver_kind=ApproverKind.ROLE, approver__in=roles_up_to(role_of(actor)))
    member = Q(approver_kind=ApproverKind.MEMBER, approver=str(actor.user_id))
    return (own & Q(approver_kind=ApproverKind.SELF)) | (~own & (role | member | given))


def readable(actor: Actor) -> Q:
    """Return the condition that the actor may see a decision: asked for, decides, has decided, or manages tools.

    What only concerns the person who asked stays with that person.
    """
    if actor.user_id is None:
        return Q(pk__in=())
    found = Q(run__user_id=actor.user_id) | Q(decided_by_id=actor.user_id) | decidable(actor)
    if actor.can("tool.manage"):
        found |= ~Q(approver_kind=ApproverKind.SELF)
    return found


def deciders_of(row: PendingDecision) -> list[int]:
    """Return the ids of the members who decide about a call that waits; the rule is that of ``decidable``."""
    asker = row.run.user_id
    if row.approver_kind == ApproverKind.SELF:
        return [] if asker is None else [asker]
    if row.approver_kind == ApproverKind.MEMBER:
        named = {int(row.approver), row.assigned_to_id} - {None, asker}
        return sorted(person for person in named if person is not None)
    members = Membership.objects.filter(tenant_id=row.tenant_id, user__is_active=True).exclude(user_id=asker)
    high = [role for role in Role.values if rank(role) >= rank(row.approver)]
    return list(members.filter(role__in=high).values_list("user_id", flat=True))


def heirs(row: PendingDecision) -> QuerySet[Membership]:
    """Return the memberships a decision may be handed over to: nobody who stands below who decides now.

    Not to the person who asked, and for "member" to nobody below that person's role.
    """
    found: QuerySet[Membership] = Membership.objects.filter(
        tenant_id=row.tenant_id, user__is_active=True
    ).exclude(user_id=row.run.user_id)
    needed = row.approver
    if row.approver_kind == ApproverKind.MEMBER:
        named = Membership.objects.filter(tenant_id=row.tenant_id, user_id=int(row.approver))
        needed = named.values_list("role", flat=True).first() or Role.ADMIN
    if row.approver_kind != ApproverKind.SELF:
        found = found.filter(role__in=[r for r in Role.values if rank(r) >= rank(needed)])
    return found.select_related("user").order_by("user__email")


_AT_LEAST = {
    Role.OWNER: gettext_lazy("an owner"),
    Role.ADMIN: gettext_lazy("an admin or owner"),
    Role.MEMBER: gettext_lazy("a member, admin or owner"),
    Role.VIEWER: gettext_lazy("another member"),
}


def approver_labels(rows: Sequence[PendingDecision]) -> list[str]:
    """Return in words who decides about each, for whoever asked: “you”, “an admin or owner”, a name."""
    ids = {int(r.approver) for r in rows if r.approver_kind == ApproverKind.MEMBER}
    names = {u.pk: str(u) for u in User.objects.filter(pk__in=ids)} if ids else {}
    return [_label(row, names) for row in rows]


def role_label(role: str) -> str:
    """Return in words who has at least a role, the requester left out."""
    return str(_AT_LEAST[Role(role)])


def _label(row: PendingDecision, names: dict[int, str]) -> str:
    if row.approver_kind == ApproverKind.SELF:
        return _("you")
    if row.approver_kind == ApproverKind.ROLE:
        return role_label(row.approver)
    return names.get(int(row.approver), _("someone who has left"))
