"""REST of erasing a workspace, and of its legal hold. Signed-in owners only: no API key can have this right."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from erasure.holds import MAX_REASON, hold_of, hold_place, hold_release
from erasure.models import Erasure
from erasure.services import (
    content_erase_request,
    content_erasure,
    erasure_open,
    workspace_erase_request,
    workspace_erase_undo,
)
from tenancy.models import TenantModel
from web.drf.views import TenantAPIView


class ErasureInput(serializers.Serializer[Any]):
    confirm = serializers.CharField(max_length=40, help_text="The address (slug) of the workspace.")

    class Meta:
        ref_name = "ErasureRequest"


class ErasureOutput(serializers.Serializer[Any]):
    state = serializers.ChoiceField(
        choices=["none", "waiting", "running"], help_text="none: nothing is going to be erased."
    )
    due_at = serializers.DateTimeField(allow_null=True, help_text="Until then it can be undone.")
    detail = serializers.CharField(help_text="Why it waits, empty if nothing is in its way.")

    class Meta:
        ref_name = "Erasure"


class ContentErasureInput(serializers.Serializer[Any]):
    confirm = serializers.CharField(max_length=40, help_text="The word erase.")

    class Meta:
        ref_name = "ContentErasureRequest"


class ErasureLineOutput(serializers.Serializer[Any]):
    where = serializers.CharField(help_text="A table, a kind of file, or a place.")
    what = serializers.ChoiceField(choices=["removed", "pseudonymised", "kept"])
    count = serializers.IntegerField(help_text="Rows or files.")
    why = serializers.CharField(help_text="Why it was kept; empty for what wasn't.")

    class Meta:
        ref_name = "ErasureLine"


class ContentErasureOutput(serializers.Serializer[Any]):
    number = serializers.IntegerField(allow_null=True, help_text="Number of the erasure; null: none.")
    state = serializers.ChoiceField(
        choices=["none", "waiting", "running", "done"],
        help_text="none: you haven't asked for it to be erased.",
    )
    detail = serializers.CharField(help_text="Why it waits, empty if nothing is in its way.")
    report = ErasureLineOutput(many=True)

    class Meta:
        ref_name = "ContentErasure"


class ContentErasureView(TenantAPIView):
    """The base of the views that erase a document or a conversation; a subclass says which and who may."""

    kind: Erasure.Kind

    def subject(self, pk: int) -> TenantModel:
        """Return what is erased, as far as the actor may see it. Raises Missing."""
        raise NotImplementedError

    def ask(self, request: Request, pk: int) -> Response:
        """Ask for it to be erased."""
        shape = ContentErasureInput(data=request.data)
        shape.is_valid(raise_exception=True)
        made = content_erase_request(
            tenant=self.tenant, actor=self.actor, subject=self.subject(pk), **shape.validated_data
        )
        return Response(_content_answer(made), status=202)

    def tell(self, pk: int) -> Response:
        """Answer with how far it is. What is gone is known by its number to those alone who asked for it."""
        found = content_erasure(actor=self.actor, kind=self.kind, subject=pk)
        if found is None:
            self.subject(pk)
        return Response(_content_answer(found))


def _content_answer(found: Erasure | None) -> dict[str, Any]:
    if found is None:
        return {"number": None, "state": "none", "detail": "", "report": []}
    return {"number": found.pk, "state": found.state, "detail": found.detail, "report": found.report}


class HoldInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=MAX_REASON, help_text="Why, such as a case or file number.")

    class Meta:
        ref_name = "LegalHoldRequest"


class HoldOutput(serializers.Serializer[Any]):
    is_held = serializers.BooleanField()
    reason = serializers.CharField(help_text="Empty without a hold.")
    placed_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "LegalHold"


class ErasureView(TenantAPIView):
    """Erasing the whole workspace, after days in which it can be undone."""

    actions = {"GET": "tenant.manage", "POST": "tenant.manage", "DELETE": "tenant.manage"}

    @extend_schema(operation_id="erasure_read", tags=["workspace"], responses=ErasureOutput)
    def get(self, request: Request) -> Response:
        """Tell whether the workspace is going to be erased."""
        return self._answer()

    @extend_schema(
        operation_id="erasure_request", tags=["workspace"], request=ErasureInput, responses=ErasureOutput
    )
    def post(self, request: Request) -> Response:
        """Ask for the workspace to be erased. Needs a signed-in owner, who repeats its address."""
        shape = ErasureInput(data=request.data)
        shape.is_valid(raise_exception=True)
        workspace_erase_request(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        return self._answer()

    @extend_schema(operation_id="erasure_undo", tags=["workspace"], responses=ErasureOutput)
    def delete(self, request: Request) -> Response:
        """Keep the workspace; possible until erasing has begun."""
        workspace_erase_undo(tenant=self.tenant, actor=self.actor)
        return self._answer()

    def _answer(self) -> Response:
        found = erasure_open(Erasure.Kind.WORKSPACE, self.tenant.pk)
        if found is None:
            return Response({"state": "none", "due_at": None, "detail": ""})
        return Response({"state": found.state, "due_at": found.due_at, "detail": found.detail})


class HoldView(TenantAPIView):
    """The legal hold: while there is one, nothing is erased, and no retention rule removes anything."""

    actions = {"GET": "audit.read", "PUT": "tenant.manage", "DELETE": "tenant.manage"}

    @extend_schema(operation_id="hold_read", tags=["workspace"], responses=HoldOutput)
    def get(self, request: Request) -> Response:
        """Show the legal hold."""
        return self._answer()

    @extend_schema(operation_id="hold_place", tags=["workspace"], request=HoldInput, responses=HoldOutput)
    def put(self, request: Request) -> Response:
        """Place a legal hold. Needs a signed-in owner."""
        shape = HoldInput(data=request.data)
        shape.is_valid(raise_exception=True)
        hold_place(tenant=self.tenant, actor=self.actor, **shape.validated_data)
        return self._answer()

    @extend_schema(operation_id="hold_release", tags=["workspace"], responses=HoldOutput)
    def delete(self, request: Request) -> Response:
        """Release the legal hold. Needs a signed-in owner."""
        hold_release(tenant=self.tenant, actor=self.actor)
        return self._answer()

    def _answer(self) -> Response:
        found = hold_of(self.tenant.pk)
        if found is None:
            return Response({"is_held": False, "reason": "", "placed_at": None})
        return Response({"is_held": True, "reason": found.reason, "placed_at": found.placed_at})
