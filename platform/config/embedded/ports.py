"""Ports on 127.0.0.1 for several projects on one machine."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Collection

FIRST, LAST = 20_000, 29_999
"""Below the range from which Linux and macOS take the ports of outgoing connections."""


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Say whether a server could listen on the port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(*, seed: bytes, avoid: Collection[int] = ()) -> int:
    """Return a free port; the search begins at a place the seed decides, so that projects spread out.

    Raises:
        OSError: every port of the range is taken.
    """
    span = LAST - FIRST + 1
    start = zlib.crc32(seed) % span
    for step in range(span):
        port = FIRST + (start + step) % span
        if port not in avoid and is_free(port):
            return port
    raise OSError(f"no free port between {FIRST} and {LAST}")
