"""Server-sent events out of the bytes of a response: https://html.spec.whatwg.org/multipage/server-sent-events.html.

The SDKs decode them as well, through five generators an event, some of which they leave unfinished: the event loop then
makes a task to close each. Here every piece that arrives is decoded at once, and most events cost no await at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from toolloop.providers._common import Until

if TYPE_CHECKING:
    import httpx2

_DRAIN_S: Final = 0.25


class EventDecoder:
    """Decode events piece by piece; a piece may end anywhere."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[tuple[str, str]]:
        """Return name ("" for none) and data of each event that is complete now; events without data are none.

        Raises:
            UnicodeDecodeError: for what is not UTF-8.
        """
        if self._after_cr and piece[:1] == b"\n":
            piece = piece[1:]
        if not piece:
            return []
        self._after_cr = piece[-1:] == b"\r"
        if b"\n" not in piece and b"\r" not in piece:
            self._partial.append(piece)
            return []
        if self._partial:
            piece = b"".join([*self._partial, piece])
            self._partial.clear()
        lines = piece.splitlines()
        if piece[-1:] not in (b"\n", b"\r"):
            self._partial.append(lines.pop())
        found: list[tuple[str, str]] = []
        for line in lines:
            if line:
                self._field(line)
            else:
                if self._data:
                    found.append((self._event, "\n".join(self._data)))
                self._event, self._data = "", []
        return found

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode())
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode()


class EventReader(AsyncIterator[tuple[str, str]]):
    """Iterate over name and data of a response's events until the body ends or the deadline passes.

    Args:
        response: opened as a stream; ``aclose`` closes it.
        deadline: in the event loop's time.
    """

    def __init__(self, response: httpx2.Response, deadline: float) -> None:
        self._response = response
        self._pieces = _pieces(response)
        self._timed = Until(self._pieces, deadline)
        self._decoder = EventDecoder()
        self._ready: deque[tuple[str, str]] = deque()

    async def __anext__(self) -> tuple[str, str]:
        ready = self._ready
        while not ready:
            try:
                piece = await anext(self._timed)
            except OSError as error:
                # TLS failures are not translated everywhere: https://github.com/pydantic/httpx2/issues/854.
                raise read_error(error) from error
            ready.extend(self._decoder.feed(piece))
        return ready.popleft()

    async def drain(self) -> None:
        """Read what is left after the last event that mattered: only a body read to its end frees its connection.

        The turn is complete by then, so a server that does not finish, or fails now, costs no more than a new
        connection for the next call.
        """
        import httpx2

        with suppress(TimeoutError, httpx2.HTTPError, OSError):
            async with asyncio.timeout(_DRAIN_S):
                async for _ in self._pieces:
                    pass

    async def aclose(self) -> None:
        """Close the response; nothing is left for the event loop to close later."""
        self._timed.close()
        await self._pieces.aclose()
        await self._response.aclose()


def _pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Return the body as it arrives; one that isn't compressed needs none of httpx2's decoders, three generators a piece."""
    if "content-encoding" in response.headers or not isinstance(response.stream, AsyncIterable):
        return response.aiter_bytes()
    return cast("AsyncGenerator[bytes, None]", aiter(response.stream))


def read_error(error: OSError) -> Exception:
    import httpx2

    return httpx2.ReadError(str(error))
