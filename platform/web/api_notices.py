"""REST of a person's notices: for the person themselves, signed in; no key reaches them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from notices import services
from notices.selectors import ToldNotice, notice_list, notice_ways
from notices.sources import GROUPS, WAYS
from web.drf.inputs import valid
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView


class NoticeOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="pk")
    kind = serializers.CharField(help_text="What it is about: answer, approval, import, budget and others.")
    group = serializers.CharField(help_text="The setting that turns it on and off; see the ways.")
    state = serializers.CharField(help_text="What has become of it, such as completed or failed.")
    text = serializers.CharField(help_text="The same in words.")
    name = serializers.CharField()
    url = serializers.CharField(help_text="Its page, below the server's address.")
    at = serializers.DateTimeField()
    is_read = serializers.BooleanField()

    class Meta:
        ref_name = "Notice"


class NoticesReadInput(serializers.Serializer[Any]):
    id = serializers.IntegerField(
        required=False, allow_null=True, default=None, help_text="The only one to mark; without it, all."
    )


class NoticesReadOutput(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="How many were unread.")

    class Meta:
        ref_name = "NoticesRead"


def _ways() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.ChoiceField(choices=list(WAYS)),
        required=False,
        max_length=len(WAYS),
        help_text="The ways that are on. `browser` works in browsers in which you have allowed it.",
    )


class NoticeWaysInput(serializers.Serializer[Any]):
    answer = _ways()
    approval = _ways()
    work = _ways()
    budget = _ways()

    class Meta:
        ref_name = "NoticeWays"


class NoticesView(TenantAPIView):
    """One's own notices."""

    pagination_class = WholeList
    actions = {"GET": "notice.read"}

    @extend_schema(operation_id="notices", tags=["notices"], responses=NoticeOutput(many=True))
    def get(self, request: Request) -> Response:
        """Return your 50 newest notices, newest first. Needs a signed-in person; API keys can't read them.

        Notices of things that you can no longer see are left out.
        """
        told: list[ToldNotice] = notice_list(tenant=self.tenant, actor=self.actor)
        return self.paginated(told, NoticeOutput)


class NoticesReadView(TenantAPIView):
    """Which of one's own notices are read."""

    actions = {"POST": "notice.read"}

    @extend_schema(
        operation_id="notices_read", tags=["notices"], request=NoticesReadInput, responses=NoticesReadOutput
    )
    def post(self, request: Request) -> Response:
        """Mark one notice or all of them as read."""
        pk = valid(NoticesReadInput, request.data)["id"]
        count = services.notices_read(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response({"count": count})


class NoticeWaysView(TenantAPIView):
    """In which ways one is told."""

    actions = {"GET": "notice.read", "PATCH": "notice.read"}

    @extend_schema(operation_id="notice_ways", tags=["notices"], responses=NoticeWaysInput)
    def get(self, request: Request) -> Response:
        """Return in which ways you are told of answers, approvals, long work and budgets."""
        return Response(self._chosen())

    @extend_schema(
        operation_id="notice_ways_change",
        tags=["notices"],
        request=NoticeWaysInput,
        responses=NoticeWaysInput,
    )
    def patch(self, request: Request) -> Response:
        """Choose the ways; groups you leave out stay as they are."""
        ways = valid(NoticeWaysInput, request.data)
        services.notice_ways_set(tenant=self.tenant, actor=self.actor, ways=ways)
        return Response(self._chosen())

    def _chosen(self) -> dict[str, list[str]]:
        chosen = notice_ways(actor=self.actor)
        return {name: [way for way in WAYS if way in chosen[name]] for name in GROUPS}
