"""REST of tool permissions: grants, toolkits, entries, and the dry run. The views hold no rules; services act."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.calls.services import MAX_ARGUMENTS
from apps.tools.catalog.services import entry_delete, entry_set
from apps.tools.models import ToolEntry, ToolGrant, Toolkit
from apps.tools.permissions.dry_run import access_explain, call_try
from apps.tools.permissions.reach import grant_warnings
from apps.tools.permissions.services import grant_create, grant_delete, grants_change
from apps.tools.permissions.shapes import (
    SUBJECT_HELP,
    AccessOutput,
    AccessTryInput,
    AccessTryOutput,
    EntryChange,
    EntryInput,
    EntryOutput,
    GrantInput,
    GrantOutput,
    ToolkitChange,
    ToolkitInput,
    ToolkitOutput,
)
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from apps.tools.toolset.selectors import entry_list, grant_get, grant_list, toolkit_list
from basics.errors import Invalid, Missing
from tenancy.actors import Actor
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_MANAGE = {"GET": "tool.manage", "POST": "tool.manage"}
_MANAGE_ONE = {"GET": "tool.manage", "PUT": "tool.manage", "PATCH": "tool.manage", "DELETE": "tool.manage"}


def _grants_out(actor: Actor, rows: Sequence[ToolGrant]) -> list[dict[str, Any]]:
    """Return grants as the API shows them, with a warning where they match nothing."""
    warnings = grant_warnings(actor=actor, grants=rows)
    return list(GrantOutput(rows, many=True, context={"warnings": warnings}).data)


class GrantsView(TenantAPIView):
    """The grants of the workspace."""

    actions = _MANAGE
    pagination_class = Pagination

    @extend_schema(operation_id="tool_grants_list", tags=["tools"], responses=GrantOutput(many=True))
    def get(self, request: Request) -> Response:
        """List who can call what, newest first. Deny beats Ask, Ask beats Allow. Anything without a rule is denied."""
        pages = self.pagination_class()
        found = pages.paginate_queryset(grant_list(actor=self.actor), request, view=self)
        return pages.get_paginated_response(_grants_out(self.actor, found or []))

    @extend_schema(
        operation_id="tool_grants_create", tags=["tools"], request=GrantInput, responses={201: GrantOutput}
    )
    def post(self, request: Request) -> Response:
        """Add a rule."""
        values = valid(GrantInput, request.data)
        row = grant_create(tenant=self.tenant, actor=self.actor, **values)
        return Response(_grants_out(self.actor, [row])[0], status=status.HTTP_201_CREATED)


class GrantView(TenantAPIView):
    """One grant."""

    actions = _MANAGE_ONE

    @extend_schema(operation_id="tool_grants_read", tags=["tools"], responses=GrantOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a rule."""
        return Response(_grants_out(self.actor, [grant_get(actor=self.actor, pk=pk)])[0])

    @extend_schema(
        operation_id="tool_grants_replace", tags=["tools"], request=GrantInput, responses=GrantOutput
    )
    def put(self, request: Request, pk: int) -> Response:
        """Replace a rule in one step; the response has a new id, because rules never change."""
        values = valid(GrantInput, request.data)
        change = grants_change(
            tenant=self.tenant, actor=self.actor, remove=[pk], add=[{**values, "replaces": pk}]
        )
        return Response(_grants_out(self.actor, change.added)[0])

    @extend_schema(operation_id="tool_grants_delete", tags=["tools"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a rule."""
        grant_delete(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ToolkitsView(TenantAPIView):
    """The toolkits of the workspace."""

    actions = _MANAGE
    pagination_class = Pagination

    @extend_schema(operation_id="toolkits_list", tags=["tools"], responses=ToolkitOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the toolkits, newest first."""
        return self.paginated(toolkit_list(actor=self.actor), ToolkitOutput)

    @extend_schema(
        operation_id="toolkits_create", tags=["tools"], request=ToolkitInput, responses={201: ToolkitOutput}
    )
    def post(self, request: Request) -> Response:
        """Create a toolkit, or replace the tools of the one with the same name."""
        values = valid(ToolkitInput, request.data)
        kit = toolkit_set(tenant=self.tenant, actor=self.actor, **values)
        return Response(ToolkitOutput(kit).data, status=status.HTTP_201_CREATED)


class ToolkitView(TenantAPIView):
    """One toolkit."""

    actions = _MANAGE_ONE

    def _row(self, pk: int) -> Toolkit:
        row = toolkit_list(actor=self.actor).filter(pk=pk).first()
        if row is None:
            raise Missing("toolkit")
        return row

    @extend_schema(operation_id="toolkits_read", tags=["tools"], responses=ToolkitOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a toolkit."""
        return Response(ToolkitOutput(self._row(pk)).data)

    @extend_schema(
        operation_id="toolkits_replace", tags=["tools"], request=ToolkitChange, responses=ToolkitOutput
    )
    def put(self, request: Request, pk: int) -> Response:
        """Replace a toolkit's tools; its name stays."""
        name = self._row(pk).name
        values = valid(ToolkitChange, request.data)
        kit = toolkit_set(tenant=self.tenant, actor=self.actor, name=name, **values)
        return Response(ToolkitOutput(kit).data)

    @extend_schema(operation_id="toolkits_delete", tags=["tools"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a toolkit that no rule uses."""
        toolkit_delete(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class EntriesView(TenantAPIView):
    """What the workspace states about tools."""

    actions = _MANAGE
    pagination_class = Pagination

    @extend_schema(operation_id="tool_entries_list", tags=["tools"], responses=EntryOutput(many=True))
    def get(self, request: Request) -> Response:
        """List the workspace's settings for individual tools; a tool without an entry uses its source's settings."""
        return self.paginated(entry_list(actor=self.actor), EntryOutput)

    @extend_schema(
        operation_id="tool_entries_set", tags=["tools"], request=EntryInput, responses={201: EntryOutput}
    )
    def post(self, request: Request) -> Response:
        """Change a tool's settings; omitted fields stay as they are."""
        values = valid(EntryInput, request.data)
        row = entry_set(tenant=self.tenant, actor=self.actor, **values)
        row.refresh_from_db()
        return Response(EntryOutput(row).data, status=status.HTTP_201_CREATED)


class EntryView(TenantAPIView):
    """What the workspace states about one tool."""

    actions = _MANAGE_ONE

    def _row(self, pk: int) -> ToolEntry:
        row = entry_list(actor=self.actor).filter(pk=pk).first()
        if row is None:
            raise Missing("entry")
        return row

    @extend_schema(operation_id="tool_entries_read", tags=["tools"], responses=EntryOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an entry."""
        return Response(EntryOutput(self._row(pk)).data)

    @extend_schema(
        operation_id="tool_entries_update", tags=["tools"], request=EntryChange, responses=EntryOutput
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change an entry; omitted fields stay as they are."""
        name = self._row(pk).name
        values = valid(EntryChange, request.data)
        row = entry_set(tenant=self.tenant, actor=self.actor, name=name, **values)
        row.refresh_from_db()
        return Response(EntryOutput(row).data)

    @extend_schema(operation_id="tool_entries_delete", tags=["tools"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Reset a tool's settings."""
        entry_delete(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AccessView(TenantAPIView):
    """What somebody can see and do."""

    actions = {"GET": "tool.run"}

    @extend_schema(
        operation_id="access_explain",
        tags=["tools"],
        parameters=[OpenApiParameter("subject", str, description=SUBJECT_HELP)],
        responses=AccessOutput,
    )
    def get(self, request: Request) -> Response:
        """Show what a member, key or role can see and do, and which rule decides; `tool.manage` is needed for others."""
        found = access_explain(actor=self.actor, subject=_text(request.query_params.get("subject", "")))
        subject = found.subject
        said = {
            "subject": {
                "kind": subject.kind,
                "name": subject.name,
                "role": subject.role,
                "rights": sorted(subject.actions),
            },
            "collections": found.collections,
            "tools": [
                {
                    "name": t.name,
                    "group": t.group,
                    "effect": t.decision.effect,
                    "rule": t.decision.rule,
                    "why": t.decision.why,
                    "elsewhere": t.elsewhere,
                }
                for t in found.tools
            ],
            "keys": found.keys,
        }
        return Response(AccessOutput(said).data)


class AccessTryView(TenantAPIView):
    """A call held against the policy."""

    actions = {"POST": "tool.run"}

    @extend_schema(
        operation_id="access_try", tags=["tools"], request=AccessTryInput, responses=AccessTryOutput
    )
    def post(self, request: Request) -> Response:
        """Show whether a call would run, and why; nothing runs and no one is asked."""
        values = valid(AccessTryInput, request.data)
        arguments = values.get("arguments", {})
        if len(json.dumps(arguments)) > MAX_ARGUMENTS:
            raise Invalid(
                "invalid",
                f"Arguments have at most {MAX_ARGUMENTS:,} characters.",
                data={"field": "arguments"},
            )
        tried = call_try(
            actor=self.actor,
            tool=values["tool"],
            arguments=arguments,
            collections=values.get("collections"),
            subject=_text(values.get("subject", "")),
        )
        said = {
            "effect": tried.decision.effect,
            "rule": tried.decision.rule,
            "why": tried.decision.why,
            "sentence": tried.rule,
            "problems": tried.problems,
        }
        return Response(AccessTryOutput(said).data)


def _text(value: str) -> str:
    return value.strip()[:40]
