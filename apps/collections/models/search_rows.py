"""What search reads: vectors, weighted terms, and indexes for collections that outgrow an exact scan."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import pgettext_lazy
from pgvector.django import HalfVectorField, SparseVectorField

from apps.collections.models.chunk import Chunk, walled_tenant
from apps.collections.models.collection import Collection, EmbeddingSpace
from tenancy.fields import SET_NULL, TenantForeignKey, ToldTextField
from tenancy.models import TenantModel

TERM_DIMENSIONS = 1_000_000_000  # the most that sparsevec takes; a term's id is a hash below it


class Embedding(TenantModel):
    """One chunk's vector in one space, in a narrow table of its own (exact scan reads 4 to 5 times less)."""

    tenant = walled_tenant()
    pk = models.CompositePrimaryKey("chunk_id", "space_id")
    chunk = TenantForeignKey(Chunk, related_name="embeddings", db_index=False)
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+", db_index=False)
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    # A copy of the chunk's, to filter without a join. Not a key: the chunk's own key binds both, and a cascade by
    # document would scan this whole table.
    document_id = models.BigIntegerField()
    vector = HalfVectorField()

    class Meta:
        # The chunk's id stands in it for the tail behind an index of the collection: see SearchIndex.last_chunk.
        indexes = [models.Index(fields=["collection", "space", "chunk"], name="embedding_scope_chunk")]


class ChunkTerms(TenantModel):
    """The lexical side of a chunk: BM25 term weights (the idf is in the query) and exact identifiers as lexemes."""

    tenant = walled_tenant()
    chunk = TenantForeignKey(Chunk, primary_key=True, related_name="+")
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    document_id = models.BigIntegerField(help_text="Copied from the passage; see Embedding.")
    length = models.PositiveIntegerField()
    weights = SparseVectorField(dimensions=TERM_DIMENSIONS)
    lexemes = SearchVectorField()

    class Meta:
        indexes = [
            models.Index(fields=["collection", "chunk"], name="chunk_terms_scope"),
            GinIndex(fields=["lexemes"], name="chunk_terms_lexemes", fastupdate=False),
        ]


class TermFrequency(TenantModel):
    """In how many searchable chunks of a collection a term stands."""

    tenant = walled_tenant()
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    term = models.IntegerField()
    chunks = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "term"], name="term_once")]


class SearchIndexStatus(models.TextChoices):
    BUILDING = "building"
    READY = "ready"
    RETIRED = "retired", "retired (replaced or no longer needed, to be dropped)"


class SearchIndex(TenantModel):
    """An index made for one collection that is too large to scan: a graph over its vectors, or postings of its terms.

    Search uses one only while it is ``ready``; its successor is built beside it.
    """

    class Kind(models.TextChoices):
        GRAPH = "graph", "Graph"  # HNSW, over a table of its own: apps.collections.index.graphs
        HNSW = (
            "hnsw",
            "HNSW",
        )  # on the table of all vectors, as versions before built it: replaced, never used
        POSTINGS = "postings", "Postings"

    collection = TenantForeignKey(Collection, related_name="indexes")
    space = models.ForeignKey(EmbeddingSpace, null=True, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    status = models.CharField(
        max_length=10, choices=SearchIndexStatus.choices, default=SearchIndexStatus.BUILDING
    )
    last_chunk = models.BigIntegerField(
        default=0, help_text="The index covers passages up to this id; later ones are scanned."
    )
    chunk_count = models.BigIntegerField(default=0, help_text="Rows when it was built.")
    # What the places in its postings mean: two packed arrays of int64, in the order of the chunks.
    chunk_ids = models.BinaryField(default=b"")
    document_ids = models.BinaryField(default=b"")
    edited = ArrayField(
        models.BigIntegerField(),
        default=list,
        help_text="Passages edited since the index was built; search weighs them separately.",
    )
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    built_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "kind", "space", "status"],
                condition=~models.Q(status="retired"),
                nulls_distinct=False,
                name="search_index_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of collection {self.collection_id}"


class Posting(TenantModel):
    """The chunks of a large collection that have a term, as packed arrays: one row per term and block of chunks."""

    tenant = walled_tenant()
    index = TenantForeignKey(SearchIndex, related_name="+", db_index=False)
    term = models.IntegerField()
    block = models.IntegerField(
        help_text="Number of the block of passages; blocks limit the memory that a build needs."
    )
    size = models.IntegerField(help_text="Number of passages.")
    places = models.BinaryField(help_text="Positions in the index, as packed uint32.")
    weights = models.BinaryField(help_text="Weights of the term at these positions, as packed float32.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["index", "term", "block"], include=["size"], name="posting_once")
        ]

    def __str__(self) -> str:
        return f"term {self.term} of {self.index_id}"


class SpaceSwap(TenantModel):
    """The move of a collection to another embedding model, beside the live one: build, compare, switch, drop."""

    class Status(models.TextChoices):
        BUILDING = "building", pgettext_lazy("switch of the embedding model", "Building")
        READY = "ready", pgettext_lazy("switch of the embedding model", "ready to switch")
        SWITCHED = "switched", pgettext_lazy("switch of the embedding model", "Switched")
        UNDONE = "undone", pgettext_lazy("switch of the embedding model", "Undone")
        DROPPED = "dropped", pgettext_lazy("switch of the embedding model", "old vectors removed")
        CANCELLED = "cancelled", pgettext_lazy("switch of the embedding model", "Cancelled")
        FAILED = "failed", pgettext_lazy("switch of the embedding model", "Failed")

    collection = TenantForeignKey(Collection, related_name="swaps")
    from_space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+")
    to_space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.BUILDING)
    done = models.BigIntegerField(default=0, help_text="Passages with a vector from the new model.")
    total = models.BigIntegerField(default=0)
    comparison = models.JSONField(
        default=dict, help_text="How well the results of both models agree on sampled questions."
    )
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="+")
    error_message = ToldTextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    switched_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection"],
                condition=models.Q(status__in=["building", "ready", "switched"]),
                name="space_swap_one_open",
            )
        ]

    def __str__(self) -> str:
        return f"swap of collection {self.collection_id} ({self.status})"


class SearchCase(TenantModel):
    """A question saved in the search test bench with the passages that should answer it.

    ``expected`` holds spans (``path``, ``char_start``, ``char_end``), so that it survives another chunking.
    """

    collection = TenantForeignKey(Collection, related_name="cases")
    query = models.TextField()
    filters = models.JSONField(default=dict)
    k = models.PositiveIntegerField(default=10)
    expected = models.JSONField(default=list)
    note = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.query[:80]


class CollectionSnapshot(TenantModel):
    """A name for a moment of a collection, to search it as it was then."""

    collection = TenantForeignKey(Collection, related_name="snapshots", db_index=False)
    name = models.CharField(max_length=120)
    at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "name"], name="snapshot_name_once")]

    def __str__(self) -> str:
        return self.name
