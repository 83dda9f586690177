"""Imports of many files at once, and the tenant's rules for document types and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.collections.models.collection import Collection
from apps.collections.models.document import DocumentSource
from tenancy.fields import SET_NULL, TenantForeignKey, ToldJSONField, ToldTextField
from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor


class ImportStatus(models.TextChoices):
    QUEUED = "queued", gettext_lazy("Queued")
    RUNNING = "running", gettext_lazy("Running")
    COMPLETED = "completed", gettext_lazy("Completed")
    FAILED = "failed", gettext_lazy("Failed")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")


class ImportQuerySet(TenantQuerySet["Import"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the imports of the collections that the actor sees; like these, none of a private one."""
        seen = Collection.objects.visible_to(actor)
        return super().visible_to(actor).filter(collection__in=seen)


class Import(TenantModel):
    """One archive, folder, repository, Chroma collection or list of web pages, and what became of each entry.

    ``entries`` counts by outcome; ``problems`` lists what was left out, with the reason, up to a limit.
    """

    collection = TenantForeignKey(Collection, related_name="imports")
    source = models.CharField(max_length=10, choices=DocumentSource.choices)
    name = models.CharField(max_length=255, help_text="File name, path or address, as given.")
    options = models.JSONField(default=dict)
    file = models.CharField(max_length=255, blank=True, help_text="Key of the uploaded archive.")
    status = models.CharField(max_length=10, choices=ImportStatus.choices, default=ImportStatus.QUEUED)
    entries = models.JSONField(
        default=dict, help_text="Counts by outcome, such as found, created, updated and skipped."
    )
    problems = ToldJSONField(default=list, told=("message",))
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldTextField(blank=True)
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = ImportQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class DocumentTypeRules(TenantModel):
    """How a tenant's documents get their type; ``rules`` as ``apps.collections.ingestion`` reads them."""

    rules = models.JSONField(default=list)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="document_type_rules_once")]

    def __str__(self) -> str:
        return f"document type rules of tenant {self.tenant_id}"


class CodePatterns(TenantModel):
    """Which codes a tenant's documents have besides those everybody's have; see ``apps.collections.ingestion.codes``."""

    patterns = models.JSONField()
    digest = models.CharField(
        max_length=12, blank=True, help_text="Digest of the patterns, part of the form of the index."
    )
    late = ArrayField(
        models.CharField(max_length=30),
        default=list,
        help_text="Patterns that took too long on some passages, where their codes may be missing.",
    )
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="code_patterns_once")]

    def __str__(self) -> str:
        return f"code patterns of tenant {self.tenant_id}"
