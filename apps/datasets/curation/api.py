"""REST of curation: exports, imports, checks and what is done about their findings, reviews. The views hold no rules."""

from __future__ import annotations

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.documents.uploads import posted_file
from apps.datasets.curation import reviews, services
from apps.datasets.curation.selectors import work_get, work_list
from apps.datasets.curation.shapes import (
    AcceptInput,
    CheckInput,
    CheckOutput,
    ExportInput,
    ExportOutput,
    ReviewInput,
    RowsImportInput,
    RowsImportOutput,
    SettleInput,
    SettleOutput,
    SplitAssignInput,
)
from apps.datasets.curation.stopping import work_stop
from apps.datasets.curation.views import errors_response, export_response
from apps.datasets.models import Dataset, DatasetCheck, DatasetExport, DatasetImport
from apps.datasets.rows import selectors
from apps.datasets.rows.shapes import RowOutput
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_WRITE = "dataset.write"


class _Base(TenantAPIView):
    def _dataset(self, pk: int) -> Dataset:
        return selectors.dataset_get(actor=self.actor, pk=pk)


class ExportsView(_Base):
    """The exports of a dataset."""

    actions = {"GET": _WRITE, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="dataset_exports_list", tags=["datasets"], responses=ExportOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List a dataset's exports, newest first."""
        rows = work_list(actor=self.actor, model=DatasetExport, dataset=self._dataset(pk))
        return self.paginated(rows, ExportOutput)

    @extend_schema(
        operation_id="dataset_exports_start",
        tags=["datasets"],
        request=ExportInput,
        responses={202: ExportOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Write a version to a file, read it back and compare. Poll the export until it has ended."""
        dataset, values = self._dataset(pk), valid(ExportInput, request.data)
        version = selectors.version_get(actor=self.actor, dataset=dataset, number=values.get("version"))
        row = services.export_start(
            tenant=self.tenant,
            actor=self.actor,
            dataset=dataset,
            version=version,
            form=values["form"],
            split=values["split"],
        )
        return Response(ExportOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ExportView(_Base):
    """One export."""

    actions = {"GET": _WRITE}

    @extend_schema(operation_id="dataset_exports_get", tags=["datasets"], responses=ExportOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an export with its validator's findings."""
        return Response(ExportOutput(work_get(actor=self.actor, model=DatasetExport, pk=pk)).data)


class ExportStopView(_Base):
    """An export that is stopped."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_exports_stop", tags=["datasets"], request=None, responses=ExportOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Stop an export within seconds; no file is kept."""
        row = work_get(actor=self.actor, model=DatasetExport, pk=pk)
        return Response(ExportOutput(work_stop(tenant=self.tenant, actor=self.actor, work=row)).data)


class ExportFileView(_Base):
    """The file of an export."""

    actions = {"GET": _WRITE}

    @extend_schema(
        operation_id="dataset_exports_file",
        tags=["datasets"],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        """Return the file of a completed export."""
        return export_response(self.actor, work_get(actor=self.actor, model=DatasetExport, pk=pk))


class ExportAcceptView(_Base):
    """What may leave all the same."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_exports_accept", tags=["datasets"], request=AcceptInput, responses=ExportOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Allow findings of a blocked export, for this and later exports, and start it again."""
        row = work_get(actor=self.actor, model=DatasetExport, pk=pk)
        values = valid(AcceptInput, request.data)
        services.finding_accept(
            tenant=self.tenant, actor=self.actor, dataset=row.dataset, export=row, **values
        )
        return Response(ExportOutput(row).data)


class ImportsView(_Base):
    """The imports of rows into a dataset."""

    stores = True

    actions = {"GET": _WRITE, "POST": _WRITE}
    pagination_class = Pagination
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="dataset_imports_list", tags=["datasets"], responses=RowsImportOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List a dataset's imports, newest first."""
        rows = work_list(actor=self.actor, model=DatasetImport, dataset=self._dataset(pk))
        return self.paginated(rows, RowsImportOutput)

    @extend_schema(
        operation_id="dataset_imports_start",
        tags=["datasets"],
        request=RowsImportInput,
        responses={202: RowsImportOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Upload a file of rows; a trial reads it without adding rows."""
        dataset, values = self._dataset(pk), valid(RowsImportInput, request.data)
        row = services.import_start(
            tenant=self.tenant,
            actor=self.actor,
            dataset=dataset,
            form=values["form"],
            is_trial=values["is_trial"],
            **posted_file(request),
        )
        return Response(RowsImportOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ImportView(_Base):
    """One import."""

    actions = {"GET": _WRITE}

    @extend_schema(operation_id="dataset_imports_get", tags=["datasets"], responses=RowsImportOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return an import with the first rows that could not be read."""
        row = work_get(actor=self.actor, model=DatasetImport, pk=pk)
        return Response(RowsImportOutput(row).data)


class ImportStopView(_Base):
    """An import that is stopped."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_imports_stop", tags=["datasets"], request=None, responses=RowsImportOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Stop an import within seconds; rows it added are removed unless someone has worked on them."""
        row = work_get(actor=self.actor, model=DatasetImport, pk=pk)
        return Response(RowsImportOutput(work_stop(tenant=self.tenant, actor=self.actor, work=row)).data)


class ImportErrorsView(_Base):
    """The rows that an import could not read."""

    actions = {"GET": _WRITE}

    @extend_schema(
        operation_id="dataset_imports_errors",
        tags=["datasets"],
        responses={(200, "application/x-ndjson"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        """Return the file of all rows that could not be read, one JSON object per line."""
        return errors_response(work_get(actor=self.actor, model=DatasetImport, pk=pk))


class ChecksView(_Base):
    """The checks of a dataset."""

    actions = {"GET": _WRITE, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="dataset_checks_list", tags=["datasets"], responses=CheckOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List a dataset's checks, newest first."""
        rows = work_list(actor=self.actor, model=DatasetCheck, dataset=self._dataset(pk))
        return self.paginated(rows, CheckOutput)

    @extend_schema(
        operation_id="dataset_checks_start",
        tags=["datasets"],
        request=CheckInput,
        responses={202: CheckOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Look for duplicates, contamination or personal data, or divide the rows into splits by document."""
        dataset = self._dataset(pk)
        values = valid(CheckInput, request.data)
        row = services.check_start(tenant=self.tenant, actor=self.actor, dataset=dataset, **values)
        return Response(CheckOutput(row).data, status=status.HTTP_202_ACCEPTED)


class CheckView(_Base):
    """One check."""

    actions = {"GET": _WRITE}

    @extend_schema(operation_id="dataset_checks_get", tags=["datasets"], responses=CheckOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a check with its findings."""
        return Response(CheckOutput(work_get(actor=self.actor, model=DatasetCheck, pk=pk)).data)


class CheckStopView(_Base):
    """A check that is stopped."""

    actions = {"POST": _WRITE}

    @extend_schema(operation_id="dataset_checks_stop", tags=["datasets"], request=None, responses=CheckOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Stop a check within seconds; rows moved by a division are moved back."""
        row = work_get(actor=self.actor, model=DatasetCheck, pk=pk)
        return Response(CheckOutput(work_stop(tenant=self.tenant, actor=self.actor, work=row)).data)


class SplitAssignView(_Base):
    """Rows that are put into a split."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_rows_split",
        tags=["datasets"],
        request=SplitAssignInput,
        responses={202: CheckOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Move rows to a split, with all rows that share a document with them. Poll the check until it has ended."""
        dataset, values = self._dataset(pk), valid(SplitAssignInput, request.data)
        row = services.split_assign(
            tenant=self.tenant,
            actor=self.actor,
            dataset=dataset,
            into=values["into"],
            only=selectors.RowFilter(**values.get("only", {})),
            row_pks=values.get("rows", ()),
            is_trial=values["is_trial"],
        )
        return Response(CheckOutput(row).data, status=status.HTTP_202_ACCEPTED)


class SplitUndoView(_Base):
    """A division of rows into splits that is taken back."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_checks_undo", tags=["datasets"], request=None, responses={202: CheckOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Move rows back to the splits a division took them from; rows moved since then stay."""
        check = work_get(actor=self.actor, model=DatasetCheck, pk=pk)
        row = services.split_undo(tenant=self.tenant, actor=self.actor, check=check)
        return Response(CheckOutput(row).data, status=status.HTTP_202_ACCEPTED)


class ReviewView(_Base):
    """Verdicts about a row."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_rows_review", tags=["datasets"], request=ReviewInput, responses=RowOutput
    )
    def post(self, request: Request, pk: int, row_pk: int) -> Response:
        """Approve or reject a row as you saw it."""
        row = selectors.row_get(actor=self.actor, dataset=self._dataset(pk), pk=row_pk)
        values = valid(ReviewInput, request.data)
        row = reviews.row_review(tenant=self.tenant, actor=self.actor, row=row, **values)
        return Response(RowOutput(row).data)


class SettleView(_Base):
    """What is done about findings."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_rows_settle", tags=["datasets"], request=SettleInput, responses=SettleOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Reject rows that a check found, move them to training, or hide what was found in them. All or none."""
        values = valid(SettleInput, request.data)
        changed = reviews.rows_settle(
            tenant=self.tenant,
            actor=self.actor,
            dataset=self._dataset(pk),
            row_pks=values["rows"],
            act=values["act"],
            note=values["note"],
        )
        return Response(SettleOutput({"changed": changed}).data)
