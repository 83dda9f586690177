"""A client that follows a run over REST from whichever web server answers, as a browser's page does."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Sequence
from typing import Any

from tests.concurrency.rest import streamed
from tests.patience import PATIENCE_S

_ASKED_AGAIN_S = 0.05


class Follower(threading.Thread):
    """Follows one run to its end; comes back with ``Last-Event-ID`` whenever the stream stops before.

    Attributes:
        events: what it has received, in order.
        moved: streams that a server ended in order, with a word when to come back.
        cut: streams that broke off.
        has_ended: it was told that nothing more comes.
        port: of the server that it follows from, or did last.
    """

    def __init__(
        self, run_id: int, key: str, ports: Sequence[int], *, seconds: float = 4 * PATIENCE_S
    ) -> None:
        super().__init__(name=f"follower-{run_id}", daemon=True)
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.moved = self.cut = 0
        self.has_ended = False
        self.port = 0
        self._seconds = seconds
        self._path, self._key, self._ports = f"/api/v1/runs/{run_id}/events", key, ports

    def run(self) -> None:
        until = time.monotonic() + self._seconds
        while not self.has_ended and time.monotonic() < until:
            for port in self._ports:
                if self.follow(port):
                    break
            else:
                time.sleep(_ASKED_AGAIN_S)

    def follow(self, port: int) -> bool:
        """Follow from one server; False when it does not answer."""
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        last = self.events[-1][0] if self.events else 0
        headers = {"Authorization": f"Bearer {self._key}"} | ({"Last-Event-ID": str(last)} if last else {})
        try:
            line.request("GET", self._path, headers=headers)
            response = line.getresponse()
            if response.status != 200:
                return False
        except (OSError, http.client.HTTPException):
            line.close()
            return False
        self.port = port
        frame, text = b"", ""
        try:
            while piece := response.readline():
                frame += piece
                if piece != b"\n":
                    continue
                text, frame = frame.decode(), b""
                self.events += streamed(text)
                self.has_ended = self.has_ended or "event: end" in text
        except (OSError, http.client.HTTPException):
            self.cut += 1
            return True
        finally:
            line.close()
        if not self.has_ended:
            is_in_order = not frame and text.startswith("retry:")
            self.moved += is_in_order
            self.cut += not is_in_order
        return True
