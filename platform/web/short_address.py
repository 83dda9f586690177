"""``/v1/...`` is ``/api/v1/...``: programs written for OpenAI's address, or for a file API at the root, change only the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

_SHORT, _WHOLE = "/v1/", "/api/v1/"


@sync_and_async_middleware
def short_address(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Read the short address as the whole one before anything looks at it; links in answers have the whole one."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> Any:
            _lengthen(request)
            return await get_response(request)

        markcoroutinefunction(middleware)
        return middleware

    def sync_middleware(request: HttpRequest) -> Any:
        _lengthen(request)
        return get_response(request)

    return sync_middleware


def _lengthen(request: HttpRequest) -> None:
    if request.path_info.startswith(_SHORT):
        before = request.path.removesuffix(request.path_info)  # where the whole site is mounted
        request.path_info = _WHOLE + request.path_info.removeprefix(_SHORT)
        request.path = before + request.path_info
