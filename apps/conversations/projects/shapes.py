"""What the REST API of projects takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.models import Project, Sharing
from apps.conversations.projects.services import DELETE, KEEP, MAX_INSTRUCTIONS

_BIGINT = 2**63 - 1


def _ids(help_text: str) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=500,
        help_text=help_text,
    )


class ProjectUpdate(serializers.Serializer[Any]):
    name = serializers.CharField(required=False, max_length=120)
    instructions = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_INSTRUCTIONS,
        help_text="Given to the model with each question asked in the project, after the assistant's own.",
    )
    collections = _ids(
        "Ids of the collections that its conversations begin with; empty for all. A project gives no right to a collection."
    )
    sharing = serializers.ChoiceField(
        required=False,
        choices=Sharing.values,
        help_text="Who sees the project: `owner` alone, chosen `members`, or everyone in the `workspace`. Conversations in "
        "it stay private to those who started them.",
    )
    members = _ids("Ids of the people it is shared with, for `members`; needs the right member.read.")


class ProjectInput(ProjectUpdate):
    name = serializers.CharField(max_length=120)


class ProjectDelete(serializers.Serializer[Any]):
    conversations = serializers.ChoiceField(
        choices=[KEEP, DELETE],
        default=KEEP,
        help_text="What happens with your conversations in it: `keep` them outside of any project, or `delete` them. "
        "Those of others are always kept.",
    )


class ProjectOutput(serializers.Serializer[Project]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    instructions = serializers.CharField()
    collections = serializers.SerializerMethodField(
        help_text="Ids of the chosen collections that you can read."
    )
    searches_all = serializers.BooleanField(help_text="Conversations begin with all collections.")
    sharing = serializers.ChoiceField(choices=Sharing.values)
    members = serializers.SerializerMethodField(help_text="Ids of the people it is shared with.")
    owner_id = serializers.IntegerField(
        source="user_id", allow_null=True, help_text="Null after the owner's account was erased."
    )
    is_editable = serializers.SerializerMethodField(help_text="Whether you can change it.")
    conversation_count = serializers.IntegerField(
        help_text="Your own conversations in it, without archived ones."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Project"

    def get_collections(self, row: Any) -> list[int]:
        return [part.collection_id for part in row.scope.all()]

    def get_members(self, row: Any) -> list[int]:
        return [part.user_id for part in row.members.all()]

    def get_is_editable(self, row: Any) -> bool:
        return bool(row.is_editable)
