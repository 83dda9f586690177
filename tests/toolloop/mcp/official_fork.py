"""Official servers without their imports: one process imports the SDK, and is forked for each that a test starts.

A start of its own costs each a second of processor time (see ``tests.nursery``, which does the same for the product). What
a test starts is this program: ``official_fork.py <socket> stdio`` or ``official_fork.py <socket> <port>``. It hands its
streams and its environment to the fork, and ends when that has ended; a fork ends with who asked for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys


def ask(path: str, how: str) -> None:
    """Have a server forked that has this process's streams and environment; return once it has ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(path)
        message = json.dumps({"how": how, "env": dict(os.environ)}).encode()
        socket.send_fds(channel, [message], [0, 1, 2])
        for stream in (0, 1, 2):
            os.close(stream)  # else whoever waits for its end would wait for this process
        _, handles, _, _ = socket.recv_fds(channel, 1, 1)
        if not handles:
            return
        signal.signal(signal.SIGTERM, lambda *_: signal.pidfd_send_signal(handles[0], signal.SIGKILL))
        select.select(handles, [], [])


def serve(descriptor: int) -> None:
    """Import, then fork a server for each that asks at a listening socket."""
    import contextlib
    import gc
    import threading
    from importlib import import_module

    import uvicorn.loops.auto
    import uvicorn.protocols.http.auto  # noqa: F401 - what a server would import at its start

    official_server = import_module("official_server")  # in this folder
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is forgotten at once
    gc.freeze()
    listener = socket.socket(fileno=descriptor)
    while True:
        channel, _ = listener.accept()
        message, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if pid := os.fork():
            handle = os.pidfd_open(pid)
            with channel, contextlib.suppress(OSError):  # who asked may be gone
                socket.send_fds(channel, [b"1"], [handle])
            for one in (handle, *streams):
                os.close(one)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        asked = json.loads(message)
        os.environ.clear()
        os.environ.update(asked["env"])
        threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
        official_server.run(asked["how"])
        return


def _end_with(channel: socket.socket) -> None:
    """End as soon as who asked for this process has ended."""
    channel.recv(1)
    os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        ask(*sys.argv[1:])
