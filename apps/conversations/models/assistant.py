"""Assistants: a mode, a model, collections, a toolkit, a prompt and an output format, under one name and in versions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.collections.models import Collection
from apps.tools.models import Toolkit
from tenancy.fields import SET_NULL, OrderedJSONField, TenantForeignKey
from tenancy.models import TenantModel


class Mode(models.TextChoices):
    """How an assistant comes to its answer."""

    TOOLS = "tools", gettext_lazy("tools (the model calls tools as it sees fit)")
    QUICK = "quick", gettext_lazy("quick (one search, then the answer)")
    PLANNED = "planned", gettext_lazy("planned (a plan, its steps, then the answer)")
    CODE = "code", gettext_lazy("code (the model writes programs that call tools)")


class Output(models.TextChoices):
    """What form an answer has."""

    TEXT = "text", gettext_lazy("Text")
    STRUCTURED = "structured", gettext_lazy("structured (answer, citations, confidence, follow-up questions)")
    SCHEMA = "schema", gettext_lazy("a JSON Schema of this workspace")


class Assistant(TenantModel):
    """Whom people ask. What it does is in its versions; people talk to the published one."""

    slug = models.SlugField(max_length=60, help_text="Name in the API.")
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    published = TenantForeignKey(
        "conversations.AssistantVersion", db_on_delete=SET_NULL, null=True, related_name="+"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    archived_at = models.DateTimeField(
        null=True, help_text="When it was archived; an archived assistant can't be chosen."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="assistant_one_per_slug")]

    def __str__(self) -> str:
        return self.name


class AssistantVersion(TenantModel):
    """What an assistant is, once and for all: changing it makes the next version."""

    assistant = TenantForeignKey(Assistant, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    mode = models.CharField(max_length=8, choices=Mode.choices, default=Mode.TOOLS)
    model = models.CharField(
        max_length=120,
        blank=True,
        help_text="Model with its provider prefix; empty: the workspace's default at the time of each question.",
    )
    prompt = models.TextField(blank=True, help_text="Instructions added to the platform's own rules.")
    searches_all = models.BooleanField(
        default=True, help_text="Searches all collections, including future ones."
    )
    toolkit = TenantForeignKey(
        Toolkit,
        db_on_delete=SET_NULL,
        null=True,
        related_name="+",
        help_text="Tools it can use, limited to what the person asking can call; empty: all of those.",
    )
    has_toolkit = models.BooleanField(
        default=False,
        help_text="A toolkit was chosen. If it is deleted, the assistant has no tools rather than all.",
    )
    output = models.CharField(max_length=10, choices=Output.choices, default=Output.TEXT)
    output_name = models.CharField(max_length=64, blank=True, help_text="Schema name.")
    output_schema = OrderedJSONField(
        null=True, help_text="JSON Schema of type object; models answer in the order of its properties."
    )
    options = models.JSONField(
        default=dict, help_text="Settings of the mode; see apps.conversations.assistants.options."
    )
    starters = models.JSONField(default=list, help_text="Questions offered in a new conversation.")
    note = models.CharField(max_length=200, blank=True, help_text="What changed.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assistant", "number"], name="assistant_version_number"),
            models.CheckConstraint(
                condition=models.Q(output="schema", output_schema__isnull=False)
                | ~models.Q(output="schema") & models.Q(output_schema__isnull=True),
                name="assistant_version_schema",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of assistant {self.assistant_id}"


class AssistantCollection(TenantModel):
    """A collection that a version searches."""

    version = TenantForeignKey(AssistantVersion, related_name="scope", db_index=False)
    collection = TenantForeignKey(Collection, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "collection"], name="assistant_collection_once")
        ]

    def __str__(self) -> str:
        return f"collection {self.collection_id} in assistant version {self.version_id}"


class AssistantHelper(TenantModel):
    """Another assistant that a version may ask as a tool."""

    version = TenantForeignKey(AssistantVersion, related_name="helpers", db_index=False)
    assistant = TenantForeignKey(Assistant, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "assistant"], name="assistant_helper_once")]

    def __str__(self) -> str:
        return f"assistant {self.assistant_id} helps version {self.version_id}"
