"""What the REST API of curation takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.curation.reviews import MAX_NOTE, MAX_SETTLED, SETTLEMENTS
from apps.datasets.curation.services import MAX_CHOSEN
from apps.datasets.formats import FORMATS
from apps.datasets.models import (
    DatasetCheck,
    Difficulty,
    QuestionType,
    RowReview,
    RowStatus,
    Split,
    WorkStatus,
)

_EXPORTS = [name for name, form in FORMATS.items() if form.is_export]


class _Work(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    dataset_id = serializers.IntegerField()
    status = serializers.ChoiceField(choices=WorkStatus.choices)
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ExportInput(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, help_text="Version number; default: the newest."
    )
    form = serializers.ChoiceField(choices=_EXPORTS, help_text="The format.")
    split = serializers.ChoiceField(choices=[("", "All rows"), *Split.choices], required=False, default="")

    class Meta:
        ref_name = "DatasetExportStart"


class FindingOutput(serializers.Serializer[Any]):
    kind = serializers.CharField()
    row = serializers.CharField(help_text="The row's number.")
    field = serializers.CharField()
    shown = serializers.CharField(help_text="What was found, masked.")
    fingerprint = serializers.CharField(help_text="Identifies the finding when it is allowed.")

    class Meta:
        ref_name = "DatasetFinding"


class ExportOutput(_Work):
    version = serializers.IntegerField(source="version.number")
    form = serializers.CharField(source="format")
    split = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    rows = serializers.IntegerField(help_text="Read back from the file unchanged.")
    left_out = serializers.IntegerField(help_text="Rows the format can't hold.")
    problems = serializers.ListField(child=serializers.CharField(), help_text="What the validator found.")
    findings = FindingOutput(many=True)
    finding_count = serializers.IntegerField(help_text="Total number, listed or not.")

    class Meta:
        ref_name = "DatasetExport"


class AcceptInput(serializers.Serializer[Any]):
    fingerprints = serializers.ListField(
        child=serializers.RegexField(r"^[0-9a-f]{64}$"), min_length=1, max_length=200
    )
    note = serializers.CharField(max_length=300, help_text="Why this is safe to export.")

    class Meta:
        ref_name = "DatasetFindingAccept"


class RowsImportInput(serializers.Serializer[Any]):
    form = serializers.ChoiceField(choices=list(FORMATS), help_text="The format.")
    file = serializers.FileField()
    is_trial = serializers.BooleanField(
        required=False, default=False, help_text="Read the whole file and report without adding rows."
    )

    class Meta:
        ref_name = "DatasetImportStart"


class RowProblemOutput(serializers.Serializer[Any]):
    row = serializers.IntegerField(help_text="Its number in the file, from 1.")
    message = serializers.CharField()
    text = serializers.CharField(help_text="The beginning of the row.")
    part = serializers.CharField(help_text="The file inside an archive.")

    class Meta:
        ref_name = "DatasetRowProblem"


class RowsImportOutput(_Work):
    form = serializers.CharField(source="format")
    name = serializers.CharField()
    is_trial = serializers.BooleanField()
    found = serializers.IntegerField(help_text="Rows that could be read.")
    created = serializers.IntegerField()
    duplicates = serializers.IntegerField(help_text="Rows that were already there.")
    failed = serializers.IntegerField(help_text="Rows that could not be read.")
    problems = RowProblemOutput(many=True, help_text="The first unreadable rows; the file of errors has all.")

    class Meta:
        ref_name = "DatasetImport"


class CheckInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=DatasetCheck.Kind.choices)
    shares = serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=1),
        required=False,
        help_text="For splits: the shares of train, validation and test; must sum to 1.",
    )
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False, default=0)
    with_meaning = serializers.BooleanField(
        required=False, default=False, help_text="For duplicates: compare by embeddings too."
    )
    against = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        max_length=100,
        help_text="For contamination: ids of other datasets, such as public ones, that a model may have "
        "been trained on. Exports check them from then on; default: those set before.",
    )
    is_trial = serializers.BooleanField(
        required=False, default=False, help_text="For splits: report what would move without moving it."
    )

    class Meta:
        ref_name = "DatasetCheckStart"


class RowFilterInput(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=RowStatus.choices, required=False)
    type = serializers.ChoiceField(choices=QuestionType.choices, required=False)
    difficulty = serializers.ChoiceField(choices=Difficulty.choices, required=False)
    split = serializers.ChoiceField(choices=Split.choices, required=False)
    tag = serializers.CharField(required=False, max_length=60)
    text = serializers.CharField(required=False, max_length=200, help_text="Words, or their beginnings.")
    source = serializers.CharField(required=False, max_length=1000, help_text="Name of a document.")  # type: ignore[assignment]
    job = serializers.RegexField(
        r"^[1-9][0-9]{0,17}$", required=False, help_text="Id of the generation that created them."
    )

    class Meta:
        ref_name = "DatasetRowFilter"


class SplitAssignInput(serializers.Serializer[Any]):
    into = serializers.ChoiceField(choices=Split.choices)
    only = RowFilterInput(required=False, help_text="Filter for rows, as in the row list.")
    rows = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        max_length=MAX_CHOSEN,
        help_text="Or the rows' ids.",
    )
    is_trial = serializers.BooleanField(
        required=False, default=False, help_text="Report what would move without moving it."
    )

    class Meta:
        ref_name = "DatasetSplitAssign"


class CheckOutput(_Work):
    kind = serializers.ChoiceField(choices=DatasetCheck.Kind.choices)
    options = serializers.DictField()
    result = serializers.DictField(help_text="Counts, and the first findings.")

    class Meta:
        ref_name = "DatasetCheck"


class ReviewInput(serializers.Serializer[Any]):
    verdict = serializers.ChoiceField(choices=RowReview.Verdict.choices)
    content_hash = serializers.RegexField(r"^[0-9a-f]{64}$", help_text="Hash of the row you reviewed.")
    note = serializers.CharField(required=False, allow_blank=True, max_length=2000, default="")

    class Meta:
        ref_name = "DatasetRowReview"


def _row_id() -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class SettleInput(serializers.Serializer[Any]):
    rows = serializers.ListField(child=_row_id(), min_length=1, max_length=MAX_SETTLED)
    act = serializers.ChoiceField(choices=list(SETTLEMENTS.items()))
    note = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_NOTE, default="", help_text="Required to reject."
    )

    class Meta:
        ref_name = "DatasetRowsSettle"


class SettleOutput(serializers.Serializer[Any]):
    changed = serializers.IntegerField(help_text="Number of rows changed.")

    class Meta:
        ref_name = "DatasetRowsSettled"
