"""Evaluations in the admin: to look at; what is measured is not edited, and the rest is changed in the portal."""

from __future__ import annotations

from django.contrib import admin

from apps.evaluations.models import (
    AnnotationItem,
    AnnotationQueue,
    Arm,
    Assignment,
    Baseline,
    Example,
    Experiment,
    FailureGroups,
    FailureTag,
    JudgeCalibration,
    JudgeCheck,
    KeptScores,
    LiveSample,
    LiveScore,
    Preference,
    Rubric,
    RubricVersion,
    SamplingRule,
    Score,
    ScoreCache,
    Trial,
)
from tenancy.admin_scope import JournalAdmin, JournalInline


class ArmInline(JournalInline):
    model = Arm
    fields = ("position", "name", "target")
    readonly_fields = fields


class RubricVersionInline(JournalInline):
    model = RubricVersion
    fields = ("number", "note", "created_by", "created_at")
    readonly_fields = fields


class ScoreInline(JournalInline):
    model = Score
    fields = ("name", "value", "level", "author_kind", "author", "reason", "at")
    readonly_fields = fields


class AssignmentInline(JournalInline):
    model = Assignment
    fields = ("user", "state", "note", "finished_at")
    readonly_fields = fields


@admin.register(Experiment)
class ExperimentAdmin(JournalAdmin):
    list_display = ("name", "dataset", "state", "repeats", "budget_usd", "created_at")
    list_filter = ("state",)
    list_select_related = ("dataset",)
    search_fields = ("name",)
    inlines = (ArmInline,)


@admin.register(Trial)
class TrialAdmin(JournalAdmin):
    list_display = ("id", "experiment", "arm", "row_ref", "repeat", "state", "latency_ms", "cost_usd")
    list_filter = ("state",)
    list_select_related = ("experiment", "arm")
    search_fields = ("=experiment__id", "=row_ref")
    inlines = (ScoreInline,)


@admin.register(Score)
class ScoreAdmin(JournalAdmin):
    list_display = ("id", "trial", "name", "value", "author_kind", "author", "at")
    list_filter = ("author_kind",)
    list_select_related = ("trial",)
    search_fields = ("name", "author", "=trial__id")


@admin.register(JudgeCheck)
class JudgeCheckAdmin(JournalAdmin):
    list_display = ("id", "experiment", "author", "is_drifted", "at")
    list_filter = ("is_drifted",)
    list_select_related = ("experiment",)
    search_fields = ("author", "=experiment__id")


@admin.register(JudgeCalibration)
class JudgeCalibrationAdmin(JournalAdmin):
    list_display = ("id", "rubric_version", "name", "author", "number", "n", "created_by", "created_at")
    list_select_related = ("rubric_version", "created_by")
    search_fields = ("name", "author")


@admin.register(KeptScores)
class KeptScoresAdmin(JournalAdmin):
    # Without the bytes: the arm's page reads them.
    fields = ("arm", "created_at")
    list_display = ("id", "arm", "created_at")
    list_select_related = ("arm",)
    search_fields = ("=arm__id", "arm__name")


@admin.register(FailureGroups)
class FailureGroupsAdmin(JournalAdmin):
    list_display = ("id", "arm", "page", "problem", "made_at")
    list_select_related = ("arm",)
    search_fields = ("=arm__id", "arm__name")


@admin.register(FailureTag)
class FailureTagAdmin(JournalAdmin):
    list_display = ("id", "name", "trial", "created_by", "created_at")
    list_select_related = ("trial", "created_by")
    search_fields = ("name", "=trial__id")


@admin.register(ScoreCache)
class ScoreCacheAdmin(JournalAdmin):
    list_display = ("key", "model", "cost_usd", "created_at")
    search_fields = ("key", "model")


@admin.register(Rubric)
class RubricAdmin(JournalAdmin):
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    inlines = (RubricVersionInline,)


@admin.register(Baseline)
class BaselineAdmin(JournalAdmin):
    list_display = ("name", "dataset", "arm", "note", "created_by", "created_at")
    list_select_related = ("dataset", "arm", "created_by")
    search_fields = ("name",)


@admin.register(AnnotationQueue)
class AnnotationQueueAdmin(JournalAdmin):
    list_display = ("name", "experiment", "rubric_version", "reviews", "created_at", "closed_at")
    list_select_related = ("experiment", "rubric_version")
    search_fields = ("name",)


@admin.register(AnnotationItem)
class AnnotationItemAdmin(JournalAdmin):
    list_display = ("id", "queue", "position", "trial")
    list_select_related = ("queue", "trial")
    search_fields = ("=queue__id", "=trial__id")
    inlines = (AssignmentInline,)


@admin.register(Preference)
class PreferenceAdmin(JournalAdmin):
    list_display = ("id", "experiment", "a", "b", "better", "is_flip", "author", "at")
    list_filter = ("better", "is_flip")
    list_select_related = ("experiment", "a", "b")
    search_fields = ("=experiment__id", "author")


class LiveScoreInline(JournalInline):
    model = LiveScore
    # Without the reason: it may quote a conversation, which is its owner's alone.
    fields = ("name", "value", "author_kind", "author", "at")
    readonly_fields = fields


@admin.register(SamplingRule)
class SamplingRuleAdmin(JournalAdmin):
    list_display = ("name", "is_active", "rate", "takes_doubtful", "budget_usd", "created_at")
    list_filter = ("is_active",)
    search_fields = ("name",)


@admin.register(Example)
class ExampleAdmin(JournalAdmin):
    list_display = ("id", "collection", "step", "error", "dataset", "experiment", "created_by", "created_at")
    list_filter = ("step",)
    list_select_related = ("collection", "dataset", "experiment", "created_by")
    search_fields = ("=collection__id", "collection__name")


@admin.register(LiveSample)
class LiveSampleAdmin(JournalAdmin):
    list_display = ("id", "rule", "turn", "state", "is_doubtful", "cost_usd", "created_at")
    list_filter = ("state",)
    list_select_related = ("rule", "turn")
    search_fields = ("=turn__id", "rule__name")
    inlines = (LiveScoreInline,)
