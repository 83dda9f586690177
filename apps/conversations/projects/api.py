"""REST of projects. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.projects import selectors, services
from apps.conversations.projects.shapes import ProjectDelete, ProjectInput, ProjectOutput, ProjectUpdate
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "conversation.read", "conversation.write"


class ProjectsView(TenantAPIView):
    """The projects that the caller sees."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="projects_list", tags=["projects"], responses=ProjectOutput(many=True))
    def get(self, request: Request) -> Response:
        """List your projects and those shared with you, newest first."""
        return self.paginated(selectors.project_rows(actor=self.actor), ProjectOutput)

    @extend_schema(
        operation_id="projects_create",
        tags=["projects"],
        request=ProjectInput,
        responses={201: ProjectOutput},
    )
    def post(self, request: Request) -> Response:
        """Create a project: a folder of conversations with its own instructions, collections and people."""
        values = valid(ProjectInput, request.data)
        row = services.project_create(tenant=self.tenant, actor=self.actor, **values)
        made = selectors.project_get(actor=self.actor, pk=row.pk)
        return Response(ProjectOutput(made).data, status=status.HTTP_201_CREATED)


class ProjectView(TenantAPIView):
    """One project."""

    actions = {"GET": _READ, "PATCH": _WRITE, "DELETE": _WRITE}

    @extend_schema(operation_id="projects_get", tags=["projects"], responses=ProjectOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a project."""
        return Response(ProjectOutput(selectors.project_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="projects_update", tags=["projects"], request=ProjectUpdate, responses=ProjectOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a project. Conversations of people who can't see it any more leave it."""
        row = selectors.project_get(actor=self.actor, pk=pk)
        values = valid(ProjectUpdate, request.data)
        services.project_change(tenant=self.tenant, actor=self.actor, project=row, **values)
        return Response(ProjectOutput(selectors.project_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="projects_delete",
        tags=["projects"],
        parameters=[
            OpenApiParameter(
                "conversations",
                str,
                enum=["keep", "delete"],
                description="`keep` (the default) your conversations outside of any project, or `delete` them. Those of "
                "others are always kept.",
            )
        ],
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a project."""
        row = selectors.project_get(actor=self.actor, pk=pk)
        what = valid(ProjectDelete, request.query_params)["conversations"]
        services.project_delete(tenant=self.tenant, actor=self.actor, project=row, conversations=what)
        return Response(status=status.HTTP_204_NO_CONTENT)
