"""REST of assistants and their versions. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display.request_values import flag
from apps.conversations.assistants import selectors, services
from apps.conversations.assistants.shapes import (
    AssistantInput,
    AssistantOutput,
    AssistantUpdate,
    AssistantVersionOutput,
    ChangeOutput,
    ChangesOutput,
    PublishInput,
    VersionInput,
    spec_of,
)
from apps.conversations.models import Assistant
from basics.errors import Invalid
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "assistant.read", "assistant.write"


class _Base(TenantAPIView):
    """What the views of assistants share."""

    def _row(self, pk: int) -> Assistant:
        return selectors.assistant_get(actor=self.actor, pk=pk)

    def _shown(self, pk: int) -> dict[str, Any]:
        return dict(AssistantOutput(selectors.assistant_shown(actor=self.actor, pk=pk)).data)


class AssistantsView(_Base):
    """The workspace's assistants."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(
        operation_id="assistants_list",
        tags=["assistants"],
        parameters=[
            OpenApiParameter(
                "archived", bool, description="Return archived assistants instead of active ones."
            )
        ],
        responses=AssistantOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """List assistants, newest first."""
        archived = flag(request, "archived") or False
        rows = selectors.assistant_list(actor=self.actor, archived=archived)
        return self.paginated(rows, AssistantOutput)

    @extend_schema(
        operation_id="assistants_create",
        tags=["assistants"],
        request=AssistantInput,
        responses={201: AssistantOutput},
    )
    def post(self, request: Request) -> Response:
        """Create an assistant with its first version; people can use it once it is published."""
        values = valid(AssistantInput, request.data)
        row = services.assistant_create(
            tenant=self.tenant,
            actor=self.actor,
            spec=spec_of(values),
            **{name: values[name] for name in ("name", "slug", "description")},
        )
        return Response(self._shown(row.pk), status=status.HTTP_201_CREATED)


class AssistantView(_Base):
    """One assistant."""

    actions = {"GET": _READ, "PATCH": _WRITE, "DELETE": _WRITE}

    @extend_schema(operation_id="assistants_get", tags=["assistants"], responses=AssistantOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an assistant."""
        return Response(self._shown(pk))

    @extend_schema(
        operation_id="assistants_update",
        tags=["assistants"],
        request=AssistantUpdate,
        responses=AssistantOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change name or description, archive or restore; to change what it does, create a new version."""
        row = self._row(pk)
        values = valid(AssistantUpdate, request.data)
        who: dict[str, Any] = {"tenant": self.tenant, "actor": self.actor, "assistant": row}
        if "name" in values or "description" in values:
            services.assistant_rename(
                **who,
                name=values.get("name", row.name),
                description=values.get("description", row.description),
            )
        if "is_archived" in values:
            archive = services.assistant_archive if values["is_archived"] else services.assistant_restore
            archive(**who)
        return Response(self._shown(pk))

    @extend_schema(operation_id="assistants_archive", tags=["assistants"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Archive an assistant so that no one can choose it. Its versions and conversations stay."""
        services.assistant_archive(tenant=self.tenant, actor=self.actor, assistant=self._row(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class AssistantVersionsView(_Base):
    """The versions of an assistant."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(
        operation_id="assistant_versions_list",
        tags=["assistants"],
        responses=AssistantVersionOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List versions, newest first."""
        rows = selectors.version_list(actor=self.actor, assistant=self._row(pk))
        return self.paginated(rows, AssistantVersionOutput)

    @extend_schema(
        operation_id="assistant_versions_create",
        tags=["assistants"],
        request=VersionInput,
        responses={201: AssistantVersionOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create the next version; versions never change."""
        row = self._row(pk)
        values = valid(VersionInput, request.data)
        made = services.version_create(
            tenant=self.tenant, actor=self.actor, assistant=row, spec=spec_of(values), note=values["note"]
        )
        found = selectors.version_get(actor=self.actor, assistant=row, number=made.number)
        return Response(AssistantVersionOutput(found).data, status=status.HTTP_201_CREATED)


class AssistantVersionView(_Base):
    """One version."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="assistant_versions_get", tags=["assistants"], responses=AssistantVersionOutput
    )
    def get(self, request: Request, pk: int, number: int) -> Response:
        """Return a version."""
        found = selectors.version_get(actor=self.actor, assistant=self._row(pk), number=number)
        return Response(AssistantVersionOutput(found).data)


class AssistantChangesView(_Base):
    """What a version has changed."""

    actions = {"GET": _READ}

    @extend_schema(
        operation_id="assistant_versions_changes",
        tags=["assistants"],
        parameters=[
            OpenApiParameter(
                "against",
                int,
                description="Number of the version to compare with; default: the previous one.",
            )
        ],
        responses=ChangesOutput,
    )
    def get(self, request: Request, pk: int, number: int) -> Response:
        """Return the differences between two versions; the first one has none."""
        row = self._row(pk)
        after = selectors.version_get(actor=self.actor, assistant=row, number=number)
        given = request.query_params.get("against", str(max(1, number - 1)))
        if not given.isascii() or not given.isdecimal() or len(given) > 9:
            raise Invalid("against_invalid", "Give the number of a version to compare with.")
        before = selectors.version_get(actor=self.actor, assistant=row, number=int(given))
        found: Any = selectors.version_changes(before, after)
        changes = ChangeOutput(found, many=True).data
        return Response({"before": before.number, "after": after.number, "changes": changes})


class AssistantPublishView(_Base):
    """Which version people talk to."""

    actions = {"POST": _WRITE, "DELETE": _WRITE}

    @extend_schema(
        operation_id="assistants_publish",
        tags=["assistants"],
        request=PublishInput,
        responses=AssistantOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Publish any version; people get it from their next question on."""
        row = self._row(pk)
        number = valid(PublishInput, request.data)["version"]
        services.version_publish(tenant=self.tenant, actor=self.actor, assistant=row, number=number)
        return Response(self._shown(pk))

    @extend_schema(operation_id="assistants_unpublish", tags=["assistants"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Unpublish the current version; no one can use the assistant until one is published."""
        services.version_unpublish(tenant=self.tenant, actor=self.actor, assistant=self._row(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)
