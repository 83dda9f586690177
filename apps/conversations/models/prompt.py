"""Prompts that people keep: texts to begin a message with, their own or the workspace's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor


class PromptQuerySet(TenantQuerySet["Prompt"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the actor's own and the shared ones; a key for chosen collections sees none, as no collection holds them."""
        rows = super().visible_to(actor)
        if actor.collections is not None:
            return rows.none()
        own = models.Q(user_id=actor.user_id, user_id__isnull=False)
        return rows.filter(own | models.Q(is_shared=True))


class Prompt(TenantModel):
    """A text to begin a message with. ``{name}`` in it is a variable, which is asked for when the prompt is used."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Who made it; only they see it unless it is shared.",
    )
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    text = models.TextField()
    is_shared = models.BooleanField(default=False, help_text="Every member of the workspace can use it.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    objects = PromptQuerySet.as_manager()  # type: ignore[misc]

    def __str__(self) -> str:
        return self.name
