"""Senders and receivers of audit streams as processes that are killed while events go through: what arrives, in which order.

Used by the tests with a few hundred events, and by ``benchmarks/audit_stream.py`` with 10,000.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import kill_hard

ROOT = Path(__file__).resolve().parents[2]

RECEIVER = '''
import http.server, json, os, socketserver, ssl, sys
sys.path[:0] = [sys.argv[1] + "/platform"]
kind, port, path, secret = sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]

def keep(events):
    """Append events and have them on the disk: only then is the sender told."""
    with open(path, "ab") as file:
        file.write(b"".join(json.dumps(e["metadata"]["uid"]).encode() + b"\\n" for e in events))
        file.flush()
        os.fsync(file.fileno())

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        from standardwebhooks import Webhook
        body = self.rfile.read(int(self.headers["Content-Length"]))
        payload = Webhook(secret).verify(body, {k.lower(): v for k, v in self.headers.items()})
        assert payload["type"] == "audit.events", payload["type"]
        keep(payload["data"]["events"])
        self.send_response(204)
        self.end_headers()
    def log_message(self, *args):
        pass

class Syslog(socketserver.StreamRequestHandler):
    def setup(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(secret)
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        # RFC 6587: length, space, message. Kept frame by frame, and closed only after the sender's end.
        while True:
            size = b""
            while not size.endswith(b" "):
                byte = self.rfile.read(1)
                if not byte:
                    self.request.unwrap()  # close_notify: all of it is kept
                    return
                size += byte
            message = self.rfile.read(int(size))
            if len(message) < int(size):
                return
            head, _, text = message.partition("\\ufeff".encode())
            assert head.startswith(b"<110>1 ") and b" groundwork - " in head, head
            keep([json.loads(text)])

socketserver.ThreadingTCPServer.allow_reuse_address = True
handler = Hook if kind == "webhook" else Syslog
socketserver.ThreadingTCPServer(("127.0.0.1", port), handler).serve_forever()
'''

# Imports the product once, and forks a sender for each line: of its own each would take two seconds of processor time.
SENDERS = """
import os, signal, sys, time
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/platform"]
import django
django.setup()
from datetime import timedelta
from audit import pump
# A killed sender's lease would run for a minute; and nothing is to wait for the next look.
pump.LEASE, pump.PAUSES_S, pump.BATCH = timedelta(seconds=1), (0,), int(sys.argv[2])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is forgotten at once
for _ in sys.stdin:
    pid = os.fork()
    while not pid:
        if not pump.pump_round():
            time.sleep(0.05)
    print(pid, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a receiver has kept: all lines in their order, and how often each side was killed."""

    uids: list[str]
    sender_kills: int
    receiver_kills: int

    @property
    def firsts(self) -> list[str]:
        """Each event once, in the order in which it first arrived."""
        return list(dict.fromkeys(self.uids))


class Relay:
    """A receiver and a sender, each of which can be killed and started again."""

    def __init__(
        self, kind: str, folder: Path, env: Mapping[str, str], port: int, secret: str = "", batch: int = 20
    ) -> None:
        self.kind, self.port, self.secret = kind, port, secret
        self.path = folder / "received.txt"
        self.log = (folder / "relay.log").open("ab")
        self._env = {**os.environ, **env}
        self._senders = self._popen(["-c", SENDERS, str(ROOT), str(batch)])
        self._receiver: subprocess.Popen[bytes] | None = None
        self._sender = 0
        self.kills = {"sender": 0, "receiver": 0}

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        is_spoken_with = SENDERS in command
        return subprocess.Popen(
            [sys.executable, *command],
            env=self._env,
            cwd=ROOT,
            stdin=subprocess.PIPE if is_spoken_with else None,
            stdout=subprocess.PIPE if is_spoken_with else self.log,
            stderr=self.log,
        )

    def start(self, side: str) -> None:
        """Start one side, if it doesn't run."""
        if side == "receiver" and self._receiver is None:
            how = [str(ROOT), self.kind, str(self.port), str(self.path), self.secret]
            self._receiver = self._popen(["-c", RECEIVER, *how])
        elif side == "sender" and not self._sender:
            assert self._senders.stdin is not None
            assert self._senders.stdout is not None
            self._senders.stdin.write(b"one more\n")
            self._senders.stdin.flush()
            self._sender = int(self._senders.stdout.readline())

    def kill(self, side: str) -> None:
        """Kill one side without a warning (SIGKILL)."""
        self._end(side)
        self.kills[side] += 1

    def _end(self, side: str) -> None:
        if side == "receiver" and self._receiver is not None:
            self._receiver.kill()
            self._receiver.wait()
            self._receiver = None
        elif side == "sender" and self._sender:
            kill_hard(self._sender)
            self._sender = 0

    def close(self) -> None:
        """End both."""
        self._end("receiver")
        self._end("sender")
        self._senders.kill()
        self._senders.communicate()
        self.log.close()

    def uids(self) -> list[str]:
        """Return the whole lines that were kept so far; a killed receiver may have left half of one."""
        with contextlib.suppress(FileNotFoundError):
            whole = self.path.read_bytes().rpartition(b"\n")[0].splitlines()
            return [json.loads(line) for line in whole if line.startswith(b'"') and line.endswith(b'"')]
        return []


def relayed(relay: Relay, expected: set[str], *, kills: int, patience_s: float, seed: int = 1) -> Arrived:
    """Let all expected events through while both sides are killed in turns, each time when some more have arrived.

    Args:
        kills: of each side.
        patience_s: for the next event to arrive, before the test fails.
    """
    chance = random.Random(seed)
    step = max(1, len(expected) // (2 * kills + 2))
    marks = [step * (n + 1) for n in range(2 * kills)]
    relay.start("receiver")
    relay.start("sender")
    seen, since = 0, time.monotonic()
    while True:
        arrived = len(set(relay.uids()) & expected)
        if arrived == len(expected) and not marks:
            break
        if arrived > seen:
            seen, since = arrived, time.monotonic()
        if marks and arrived >= marks[0]:
            marks.pop(0)
            side = "sender" if len(marks) % 2 else "receiver"
            relay.kill(side)
            time.sleep(chance.random() / 20)
            relay.start(side)
        assert time.monotonic() - since < patience_s, f"nothing more arrived: {arrived} of {len(expected)}"
        time.sleep(0.02)
    return Arrived(relay.uids(), relay.kills["sender"], relay.kills["receiver"])


def order_kept(uids: list[str]) -> bool:
    """Tell whether each workspace's events and reads first arrived in the order of their positions, without a gap."""
    at: dict[str, int] = {}
    for uid in dict.fromkeys(uids):
        log, _, seq = uid.rpartition(":")
        if int(seq) != at.get(log, 0) + 1:
            return False
        at[log] = int(seq)
    return True


def environment(**more: Any) -> dict[str, str]:
    """Return the settings of a sender beside those of the caller's environment."""
    return {key: str(value) for key, value in more.items()}
