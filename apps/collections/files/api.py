"""REST of a collection's files. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display import selectors
from apps.collections.display.request_values import flag
from apps.collections.files import checks as file_checks
from apps.collections.files import history as file_history
from apps.collections.files import search as file_search
from apps.collections.files import selectors as file_selectors
from apps.collections.files import services, shapes
from apps.collections.files.edits import TextEdit
from apps.collections.models import Collection, FileBatch
from apps.collections.tree.rules import FileRules
from basics.errors import Invalid
from web.drf.views import TenantAPIView

TAGS = ["files"]


def word_parameters(*names: str) -> list[OpenApiParameter]:
    return [OpenApiParameter(name, str) for name in names]


def number_parameters(*names: str) -> list[OpenApiParameter]:
    return [OpenApiParameter(name, int) for name in names]


def shape_valid(shape: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


class FilesAPIView(TenantAPIView):
    """Base of the views below: finds the collection, reads parameters, shows changes."""

    stores = True

    def collection(self, pk: int) -> Collection:
        """Return the collection. Raises Missing."""
        return selectors.collection_get(actor=self.actor, pk=pk)

    def number(self, name: str, default: int, least: int = 0) -> int:
        """Return a whole number of the query. Raises ValidationError."""
        value = self.request.query_params.get(name, "")
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 9 or int(value) < least:
            raise serializers.ValidationError({name: [f"Give a whole number of at least {least}."]})
        return int(value)

    def word(self, name: str, default: str = "") -> str:
        """Return a text of the query."""
        return self.request.query_params.get(name, default)

    def path(self) -> str:
        """Return the required parameter ``path``. Raises ValidationError."""
        body = self.request.data if self.request.method == "DELETE" else None
        found = self.word("path") or (str(body.get("path", "")) if isinstance(body, Mapping) else "")
        if not found:
            raise serializers.ValidationError({"path": ["This parameter is required."]})
        return found

    def changed(self, collection: Collection, batch: FileBatch | None) -> Response:
        """Answer with a change."""
        if batch is not None:
            self.shown(collection, [batch])
        return Response(shapes.ChangedOutput({"change": batch}).data)

    def shown(self, collection: Collection, batches: list[Any]) -> None:
        """Put onto each batch the revisions that the actor may see."""
        rows = file_history.revision_list(actor=self.actor, collection=collection, batches=batches)
        for batch in batches:
            batch.shown = [row for row in rows if row.batch_id == batch.pk]


class FilesView(FilesAPIView):
    """A folder."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="files_list",
        tags=TAGS,
        parameters=[
            *word_parameters("folder", "pattern"),
            OpenApiParameter("recursive", bool),
            OpenApiParameter("show_hidden", bool),
            *number_parameters("offset", "limit"),
        ],
        responses=shapes.ListingOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """List a folder of the collection: folders first, then files, by name."""
        found = file_selectors.file_list(
            actor=self.actor,
            collection=self.collection(pk),
            folder=self.word("folder"),
            offset=self.number("offset", 0),
            limit=min(self.number("limit", 200, 1), 1000),
            pattern=self.word("pattern"),
            is_recursive=flag(request, "recursive") or False,
            show_hidden=flag(request, "show_hidden"),
        )
        return Response(shapes.ListingOutput(found).data)


class FileContentView(FilesAPIView):
    """One file."""

    actions = {"GET": "collection.read", "PUT": "document.write", "DELETE": "document.write"}

    @extend_schema(
        operation_id="files_read",
        tags=TAGS,
        parameters=[
            OpenApiParameter("path", str, required=True),
            *word_parameters("encoding"),
            *number_parameters("start", "end"),
        ],
        responses=shapes.FileOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Read lines of a file; 500 by default, at most 2000."""
        found = file_selectors.file_read(
            actor=self.actor,
            collection=self.collection(pk),
            path=self.path(),
            start=self.number("start", 1, 1),
            end=self.number("end", 0) or None,
            encoding=self.word("encoding"),
        )
        return Response(shapes.FileOutput(found).data)

    @extend_schema(
        operation_id="files_write", tags=TAGS, request=shapes.FileWriteInput, responses=shapes.ChangedOutput
    )
    def put(self, request: Request, pk: int) -> Response:
        """Write a whole file, creating or replacing it."""
        collection = self.collection(pk)
        values = shape_valid(shapes.FileWriteInput, request.data)
        batch = services.file_write(tenant=self.tenant, actor=self.actor, collection=collection, **values)
        return self.changed(collection, batch)

    @extend_schema(
        operation_id="files_delete",
        tags=TAGS,
        parameters=[OpenApiParameter("path", str, required=True), *word_parameters("expected")],
        responses=shapes.ChangedOutput,
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a file and its document; it can be undone."""
        collection = self.collection(pk)
        batch = services.file_delete(
            tenant=self.tenant,
            actor=self.actor,
            collection=collection,
            path=self.path(),
            expected=self.word("expected") or None,
        )
        return self.changed(collection, batch)


class FilesEditView(FilesAPIView):
    """Edits of several files."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="files_edit", tags=TAGS, request=shapes.FilesEditInput, responses=shapes.ChangedOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Edit several files by lines or exact text; either all edits are made or none."""
        collection = self.collection(pk)
        values = shape_valid(shapes.FilesEditInput, request.data)
        edits = [
            services.FileEdit(one["path"], [TextEdit(**edit) for edit in one["edits"]], one["expected"])
            for one in values["files"]
        ]
        batch = services.files_edit(
            tenant=self.tenant, actor=self.actor, collection=collection, edits=edits, note=values["note"]
        )
        return self.changed(collection, batch)


class FileMoveView(FilesAPIView):
    """Another path for a file."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="files_move", tags=TAGS, request=shapes.FileMoveInput, responses=shapes.ChangedOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Move a file; its document keeps versions and limits."""
        collection = self.collection(pk)
        values = shape_valid(shapes.FileMoveInput, request.data)
        batch = services.file_move(tenant=self.tenant, actor=self.actor, collection=collection, **values)
        return self.changed(collection, batch)


class FilesSearchView(FilesAPIView):
    """Search in files."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="files_search",
        tags=TAGS,
        parameters=[
            OpenApiParameter("query", str, required=True),
            OpenApiParameter("kind", str, enum=get_args(file_search.Kind)),
            *word_parameters("folder", "names"),
            OpenApiParameter("case", bool),
            *number_parameters("offset", "limit"),
        ],
        responses=shapes.MatchesOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Find lines by text or regular expression, or files by name; the search ends after five seconds."""
        kind: Any = self.word("kind", "text")
        if kind not in get_args(file_search.Kind):
            raise serializers.ValidationError({"kind": ["Give text, name or regex."]})
        found = file_search.search_files(
            actor=self.actor,
            collection=self.collection(pk),
            query=self.word("query"),
            kind=kind,
            folder=self.word("folder"),
            names=self.word("names"),
            is_case_sensitive=self.word("case") in ("true", "1"),
            offset=self.number("offset", 0),
            limit=self.number("limit", file_search.PAGE, 1),
        )
        return Response(shapes.MatchesOutput(found).data)


class FilesStructureView(FilesAPIView):
    """The tree of files."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="files_structure",
        tags=TAGS,
        parameters=[*word_parameters("folder"), *number_parameters("depth")],
        responses=shapes.StructureOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return folders and files with sizes and languages, three levels deep unless told otherwise."""
        depth = min(self.number("depth", 3, 1), 20)
        root = file_selectors.project_structure(
            actor=self.actor, collection=self.collection(pk), folder=self.word("folder"), depth=depth
        )
        return Response(file_selectors.as_json(root))


class FileSyntaxView(FilesAPIView):
    """Syntax."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="files_syntax",
        tags=TAGS,
        parameters=[OpenApiParameter("path", str, required=True)],
        responses=shapes.SyntaxOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return the syntax errors of a source, JSON, TOML or YAML file."""
        found = file_checks.check_syntax(actor=self.actor, collection=self.collection(pk), path=self.path())
        return Response(asdict(found))


class FileRulesView(FilesAPIView):
    """The rules of file tools."""

    actions = {"GET": "collection.read", "PUT": "collection.write"}

    @extend_schema(operation_id="files_rules", tags=TAGS, responses=shapes.RulesShape)
    def get(self, request: Request, pk: int) -> Response:
        """Return what file tools can read and write."""
        return Response(FileRules.of(self.collection(pk).file_rules).as_json())

    @extend_schema(
        operation_id="files_rules_set", tags=TAGS, request=shapes.RulesShape, responses=shapes.RulesShape
    )
    def put(self, request: Request, pk: int) -> Response:
        """Replace the rules; omitted ones get their default."""
        if not isinstance(request.data, Mapping):
            raise Invalid("invalid", "The rules must be an object; see the schema.")
        rules = services.file_rules_update(
            tenant=self.tenant, actor=self.actor, collection=self.collection(pk), rules=dict(request.data)
        )
        return Response(rules.as_json())
