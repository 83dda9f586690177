"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): frames, heartbeat, and where to go on."""

from __future__ import annotations

from collections.abc import Mapping

EVENT_STREAM = "text/event-stream"
HEARTBEAT_S = 15.0
"""Seconds without an event after which a stream says that it is still there: proxies close what is silent."""
RETRY_MS = 500


def frame(data: str, *, seq: int | None = None, event: str = "") -> bytes:
    """Return one server-sent event; each line of ``data`` becomes a ``data:`` line."""
    lines = [f"event: {event}"] if event else []
    if seq is not None:
        lines.append(f"id: {seq}")
    lines += [f"data: {line}" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


HEARTBEAT = b": ping\n\n"
HELLO = f"retry: {RETRY_MS}\n\n".encode()


def position_of(headers: Mapping[str, str], query: Mapping[str, str]) -> int:
    """Return where a client wants to go on: the larger of ``Last-Event-ID`` and ``?after=``; nonsense counts as 0."""
    best = 0
    for text in (headers.get("Last-Event-ID") or "", query.get("after") or ""):
        if text.isascii() and text.isdigit() and len(text) < 19:
            best = max(best, int(text))
    return best
