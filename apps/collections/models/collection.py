"""A collection, and the space its vectors live in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy, pgettext_lazy

from tenancy.models import TenantModel, TenantQuerySet

if TYPE_CHECKING:
    from tenancy.actors import Actor


class LinkOrigin(models.TextChoices):
    """Who made a summary or a link."""

    RULE = "rule", "Rules"
    MODEL = "model", "A model"


class RerankerChoice(models.TextChoices):
    """What reads the best passages of a search once more."""

    DEFAULT = "default", gettext_lazy("The server's, if it has one")
    NONE = "none", pgettext_lazy("reranker", "None")
    CROSS_ENCODER = "cross-encoder", gettext_lazy("A cross-encoder on the server")
    MODEL = "model", gettext_lazy("A language model")


class EmbeddingSpace(models.Model):
    """Vectors that may be compared: one model in one precision. Shared by all tenants (it holds no content)."""

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    dimensions = models.PositiveIntegerField()
    fingerprint = models.CharField(
        max_length=80,
        help_text="Identifies the model's weights and precision, which all vectors of a space share.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model", "dimensions", "fingerprint"], name="embedding_space_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.dimensions})"


class CollectionQuerySet(TenantQuerySet["Collection"]):
    def visible_to(self, actor: Actor) -> Self:
        """Return the tenant's collections without private ones, which nobody chooses, lists or counts: not even whose
        they are. Their documents are limited to that person.
        """
        return super().visible_to(actor).filter(owner=None)


class Collection(TenantModel):
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    chunk_size = models.PositiveIntegerField(default=1200, help_text="Maximum characters per passage.")
    chunk_overlap = models.PositiveIntegerField(
        default=200, help_text="Characters shared by neighbouring passages."
    )
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Set for a private collection: only this person can see its documents, and no list shows it.",
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)
    language = models.CharField(
        max_length=20,
        default="english",
        help_text="Language of the documents, for better search; “simple” searches words as they are.",
    )
    links_by = models.CharField(
        max_length=10,
        choices=LinkOrigin.choices,
        default=LinkOrigin.RULE,
        help_text="How key points and links between passages are made: by rules or by a model.",
    )
    links_model = models.CharField(
        max_length=120,
        blank=True,
        help_text="Model that writes key points and links, with its provider prefix.",
    )
    reranker = models.CharField(
        max_length=13,
        choices=RerankerChoice.choices,
        default=RerankerChoice.DEFAULT,
        help_text="Model that reorders the best passages of a search.",
    )
    reranker_model = models.CharField(
        max_length=120,
        blank=True,
        help_text="Language model that grades passages for reranking, with its provider prefix.",
    )
    keep_versions = models.PositiveIntegerField(
        default=10, help_text="Earlier versions to keep of each document; older ones are removed."
    )
    file_rules = models.JSONField(
        default=dict,
        help_text="Limits for files: allowed and blocked paths, sizes; see apps.collections.tree.rules.",
    )
    # Statistics of the lexical leg, kept with each document's index stage.
    term_total = models.BigIntegerField(
        default=0, help_text="Terms in all searchable passages, used to compute the average length."
    )
    chunk_total = models.BigIntegerField(default=0, help_text="Passages that are searchable now.")
    lexical_forms = ArrayField(
        models.CharField(max_length=30),
        default=list,
        help_text="Forms in which its index stores terms; a question is searched in each of them. See apps.collections.ingestion.lexical.",
    )
    average_length = models.FloatField(
        default=0, help_text="Average terms per passage that the stored term weights are based on."
    )

    objects = CollectionQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "tenant",
                models.functions.Lower("name"),
                condition=models.Q(owner__isnull=True),
                name="collection_name_once",
            ),
            models.CheckConstraint(
                condition=models.Q(chunk_size__gte=200, chunk_size__lte=4000)
                & models.Q(chunk_overlap__lt=models.F("chunk_size") / 2),
                name="collection_chunk_sizes",
            ),
        ]

    @classmethod
    def collection_path(cls) -> str:
        """See ``TenantModel``: it is the collection."""
        return "pk"

    def __str__(self) -> str:
        return self.name
