"""Documents: versions of files, who may see them, and their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.collections.models.collection import Collection
from tenancy.fields import SET_NULL, TenantForeignKey, ToldJSONField, ToldTextField
from tenancy.models import Role, TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor

M = TypeVar("M", bound=models.Model)

TYPE_BY_HAND = "set by hand"
"""``Document.type_reason`` of a type that no rule may change."""

UNREADABLE = frozenset({"empty_file", "encrypted_pdf", "corrupt_file", "unsupported_type"})
"""``Document.error_code`` where the file itself is the cause: it is read as badly the next time (``FailureCode``)."""


class DocumentStatus(models.TextChoices):
    QUEUED = "queued", gettext_lazy("Queued")
    PROCESSING = "processing", gettext_lazy("Processing")
    READY = "ready", gettext_lazy("Ready")
    FAILED = "failed", gettext_lazy("Failed")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")


class Stage(models.TextChoices):
    FETCH = "fetch", "Fetching"
    PARSE = "parse", "Reading"
    CHUNK = "chunk", "Splitting"
    SUMMARISE = "summarise", "Summarising"
    EMBED = "embed", "Embedding"
    INDEX = "index", "Indexing"


class DocumentSource(models.TextChoices):
    """How a document came here."""

    UPLOAD = "upload", pgettext_lazy("source of documents", "Upload")
    ARCHIVE = "archive", pgettext_lazy("source of documents", "Archive")
    FOLDER = "folder", gettext_lazy("Folder on the server")
    GIT = "git", gettext_lazy("Git repository")
    URL = "url", gettext_lazy("Web page")
    CHROMA = "chroma", gettext_lazy("Chroma collection")
    TOOL = "tool", gettext_lazy("File tool")


class DocumentQuerySet(TenantQuerySet["Document"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the tenant's documents without those that are limited to others.

        The system sees all: it acts for nobody, and what it does for a person is done with that person's actor.
        """
        rows = super().visible_to(actor)
        if actor.kind == "system":
            return rows
        return rows.filter(models.Q(is_restricted=False) | models.Q(models.Exists(access_of(actor, "pk"))))

    def current(self) -> Self:
        """Return the versions that are live or on their way to it, not the retired ones."""
        return self.filter(live_to__isnull=True)


class DocumentPartQuerySet(TenantQuerySet[M]):
    """Rows that hang below a document: they are seen by whoever may see the document."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the tenant's rows without those of documents that are limited to others."""
        rows = super().visible_to(actor)
        if actor.kind == "system":
            return rows
        return rows.filter(
            models.Q(document__is_restricted=False) | models.Q(models.Exists(access_of(actor, "document_id")))
        )


def access_of(actor: Actor, column: str) -> models.QuerySet[DocumentAccess]:
    """Return the entries that open the document in the outer query's ``column`` to an actor."""
    mine = models.Q(role=actor.role) if actor.role else models.Q(pk__in=[])
    if actor.user_id is not None:
        mine |= models.Q(user_id=actor.user_id)
    rows: models.QuerySet[DocumentAccess] = DocumentAccess.objects.filter(
        mine, tenant_id=actor.tenant_id, document_id=models.OuterRef(column)
    )
    return rows


class Document(TenantModel):
    """One version of a file and how far its ingestion is. ``stage`` is the one that runs, or the one that failed.

    The file's identity in its collection is ``path``. A version is searched from ``live_from`` until ``live_to``; a new
    one goes live, and retires the one before, in the transaction that ends its ingestion.
    """

    collection = TenantForeignKey(Collection, related_name="documents", db_index=False)
    name = models.CharField(max_length=255)
    path = models.CharField(
        max_length=1000, help_text="Path in the collection; the name alone if it is in no folder."
    )
    version = models.PositiveIntegerField(default=1)
    live_from = models.DateTimeField(null=True, help_text="When it became searchable.")
    live_to = models.DateTimeField(null=True, help_text="When a newer version replaced it.")
    restored_from = TenantForeignKey("self", db_on_delete=SET_NULL, null=True, related_name="+")
    source = models.CharField(max_length=10, choices=DocumentSource.choices, default=DocumentSource.UPLOAD)
    source_url = models.TextField(blank=True, help_text="Address of the web page it was imported from.")
    batch = TenantForeignKey("collections.Import", db_on_delete=SET_NULL, null=True, related_name="documents")
    is_restricted = models.BooleanField(
        default=False, help_text="Only the listed roles and members can see it."
    )
    document_type = models.CharField(max_length=60, blank=True)
    type_reason = models.CharField(
        max_length=255,
        blank=True,
        help_text="The rule that decided the type; “set by hand” means that rules don't change it.",
    )
    tags = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    dated = models.DateField(null=True, help_text="Date of the document, if known.")
    attributes = models.JSONField(default=dict, help_text="The team's own metadata; search can filter on it.")
    media_type = models.CharField(
        max_length=100, help_text="Guessed from the file name, then detected from the content."
    )
    title = models.CharField(max_length=300, blank=True)
    language = models.CharField(
        max_length=20,
        blank=True,
        db_default="",
        help_text="English name of the text's language, or of its script if only that is clear; see toolloop.language_detection.",
    )
    lexical_form = models.CharField(
        max_length=30,
        blank=True,
        db_default="",
        help_text="How its words become search terms: a version and a stemming language; see apps.collections.ingestion.lexical.",
    )
    cover = models.CharField(
        max_length=200,
        blank=True,
        db_default="",
        help_text="Searched together with each passage: title, name, company, form, date, period.",
    )
    is_paged = models.BooleanField(default=True)
    warnings = ToldJSONField(
        default=list, help_text="Warnings from reading the file, as sentences for the owner."
    )
    metadata = models.JSONField(default=dict, help_text="Facts that the reader found in the file.")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    file = models.CharField(max_length=255, help_text="Key of the original in the file storage.")
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    job = TenantForeignKey("jobs.Job", db_on_delete="SET NULL", null=True, related_name="+")
    status = models.CharField(max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.QUEUED)
    stage = models.CharField(max_length=10, choices=Stage.choices, default=Stage.FETCH)
    progress_current = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldTextField(blank=True)
    page_count = models.PositiveIntegerField(default=0)
    skipped_pages = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    vector_count = models.PositiveIntegerField(default=0)
    lexical_count = models.PositiveIntegerField(default=0)
    identifiers_found = models.PositiveIntegerField(default=0)
    identifiers_total = models.PositiveIntegerField(default=0)
    code_form = models.CharField(
        max_length=40,
        blank=True,
        help_text="Form in which the index stores its codes; see apps.collections.index.codes.",
    )
    timings = models.JSONField(default=dict, help_text="Seconds per stage.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True)

    objects = DocumentQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "path", "sha256"],
                condition=models.Q(live_from__isnull=True, live_to__isnull=True),
                name="document_once_per_collection",
            ),
            models.UniqueConstraint(
                fields=["collection", "path"],
                condition=models.Q(live_from__isnull=False, live_to__isnull=True),
                name="document_one_live",
            ),
            models.UniqueConstraint(fields=["collection", "path", "version"], name="document_version_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=DocumentStatus.values), name="document_status_known"
            ),
        ]
        indexes = [
            models.Index(fields=["collection", "-created_at"], name="document_newest"),
            # Whether a row still names an original, or needs what was made of it: asked before either is deleted.
            models.Index(fields=["tenant", "sha256"], name="document_content"),
            # What makes a search look at documents at all: see apps.collections.search.statement.
            models.Index(
                fields=["collection"],
                condition=models.Q(chunk_count__gt=0)
                & (
                    ~models.Q(status=DocumentStatus.READY)
                    | models.Q(live_to__isnull=False)
                    | models.Q(is_restricted=True)
                ),
                name="document_not_open",
            ),
            GinIndex(fields=["tags"], name="document_tags"),
            GinIndex(fields=["attributes"], name="document_attributes", opclasses=["jsonb_path_ops"]),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        """Tell whether its ingestion waits or runs."""
        return self.status in (DocumentStatus.QUEUED, DocumentStatus.PROCESSING)

    @property
    def cannot_be_read(self) -> bool:
        """Tell whether only another file can help; what to do is in ``error_message``."""
        return self.status == DocumentStatus.FAILED and self.error_code in UNREADABLE

    @property
    def can_retry(self) -> bool:
        """Tell whether it isn't read and reading it again may help."""
        return self.status in (DocumentStatus.FAILED, DocumentStatus.CANCELLED) and not self.cannot_be_read

    @property
    def is_live(self) -> bool:
        """Tell whether it is searched today; only then do the statistics count its lexical rows."""
        return self.live_from is not None and self.live_to is None

    @property
    def progress_percent(self) -> float:
        """Give the progress of the running stage, 0 to 100."""
        return 100 * self.progress_current / self.progress_total if self.progress_total else 0.0

    @property
    def identifier_fidelity(self) -> float | None:
        """Give the share of the original's distinct codes and numbers that its chunks kept, None if it has none.

        Cut down to whole percents, so that it is 1.0 only when nothing is missing.
        """
        if not self.identifiers_total:
            return None
        return (100 * self.identifiers_found // self.identifiers_total) / 100


class DocumentAccess(TenantModel):
    """One role or one member that may see a restricted document."""

    document = TenantForeignKey(Document, related_name="access", db_index=False)
    role = models.CharField(max_length=10, choices=Role.choices, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["document", "role", "user"], nulls_distinct=False, name="document_access_once"
            ),
            models.CheckConstraint(
                condition=models.Q(role="", user__isnull=False)
                | (~models.Q(role="") & models.Q(user__isnull=True)),
                name="document_access_role_or_user",
            ),
        ]

    def __str__(self) -> str:
        return f"document {self.document_id} for {self.role or self.user_id}"


class Page(TenantModel):
    """The text of one page; a document's text, in which chunks count, is the plain concatenation of its pages."""

    document = TenantForeignKey(Document, related_name="pages", db_index=False)
    number = models.PositiveIntegerField()
    text = models.TextField()
    char_start = models.PositiveIntegerField()
    skip_reason = models.CharField(max_length=30, blank=True)
    width = models.FloatField(default=0)
    height = models.FloatField(default=0)
    layout = models.JSONField(default=dict, help_text="Headings and regions, in the reader's wire format.")

    objects = DocumentPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="page_number")]

    def __str__(self) -> str:
        return f"page {self.number} of document {self.document_id}"
