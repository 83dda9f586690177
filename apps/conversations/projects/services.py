"""Writes of projects: make one, change it, share it, delete it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.db.models import QuerySet

from apps.conversations.models import Conversation, Project, ProjectCollection, ProjectMember, Sharing
from apps.conversations.projects.selectors import editable_by
from apps.conversations.transcript.locks import advisory_lock, collections_checked, text_plain
from apps.conversations.turns.bulk import MOST, conversations_delete
from basics.errors import Denied, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant, User
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_PROJECTS = 200
MAX_INSTRUCTIONS = 20_000
KEEP, DELETE = "keep", "delete"


def project_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    instructions: str = "",
    collections: Sequence[int] = (),
    sharing: str = Sharing.OWNER,
    members: Sequence[int] = (),
) -> Project:
    """Create a project; its name is all it needs.

    Args:
        instructions: given to the model with each question asked in it.
        collections: ids of those that its conversations begin with; none means all, also ones that come later.
        sharing: who sees it beside its owner, one of ``Sharing``.
        members: ids of the people, for ``members``.

    Raises:
        Denied: the actor may not, stands for no person, or may not see the members it is shared with.
        Invalid: a field can't be used; ``data["fields"]`` says which.
    """
    actor.require("conversation.write")
    owner = _owner(actor)
    chosen = collections_checked(actor, collections)
    row = Project(
        tenant=tenant,
        user_id=owner,
        name=_name(name),
        instructions=_instructions(instructions),
        searches_all=not chosen,
        sharing=_sharing(sharing),
    )
    people = _people(tenant, actor, members, owner=owner)
    with transaction.atomic():
        advisory_lock(f"projects:{tenant.pk}:{owner}")
        if Project.objects.filter(tenant=tenant, user_id=owner).count() >= MAX_PROJECTS:
            raise _refused("name", _("A person can have at most %(most)s projects.") % {"most": MAX_PROJECTS})
        row.save(force_insert=True)
        _collections_write(row, [c.pk for c in chosen])
        _members_write(row, people)
        audit_record(
            tenant=tenant, actor=actor, action="project.create", object=row, data={"sharing": row.sharing}
        )
    return row


def project_change(
    *,
    tenant: Tenant,
    actor: Actor,
    project: Project,
    name: str | None = None,
    instructions: str | None = None,
    collections: Sequence[int] | None = None,
    sharing: str | None = None,
    members: Sequence[int] | None = None,
) -> Project:
    """Change a project; what is None stays.

    Conversations of people who don't see it any more leave it. Others keep what they search.

    Raises:
        Denied: as ``project_create``, or the project is somebody else's.
        Missing: the project is gone, or not shared with the actor any more.
        Invalid: a field can't be used; ``data["fields"]`` says which.
    """
    actor.require("conversation.write")
    values: dict[str, Any] = {
        "name": None if name is None else _name(name),
        "instructions": None if instructions is None else _instructions(instructions),
        "sharing": None if sharing is None else _sharing(sharing),
    }
    chosen = None if collections is None else collections_checked(actor, collections)
    with transaction.atomic():
        row = _locked(actor, project)
        people = None
        if members is not None:
            known = set(row.members.values_list("user_id", flat=True))
            people = _people(tenant, actor, members, owner=row.user_id, known=known)
        changed = [field for field, value in values.items() if value not in (None, getattr(row, field))]
        before = row.sharing
        for field in changed:
            setattr(row, field, values[field])
        if chosen is not None:
            row.searches_all = not chosen
            row.scope.all().delete()
            _collections_write(row, [c.pk for c in chosen])
            changed.append("collections")
        if people is not None:
            row.members.all().delete()
            _members_write(row, people)
            changed.append("members")
        if not changed:
            return row
        row.save(update_fields=["name", "instructions", "sharing", "searches_all", "updated_at"])
        left = _strangers_leave(tenant, row)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="project.change",
            object=row,
            data={
                "changed": changed,
                "before": {"sharing": before},
                "after": {"sharing": row.sharing},
                "conversations_left": left,
            },
        )
    return row


def project_delete(*, tenant: Tenant, actor: Actor, project: Project, conversations: str = KEEP) -> list[int]:
    """Delete a project. Conversations of other people stay, outside of any project.

    Args:
        conversations: "keep" the actor's own in it, outside of any project, or "delete" them as
            ``conversations_delete`` does, archived ones too.

    Returns:
        The ids of the conversations that were deleted; that can be undone.

    Raises:
        Denied, Missing: as ``project_change``.
        Invalid: neither keep nor delete.
    """
    actor.require("conversation.write")
    if conversations not in (KEEP, DELETE):
        raise _refused("conversations", _("Say whether to keep or to delete the conversations."))
    with transaction.atomic():
        row = _locked(actor, project)
        _inside_locked(tenant, row)
        deleted: list[int] = []
        if conversations == DELETE:
            mine = Conversation.objects.visible_to(actor).filter(project=row)
            pks = sorted(mine.values_list("pk", flat=True))
            for start in range(0, len(pks), MOST):
                deleted += conversations_delete(
                    tenant=tenant, actor=actor, conversations=pks[start : start + MOST]
                )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="project.delete",
            object=row,
            data={"conversations": conversations, "deleted": len(deleted)},
        )
        row.delete()
    return deleted


def editing_allowed(project: Project) -> None:
    """Refuse who may not change a project, a row of ``project_list``. Raises Denied."""
    if not getattr(project, "is_editable", False):
        raise _not_yours()


def person_projects_erase(person: User) -> Mapping[str, int]:
    """Delete a person's projects that nobody else sees, in every workspace; shared ones stay, without an owner."""
    own = Project.objects.filter(user=person, sharing=Sharing.OWNER)
    deleted = 0
    for tenant in list(Tenant.objects.filter(pk__in=own.values("tenant_id").distinct())):
        with tenant_scope(tenant.pk), transaction.atomic():
            # A conversation may be moved in at this moment, or the project be shared: projects first, then those in them.
            for row in list(own.filter(tenant=tenant).order_by("pk").select_for_update(of=("self",))):
                _inside_locked(tenant, row)
                row.delete()
                deleted += 1
    return {"conversations.Project": deleted}


def projects_unnamed(actor: Actor, pks: Collection[int]) -> set[int]:
    """Return those of some projects whose names the actor may not see in the audit trail: other people's own, and deleted ones."""
    seen = Project.objects.visible_to(actor).filter(pk__in=pks).values_list("pk", flat=True)
    return {*pks} - {*seen}


def _locked(actor: Actor, project: Project) -> Project:
    rows = Project.objects.visible_to(actor).select_for_update(of=("self",))
    row: Project | None = rows.filter(pk=project.pk).first()
    if row is None:
        raise Missing("project")
    if not rows.filter(editable_by(actor), pk=row.pk).exists():
        raise _not_yours()
    return row


def _not_yours() -> Denied:
    return Denied("project_not_yours", _("Only the owner of this project can change it. Ask them."))


def _strangers_leave(tenant: Tenant, row: Project) -> int:
    """Take conversations of those who don't see a project any more out of it; return how many."""
    if row.sharing == Sharing.WORKSPACE:
        return 0
    allowed: set[int] = set() if row.user_id is None else {row.user_id}
    if row.sharing == Sharing.MEMBERS:
        allowed |= set(row.members.values_list("user_id", flat=True))
    inside = _inside_locked(tenant, row)
    return inside.exclude(user_id__in=allowed).update(project=None)


def _inside_locked(tenant: Tenant, row: Project) -> QuerySet[Conversation]:
    """Return the conversations of a locked project, locked in the order of ``transcript.locks.project_hold``."""
    inside = Conversation.objects.filter(tenant=tenant, project=row)
    list(inside.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
    return inside


def _collections_write(row: Project, collections: Iterable[int]) -> None:
    ProjectCollection.objects.bulk_create(
        ProjectCollection(tenant_id=row.tenant_id, project=row, collection_id=pk) for pk in collections
    )


def _members_write(row: Project, people: Iterable[int]) -> None:
    ProjectMember.objects.bulk_create(
        ProjectMember(tenant_id=row.tenant_id, project=row, user_id=pk) for pk in sorted(people)
    )


def _people(
    tenant: Tenant, actor: Actor, pks: Sequence[int], *, owner: int | None, known: Collection[int] = ()
) -> set[int]:
    """Return ids of members, each once and without the owner's.

    Args:
        known: those of people whom the project is shared with already; they can be kept or left out without further rights.

    Raises:
        Denied: without the right to see members, others were named.
        Invalid: a person isn't a member.
    """
    wanted = set(pks) - {owner}
    if wanted - set(known):
        actor.require("member.read")  # else ids could be tried out
    found = Membership.objects.filter(tenant=tenant, user_id__in=wanted)
    if found.count() != len(wanted):
        raise _refused("members", _("One of the chosen people is not a member of this workspace any more."))
    return wanted


def _owner(actor: Actor) -> int:
    """Return the id of the person whose project the actor makes. Raises Denied."""
    if actor.user_id is None or actor.collections is not None:
        raise Denied(
            "person_needed",
            _(
                "A project belongs to a person. Use a key that acts for a person and isn't limited to collections."
            ),
        )
    return actor.user_id


def _name(name: str) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not 1 <= len(name) <= 120:
        raise _refused("name", _("Enter a name of 1 to 120 characters."))
    return name


def _instructions(text: str) -> str:
    text = text_plain(text)
    if len(text) > MAX_INSTRUCTIONS:
        raise _refused(
            "instructions",
            _("Instructions can have at most %(most)s characters.") % {"most": intcomma(MAX_INSTRUCTIONS)},
        )
    return text


def _sharing(value: str) -> str:
    if value not in Sharing.values:
        raise _refused("sharing", _("Choose who sees the project."))
    return value


def _refused(name: str, message: str) -> Invalid:
    return Invalid("project_invalid", message, data={"fields": {name: [message]}})
