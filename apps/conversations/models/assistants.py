"""Assistants: how questions are answered, as a named and versioned whole."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.tools.models import Toolkit
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class OutputFormat(TenantModel):
    """A form that answers can be asked for: a JSON Schema of the workspace's own, by name."""

    name = models.SlugField(max_length=40)
    title = models.CharField(max_length=120, blank=True)
    schema = models.JSONField(help_text="JSON Schema of the answer, an object.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="output_format_one_per_name")
        ]

    def __str__(self) -> str:
        return self.title or self.name


class Assistant(TenantModel):
    """A named assistant of a workspace. What it does is in its versions; ``published`` answers."""

    slug = models.SlugField(max_length=40, help_text="Names it as a model: assistant/<slug>.")
    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    published = TenantForeignKey(
        "conversations.AssistantVersion", db_on_delete=SET_NULL, null=True, related_name="+"
    )
    is_archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="assistant_slug")]

    def __str__(self) -> str:
        return self.name


class AssistantVersion(TenantModel):
    """One form of an assistant. The draft (``published_at`` empty) may change; a published version never does.

    ``options`` are the mode's numbers: ``k`` (passages), ``neighbours``, ``max_steps``, ``max_tool_calls``,
    ``max_cost_usd``, ``temperature``, ``reasoning``; what is not given takes the mode's default. ``collections`` are ids;
    an empty list means all that the person may read.
    """

    class Mode(models.TextChoices):
        QUICK = "quick", "quick (search once, then answer)"
        PLANNED = "planned", "planned (plan, carry out, answer)"
        TOOLS = "tools", "tools (free loop)"
        CODE = "code", "code (programs that call tools)"

    assistant = TenantForeignKey(Assistant, related_name="versions")
    number = models.PositiveIntegerField()
    mode = models.CharField(max_length=8, choices=Mode.choices, default=Mode.TOOLS)
    model = models.CharField(
        max_length=120, blank=True, help_text="Routing name; empty: the workspace's default."
    )
    prompt = models.TextField(blank=True, help_text="What it is told besides the platform's rules.")
    collections = models.JSONField(default=list, blank=True)
    toolkit = TenantForeignKey(Toolkit, db_on_delete=SET_NULL, null=True, related_name="+")
    helpers = models.JSONField(
        default=list, blank=True, help_text="Ids of assistants it may ask, as tools."
    )
    output = models.CharField(
        max_length=40, default="text", help_text='"text", "structured", or an output format\'s name.'
    )  # fmt: skip
    starters = models.JSONField(default=list, blank=True, help_text="Questions to begin with.")
    options = models.JSONField(default=dict, blank=True)
    note = models.CharField(max_length=200, blank=True, help_text="What changed.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["assistant", "number"], name="assistant_version_number"
            ),
            models.UniqueConstraint(
                fields=["assistant"],
                condition=models.Q(published_at=None),
                name="assistant_one_draft",
            ),
            models.CheckConstraint(
                condition=models.Q(mode__in=["quick", "planned", "tools", "code"]),
                name="assistant_mode_known",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of assistant {self.assistant_id}"
