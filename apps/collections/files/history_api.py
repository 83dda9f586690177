"""REST of the history of a collection's files: changes, differences, undo, redo and restore."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.files import history as file_history
from apps.collections.files import shapes, undo
from apps.collections.files.api import TAGS, FilesAPIView, number_parameters, shape_valid, word_parameters
from web.drf.pages import Pagination


class FilesDiffView(FilesAPIView):
    """Differences."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="files_diff",
        tags=TAGS,
        parameters=[*word_parameters("path", "other"), *number_parameters("revision", "other_revision")],
        responses=shapes.DiffOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Compare two files (path, other), show what a revision changed, or compare two revisions."""
        collection = self.collection(pk)
        if revision := self.number("revision", 0):
            other = self.number("other_revision", 0) or None
            text = file_history.diff_revisions(
                actor=self.actor, collection=collection, pk=revision, other=other
            )
        else:
            text = file_history.diff_files(
                actor=self.actor, collection=collection, path=self.path(), other=self.word("other")
            )
        return Response({"diff": text})


class FileChangesView(FilesAPIView):
    """The history."""

    actions = {"GET": "collection.read"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="files_changes",
        tags=TAGS,
        parameters=word_parameters("path"),
        responses=shapes.ChangeOutput(many=True),
    )
    def get(self, request: Request, pk: int) -> Response:
        """List changes to the collection's files, newest first, each with the files you can see."""
        collection = self.collection(pk)
        rows = file_history.batch_list(actor=self.actor, collection=collection, path=self.word("path"))
        pages = Pagination()
        page = pages.paginate_queryset(rows, request, view=self) or []
        self.shown(collection, page)
        return pages.get_paginated_response(shapes.ChangeOutput(page, many=True).data)


class _TurnView(FilesAPIView):
    actions = {"POST": "document.write"}

    def turn(self, request: Request, pk: int, service: Any) -> Response:
        collection = self.collection(pk)
        wanted = shape_valid(shapes.ChangeInput, request.data)["change"]
        batch = None
        if wanted is not None:
            batch = file_history.batch_get(actor=self.actor, collection=collection, pk=wanted)
        made = service(tenant=self.tenant, actor=self.actor, collection=collection, batch=batch)
        return self.changed(collection, made)


class FilesUndoView(_TurnView):
    """Undo."""

    @extend_schema(
        operation_id="files_undo", tags=TAGS, request=shapes.ChangeInput, responses=shapes.ChangedOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Undo a whole change; refused (409) if one of its files has changed since."""
        return self.turn(request, pk, undo.batch_undo)


class FilesRedoView(_TurnView):
    """Redo."""

    @extend_schema(
        operation_id="files_redo", tags=TAGS, request=shapes.ChangeInput, responses=shapes.ChangedOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Redo a change that was undone."""
        return self.turn(request, pk, undo.batch_redo)


class FileRestoreView(FilesAPIView):
    """Restore."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="files_restore", tags=TAGS, request=shapes.RestoreInput, responses=shapes.ChangedOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Give a file the content it had after a revision."""
        collection = self.collection(pk)
        wanted = shape_valid(shapes.RestoreInput, request.data)["revision"]
        row = file_history.revision_get(actor=self.actor, collection=collection, pk=wanted)
        batch = undo.revision_restore(
            tenant=self.tenant, actor=self.actor, collection=collection, revision=row
        )
        return self.changed(collection, batch)
