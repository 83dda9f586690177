"""Tools that yield their result piece by piece: generators, async or plain.

Each piece is told as it comes (``ToolContext.on_piece``, ``events.ToolProgress``). The result is put together like this:

1. a ``ToolOutput`` among the pieces is the result (the last of them, if there are more); the others were progress;
2. else what a plain generator returns (``return value``) is the result, if it is not None;
3. else pieces that are all text are joined, without anything between them;
4. else the result is the list of the pieces; of no piece at all, "Done; there is no output."
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from toolloop.storable import text_storable
from toolloop.tools.context import ToolOutput

MOST_CHARS = 1_000_000
"""Characters of pieces that are read; a tool that yields for ever is closed there."""

Told = Callable[[str], None]


class Pieces:
    """What a tool has yielded so far.

    Args:
        on_piece: told of each piece's text.
    """

    def __init__(self, on_piece: Told | None) -> None:
        self._on_piece = on_piece
        self._values: list[Any] = []
        self._output: ToolOutput | None = None
        self._texts: list[str] = []
        self._chars = 0

    @property
    def text(self) -> str:
        """Return the text of all pieces so far."""
        return "".join(self._texts)

    @property
    def is_full(self) -> bool:
        """Tell whether no more is read."""
        return self._chars >= MOST_CHARS

    def add(self, piece: Any) -> None:
        """Take a piece and tell of it."""
        if isinstance(piece, ToolOutput):
            self._output = piece
            text = str(piece.content)
        else:
            self._values.append(piece)
            text = piece if isinstance(piece, str) else _shown(piece)
        text = text_storable(text)
        self._texts.append(text)
        self._chars += len(text) + 1
        if self._on_piece is not None and text:
            self._on_piece(text)

    def whole(self, returned: Any) -> Any:
        """Return the result, as the module says; ``returned`` is what a plain generator returned."""
        if self._output is not None:
            return self._output
        if returned is not None:
            return returned
        if not self._values:
            return None
        note = f"\n[... stopped after {MOST_CHARS:,} characters ...]" if self.is_full else ""
        if all(isinstance(value, str) for value in self._values):
            return "".join(self._values) + note
        if not note:
            return self._values
        from toolloop.tools.results import json_text

        content, payload = json_text(self._values)
        return ToolOutput(content + note, payload)


def is_stream(value: Any) -> bool:
    """Tell whether what a tool returned is a generator, or another iterator, whose pieces are its result."""
    return inspect.isasyncgen(value) or (
        isinstance(value, AsyncIterator | Iterator) and not isinstance(value, io.IOBase)
    )


async def stream_read(
    stream: AsyncIterator[Any] | Iterator[Any],
    pieces: Pieces,
    cancelled: threading.Event,
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] | None,
) -> Any:
    """Read a stream to its end, or until it is full, and close it, also when cancelled.

    Args:
        stream: what the tool returned.
        pieces: takes each piece, in the event loop.
        cancelled: ends a plain generator that runs in a thread, before its next piece.
        run_blocking: runs plain generators off the event loop; None for quick ones, which run in it.
    """
    if isinstance(stream, AsyncIterator):
        try:
            async for piece in stream:
                pieces.add(piece)
                if pieces.is_full:
                    break
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        return pieces.whole(None)
    if run_blocking is None:
        return pieces.whole(_read(stream, pieces.add, lambda: pieces.is_full))
    loop = asyncio.get_running_loop()
    chars = 0

    def tell(piece: Any) -> None:
        nonlocal chars
        chars += len(piece) if isinstance(piece, str) else 1
        # The loop may be closed when the process is ending; then nobody listens.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(pieces.add, piece)

    def ended() -> bool:
        return cancelled.is_set() or chars >= MOST_CHARS or pieces.is_full

    # The pieces were handed over before the outcome is, so all are there when it comes.
    return pieces.whole(await run_blocking(lambda: _read(stream, tell, ended)))


def _read(stream: Iterator[Any], take: Callable[[Any], None], is_ended: Callable[[], bool]) -> Any:
    """Read a plain iterator and close it; return what its generator returned."""
    try:
        while not is_ended():
            try:
                piece = next(stream)
            except StopIteration as stop:
                return stop.value
            take(piece)
        return None
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


def _shown(piece: Any) -> str:
    from toolloop.tools.results import NoJsonForm, json_text

    try:
        return f"{json_text(piece)[0]}\n"
    except NoJsonForm as error:
        return f"({error})\n"
