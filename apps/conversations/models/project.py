"""Projects: folders of conversations with instructions and collections of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.collections.models import Collection
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor

M = TypeVar("M", bound=models.Model)


class Sharing(models.TextChoices):
    """Who sees a project beside its owner. Conversations in it stay with those who began them."""

    OWNER = "owner", gettext_lazy("Only you")
    MEMBERS = "members", gettext_lazy("Chosen members")
    WORKSPACE = "workspace", gettext_lazy("Everyone in the workspace")


class ProjectQuerySet(TenantQuerySet["Project"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the actor's own projects and those shared with them; a key for chosen collections sees none.

        What a project says may come from documents that such a key may not know of.
        """
        rows = super().visible_to(actor)
        if actor.user_id is None or actor.collections is not None:
            return rows.none()
        named = ProjectMember.objects.filter(
            tenant_id=actor.tenant_id, project_id=models.OuterRef("pk"), user_id=actor.user_id
        )
        return rows.filter(
            models.Q(user_id=actor.user_id)
            | models.Q(sharing=Sharing.WORKSPACE)
            | models.Q(models.Exists(named), sharing=Sharing.MEMBERS)
        )


class ProjectPartQuerySet(TenantQuerySet[M]):
    """Rows that hang below a project: they are seen by those who see the project."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows of projects that the actor sees."""
        return super().visible_to(actor).filter(project__in=Project.objects.visible_to(actor))


class Project(TenantModel):
    """A folder of conversations. It shares its name, instructions and collections, never a conversation."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Owner; empty: their account was erased, and admins who see it manage it.",
    )
    name = models.CharField(max_length=120)
    instructions = models.TextField(blank=True, help_text="Given to the model with each question in it.")
    searches_all = models.BooleanField(
        default=True,
        help_text="Its conversations begin with all collections. Deleting a chosen collection doesn't widen this.",
    )
    sharing = models.CharField(max_length=10, choices=Sharing.choices, default=Sharing.OWNER)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectQuerySet.as_manager()  # type: ignore[misc]

    def __str__(self) -> str:
        return self.name


class ProjectCollection(TenantModel):
    """A collection that conversations of a project begin with."""

    project = TenantForeignKey(Project, related_name="scope", db_index=False)
    collection = TenantForeignKey(Collection, related_name="+")

    objects = ProjectPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "collection"], name="project_collection_once")
        ]

    def __str__(self) -> str:
        return f"collection {self.collection_id} in project {self.project_id}"


class ProjectMember(TenantModel):
    """A person who sees a project that is shared with chosen members."""

    project = TenantForeignKey(Project, related_name="members", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    objects = ProjectPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="project_member_once")]

    def __str__(self) -> str:
        return f"user {self.user_id} in project {self.project_id}"
