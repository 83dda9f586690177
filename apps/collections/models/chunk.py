"""Chunks, their history, the links between them, and the graph of a code base."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Value
from django.db.models.functions import Now
from django.utils.translation import pgettext_lazy

from apps.collections.models.collection import Collection, LinkOrigin
from apps.collections.models.document import Document, DocumentPartQuerySet
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import Tenant, TenantModel


def walled_tenant() -> models.ForeignKey[Any, Any]:
    """Make the tenant's key of a table with millions of rows that are written in bulk.

    Its composite keys bind the tenant, so that a constraint of its own would only be checked once more per row; and an
    index by tenant alone misleads the planner away from the one by collection.
    """
    return models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )


class ChunkKind(models.TextChoices):
    DOC = "doc", pgettext_lazy("kind of passage", "Text")
    TABLE = "table", pgettext_lazy("kind of passage", "Table")
    FUNCTION = "function", pgettext_lazy("kind of passage", "Function")
    CLASS = "class", pgettext_lazy("kind of passage", "Class")
    FILE = "file", pgettext_lazy("kind of passage", "File")


class Chunk(TenantModel):
    """A passage: ``text`` is the document's text from ``char_start`` to ``char_end``, unless somebody has edited it."""

    tenant = walled_tenant()
    # Indexes that begin with them are below.
    collection = TenantForeignKey(Collection, related_name="chunks", db_index=False)
    document = TenantForeignKey(Document, related_name="chunks", db_index=False)
    index = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=ChunkKind.choices, default=ChunkKind.DOC)
    text = models.TextField()
    char_start = models.PositiveIntegerField()
    char_end = models.PositiveIntegerField()
    page_start = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    headings = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)
    qualified_name = models.CharField(
        max_length=500,
        blank=True,
        db_default="",
        help_text="Only for functions and classes: module.Class.method.",
    )
    line_start = models.PositiveIntegerField(
        null=True, help_text="First line of the passage in its source file."
    )
    line_end = models.PositiveIntegerField(null=True)
    key_points = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        help_text="Key points of the passage, as sentences.",
    )
    points_by = models.CharField(max_length=10, choices=LinkOrigin.choices, blank=True, db_default="")
    is_disabled = models.BooleanField(db_default=False, help_text="Excluded from every search.")
    is_edited = models.BooleanField(db_default=False)

    objects = DocumentPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        verbose_name = "passage"
        constraints = [models.UniqueConstraint(fields=["document", "index"], name="chunk_index")]
        indexes = [
            models.Index(fields=["collection", "id"], name="chunk_collection"),
            models.Index(
                fields=["collection", "qualified_name"],
                condition=~models.Q(qualified_name=""),
                name="chunk_qualified_name",
            ),
            models.Index(fields=["collection"], condition=models.Q(is_disabled=True), name="chunk_disabled"),
        ]

    def __str__(self) -> str:
        return f"chunk {self.index} of document {self.document_id}"


class ChunkRevision(TenantModel):
    """What somebody changed in a chunk; ``before`` and ``after`` hold ``text`` and ``is_disabled``."""

    chunk = TenantForeignKey(Chunk, related_name="revisions")
    document = TenantForeignKey(Document, related_name="+", db_index=False)
    before = models.JSONField()
    after = models.JSONField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    note = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField(db_default=Now())

    objects = DocumentPartQuerySet.as_manager()  # type: ignore[misc]

    def __str__(self) -> str:
        return f"change of chunk {self.chunk_id}"


class ChunkLink(TenantModel):
    """One direction of a link between two chunks of a document; the other direction is a row of its own."""

    document = TenantForeignKey(Document, related_name="links")
    chunk = TenantForeignKey(Chunk, related_name="links", db_index=False)
    target = TenantForeignKey(Chunk, related_name="+")
    relation = models.CharField(
        max_length=40, help_text="continues, continued_by, same_section, parent, child, shares_terms, ..."
    )
    common_topic = models.CharField(max_length=200, blank=True)
    made_by = models.CharField(max_length=10, choices=LinkOrigin.choices)
    weight = models.FloatField(default=1.0, help_text="0 to 1, stronger first.")

    objects = DocumentPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chunk", "target", "relation"], name="chunk_link_once"),
            models.CheckConstraint(
                condition=~models.Q(chunk=models.F("target")), name="chunk_link_elsewhere"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chunk_id} {self.relation} {self.target_id}"


class EdgeKind(models.TextChoices):
    DEFINES = "defines"
    IMPORTS = "imports"
    CALLS = "calls"
    INHERITS = "inherits"


class CodeEdge(TenantModel):
    """An edge of the code graph, as written in a file; ``target`` is the chunk it was resolved to, if to one."""

    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    document = TenantForeignKey(Document, related_name="edges")
    chunk = TenantForeignKey(Chunk, related_name="edges")
    kind = models.CharField(max_length=10, choices=EdgeKind.choices)
    source_name = models.CharField(
        max_length=500, help_text="Qualified name of the code in which the edge starts."
    )
    target_name = models.CharField(
        max_length=500, help_text="Qualified name of the target if it was resolved, otherwise as written."
    )
    name = models.CharField(
        max_length=200,
        db_default="",
        help_text="Last part of the target as written, used to look up its definition.",
    )
    written = models.CharField(
        max_length=500,
        db_default="",
        help_text="The target as written in the source code; for a definition, its kind and name.",
    )
    is_stale = models.BooleanField(
        db_default=False,
        help_text="A definition of this name was added or removed, so the edge must be resolved again.",
    )
    target = TenantForeignKey(Chunk, db_on_delete=SET_NULL, null=True, related_name="edges_in")
    is_ambiguous = models.BooleanField(
        default=False, help_text="Matched by name only, or several definitions match."
    )
    line = models.PositiveIntegerField(null=True)

    objects = DocumentPartQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        indexes = [
            models.Index(fields=["collection", "name", "kind"], name="code_edge_name"),
            models.Index(
                fields=["collection", "document"], condition=models.Q(is_stale=True), name="code_edge_stale"
            ),
            models.Index(fields=["collection", "target_name", "kind"], name="code_edge_to"),
            models.Index(fields=["collection", "source_name", "kind"], name="code_edge_from"),
        ]

    def __str__(self) -> str:
        return f"{self.source_name} {self.kind} {self.target_name}"
