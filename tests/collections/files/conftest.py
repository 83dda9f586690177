"""What tests of files share: the tenant's scope, and short ways to write and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.collections.files import services
from apps.collections.models import Collection
from tenancy.scope import tenant_scope
from tests.cast import Cast

Write = Callable[[str, bytes | str], None]


@pytest.fixture
def scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def commits(django_capture_on_commit_callbacks: Any) -> Any:
    """Run what waits for a commit, as a request's end does."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def write(cast: Cast, collection: Collection, scope: None) -> Write:
    """Write a file as the member."""

    def put(path: str, content: bytes | str) -> None:
        services.file_write(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, path=path, content=content
        )

    return put
