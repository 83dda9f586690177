"""Frames between a program's process and its host: a length of four bytes, then JSON. Imports the standard library only."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

# Above what a result may hold, and what a child may send; a longer frame ends the program.
LONGEST = 64 * 1024 * 1024
_HEAD = struct.Struct("!I")


class ChannelClosed(Exception):
    """The other side is gone."""


def packed(frame: Any) -> bytes:
    """Return a frame as bytes."""
    raw = json.dumps(frame, separators=(",", ":")).encode()
    return _HEAD.pack(len(raw)) + raw


class Frames:
    """Takes bytes as they come and gives whole frames; the other side may be hostile.

    Args:
        longest: bytes of one frame.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._bytes = bytearray()
        self._longest = longest

    def add(self, data: bytes) -> None:
        self._bytes += data

    def take(self) -> Any:
        """Return the next frame, None while it is not complete.

        Raises:
            ValueError: it is too long, no JSON, or no list.
        """
        if len(self._bytes) < _HEAD.size:
            return None
        (length,) = _HEAD.unpack_from(self._bytes)
        if length > self._longest:
            raise ValueError("the frame is too long")
        if len(self._bytes) < _HEAD.size + length:
            return None
        raw = bytes(self._bytes[_HEAD.size : _HEAD.size + length])
        del self._bytes[: _HEAD.size + length]
        try:
            frame = json.loads(raw)
        except RecursionError as error:
            raise ValueError("the frame is nested too deeply") from error
        if not isinstance(frame, list) or not frame:
            raise ValueError("the frame is no list")
        return frame


class Channel:
    """The program's end of the line, blocking."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._frames = Frames()

    def send(self, *frame: Any) -> None:
        self._socket.sendall(packed(frame))

    def receive(self) -> Any:
        """Return the next frame. Raises ChannelClosed: the host is gone."""
        while True:
            frame = self._frames.take()
            if frame is not None:
                return frame
            data = self._socket.recv(65536)
            if not data:
                raise ChannelClosed
            self._frames.add(data)
