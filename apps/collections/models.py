"""Collections, their documents, and what search needs: pages, chunks, vectors and weighted terms."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField, SparseVectorField

from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel

TERM_DIMENSIONS = 1_000_000_000  # the most that sparsevec takes; a term's id is a hash below it


class EmbeddingSpace(models.Model):
    """Vectors that may be compared: one model in one precision. Shared by all tenants (it holds no content)."""

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    dimensions = models.PositiveIntegerField()
    fingerprint = models.CharField(
        max_length=80, help_text="Weights and precision; never mixed in one space."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model", "dimensions", "fingerprint"],
                name="embedding_space_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.dimensions})"


class Collection(TenantModel):
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    chunk_size = models.PositiveIntegerField(
        default=1200, help_text="Characters per chunk, at most."
    )
    chunk_overlap = models.PositiveIntegerField(
        default=200, help_text="Characters two neighbours share."
    )
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)
    # Statistics of the lexical leg, kept with each document's index stage.
    term_total = models.BigIntegerField(
        default=0, help_text="Terms in all chunks, for the average length."
    )
    chunk_total = models.BigIntegerField(default=0, help_text="Chunks that are searchable now.")
    average_length = models.FloatField(
        default=0, help_text="Terms per chunk that the stored term weights assume."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "tenant", models.functions.Lower("name"), name="collection_name_once"
            ),
            models.CheckConstraint(
                condition=models.Q(chunk_size__gte=200, chunk_size__lte=4000)
                & models.Q(chunk_overlap__lt=models.F("chunk_size") / 2),
                name="collection_chunk_sizes",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class DocumentStatus(models.TextChoices):
    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stage(models.TextChoices):
    STORE = "store", "Stored"
    PARSE = "parse", "Reading"
    CHUNK = "chunk", "Chunking"
    EMBED = "embed", "Embedding"
    INDEX = "index", "Indexing"


class Document(TenantModel):
    """A file and how far its ingestion is. ``stage`` is the one that runs, or the one that failed."""

    collection = TenantForeignKey(Collection, related_name="documents")
    name = models.CharField(max_length=255)
    media_type = models.CharField(
        max_length=100, help_text="Guessed from the name, then read from the bytes."
    )
    title = models.CharField(max_length=300, blank=True)
    is_paged = models.BooleanField(default=True)
    warnings = models.JSONField(default=list, help_text="Sentences for the owner, from the reader.")
    metadata = models.JSONField(default=dict, help_text="Facts of the reader.")
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    file = models.CharField(max_length=255, help_text="Key of the original in the file storage.")
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    job = TenantForeignKey("jobs.Job", db_on_delete="SET NULL", null=True, related_name="+")
    status = models.CharField(
        max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.QUEUED
    )
    stage = models.CharField(max_length=6, choices=Stage.choices, default=Stage.STORE)
    progress_current = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    page_count = models.PositiveIntegerField(default=0)
    skipped_pages = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    vector_count = models.PositiveIntegerField(default=0)
    lexical_count = models.PositiveIntegerField(default=0)
    identifiers_found = models.PositiveIntegerField(default=0)
    identifiers_total = models.PositiveIntegerField(default=0)
    timings = models.JSONField(default=dict, help_text="Seconds per stage.")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "sha256"], name="document_once_per_collection"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=DocumentStatus.values), name="document_status_known"
            ),
        ]
        indexes = [models.Index(fields=["collection", "-created_at"], name="document_newest")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        """Tell whether its ingestion waits or runs."""
        return self.status in (DocumentStatus.QUEUED, DocumentStatus.PROCESSING)

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


class Page(TenantModel):
    """The text of one page; a document's text, in which chunks count, is the plain concatenation of its pages."""

    document = TenantForeignKey(Document, related_name="pages")
    number = models.PositiveIntegerField()
    text = models.TextField()
    char_start = models.PositiveIntegerField()
    skip_reason = models.CharField(max_length=30, blank=True)
    width = models.FloatField(default=0)
    height = models.FloatField(default=0)
    layout = models.JSONField(
        default=dict, help_text="Headings and regions, as the reader's wire format has them."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="page_number")]

    def __str__(self) -> str:
        return f"page {self.number} of document {self.document_id}"


class Chunk(TenantModel):
    """A passage: ``text`` is the document's text from ``char_start`` to ``char_end``."""

    collection = TenantForeignKey(Collection, related_name="chunks")
    document = TenantForeignKey(Document, related_name="chunks")
    index = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, default="text")
    text = models.TextField()
    char_start = models.PositiveIntegerField()
    char_end = models.PositiveIntegerField()
    page_start = models.PositiveIntegerField(null=True)
    page_end = models.PositiveIntegerField(null=True)
    headings = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["document", "index"], name="chunk_index")]
        indexes = [models.Index(fields=["collection", "id"], name="chunk_collection")]

    def __str__(self) -> str:
        return f"chunk {self.index} of document {self.document_id}"


class Embedding(TenantModel):
    """One chunk's vector in one space, in a narrow table of its own (exact scan reads 4 to 5 times less)."""

    pk = models.CompositePrimaryKey("chunk_id", "space_id")
    chunk = TenantForeignKey(Chunk, related_name="embeddings", db_index=False)
    space = models.ForeignKey(
        EmbeddingSpace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    # A copy of the chunk's, to filter without a join. Not a key: the chunk's own key binds both, and a cascade by
    # document would scan this whole table.
    document_id = models.BigIntegerField()
    vector = HalfVectorField()

    class Meta:
        indexes = [models.Index(fields=["collection", "space"], name="embedding_scope")]


class ChunkTerms(TenantModel):
    """The lexical side of a chunk: BM25 term weights (the idf is in the query) and exact identifiers as lexemes."""

    chunk = TenantForeignKey(Chunk, primary_key=True, related_name="+")
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    document_id = models.BigIntegerField(help_text="A copy of the chunk's; see Embedding.")
    length = models.PositiveIntegerField()
    weights = SparseVectorField(dimensions=TERM_DIMENSIONS)
    lexemes = SearchVectorField()

    class Meta:
        indexes = [
            models.Index(fields=["collection"], name="chunk_terms_collection"),
            GinIndex(fields=["lexemes"], name="chunk_terms_lexemes", fastupdate=False),
        ]


class TermFrequency(TenantModel):
    """In how many searchable chunks of a collection a term stands."""

    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    term = models.IntegerField()
    chunks = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "term"], name="term_once")]
