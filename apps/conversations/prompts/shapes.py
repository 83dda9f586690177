"""What the REST API of prompts takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.models import Prompt
from apps.conversations.prompts.selectors import MAX_QUERY
from apps.conversations.prompts.services import MAX_DESCRIPTION, MAX_NAME, MAX_TEXT
from apps.conversations.prompts.variables import variables_of

_TEXT = "Plain text; `{name}` is a variable that a person fills in when they use the prompt."
_SHARED = "Every member of the workspace can use it; needs the right assistant.write."


class PromptInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME)
    text = serializers.CharField(max_length=MAX_TEXT, trim_whitespace=False, help_text=_TEXT)
    description = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_DESCRIPTION, default=""
    )
    is_shared = serializers.BooleanField(required=False, default=False, help_text=_SHARED)


class PromptUpdate(serializers.Serializer[Any]):
    name = serializers.CharField(required=False, max_length=MAX_NAME)
    text = serializers.CharField(required=False, max_length=MAX_TEXT, trim_whitespace=False, help_text=_TEXT)
    description = serializers.CharField(required=False, allow_blank=True, max_length=MAX_DESCRIPTION)
    is_shared = serializers.BooleanField(
        required=False, help_text=f"{_SHARED} Only the person who made it can change this."
    )


class PromptOutput(serializers.Serializer[Prompt]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    text = serializers.CharField(help_text=_TEXT)
    variables = serializers.SerializerMethodField(help_text="Names of the variables in the text, in order.")
    is_shared = serializers.BooleanField(help_text="Every member of the workspace can use it.")
    user_id = serializers.IntegerField(allow_null=True, help_text="Who made it; null after they left.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Prompt"

    def get_variables(self, prompt: Prompt) -> list[str]:
        return variables_of(prompt.text)


class PromptFilter(serializers.Serializer[Any]):
    q = serializers.CharField(
        max_length=MAX_QUERY, allow_blank=True, default="", help_text="Words in the name or description."
    )
