"""A request goes to its thread once: middleware, view and rendering are there."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.test import AsyncRequestFactory

from web.handler import Handler


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path", ["/healthz", "/accounts/login/"]
)  # a plain answer, and a template with forms
async def test_a_plain_view_is_one_way_there_and_back(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Handler()
    handler.load_middleware(is_async=True)
    ways: list[Any] = []
    call = SyncToAsync.__call__

    async def counted(self: Any, *args: Any, **options: Any) -> Any:
        ways.append(self.func)
        return await call(self, *args, **options)

    monkeypatch.setattr(SyncToAsync, "__call__", counted)
    response = await handler.get_response_async(AsyncRequestFactory().get(path))
    assert response.status_code == 200
    assert len(ways) == 1, ways
