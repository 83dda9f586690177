"""Datasets, their rows and versions, and the jobs that generate them."""

from apps.datasets.models.dataset import (
    Dataset,
    DatasetRow,
    DatasetVersion,
    Difficulty,
    ExpectedBehaviour,
    QuestionType,
    RowContent,
    RowReview,
    RowStatus,
    Split,
    VersionRow,
)
from apps.datasets.models.generation import (
    ITEM_OPEN,
    JOB_ACTIVE,
    GenerationItem,
    GenerationJob,
    GenerationState,
    ItemState,
    PaidCall,
)

__all__ = [
    "ITEM_OPEN",
    "JOB_ACTIVE",
    "Dataset",
    "DatasetRow",
    "DatasetVersion",
    "Difficulty",
    "ExpectedBehaviour",
    "GenerationItem",
    "GenerationJob",
    "GenerationState",
    "ItemState",
    "PaidCall",
    "QuestionType",
    "RowContent",
    "RowReview",
    "RowStatus",
    "Split",
    "VersionRow",
]
