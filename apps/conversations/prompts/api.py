"""REST of prompts. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.prompts import selectors, services
from apps.conversations.prompts.shapes import PromptFilter, PromptInput, PromptOutput, PromptUpdate
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "conversation.read", "conversation.write"


class PromptsView(TenantAPIView):
    """The prompts that the caller can use."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(
        operation_id="prompts_list",
        tags=["prompts"],
        parameters=[PromptFilter],
        responses=PromptOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """List your own prompts and the shared ones, newest first."""
        query = valid(PromptFilter, request.query_params)["q"]
        return self.paginated(selectors.prompt_list(actor=self.actor, query=query), PromptOutput)

    @extend_schema(
        operation_id="prompts_create", tags=["prompts"], request=PromptInput, responses={201: PromptOutput}
    )
    def post(self, request: Request) -> Response:
        """Create a prompt of your own, or a shared one."""
        values = valid(PromptInput, request.data)
        row = services.prompt_create(tenant=self.tenant, actor=self.actor, **values)
        return Response(PromptOutput(row).data, status=status.HTTP_201_CREATED)


class PromptView(TenantAPIView):
    """One prompt."""

    actions = {"GET": _READ, "PATCH": _WRITE, "DELETE": _WRITE}

    @extend_schema(operation_id="prompts_get", tags=["prompts"], responses=PromptOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a prompt."""
        return Response(PromptOutput(selectors.prompt_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="prompts_update", tags=["prompts"], request=PromptUpdate, responses=PromptOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a prompt, share it, or make it private again."""
        prompt = selectors.prompt_get(actor=self.actor, pk=pk)
        values = valid(PromptUpdate, request.data)
        row = services.prompt_update(tenant=self.tenant, actor=self.actor, prompt=prompt, **values)
        return Response(PromptOutput(row).data)

    @extend_schema(operation_id="prompts_delete", tags=["prompts"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a prompt."""
        prompt = selectors.prompt_get(actor=self.actor, pk=pk)
        services.prompt_delete(tenant=self.tenant, actor=self.actor, prompt=prompt)
        return Response(status=status.HTTP_204_NO_CONTENT)
