"""What the REST API of versions, access, embedding swaps, checks and document types takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenancy.models import Role

SWAP_STEPS = ("switch", "undo", "drop", "cancel", "retry")


class MoveInput(serializers.Serializer[Any]):
    path = serializers.CharField(max_length=1000, help_text="Where it is to lie, folder/name.")

    class Meta:
        ref_name = "DocumentMove"


class AccessInput(serializers.Serializer[Any]):
    is_restricted = serializers.BooleanField(help_text="False opens it to the workspace.")
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=Role.choices),
        required=False,
        max_length=10,
        help_text="Each alone: owners are not included by themselves.",
    )
    users = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        required=False,
        max_length=1000,
        help_text="Ids of members.",
    )

    class Meta:
        ref_name = "DocumentAccessInput"


class AccessOutput(serializers.Serializer[Any]):
    is_restricted = serializers.BooleanField()
    roles = serializers.ListField(child=serializers.CharField())
    users = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        ref_name = "DocumentAccess"


class CountOutput(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="Documents that were put into the queue.")

    class Meta:
        ref_name = "Count"


class FindingOutput(serializers.Serializer[Any]):
    code = serializers.CharField()
    subject = serializers.CharField(help_text="What it is about.")
    detail = serializers.CharField(help_text="What is wrong with it.")
    is_repaired = serializers.BooleanField()
    advice = serializers.CharField(help_text="What to do about what cannot be repaired here.")

    class Meta:
        ref_name = "Finding"


class CheckOutput(serializers.Serializer[Any]):
    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    findings = FindingOutput(many=True)

    class Meta:
        ref_name = "IngestionCheck"


class SwapInput(serializers.Serializer[Any]):
    embedder = serializers.CharField(
        max_length=150, help_text="`provider/model`, with `@dimensions` where a model has several."
    )

    class Meta:
        ref_name = "SpaceSwapInput"


class SwapStepInput(serializers.Serializer[Any]):
    step = serializers.ChoiceField(choices=SWAP_STEPS)

    class Meta:
        ref_name = "SpaceSwapStep"


class SwapOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    from_space = serializers.CharField()
    to_space = serializers.CharField()
    status = serializers.CharField()
    done = serializers.IntegerField(help_text="Chunks with a vector in the new space.")
    total = serializers.IntegerField()
    comparison = serializers.DictField(help_text="How far the results of both spaces agree.")
    error_message = serializers.CharField()
    created_at = serializers.DateTimeField()
    switched_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "SpaceSwap"


class CodePatternsInput(serializers.Serializer[Any]):
    patterns = serializers.JSONField(
        allow_null=True,
        help_text='For example `{"version": 1, "kinds": [{"name": "part", "pattern": "PX[- ]?[0-9]{4}", '
        '"keep": "letters_digits"}]}`; null for none.',
    )

    class Meta:
        ref_name = "CodePatternsChange"


class CodePatternsOutput(CodePatternsInput):
    late = serializers.ListField(
        child=serializers.CharField(),
        help_text="Patterns that took too long on some passages: codes of theirs may be missing there.",
    )

    class Meta:
        ref_name = "CodePatterns"


class TypeRulesShape(serializers.Serializer[Any]):
    rules = serializers.JSONField(
        allow_null=True, help_text="Signals by type, as data; null for none. See document-types/example."
    )

    class Meta:
        ref_name = "DocumentTypeRules"
