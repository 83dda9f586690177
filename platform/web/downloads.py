"""Files to download, sent in pieces: memory does not grow with the file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import quote

from django.conf import settings
from django.http import HttpResponseRedirect, StreamingHttpResponse

from blobs.stores import store
from tenancy.database.waiting import connections_let_go

PIECE = 1 << 18
SIGNED_S = 60  # long enough for a browser to follow a redirect, too short to pass the address on


def file_response(file: BinaryIO, *, name: str, media_type: str) -> StreamingHttpResponse:
    """Return a response that sends a file to be saved, never to be shown.

    Args:
        file: open, and closed with the response.
        name: what the browser saves it as.

    Django's own ``FileResponse`` reads the whole file first when it is served by ASGI.
    """
    response = StreamingHttpResponse(_pieces(file), content_type=media_type)
    response["Content-Length"] = str(os.fstat(file.fileno()).st_size)
    response["Content-Disposition"] = attachment(name)
    response["X-Content-Type-Options"] = "nosniff"
    response._resource_closers.append(file.close)  # type: ignore[attr-defined]  # also where nobody waits for the first piece
    return response


def file_redirect(key: str, *, name: str) -> HttpResponseRedirect | None:
    """Return the way to a kept file at its store, None where this server sends it: without ``GROUNDWORK_FILES_SIGNED``, where
    the store signs no addresses, or has no such bytes (which the sender then says, or finds elsewhere).

    Who may have the file is asked before. The address opens the file for a minute to whoever has it, as a file to be saved.

    Args:
        name: what the browser saves it as.

    Raises:
        StoreAway: the store does not answer.
    """
    if not (settings.FILES_SIGNED and key):
        return None
    address = store().signed(key, disposition=attachment(name), seconds=SIGNED_S)
    if not address:
        return None
    connections_let_go()
    if store().size(key) is None:
        return None
    response = HttpResponseRedirect(address)
    response["Cache-Control"] = "private, no-store"
    return response


def attachment(name: str) -> str:
    """Return the header of a file that is saved, never shown, under a name in whatever script."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
