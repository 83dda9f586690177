"""What a person was told of, and in which ways they want to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor

M = TypeVar("M", bound=TenantModel)


class NoticeQuerySet(TenantQuerySet[M]):
    def visible_to(self, actor: Actor) -> Self:
        """Notices are their person's alone, whatever the role of others; no key sees any, its person's neither."""
        rows = super().visible_to(actor)
        if actor.kind != "user" or actor.user_id is None:
            return rows.none()
        return rows.filter(user_id=actor.user_id)


class MailState(models.TextChoices):
    """How far a notice is on its way by mail."""

    OPEN = "open", "not decided yet"
    SENDING = "sending", "being sent"
    SENT = "sent", "sent"
    NONE = "none", "not sent by mail"


class Notice(TenantModel):
    """That something has happened to a thing, for one person. At most one of each thing: a newer one replaces it.

    It holds no name: what a thing is called, where it is and whether its person may still see it is read when it is told
    (``notices.sources``).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, help_text="What the thing is: answer, approval, import, …")
    object_id = models.BigIntegerField()
    state = models.CharField(max_length=20, help_text="What has become of it.")
    at = models.DateTimeField(db_default=Now())
    read_at = models.DateTimeField(null=True)
    shown_at = models.DateTimeField(null=True, help_text="When a browser took it to show it.")
    mail = models.CharField(
        max_length=10, choices=MailState.choices, default=MailState.OPEN, db_default=MailState.OPEN
    )
    mail_at = models.DateTimeField(null=True, help_text="When that was decided.")

    objects: ClassVar[Any] = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "user", "kind", "object_id"], name="notice_one_of_each_thing"
            ),
            models.CheckConstraint(
                condition=models.Q(mail__in=MailState.values), name="notice_mail_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "user", "-at"], name="notice_of_person"),
            models.Index(fields=["at"], name="notice_age"),
            models.Index(fields=["at"], condition=models.Q(mail="open"), name="notice_mail_open"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}: {self.state}"


class NoticeSetting(TenantModel):
    """In which ways a person wants to be told in a workspace; a group that ``ways`` lacks has the defaults."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    ways = models.JSONField(default=dict, help_text="By group, the ways that are on.")
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="notice_setting_one_a_person")]

    def __str__(self) -> str:
        return f"notices of person {self.user_id}"
