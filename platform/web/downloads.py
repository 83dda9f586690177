"""Files to download, sent in pieces: memory does not grow with the file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from django.http import StreamingHttpResponse

PIECE = 1 << 18


def file_response(path: Path, *, name: str, media_type: str) -> StreamingHttpResponse:
    """Return a response that sends a file to be saved, never to be shown.

    Args:
        name: what the browser saves it as.

    Django's own ``FileResponse`` reads the whole file first when it is served by ASGI.
    """
    response = StreamingHttpResponse(_pieces(path), content_type=media_type)
    response["Content-Length"] = str(path.stat().st_size)
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
