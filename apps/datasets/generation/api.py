"""REST of generation jobs. The views hold no rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.generation.services import (
    generation_pause,
    generation_resume,
    generation_start,
    generation_stop,
)
from apps.datasets.generation.shapes import (
    GenerationDetailOutput,
    GenerationInput,
    GenerationOutput,
    GenerationResumeInput,
)
from apps.datasets.models import GenerationJob
from apps.datasets.rows import selectors
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView

_READ, _WRITE = "dataset.read", "dataset.write"


class GenerationsView(TenantAPIView):
    """The generation jobs of a dataset."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="generations_list", tags=["datasets"], responses=GenerationOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List generation jobs, newest first."""
        rows = selectors.job_list(actor=self.actor, dataset=selectors.dataset_get(actor=self.actor, pk=pk))
        return self.paginated(rows, GenerationOutput)

    @extend_schema(
        operation_id="generations_start",
        tags=["datasets"],
        request=GenerationInput,
        responses={202: GenerationOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start generating rows from collections."""
        values = valid(GenerationInput, request.data)
        job = generation_start(
            tenant=self.tenant,
            actor=self.actor,
            dataset=selectors.dataset_get(actor=self.actor, pk=pk),
            model=values["model"],
            options=values["settings"],
            budget_usd=values["budget_usd"],
            probe=values["probe"],
        )
        return self._answer(job)

    def _answer(self, job: GenerationJob) -> Response:
        job.refresh_from_db()
        return Response(GenerationOutput(job).data, status=status.HTTP_202_ACCEPTED)


class GenerationView(TenantAPIView):
    """One generation job."""

    actions = {"GET": _READ}

    @extend_schema(operation_id="generations_get", tags=["datasets"], responses=GenerationDetailOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a job's progress and cost."""
        job: Any = selectors.job_get(actor=self.actor, pk=pk)
        job.batch = selectors.job_batch(actor=self.actor, job=job)
        return Response(GenerationDetailOutput(job).data)


class GenerationPauseView(TenantAPIView):
    """A pause of a job."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="generations_pause", tags=["datasets"], request=None, responses=GenerationOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Finish work in progress and start nothing new."""
        job = selectors.job_get(actor=self.actor, pk=pk)
        row = generation_pause(tenant=self.tenant, actor=self.actor, job=job)
        return Response(GenerationOutput(row).data)


class GenerationResumeView(TenantAPIView):
    """The resumption of a job."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="generations_resume",
        tags=["datasets"],
        request=GenerationResumeInput,
        responses=GenerationOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Resume a paused or failed job, with a new budget if given."""
        job = selectors.job_get(actor=self.actor, pk=pk)
        values = valid(GenerationResumeInput, request.data)
        row = generation_resume(tenant=self.tenant, actor=self.actor, job=job, **values)
        return Response(GenerationOutput(row).data)


class GenerationStopView(TenantAPIView):
    """The end of a job."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="generations_stop", tags=["datasets"], request=None, responses=GenerationOutput
    )
    def post(self, request: Request, pk: int) -> Response:
        """Stop a job permanently; its rows stay."""
        job = selectors.job_get(actor=self.actor, pk=pk)
        row = generation_stop(tenant=self.tenant, actor=self.actor, job=job)
        return Response(GenerationOutput(row).data)
