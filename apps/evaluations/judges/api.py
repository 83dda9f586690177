"""REST of rubrics, and of how far judges agree with people. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.evaluations.judges import calibration_services, services, shapes
from apps.evaluations.judges.calibrations import calibration_list
from apps.evaluations.judges.trust import agreement_list
from apps.evaluations.models import RubricVersion
from apps.evaluations.results import selectors
from basics.errors import Missing
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_READ, _WRITE = "evaluation.read", "evaluation.write"
_TAGS = ["evaluations"]


class _Base(TenantAPIView):
    """What the views of rubrics share."""

    @property
    def _who(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "actor": self.actor}

    def _version(self, pk: int) -> RubricVersion:
        found = selectors.rubric_versions(actor=self.actor).filter(pk=pk).first()
        if found is None:
            raise Missing("rubric")
        return found


class RubricsView(_Base):
    """The workspace's rubrics."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = Pagination

    @extend_schema(operation_id="rubrics_list", tags=_TAGS, responses=shapes.RubricOutput(many=True))
    def get(self, request: Request) -> Response:
        """List rubrics with their versions."""
        return self.paginated(selectors.rubric_list(actor=self.actor), shapes.RubricOutput)

    @extend_schema(
        operation_id="rubrics_create",
        tags=_TAGS,
        request=shapes.RubricInput,
        responses={201: shapes.RubricVersionOutput},
    )
    def post(self, request: Request) -> Response:
        """Create a rubric with its first version."""
        made = services.rubric_create(**self._who, **valid(shapes.RubricInput, request.data))
        made.refresh_from_db()
        return Response(shapes.RubricVersionOutput(made).data, status=status.HTTP_201_CREATED)


class RubricVersionsView(_Base):
    """The versions of a rubric."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="rubric_versions_create",
        tags=_TAGS,
        request=shapes.RubricVersionInput,
        responses={201: shapes.RubricVersionOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Change a rubric by creating its next version."""
        row = selectors.rubric_get(actor=self.actor, pk=pk)
        values = valid(shapes.RubricVersionInput, request.data)
        made = services.rubric_version_create(**self._who, rubric=row, **values)
        made.refresh_from_db()
        return Response(shapes.RubricVersionOutput(made).data, status=status.HTTP_201_CREATED)


class AgreementView(_Base):
    """How far judges agree with people."""

    actions = {"GET": _READ}
    pagination_class = WholeList

    @extend_schema(
        operation_id="rubric_versions_agreement", tags=_TAGS, responses=shapes.AgreementOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return agreement between judge and people and among people, for each score and judge of a rubric version."""
        found = agreement_list(actor=self.actor, version=self._version(pk))
        return self.paginated(found, shapes.AgreementOutput)


class CalibrationsView(_Base):
    """How judges' scores are read on the scale of people."""

    actions = {"GET": _READ, "POST": _WRITE}
    pagination_class = WholeList

    @extend_schema(
        operation_id="rubric_versions_calibrations", tags=_TAGS, responses=shapes.CalibrationOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the calibrations for a rubric version, newest first; the newest of each score and judge is used."""
        found = calibration_list(actor=self.actor, version=self._version(pk))
        return self.paginated(found, shapes.CalibrationOutput)

    @extend_schema(
        operation_id="rubric_versions_calibrate",
        tags=_TAGS,
        request=shapes.CalibrationInput,
        responses={201: shapes.CalibrationOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Calibrate a judge's score to people's grades so far."""
        version = self._version(pk)
        values = valid(shapes.CalibrationInput, request.data)
        row = calibration_services.calibration_create(**self._who, version=version, **values)
        row.refresh_from_db()
        return Response(shapes.CalibrationOutput(row).data, status=status.HTTP_201_CREATED)
