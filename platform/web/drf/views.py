"""The base of every REST view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar

import structlog
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from tenancy.actors import Actor
from tenancy.lagging import may_lag_read
from tenancy.models import Tenant
from tenancy.rate_limits import RateLimited, RateState, rate_take
from tenancy.scope import tenant_scope
from web.drf.idempotency import repeatable, watch_uploads
from web.drf.known import body_check, parameters_check
from web.drf.pages import Pagination


class TenantAPIView(APIView):
    """Base of every REST view: after authentication the rest of the request runs in the key's tenant.

    ``actions`` maps each HTTP method to the action it needs; a method without one is refused.
    """

    actions: ClassVar[Mapping[str, str]] = {}
    waits: ClassVar[bool] = False
    stores: ClassVar[bool] = (
        False  # reads or keeps files, which may be far away: outside of a transaction as well
    )
    """Its writes wait for work that others do; see ``web.drf.idempotency.repeatable``."""
    may_lag: ClassVar[frozenset[str]] = frozenset()
    """Methods that only read and may show a state of some seconds ago: see ``tenancy.lagging``."""
    takes_unknown_fields: ClassVar[bool] = False
    """A protocol of others, whose clients send more than we know: unknown fields of a body are not refused."""
    pagination_class: ClassVar[type[BasePagination] | None] = None
    _rate: RateState | None = None

    @property
    def tenant(self) -> Tenant:
        tenant: Tenant = self.request._request.tenant  # type: ignore[attr-defined]
        return tenant

    @property
    def actor(self) -> Actor:
        actor: Actor = self.request._request.actor  # type: ignore[attr-defined]
        return actor

    def paginated(self, rows: Iterable[Any], output: type[BaseSerializer[Any]]) -> Response:
        """Return one page of rows; the view names its ``pagination_class``, so that the schema says so too."""
        pages: Any = (self.pagination_class or Pagination)()
        found = pages.paginate_queryset(rows, self.request, view=self)
        response: Response = pages.get_paginated_response(output(found, many=True).data)
        return response

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._uploads = watch_uploads(request)
        with ExitStack() as self._scope:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, ask for permission, refuse what the operation does not know, and let a write that came with an
        ``Idempotency-Key`` be repeated.
        """
        super().initial(request, *args, **kwargs)
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        if handler is not None and name != "options":
            parameters_check(self, request)
            if not self.takes_unknown_fields:
                body_check(self, request)
        if handler is not None and ("GET" if name == "head" else name.upper()) in self.may_lag:
            request._request.only_reads = True  # type: ignore[attr-defined]
            handler = self._lagging(handler)
            setattr(self, name, handler)
        if self._uploads is not None and handler is not None:
            wrapped = repeatable(
                handler,
                tenant=self.tenant,
                actor=self.actor,
                uploads=self._uploads,
                waits=self.waits or self.stores,
            )
            setattr(self, name, wrapped)  # of this request's view alone: what dispatch calls next

    def _lagging(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: may_lag_read(self.actor, partial(handler, *args, **kwargs))

    def perform_authentication(self, request: Request) -> None:
        super().perform_authentication(request)
        tenant = getattr(request._request, "tenant", None)
        if tenant is not None:
            self._scope.enter_context(tenant_scope(tenant.pk))
            structlog.contextvars.bind_contextvars(tenant=tenant.slug)
            try:  # before permissions: what is refused costs us too
                self._rate = rate_take(tenant=tenant, actor=self.actor)
            except RateLimited as error:
                self._rate = error.state
                raise

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Say in every answer how many requests are left."""
        final = super().finalize_response(request, response, *args, **kwargs)
        if self._rate is not None:
            for name, value in self._rate.headers.items():
                final[name] = value
        return final
