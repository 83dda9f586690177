"""What a person has a workspace's models keep in mind: their own notes, for nobody else to see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.conversations.models.conversation import Turn
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor

MAX_ENTRY = 400
M = TypeVar("M", bound=TenantModel)


class MemoryQuerySet(TenantQuerySet[M]):
    def visible_to(self, actor: Actor) -> Self:
        """Notes are their person's alone, whatever the role of others; no key sees any, its person's neither."""
        rows = super().visible_to(actor)
        if actor.kind != "user" or actor.user_id is None:
            return rows.none()
        return rows.filter(user_id=actor.user_id)


class MemorySetting(TenantModel):
    """Whether a person has switched their memory on in a workspace; without a row it is off."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    is_on = models.BooleanField(default=False, db_default=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = MemoryQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="memory_setting_one_a_person")]

    def __str__(self) -> str:
        return f"memory of person {self.user_id}"


class MemoryEntry(TenantModel):
    """One note of a person's, given to models with the questions that this person asks."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=MAX_ENTRY)
    by_model = models.BooleanField(
        default=False, db_default=False, help_text="A model wrote it, with the tool “remember”."
    )
    turn = TenantForeignKey(
        Turn,
        db_on_delete=SET_NULL,
        null=True,
        related_name="+",
        help_text="The question in which the person said it; empty: they wrote the note themselves.",
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memory entries"
        indexes = [models.Index(fields=["tenant", "user"], name="memory_entry_of_person")]

    def __str__(self) -> str:
        # Never its text: the audit trail and the admin show this name.
        return f"memory entry {self.pk}"
