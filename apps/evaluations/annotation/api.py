"""REST of annotation. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.models import DatasetVersion
from apps.evaluations.annotation import selectors as reads
from apps.evaluations.annotation import services, shapes
from apps.evaluations.models import RubricVersion
from apps.evaluations.results import selectors
from basics.errors import Missing
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "evaluation.read", "evaluation.write"
_TAGS = ["evaluations"]
_ACTS = {"close": services.queue_close, "reopen": services.queue_reopen}


class _Base(TenantAPIView):
    """What the views of annotation share."""

    @property
    def _who(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "actor": self.actor}

    def _queue(self, pk: int) -> dict[str, Any]:
        return dict(shapes.QueueOutput(reads.queue_get(actor=self.actor, pk=pk)).data)

    def _version(self, pk: int) -> RubricVersion:
        found = selectors.rubric_versions(actor=self.actor).filter(pk=pk).first()
        if found is None:
            raise Missing("rubric")
        return found


class QueuesView(_Base):
    """The workspace's annotation queues."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="annotation_queues_list", tags=_TAGS, responses=shapes.QueueOutput(many=True))
    def get(self, request: Request) -> Response:
        """List queues, newest first."""
        return self.paginated(reads.queue_list(actor=self.actor), shapes.QueueOutput)

    @extend_schema(
        operation_id="annotation_queues_create",
        tags=_TAGS,
        request=shapes.QueueInput,
        responses={201: shapes.QueueOutput},
    )
    def post(self, request: Request) -> Response:
        """Create a queue of an experiment's answers, or of the answers in a dataset's rows."""
        values = valid(shapes.QueueInput, request.data)
        experiment, version = values.pop("experiment"), values.pop("version")
        dataset_version = None
        if version is not None:
            rows = DatasetVersion.objects.visible_to(self.actor)
            dataset_version = rows.filter(pk=version).first()
            if dataset_version is None:
                raise Missing("version")
        row = services.queue_create(
            **self._who,
            **{**values, "rubric_version": self._version(values["rubric_version"])},
            experiment=None
            if experiment is None
            else selectors.experiment_get(actor=self.actor, pk=experiment),
            version=dataset_version,
        )
        return Response(self._queue(row.pk), status=status.HTTP_201_CREATED)


class QueueView(_Base):
    """One queue."""

    actions = {"GET": _READ, "POST": _WRITE}

    @extend_schema(operation_id="annotation_queues_get", tags=_TAGS, responses=shapes.QueueOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a queue with its totals."""
        return Response(self._queue(pk))

    @extend_schema(
        operation_id="annotation_queues_act",
        tags=_TAGS,
        request=shapes.QueueStateInput,
        responses=shapes.QueueOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Close or reopen a queue."""
        row = reads.queue_get(actor=self.actor, pk=pk)
        _ACTS[valid(shapes.QueueStateInput, request.data)["do"]](**self._who, queue=row)
        return Response(self._queue(pk))


class QueueProgressView(_Base):
    """How far a queue is."""

    actions = {"GET": _READ}

    @extend_schema(operation_id="annotation_queues_progress", tags=_TAGS, responses=shapes.ProgressOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a queue's progress, and who graded how much."""
        row = reads.queue_get(actor=self.actor, pk=pk)
        found = reads.queue_progress(actor=self.actor, queue=row)
        return Response(shapes.ProgressOutput(found).data)


class QueueNextView(_Base):
    """What the caller grades next."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="annotation_queues_next", tags=_TAGS, request=None, responses=shapes.TakenOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Take the next answer to grade; returns the same one until it is graded or skipped."""
        row = reads.queue_get(actor=self.actor, pk=pk)
        taken = services.assignment_take(**self._who, queue=row)
        sheet = None if taken is None else reads.sheet_get(actor=self.actor, assignment=taken)
        return Response(shapes.TakenOutput({"sheet": sheet}).data)


class QueueUndoView(_Base):
    """What the caller decided last."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="annotation_queues_undo", tags=_TAGS, request=None, responses=shapes.AssignmentOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Reopen the answer you graded or skipped last; its grades no longer count."""
        row = reads.queue_get(actor=self.actor, pk=pk)
        undone = services.assignment_undo(**self._who, queue=row)
        found = reads.assignment_get(actor=self.actor, pk=undone.pk)
        return Response(shapes.AssignmentOutput(found).data)


class AssignmentView(_Base):
    """An answer that the caller has taken."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="assignments_decide",
        tags=_TAGS,
        request=shapes.GradeInput,
        responses=shapes.AssignmentOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Grade an answer, leave it to others, or mark your grades as the correct ones."""
        values = valid(shapes.GradeInput, request.data)
        row = reads.assignment_get(actor=self.actor, pk=pk)
        if values["do"] == "gold":
            services.gold_set(**self._who, assignment=row)
        elif values["do"] == "skip":
            services.assignment_skip(**self._who, assignment=row, note=values["note"])
        else:
            services.assignment_grade(
                **self._who, assignment=row, levels=values["levels"], note=values["note"]
            )
        found = reads.assignment_get(actor=self.actor, pk=pk)
        return Response(shapes.AssignmentOutput(found).data)
