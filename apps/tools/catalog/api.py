"""REST of suggestions: which tools fit a question. The view holds no rules: ``suggestions`` says what fits."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.catalog.suggestions import tools_suggest
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView

_LONGEST = 2_000
_MOST = 20


class SuggestionQuery(serializers.Serializer[Any]):
    """What is asked."""

    question = serializers.CharField(max_length=_LONGEST, help_text="What you want to do, in plain words.")
    limit = serializers.IntegerField(min_value=1, max_value=_MOST, default=5)


class SuggestionOutput(serializers.Serializer[Any]):
    """A tool that fits, the best first."""

    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    group = serializers.CharField()
    effect = serializers.CharField(
        help_text="Whether the caller's calls are allowed or need approval: `allow` or `ask`."
    )
    score = serializers.FloatField(help_text="0 to 1, for comparing within one answer only.")
    calls = serializers.IntegerField(help_text="In the whole workspace, in the last 90 days.")
    succeeded = serializers.IntegerField(help_text="Of those calls.")

    class Meta:
        ref_name = "ToolSuggestion"


class SuggestionsView(TenantAPIView):
    """Which tools fit."""

    actions = {"GET": "tool.run"}
    pagination_class = WholeList

    @extend_schema(
        operation_id="tools_suggest",
        tags=["tools"],
        parameters=[SuggestionQuery],
        responses=SuggestionOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """Suggest tools for a question that the caller can call, by words, meaning and success of past calls."""
        query = SuggestionQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        found = tools_suggest(actor=self.actor, **query.validated_data)
        rows = [
            {
                "name": one.tool.name,
                "title": one.tool.own_title,
                "description": one.tool.description,
                "group": one.tool.group,
                "effect": one.tool.elsewhere or one.tool.decision.effect,
                "score": round(one.score, 4),
                "calls": one.calls,
                "succeeded": one.succeeded,
            }
            for one in found
        ]
        return self.paginated(rows, SuggestionOutput)
