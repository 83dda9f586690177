"""``/v1/...`` is ``/api/v1/...``: programs written for OpenAI's address, or for a file API at the root, change only the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

_SHORT, _WHOLE = "/v1/", "/api/v1/"


def short_address(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Read the short address as the whole one before anything looks at it; links in answers have the whole one."""

    def middleware(request: HttpRequest) -> Any:
        _lengthen(request)
        return get_response(request)

    return middleware


def _lengthen(request: HttpRequest) -> None:
    if request.path_info.startswith(_SHORT):
        before = request.path.removesuffix(request.path_info)  # where the whole site is mounted
        request.path_info = _WHOLE + request.path_info.removeprefix(_SHORT)
        request.path = before + request.path_info
