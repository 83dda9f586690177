"""REST of an arm's failures. The views hold no rules: ``failures`` reads, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations.failures.selectors import arm_failures
from apps.evaluations.failures.services import MAX_TAGS, failure_tags_change, failures_collect, failures_group
from apps.evaluations.results import selectors
from web.drf.inputs import valid
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView

_TAGS = ["evaluations"]
MOST_PAGE = 10_000


class FailingRowOutput(serializers.Serializer[Any]):
    """A row that fails."""

    row = serializers.IntegerField()
    trial = serializers.IntegerField(help_text="Id of its first answer.")
    question = serializers.CharField()
    reason = serializers.CharField(help_text="The reason for its lowest score; empty if there is none.")
    value = serializers.FloatField(help_text="0 if there is no answer.")
    tags = serializers.ListField(
        child=serializers.CharField(), help_text="The row's own tags, with its type and difficulty."
    )
    own_tags = serializers.ListField(child=serializers.CharField(), help_text="Tags people gave its answers.")


class TagFailuresOutput(serializers.Serializer[Any]):
    """A tag among the failing rows."""

    tag = serializers.CharField()
    failing = serializers.IntegerField()
    rows = serializers.IntegerField()
    lift = serializers.FloatField(
        allow_null=True,
        help_text="Its failure rate divided by that of all rows; null for tags that only people gave.",
    )


class FailureGroupOutput(serializers.Serializer[Any]):
    """Failing rows that are alike, the most typical first."""

    number = serializers.IntegerField()
    terms = serializers.ListField(child=serializers.CharField())
    rows = FailingRowOutput(many=True)


class FailuresOutput(serializers.Serializer[Any]):
    """The failures of an arm."""

    scored = serializers.IntegerField()
    failing = serializers.IntegerField()
    unanswered = serializers.IntegerField(help_text="Failing rows that have no answer and no score.")
    tags = TagFailuresOutput(many=True)
    rows = FailingRowOutput(
        many=True,
        help_text="Rows on this page, worst first, at most 200; with `tag`, only rows that have it.",
    )
    listed = serializers.IntegerField(help_text="Rows on all pages.")
    page = serializers.IntegerField()
    pages = serializers.IntegerField()
    state = serializers.ChoiceField(
        choices=["none", "working", "failed", "ready"],
        help_text="State of the groups; POST to `failures/groups` to create them.",
    )
    problem = serializers.CharField(help_text="Why the groups could not be made; otherwise empty.")
    groups = FailureGroupOutput(
        many=True,
        help_text="Groups of the page's rows, largest first; none until they are ready, and none with `tag`.",
    )
    alone = FailingRowOutput(many=True, help_text="Rows that are unlike any other.")


class CollectInput(serializers.Serializer[Any]):
    """Which failing rows become a dataset; all without a tag or a group."""

    name = serializers.CharField(max_length=120)
    tag = serializers.CharField(required=False, allow_blank=True, default="", max_length=60)
    group = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=10_000
    )
    page = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MOST_PAGE, help_text="A row in the group."
    )


class GroupingInput(serializers.Serializer[Any]):
    """Which failing rows are grouped."""

    page = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MOST_PAGE)


class CollectedOutput(serializers.Serializer[Any]):
    """The dataset that was made."""

    dataset = serializers.IntegerField(source="dataset_id")
    version = serializers.IntegerField(source="pk", help_text="Id of its first version.")
    row_count = serializers.IntegerField()


class GroupingOutput(serializers.Serializer[Any]):
    """A job that makes groups."""

    arm = serializers.IntegerField(source="arm_id")
    job = serializers.IntegerField(source="job_id", allow_null=True)


class TagsInput(serializers.Serializer[Any]):
    """Tags to give to an answer, and to take from it."""

    add = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, default=list, max_length=MAX_TAGS
    )
    remove = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, default=list, max_length=MAX_TAGS
    )


class TagsOutput(serializers.Serializer[Any]):
    """The tags of an answer."""

    tags = serializers.ListField(child=serializers.CharField())


class TagUseOutput(serializers.Serializer[Any]):
    """A tag of the workspace."""

    name = serializers.CharField()
    answers = serializers.IntegerField(help_text="Number of rows that have it.")


class FailuresView(TenantAPIView):
    """What an arm fails."""

    actions = {"GET": "evaluation.read", "POST": "dataset.write"}

    @extend_schema(
        operation_id="arms_failures",
        tags=_TAGS,
        parameters=[
            OpenApiParameter(
                "tag", str, description="Only rows with this tag, either their own or given by people."
            ),
            OpenApiParameter(
                "page", int, description="Page of 200 rows, from 1; past the end, the last page."
            ),
        ],
        responses=FailuresOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return an arm's failing rows by tag, and in groups of rows that are alike."""
        arm = selectors.arm_get(actor=self.actor, pk=pk)
        page = valid(GroupingInput, request.query_params)["page"]
        tag = request.query_params.get("tag", "")
        found = arm_failures(actor=self.actor, arm=arm, page=page, tag=tag)
        return Response(FailuresOutput(found).data)

    @extend_schema(
        operation_id="arms_failures_collect",
        tags=_TAGS,
        request=CollectInput,
        responses={201: CollectedOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create a dataset, with a version, from the failing rows with a tag or in a group."""
        arm = selectors.arm_get(actor=self.actor, pk=pk)
        values = valid(CollectInput, request.data)
        made = failures_collect(tenant=self.tenant, actor=self.actor, arm=arm, **values)
        return Response(CollectedOutput(made).data, status=status.HTTP_201_CREATED)


class FailureGroupsView(TenantAPIView):
    """Groups of failing rows."""

    actions = {"POST": "evaluation.write"}

    @extend_schema(
        operation_id="arms_failures_group", tags=_TAGS, request=GroupingInput, responses={202: GroupingOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start a job that groups a page of an arm's current failing rows; its embeddings count toward budgets."""
        arm = selectors.arm_get(actor=self.actor, pk=pk)
        values = valid(GroupingInput, request.data)
        row = failures_group(tenant=self.tenant, actor=self.actor, arm=arm, **values)
        return Response(GroupingOutput(row).data, status=status.HTTP_202_ACCEPTED)


class TrialTagsView(TenantAPIView):
    """People's tags of a failing answer."""

    actions = {"POST": "evaluation.write"}

    @extend_schema(operation_id="trials_failure_tags", tags=_TAGS, request=TagsInput, responses=TagsOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Add tags to a failing answer and remove others; the reverse request undoes it."""
        trial = selectors.trial_get(actor=self.actor, pk=pk)
        values = valid(TagsInput, request.data)
        tags = failure_tags_change(tenant=self.tenant, actor=self.actor, trial=trial, **values)
        return Response(TagsOutput({"tags": tags}).data)


class FailureTagsView(TenantAPIView):
    """The tags that people use."""

    actions = {"GET": "evaluation.read"}
    pagination_class = WholeList

    @extend_schema(operation_id="failure_tags_list", tags=_TAGS, responses=TagUseOutput(many=True))
    def get(self, request: Request) -> Response:
        """Return the tags that people in this workspace gave to failing answers."""
        rows = [{"name": name, "answers": n} for name, n in selectors.failure_tag_list(actor=self.actor)]
        return self.paginated(rows, TagUseOutput)
