"""How the REST API gives what is shown with an answer: sentences to check, charts and pictures."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.conversations.display.marks import LABELS
from toolloop.tools.charting import KINDS


class MarkOutput(serializers.Serializer[Any]):
    """A sentence of an answer that its reader should check."""

    start = serializers.IntegerField(help_text="First character in the answer.")
    end = serializers.IntegerField(help_text="The offset just after its last character.")
    reason = serializers.ChoiceField(
        choices=list(LABELS),
        help_text="unsupported, number, name and polarity: compared with its sources and not confirmed; "
        "language: not compared, because its source is in another language.",
    )
    text = serializers.CharField(help_text="The sentence.")
    note = serializers.CharField(help_text="The reason in words.")

    class Meta:
        ref_name = "Mark"


class ChartSeriesOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    y = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="Values; null for a gap. Of a histogram: counts.",
    )
    x = serializers.ListField(
        child=serializers.FloatField(), help_text="Place of each value; empty if `labels` says it."
    )

    class Meta:
        ref_name = "ChartSeries"


class ChartOutput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=list(KINDS))
    series = ChartSeriesOutput(many=True)
    labels = serializers.ListField(child=serializers.CharField())
    x_label = serializers.CharField()
    y_label = serializers.CharField()
    edges = serializers.ListField(
        child=serializers.FloatField(),
        help_text="Of a histogram: limits of the bins, one more than there are.",
    )

    class Meta:
        ref_name = "Chart"


class FigureOutput(serializers.Serializer[Any]):
    """A chart, or a picture that a tool returned."""

    key = serializers.CharField(help_text="The answer refers to it as ![…](figure:key).")
    title = serializers.CharField(help_text="Also the alternative text of a picture.")
    chart = ChartOutput(allow_null=True, help_text="Its numbers; null for a picture.")
    picture_id = serializers.IntegerField(
        help_text="Read it at /conversations/{id}/pictures/{picture_id}; 0 for a chart."
    )
    media_type = serializers.CharField()
    width = serializers.IntegerField(help_text="In pixels; 0 for a chart.")
    height = serializers.IntegerField()
    size = serializers.IntegerField(help_text="In bytes.")

    class Meta:
        ref_name = "Figure"
