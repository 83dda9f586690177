"""Datasets: rows of question and answer that people review, and immutable versions of them."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy, pgettext_lazy

from runs.models import Run
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class QuestionType(models.TextChoices):
    FACTUAL = "factual", gettext_lazy("Factual")
    MULTI_HOP = "multi_hop", gettext_lazy("Multi-hop")
    COMPARISON = "comparison", gettext_lazy("Comparison")
    HOW_TO = "how_to", gettext_lazy("How-to")
    CODE = "code", gettext_lazy("Code")
    UNANSWERABLE = "unanswerable", gettext_lazy("Unanswerable")
    ADVERSARIAL = "adversarial", gettext_lazy("Adversarial")
    INJECTED = "injected", gettext_lazy("Injected instructions")
    CONTRADICTORY = "contradictory", gettext_lazy("Contradicting sources")
    MULTI_TURN = "multi_turn", gettext_lazy("Several turns")


class Difficulty(models.TextChoices):
    EASY = "easy", gettext_lazy("Easy")
    MEDIUM = "medium", gettext_lazy("Medium")
    HARD = "hard", gettext_lazy("Hard")


class ExpectedBehaviour(models.TextChoices):
    """What a good assistant does with the question."""

    ANSWER = "answer", pgettext_lazy("verb", "Answers")
    ABSTAIN = "abstain", gettext_lazy("Says the documents don't answer this")
    REFUSE = "refuse", gettext_lazy("Refuses")
    CITE_ALL = "cite_all", gettext_lazy("Names all conflicting sources")


class RowStatus(models.TextChoices):
    DRAFT = "draft", gettext_lazy("Draft")
    REVIEW = "review", gettext_lazy("In review")
    APPROVED = "approved", gettext_lazy("Approved")
    REJECTED = "rejected", gettext_lazy("Rejected")


class Split(models.TextChoices):
    TRAIN = "train", gettext_lazy("Train")
    VALIDATION = "validation", gettext_lazy("Validation")
    TEST = "test", gettext_lazy("Test")


class Dataset(TenantModel):
    slug = models.SlugField(max_length=60, help_text="Name in the API and in files.")
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    needs_two_people = models.BooleanField(
        default=False, help_text="A row counts as approved when two people have approved it."
    )
    options = models.JSONField(default=dict, help_text="Settings that its checks and exports share.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="dataset_one_per_slug")]
        indexes = [models.Index(fields=["tenant", "-updated_at"], name="dataset_recent")]

    def __str__(self) -> str:
        return self.name


class DatasetRow(TenantModel):
    """A question with its answer as it is now. ``content_hash`` is of what a version would keep of it.

    The content is a ``apps.datasets.records.record.Record``, which says what each JSON field holds; ``columns`` reads and writes it.
    Its words are indexed too; ``apps.datasets.rows.search`` says how.
    """

    dataset = TenantForeignKey(Dataset, related_name="rows", db_index=False)
    content_hash = models.CharField(max_length=64)
    question = models.TextField()
    answer = models.TextField(blank=True)
    type = models.CharField(
        max_length=14, choices=QuestionType.choices, blank=True, help_text="Empty: unknown."
    )
    difficulty = models.CharField(max_length=6, choices=Difficulty.choices, blank=True)
    expected = models.CharField(
        max_length=10, choices=ExpectedBehaviour.choices, default=ExpectedBehaviour.ANSWER
    )
    language = models.CharField(max_length=20, blank=True)
    rationale = models.TextField(blank=True, help_text="Why the question is worth asking.")
    steps = models.JSONField(default=list, help_text="Reasoning: step, thought, action, input, observation.")
    sources = models.JSONField(default=list, help_text="Passages: document, offsets, quote, chunk.")
    scores = models.JSONField(default=list, help_text="Name, value 0 to 1, level 1 to 5, evidence, author.")
    quality = models.FloatField(null=True, help_text="Weighted score, 0 to 1.")
    extra = models.JSONField(default=dict, help_text="Rarely used fields: rejected, messages, tools, meta.")
    status = models.CharField(max_length=8, choices=RowStatus.choices, default=RowStatus.DRAFT)
    split = models.CharField(max_length=10, choices=Split.choices, blank=True)
    tags = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    lineage = models.JSONField(
        default=dict, help_text="Origin of the row: generation job and item, import, conversation, edits."
    )
    run = TenantForeignKey(
        Run, db_on_delete=SET_NULL, null=True, related_name="+", help_text="The run that produced the answer."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "content_hash"], name="dataset_row_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=RowStatus.values), name="dataset_row_status_known"
            ),
        ]
        indexes = [
            models.Index(fields=["dataset", "id"], name="dataset_row_order"),
            # With the tenant inside, row-level security needs no row for a count: 100,000 are counted in the index.
            models.Index(fields=["dataset", "status", "id"], include=["tenant"], name="dataset_row_status"),
            models.Index(fields=["dataset", "type", "id"], name="dataset_row_type"),
            models.Index(fields=["dataset", "difficulty", "id"], name="dataset_row_difficulty"),
            models.Index(fields=["dataset", "split", "id"], name="dataset_row_split"),
        ]

    def __str__(self) -> str:
        return self.question[:80]


class RowReview(TenantModel):
    """What a person said about a row as it was then: the two-person rule counts these. Append-only."""

    append_only = True

    class Verdict(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    row = TenantForeignKey(DatasetRow, related_name="reviews")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    verdict = models.CharField(max_length=7, choices=Verdict.choices)
    note = models.TextField(blank=True)
    content_hash = models.CharField(
        max_length=64, help_text="Hash of the row's content when it was reviewed."
    )
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.verdict} of row {self.row_id}"


class RowContent(TenantModel):
    """The content of a row as a version keeps it, stored once for all versions. Append-only."""

    append_only = True

    dataset = TenantForeignKey(Dataset, related_name="contents", db_index=False)
    hash = models.CharField(max_length=64, help_text="SHA-256 of the canonical JSON.")
    data = models.JSONField(help_text="See apps.datasets.records.record.Record.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "hash"], name="row_content_once")]

    def __str__(self) -> str:
        return self.hash


class DatasetVersion(TenantModel):
    """The rows of a dataset at one moment, for ever: the same number is always the same content. Append-only."""

    append_only = True

    dataset = TenantForeignKey(Dataset, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    content_hash = models.CharField(max_length=64, help_text="SHA-256 over the rows' hashes, in order.")
    row_count = models.PositiveIntegerField()
    manifest = models.JSONField(
        default=dict, help_text="Corpus fingerprint, prompts, models, filters, counts."
    )
    signature = models.CharField(
        max_length=64, blank=True, help_text="HMAC-SHA-256 of hash and manifest, with the server's key."
    )
    note = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number")]

    def __str__(self) -> str:
        return f"version {self.number} of dataset {self.dataset_id}"


class VersionRow(TenantModel):
    """A row in a version: which content, at which place, in which split. Append-only."""

    append_only = True

    version = TenantForeignKey(DatasetVersion, related_name="members", db_index=False)
    position = models.PositiveIntegerField()
    content = TenantForeignKey(RowContent, related_name="+")
    row_ref = models.BigIntegerField(help_text="Id of the row it was made from; versions are compared by it.")
    split = models.CharField(max_length=10, choices=Split.choices, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "position"], name="version_row_position"),
            # Two versions are compared in this index alone.
            models.UniqueConstraint(
                fields=["version", "row_ref"], include=["tenant", "content"], name="version_row_once"
            ),
        ]

    def __str__(self) -> str:
        return f"row {self.row_ref} in version {self.version_id}"
