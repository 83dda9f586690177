"""The tenant scope: which tenant's rows this thread or task may touch.

One ContextVar. asgiref copies it into ``sync_to_async`` threads and asyncio copies it into tasks; a plain
``threading.Thread`` starts with no scope, and no scope sees no tenant row (fail closed). The database backend turns the
value into the session's role and ``app.tenant_id`` just before a statement is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

ALL = "*"
_scope: ContextVar[str] = ContextVar("tenant_scope", default="")


def current() -> str:
    """Return "" (no tenant), the tenant's id as text, or "*" (platform scope: every tenant)."""
    return _scope.get()


@contextmanager
def tenant_scope(tenant_id: int) -> Iterator[None]:
    """Let the block see and write rows of this tenant only."""
    token = _scope.set(str(int(tenant_id)))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def platform_scope() -> Iterator[None]:
    """Let the block see every tenant's rows: sign-in and key look-ups, the sweeper, the superuser's admin."""
    token = _scope.set(ALL)
    try:
        yield
    finally:
        _scope.reset(token)


def scope_same() -> Callable[[], AbstractContextManager[None]]:
    """Return what enters the scope of this moment again: for what goes on after the request, such as a long answer."""
    scope = current()

    @contextmanager
    def entered() -> Iterator[None]:
        token = _scope.set(scope)
        try:
            yield
        finally:
            _scope.reset(token)

    return entered
