"""Embeddings for OpenAI's clients, by the workspace's own embedders.

Wire format: https://platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import base64
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.index.services import texts_embed
from apps.conversations.openai.api import OpenAIView


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class TextsField(serializers.Field[Any, Any, Any, Any]):
    """A text or a list of texts."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not texts:
            raise serializers.ValidationError("Send a text or a list of texts.")
        if not all(isinstance(text, str) for text in texts):
            # Numbers of another model's vocabulary mean nothing to ours.
            raise serializers.ValidationError(
                "Send texts, not tokens (LangChain: check_embedding_ctx_length=False)."
            )
        if not all(text for text in texts):
            raise serializers.ValidationError("A text is empty.")
        return texts

    def to_representation(self, value: Any) -> Any:
        return value


class EmbeddingsShape(serializers.Serializer[Any]):
    model = serializers.CharField(max_length=200)
    input = TextsField()
    encoding_format = serializers.ChoiceField(choices=["float", "base64"], default="float")
    dimensions = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=4000)
    user = serializers.CharField(default="", allow_null=True, allow_blank=True)


class EmbeddingOutput(serializers.Serializer[Any]):
    object = serializers.CharField(help_text="Always `embedding`.")
    index = serializers.IntegerField()
    embedding = serializers.JSONField(
        help_text="Numbers; or little-endian float32 in base64, when asked for."
    )

    class Meta:
        ref_name = "Embedding"


class EmbeddingsOutput(serializers.Serializer[Any]):
    """As OpenAI documents it; ``groundwork.truncated`` counts texts of which the model saw only the beginning."""

    object = serializers.CharField(help_text="Always `list`.")
    data = EmbeddingOutput(many=True)  # type: ignore[assignment]
    model = serializers.CharField()
    usage = serializers.DictField(child=serializers.IntegerField())
    groundwork = serializers.DictField()

    class Meta:
        ref_name = "Embeddings"


class EmbeddingsView(OpenAIView):
    """Embeddings."""

    actions = {"POST": "search.run"}
    waits = True

    @extend_schema(
        operation_id="embeddings_create",
        tags=["embeddings"],
        request=EmbeddingsShape,
        responses={(200, "application/json"): EmbeddingsOutput},
    )
    def post(self, request: Request) -> Response:
        """Embed texts with one of the workspace's embedders; vectors have length 1."""
        shape = EmbeddingsShape(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        made = texts_embed(
            tenant=self.tenant,
            actor=self.actor,
            model=values["model"],
            texts=values["input"],
            dimensions=values["dimensions"],
        )
        rows: list[Any]
        if values["encoding_format"] == "base64":
            rows = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in made.vectors]
        else:
            rows = made.vectors.tolist()
        return Response(
            {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": index, "embedding": row}
                    for index, row in enumerate(rows)
                ],
                "model": made.setting,
                "usage": {"prompt_tokens": made.tokens, "total_tokens": made.tokens},
                "groundwork": {"truncated": made.truncated},
            }
        )
