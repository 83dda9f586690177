"""REST of a person's memory: for the person themselves, signed in; no key reaches it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.memory import services
from apps.conversations.memory.selectors import entry_get, entry_list, memory_get
from apps.conversations.memory.shapes import (
    MemoryEntryInput,
    MemoryEntryOutput,
    MemoryInput,
    MemoryOutput,
)
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class MemoryView(TenantAPIView):
    """One's own memory in the workspace."""

    actions = {"GET": "memory.use", "PUT": "memory.use", "DELETE": "memory.use"}

    @extend_schema(operation_id="memory", tags=["memory"], responses=MemoryOutput)
    def get(self, request: Request) -> Response:
        """Return whether your memory is on. Needs a signed-in person; API keys can't read it."""
        return Response(MemoryOutput(memory_get(actor=self.actor)).data)

    @extend_schema(operation_id="memory_switch", tags=["memory"], request=MemoryInput, responses=MemoryOutput)
    def put(self, request: Request) -> Response:
        """Switch your memory on or off. Your notes stay."""
        values = valid(MemoryInput, request.data)
        services.memory_switch(tenant=self.tenant, actor=self.actor, is_on=values["is_on"])
        return Response(MemoryOutput(memory_get(actor=self.actor)).data)

    @extend_schema(operation_id="memory_erase", tags=["memory"], responses={204: None})
    def delete(self, request: Request) -> Response:
        """Delete all your notes in this workspace."""
        services.memory_erase(tenant=self.tenant, actor=self.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemoryEntriesView(TenantAPIView):
    """One's own notes."""

    actions = {"GET": "memory.use", "POST": "memory.use"}
    pagination_class = Pagination

    @extend_schema(
        operation_id="memory_entries_list", tags=["memory"], responses=MemoryEntryOutput(many=True)
    )
    def get(self, request: Request) -> Response:
        """List your notes, newest first."""
        return self.paginated(entry_list(actor=self.actor), MemoryEntryOutput)

    @extend_schema(
        operation_id="memory_entries_add",
        tags=["memory"],
        request=MemoryEntryInput,
        responses={201: MemoryEntryOutput},
    )
    def post(self, request: Request) -> Response:
        """Add a note, at most 100. One with the same words is returned as it is."""
        values = valid(MemoryEntryInput, request.data)
        row = services.entry_add(tenant=self.tenant, actor=self.actor, text=values["text"])
        stored = entry_get(actor=self.actor, pk=row.pk)
        return Response(MemoryEntryOutput(stored).data, status=status.HTTP_201_CREATED)


class MemoryEntryView(TenantAPIView):
    """One note of one's own."""

    actions = {"GET": "memory.use", "PATCH": "memory.use", "DELETE": "memory.use"}

    @extend_schema(operation_id="memory_entries_get", tags=["memory"], responses=MemoryEntryOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return one of your notes."""
        return Response(MemoryEntryOutput(entry_get(actor=self.actor, pk=pk)).data)

    @extend_schema(
        operation_id="memory_entries_change",
        tags=["memory"],
        request=MemoryEntryInput,
        responses=MemoryEntryOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change what a note says."""
        values = valid(MemoryEntryInput, request.data)
        services.entry_change(tenant=self.tenant, actor=self.actor, pk=pk, text=values["text"])
        return Response(MemoryEntryOutput(entry_get(actor=self.actor, pk=pk)).data)

    @extend_schema(operation_id="memory_entries_delete", tags=["memory"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a note. What you said in conversations stays there."""
        services.entry_remove(tenant=self.tenant, actor=self.actor, pk=pk)
        return Response(status=status.HTTP_204_NO_CONTENT)
