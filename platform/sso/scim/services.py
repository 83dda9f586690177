"""People and groups as a provider wants them: kept, and turned into memberships.

Whoever is deactivated or deleted loses the membership in the same transaction, as if an owner had removed them: keys are
revoked, and rooms above end streams, runs and sign-ins (``tenancy.losses``) on every machine.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict
from sso.domains import domain_is_verified
from sso.models import GroupRole, ScimGroup, ScimGroupMember, ScimUser
from sso.roles import is_kept, membership_sync, provisioned_groups
from sso.scim.errors import ScimError
from sso.scim.resources import is_id
from sso.scim.shapes import Group, Person
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant, User
from tenancy.services import audit_record, member_remove
from tenancy.services.members import lock_members


@transaction.atomic
def user_create(*, tenant: Tenant, actor: Actor, said: Person) -> ScimUser:
    """Take a person in. One that the provider deleted before comes back under a new id.

    Raises:
        ScimError: 409, the name or the person is already there; 400, the address is of a domain that isn't verified.
    """
    tenant = lock_members(tenant)
    _domain_check(tenant, said)
    user = User.objects.filter(email__iexact=said.email).first() or User.objects.create_user(said.email)
    key = said.user_name.casefold()
    same = [
        *ScimUser.objects.filter(tenant=tenant, user_key=key),
        *ScimUser.objects.filter(tenant=tenant, user=user),
    ]
    if any(row.deleted_at is None for row in same):
        raise _taken("A user with this userName or this address already exists.")
    if len({row.pk for row in same}) > 1:  # the name was one person's, the address another's
        ScimUser.objects.filter(tenant=tenant, user_key=key).exclude(user=user).delete()
        same = [row for row in same if row.user_id == user.pk]
    row = same[0] if same else ScimUser(tenant=tenant)
    row.user, row.resource_id, row.deleted_at = user, uuid.uuid4(), None
    return _stored(tenant, actor, row, said, is_new=True)


@transaction.atomic
def user_replace(*, tenant: Tenant, actor: Actor, row: ScimUser, said: Person) -> ScimUser:
    """Bring a person to what the provider says of them now.

    Their account keeps its address: it may be used elsewhere, and only its person can change it.

    Raises:
        ScimError: as ``user_create``; 400 (mutability), it is the owner that the workspace can't lose.
    """
    tenant = lock_members(tenant)
    row = user_get(tenant=tenant, resource_id=str(row.resource_id))
    _domain_check(tenant, said)
    others = ScimUser.objects.filter(tenant=tenant, user_key=said.user_name.casefold()).exclude(pk=row.pk)
    if others.filter(deleted_at=None).exists():
        raise _taken("Another user has this userName.")
    others.delete()
    return _stored(tenant, actor, row, said, is_new=False)


@transaction.atomic
def user_delete(*, tenant: Tenant, actor: Actor, row: ScimUser) -> None:
    """End a person's access, and show them to the provider no more. Raises ScimError (mutability)."""
    tenant = lock_members(tenant)
    row = user_get(tenant=tenant, resource_id=str(row.resource_id))
    ScimGroupMember.objects.filter(tenant=tenant, person=row).delete()
    row.is_active, row.deleted_at = False, timezone.now()
    row.save()
    _access_end(tenant, actor, row)
    audit_record(tenant=tenant, actor=actor, action="member.deprovision", object=row, data={"deleted": True})


@transaction.atomic
def group_put(*, tenant: Tenant, actor: Actor, row: ScimGroup | None, said: Group) -> ScimGroup:
    """Take a group in, or bring one to what the provider says of it now; its people's roles follow.

    Args:
        row: None makes one.

    Raises:
        ScimError: 409, the name is another group's; 400, a member is unknown.
    """
    tenant = lock_members(tenant)
    key = said.display_name.casefold()
    if ScimGroup.objects.filter(tenant=tenant, display_key=key).exclude(pk=row.pk if row else 0).exists():
        raise _taken("Another group has this displayName.")
    is_new = row is None
    row = (
        ScimGroup(tenant=tenant)
        if row is None
        else group_get(tenant=tenant, resource_id=str(row.resource_id))
    )
    before = set(row.members.values_list("person_id", flat=True)) if not is_new else set()
    names = {row.display_name, row.external_id}
    row.display_name, row.display_key, row.external_id = said.display_name, key, said.external_id
    row.save()
    after = before if said.members is None else _people(tenant, said.members)
    row.members.filter(person_id__in=before - after).delete()
    ScimGroupMember.objects.bulk_create(
        ScimGroupMember(tenant=tenant, group=row, person_id=pk) for pk in sorted(after - before)
    )
    audit_record(
        tenant=tenant,
        actor=actor,
        action="member.group_set",
        object=row,
        data={"is_new": is_new, "added": len(after - before), "removed": len(before - after)},
    )
    is_renamed = {row.display_name, row.external_id} != names
    changed = before | after if is_renamed else before ^ after
    _roles_follow(tenant, actor, names | {row.display_name, row.external_id}, changed)
    return row


@transaction.atomic
def group_delete(*, tenant: Tenant, actor: Actor, row: ScimGroup) -> None:
    """Forget a group; its people's roles follow."""
    tenant = lock_members(tenant)
    row = group_get(tenant=tenant, resource_id=str(row.resource_id))
    people = set(row.members.values_list("person_id", flat=True))
    audit_record(tenant=tenant, actor=actor, action="member.group_delete", object=row)
    names = {row.display_name, row.external_id}
    row.delete()
    _roles_follow(tenant, actor, names, people)


def user_get(*, tenant: Tenant, resource_id: str) -> ScimUser:
    """Return a person by the id of SCIM. Raises ScimError (404)."""
    rows = ScimUser.objects.filter(tenant=tenant, deleted_at=None)
    found: ScimUser | None = rows.filter(resource_id=resource_id).first() if is_id(resource_id) else None
    if found is None:
        raise ScimError(404, "There is no user with this id.")
    return found


def group_get(*, tenant: Tenant, resource_id: str) -> ScimGroup:
    """Return a group by the id of SCIM. Raises ScimError (404)."""
    rows = ScimGroup.objects.filter(tenant=tenant)
    found: ScimGroup | None = rows.filter(resource_id=resource_id).first() if is_id(resource_id) else None
    if found is None:
        raise ScimError(404, "There is no group with this id.")
    return found


def _stored(tenant: Tenant, actor: Actor, row: ScimUser, said: Person, *, is_new: bool) -> ScimUser:
    was_active = row.is_active and not is_new
    row.user_name, row.user_key = said.user_name, said.user_name.casefold()
    row.external_id, row.email, row.is_active = said.external_id, said.email, said.is_active
    row.given_name, row.family_name, row.display_name = said.given_name, said.family_name, said.display_name
    row.save()
    if row.is_active and not was_active:
        membership_sync(
            tenant=tenant, actor=actor, user=row.user, groups=provisioned_groups(tenant, row.user)
        )
    if not row.is_active:
        _access_end(tenant, actor, row)
    action = "member.provision" if row.is_active else "member.deprovision"
    audit_record(tenant=tenant, actor=actor, action=action, object=row, data={"is_new": is_new})
    return row


def _access_end(tenant: Tenant, actor: Actor, row: ScimUser) -> None:
    member = Membership.objects.filter(tenant=tenant, user_id=row.user_id).first()
    if member is None:
        return
    try:
        if is_kept(tenant, member):
            raise Conflict("kept", "")
        member_remove(tenant=tenant, actor=actor, member_id=member.pk)
    except Conflict as error:
        raise ScimError(
            400,
            "This person is the owner that the workspace can't lose: its last one, or the one for emergencies. "
            "Make another one under Settings first.",
            "mutability",
        ) from error


def _roles_follow(tenant: Tenant, actor: Actor, names: Iterable[str], people: Iterable[int]) -> None:
    """Give people the role that their groups say now, where the group that changed has a role."""
    if not GroupRole.objects.filter(tenant=tenant, group__in=[n for n in names if n]).exists():
        return
    rows = ScimUser.objects.select_related("user").filter(
        tenant=tenant, pk__in=list(people), is_active=True, deleted_at=None
    )
    for row in rows.order_by("pk"):
        membership_sync(
            tenant=tenant, actor=actor, user=row.user, groups=provisioned_groups(tenant, row.user)
        )


def _people(tenant: Tenant, ids: Iterable[str]) -> set[int]:
    wanted = list(ids)
    if not all(is_id(one) for one in wanted):
        raise ScimError(400, "A member of the group isn't a user here.", "invalidValue")
    rows = ScimUser.objects.filter(tenant=tenant, deleted_at=None, resource_id__in=wanted)
    found = set(rows.values_list("pk", flat=True))
    if len(found) != len(set(wanted)):
        raise ScimError(400, "A member of the group isn't a user here.", "invalidValue")
    return found


def _domain_check(tenant: Tenant, said: Person) -> None:
    if not domain_is_verified(tenant, said.email):
        raise ScimError(
            400,
            f"The domain of {said.email} isn't verified for this workspace. An owner can verify it under Settings, "
            "Sign-in.",
            "invalidValue",
        )


def _taken(detail: str) -> ScimError:
    return ScimError(409, detail, "uniqueness")
