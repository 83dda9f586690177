"""What a sample collection came with: its conversation, dataset and experiment."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.collections.models import Collection
from apps.conversations.models import Conversation
from apps.datasets.models import Dataset
from apps.evaluations.models.experiment import Experiment
from tenancy.fields import SET_NULL, TenantForeignKey, ToldCharField
from tenancy.models import TenantModel


class ExampleStep(models.TextChoices):
    """What is done next with an example; each step is one transaction, and the last three are ends."""

    DOCUMENTS = "documents", "Wait for the documents"
    CONVERSATION = "conversation", "Ask a question"
    DATASET = "dataset", "Make the dataset"
    EXPERIMENT = "experiment", "Start the experiment"
    BASELINE = "baseline", "Wait for the experiment and make its baseline"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    REMOVED = "removed", "Being removed"


EXAMPLE_ENDED = (ExampleStep.DONE, ExampleStep.FAILED, ExampleStep.REMOVED)


class Example(TenantModel):
    """What belongs to a sample collection. A part that a person deleted is empty, and isn't made again."""

    collection = TenantForeignKey(Collection, related_name="examples", db_index=False)
    conversation = TenantForeignKey(Conversation, db_on_delete=SET_NULL, null=True, related_name="+")
    dataset = TenantForeignKey(Dataset, db_on_delete=SET_NULL, null=True, related_name="+")
    experiment = TenantForeignKey(Experiment, db_on_delete=SET_NULL, null=True, related_name="+")
    step = models.CharField(max_length=12, choices=ExampleStep.choices, default=ExampleStep.DOCUMENTS)
    error = ToldCharField(max_length=500, blank=True, help_text="Why it isn't complete.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["collection"], name="example_once"),
            models.CheckConstraint(
                condition=models.Q(step__in=ExampleStep.values), name="example_step_known"
            ),
        ]

    def __str__(self) -> str:
        return f"example of collection {self.collection_id}"
