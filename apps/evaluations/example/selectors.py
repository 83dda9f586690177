"""What a sample collection came with, and what of it a removal takes away."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.collections.collection.samples import SAMPLES
from apps.collections.models import Document
from apps.conversations.models import Conversation, Turn
from apps.datasets.models import Dataset, DatasetRow, DatasetVersion, RowStatus, VersionRow
from apps.evaluations.models import (
    AnnotationQueue,
    Example,
    Experiment,
    Trial,
)
from basics.errors import Missing
from jobs.models import ACTIVE
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sample that is there.

    Attributes:
        kind: ``conversation``, ``experiment``, ``dataset`` or ``collection``.
        label: what it is, for people.
        name: its name; "" for a conversation, whose title is its owner's alone.
        url: its page; "" where the actor can't open it.
        stays: why a removal leaves it, as a sentence; "" when it goes.
    """

    kind: str
    label: str
    name: str
    url: str
    stays: str


def example_get(*, actor: Actor, collection_pk: int) -> Example:
    """Return what a sample collection came with. Raises Missing, also for any other collection."""
    actor.require("collection.read")
    actor.require("evaluation.read")
    rows = Example.objects.visible_to(actor).select_related("collection", "tenant")
    row: Example | None = rows.filter(collection=collection_pk).first()
    if row is None:
        raise Missing("collection")
    return row


def is_busy(example: Example) -> bool:
    """Tell whether jobs still write answers of its experiment."""
    return Trial.objects.filter(experiment=example.experiment_id or 0, job__status__in=ACTIVE).exists()


def example_parts(*, actor: Actor, example: Example) -> list[Part]:
    """Return the parts that are still there, in the order in which a removal takes them."""
    slug = example.tenant.slug
    found: list[Part] = []
    conversation = Conversation.objects.filter(pk=example.conversation_id or 0, removed_at=None).first()
    if conversation is not None:
        is_mine = conversation.user_id == actor.user_id
        url = reverse("conversations:detail", args=[slug, conversation.pk]) if is_mine else ""
        stays = _conversation_stays(conversation)
        found.append(Part("conversation", _("Conversation"), "", url, stays))
    experiment = Experiment.objects.visible_to(actor).filter(pk=example.experiment_id or 0).first()
    kept = _experiment_stays(experiment) if experiment else ""
    if experiment is not None:
        url = reverse("evaluations:detail", args=[slug, experiment.pk])
        found.append(Part("experiment", _("Experiment"), experiment.name, url, kept))
    dataset = Dataset.objects.visible_to(actor).filter(pk=example.dataset_id or 0).first()
    if dataset is not None:
        stays = _dataset_stays(dataset, example, is_needed=bool(kept))
        url = reverse("datasets:detail", args=[slug, dataset.pk])
        found.append(Part("dataset", _("Dataset"), dataset.name, url, stays))
    collection = example.collection
    url = reverse("collections:detail", args=[slug, collection.pk])
    found.append(Part("collection", _("Collection"), collection.name, url, _collection_stays(example)))
    return found


def _conversation_stays(conversation: Conversation) -> str:
    if Turn.objects.filter(conversation=conversation).count() > 1:
        return _("The conversation stays: its owner has asked more in it.")
    return ""


def _experiment_stays(experiment: Experiment) -> str:
    if AnnotationQueue.objects.filter(experiment=experiment).exists():
        return _("The experiment stays: people grade its answers.")
    return ""


def _dataset_stays(dataset: Dataset, example: Example, *, is_needed: bool) -> str:
    others = Experiment.objects.filter(dataset=dataset).exclude(pk=example.experiment_id or 0)
    if is_needed or others.exists():
        return _("The dataset stays: an experiment that stays was made with it.")
    versions = DatasetVersion.objects.filter(dataset=dataset)
    frozen = VersionRow.objects.filter(version__in=versions).values_list("content__hash", flat=True)
    rows = DatasetRow.objects.filter(dataset=dataset, status=RowStatus.APPROVED)
    as_made = set(rows.values_list("content_hash", flat=True)) == set(frozen)
    if versions.count() != 1 or not as_made or dataset.rows.exclude(status=RowStatus.APPROVED).exists():
        return _("The dataset stays: people have changed it.")
    return ""


def _collection_stays(example: Example) -> str:
    own = {name for sample in SAMPLES for name in sample.files}
    if Document.objects.filter(collection=example.collection_id).exclude(name__in=own).exists():
        return _("The collection stays: people have added documents to it.")
    return ""
