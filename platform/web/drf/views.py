"""The base of every REST view."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

import structlog
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from web.drf.pages import Pagination


class TenantAPIView(APIView):
    """Base of every REST view: after authentication the rest of the request runs in the key's tenant.

    ``actions`` maps each HTTP method to the action it needs; a method without one is refused.
    """

    actions: ClassVar[Mapping[str, str]] = {}
    pagination_class: ClassVar[type[Pagination] | None] = None

    @property
    def tenant(self) -> Tenant:
        tenant: Tenant = self.request._request.tenant  # type: ignore[attr-defined]
        return tenant

    @property
    def actor(self) -> Actor:
        actor: Actor = self.request._request.actor  # type: ignore[attr-defined]
        return actor

    def paginated(self, rows: QuerySet[Any], output: type[BaseSerializer[Any]]) -> Response:
        """Return one page of rows; the view names its ``pagination_class``, so that the schema says so too."""
        pages = (self.pagination_class or Pagination)()
        found = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(output(found, many=True).data)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as self._scope:
            return super().dispatch(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        tenant = getattr(request._request, "tenant", None)
        if tenant is not None:
            self._scope.enter_context(tenant_scope(tenant.pk))
            structlog.contextvars.bind_contextvars(tenant=tenant.slug)
