"""The process that programs are forked from: it has loaded what they may import, holds no secret, and runs nothing itself.

The host sends one datagram per program, with the socket over which the two will talk. Imports the standard library only.
"""

from __future__ import annotations

import encodings
import gc
import importlib
import os
import pkgutil
import signal
import socket
import time
from typing import NoReturn

from toolloop.code_mode.jail import program, rules
from toolloop.code_mode.jail.channel import Channel, ChannelClosed
from toolloop.code_mode.jail.confine import confine, die_with_parent


def main(control: socket.socket) -> None:
    """Fork a process for every program until the host is gone."""
    _load()
    # Objects that are there for good must not be touched by children: memory is shared until it is written.
    gc.collect()
    gc.freeze()
    control.sendall(b"ready")
    children: set[int] = set()
    while True:
        data, ends, _, _ = socket.recv_fds(control, 64, 1)
        if not data:
            return
        _reap(children)
        word, _, number = data.partition(b" ")
        if word == b"run" and ends:
            pid = os.fork()
            if pid == 0:
                _child(control, ends[0])
            children.add(pid)
        elif word == b"end" and int(number) in children:
            # Not reaped yet, so the number is still this child's.
            os.kill(int(number), signal.SIGKILL)
        for end in ends:
            os.close(end)


def _reap(children: set[int]) -> None:
    for pid in list(children):
        if os.waitpid(pid, os.WNOHANG)[0]:
            children.discard(pid)


def _child(control: socket.socket, end: int) -> NoReturn:
    try:
        die_with_parent()
        control.close()
        os.closerange(0, end)
        os.closerange(end + 1, 256)
        channel = Channel(socket.socket(fileno=end))
        channel.send("hello", os.getpid())
        order = channel.receive()[1]
        try:
            confine(order["memory"], order["run_s"])
        except OSError as error:
            channel.send("unconfined", str(error))
            os._exit(1)
        program.run(channel, order)
    except ChannelClosed:
        os._exit(0)
    finally:
        os._exit(1)


def _load() -> None:
    """Import all that programs may import, and what the library imports late: afterwards no file can be opened."""
    names = sorted(rules.MODULES)
    late = ("_strptime", "locale", "stringprep", "asyncio.runners", "ctypes")
    for name in (*names, *late):
        importlib.import_module(name)
    for found in pkgutil.iter_modules(encodings.__path__):
        if found.name not in ("mbcs", "oem"):
            importlib.import_module(f"encodings.{found.name}")
    time.tzset()
    time.localtime()
    time.strptime("2020", "%Y")
