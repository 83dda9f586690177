"""REST of imports. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.display import selectors
from apps.collections.documents.uploads import posted_file
from apps.collections.imports import selectors as import_selectors
from apps.collections.imports import services
from apps.collections.imports.services import MAX_PATTERNS, MAX_URLS, SOURCES, ImportOptions
from apps.collections.models import DocumentSource, ImportStatus
from web.drf.pages import Pagination
from web.drf.parsers import JSONParser
from web.drf.views import TenantAPIView


class ImportInput(serializers.Serializer[Any]):
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=[(s.value, s.label) for s in SOURCES]
    )
    file = serializers.FileField(
        required=False,
        help_text="The archive (multipart only): documents, a packed repository or Chroma folder.",
    )
    path = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=1000,
        help_text="Absolute path on the server, below a folder that the operator has opened.",
    )
    urls = serializers.ListField(
        child=serializers.CharField(max_length=2000), required=False, max_length=MAX_URLS
    )
    into = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Folder in the collection to import into; default: the source's name; “” for the top.",
    )
    ref = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="Branch, tag or commit of a repository."
    )
    include = serializers.ListField(
        child=serializers.CharField(max_length=200),
        required=False,
        max_length=MAX_PATTERNS,
        help_text="Patterns as in .gitignore; only files that match one are taken.",
    )
    exclude = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=MAX_PATTERNS
    )
    with_hidden = serializers.BooleanField(required=False, default=False)
    with_unsearchable = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Include files without text: images are read by text recognition; what search can't read "
        "is kept as a file of the collection.",
    )
    sync = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Delete documents from earlier imports of the same source that it no longer contains.",
    )
    chroma_collection = serializers.CharField(required=False, allow_blank=True, max_length=200)
    source_key = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Metadata field that names a passage's source file.",
    )
    vectors_model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Model of the vectors to take over; it must be the collection's own. Without it, "
        "passages are embedded again.",
    )

    class Meta:
        ref_name = "ImportStart"


class ProblemOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    reason = serializers.CharField(help_text="A stable code.")
    message = serializers.CharField()
    count = serializers.IntegerField(help_text="Number of entries with this reason.")
    is_skip = serializers.BooleanField(help_text="Left out by a rule, as expected.")

    class Meta:
        ref_name = "ImportProblem"


class ImportOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    source = serializers.ChoiceField(choices=DocumentSource.choices)  # type: ignore[assignment]
    name = serializers.CharField()
    status = serializers.ChoiceField(choices=ImportStatus.choices)
    entries = serializers.DictField(
        help_text="Counts: found, created, updated, unchanged, retried, files_kept, skipped, problems, removed, "
        "unlisted."
    )
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Import"


class ImportDetailOutput(ImportOutput):
    problems = ProblemOutput(many=True)

    class Meta:
        ref_name = "ImportDetail"


class ImportsView(TenantAPIView):
    """The imports of a collection."""

    stores = True

    actions = {"GET": "document.write", "POST": "document.write"}
    pagination_class = Pagination
    parser_classes = (JSONParser, MultiPartParser)

    @extend_schema(operation_id="imports_list", tags=["imports"], responses=ImportOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List a collection's imports, newest first."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        rows = import_selectors.import_list(actor=self.actor, collection=collection)
        return self.paginated(rows, ImportOutput)

    @extend_schema(
        operation_id="imports_start",
        tags=["imports"],
        request=ImportInput,
        responses={202: ImportDetailOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start an import of an archive, folder, repository, Chroma collection or web pages."""
        collection = selectors.collection_get(actor=self.actor, pk=pk)
        shape = ImportInput(data=request.data)
        shape.is_valid(raise_exception=True)
        values = dict(shape.validated_data)
        file = posted_file(request) if values.pop("file", None) is not None else {}
        source = values.pop("source")
        for name in ("urls", "include", "exclude"):
            values[name] = tuple(values.get(name, ()))
        row = services.import_start(
            tenant=self.tenant,
            actor=self.actor,
            collection=collection,
            source=source,
            options=ImportOptions(**values),
            **file,
        )
        return Response(ImportDetailOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ImportView(TenantAPIView):
    """One import."""

    actions = {"GET": "document.write"}

    @extend_schema(operation_id="imports_get", tags=["imports"], responses=ImportDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an import with its counts and what was left out."""
        row = import_selectors.import_get(actor=self.actor, pk=pk)
        return Response(ImportDetailOutput(row).data)


class ImportCancelView(TenantAPIView):
    """The end of an import."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="imports_cancel", tags=["imports"], request=None, responses={202: ImportDetailOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Stop an import; documents already imported stay."""
        row = import_selectors.import_get(actor=self.actor, pk=pk)
        row = services.import_cancel(tenant=self.tenant, actor=self.actor, row=row)
        return Response(ImportDetailOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ImportRetryView(TenantAPIView):
    """Another attempt at an import."""

    stores = True

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="imports_retry", tags=["imports"], request=None, responses={202: ImportDetailOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Run an import again; files that are already here unchanged are skipped."""
        row = import_selectors.import_get(actor=self.actor, pk=pk)
        row = services.import_retry(tenant=self.tenant, actor=self.actor, row=row)
        return Response(ImportDetailOutput(row).data, status=status.HTTP_202_ACCEPTED)
