"""Where batches of events go: signed webhook, syslog, file. Each returns once the receiver has them, or raises NotTaken.

Syslog is RFC 5424 with octet counting (RFC 6587, and RFC 5425 over TLS). It has no receipts: a batch has a connection of
its own and counts as taken when the receiver, which has read it to its end, closes it too. Over TLS that is its
close_notify, which a killed process can't send. Over plain TCP the kernel of a receiver that was killed closes in its
place; so use TLS, or the webhook, where nothing may be lost.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from basics.net_policy import AddressRefused, NetPolicy, addresses_checked, system_resolver
from basics.texts import gettext as _
from tenancy.crypto import Secret
from webhooks.sending import webhook_send

SECONDS: Final = 10.0
EVENT: Final = "audit.events"
_PRIORITY: Final = 13 * 8 + 6  # log audit, informational
_TAIL: Final = 65_536


class NotTaken(Exception):
    """The receiver doesn't have the batch, or isn't known to have it; ``reason`` says why, for the workspace's owner."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def webhook_take(
    url: str, secrets: Sequence[Secret], events: Sequence[Mapping[str, Any]], *, slug: str, policy: NetPolicy
) -> None:
    """Send a batch as one signed call, as webhooks are; the same batch has the same id at each attempt."""
    first, last = events[0]["metadata"]["uid"], events[-1]["metadata"]["uid"]
    payload = {
        "id": str(uuid5(NAMESPACE_URL, f"{first} {last} {len(events)}")),
        "type": EVENT,
        "workspace": slug,
        "timestamp": datetime.now(UTC).isoformat(),
        "data": {"events": list(events)},
    }
    result = webhook_send(url=url, secrets=secrets, payload=payload, policy=policy)
    if result.error:
        raise NotTaken(result.error)


def syslog_line(event: Mapping[str, Any], *, host: str) -> bytes:
    """Return an event as a frame of syslog: its length in bytes, a space, the message."""
    at = datetime.fromtimestamp(event["time"] / 1000, UTC).isoformat(timespec="milliseconds")
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = event["class_name"].replace(" ", "")
    message = f"<{_PRIORITY}>1 {at.replace('+00:00', 'Z')} {host} groundwork - {name} - \ufeff{text}".encode()
    return str(len(message)).encode() + b" " + message


def syslog_take(url: str, events: Sequence[Mapping[str, Any]], *, policy: NetPolicy | None) -> None:
    """Send a batch over a connection of its own and wait until the receiver closes it.

    Args:
        url: ``syslog+tcp://host:port`` or ``syslog+tls://host:port``; the certificate is verified by the machine's own
            authorities, or by those in ``SSL_CERT_FILE``.
        policy: where it may go; None for anywhere, for the operator's own.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (6514 if parts.scheme == "syslog+tls" else 601)
    frames = b"".join(syslog_line(event, host=_hostname()) for event in events)
    try:
        line = _connected(host, port, policy)
        with line:
            line.settimeout(SECONDS)
            if parts.scheme == "syslog+tls":
                with ssl.create_default_context().wrap_socket(line, server_hostname=host) as safe:
                    safe.sendall(frames)
                    safe.unwrap()  # sends close_notify and waits for the receiver's
            else:
                line.sendall(frames)
                line.shutdown(socket.SHUT_WR)
                while line.recv(4096):
                    pass
    except AddressRefused as refused:
        raise NotTaken(refused.message) from refused
    except (OSError, ssl.SSLError) as error:
        raise NotTaken(
            _("The syslog receiver didn't take the events (%(error)s).") % {"error": type(error).__name__}
        ) from error


def _connected(host: str, port: int, policy: NetPolicy | None) -> socket.socket:
    if policy is None:
        return socket.create_connection((host, port), timeout=SECONDS)
    failure: OSError = OSError("no address")
    for address in addresses_checked(host, port, policy, system_resolver):
        try:
            return socket.create_connection((str(address), port), timeout=SECONDS)
        except OSError as error:
            failure = error
    raise failure


def _hostname() -> str:
    return socket.gethostname().encode("ascii", "replace").decode().replace(" ", "-")[:255] or "-"


def file_take(path: Path, events: Iterable[Mapping[str, Any]]) -> None:
    """Append events to a file, one JSON object a line, and have them on the disk; half a line of a killed writer goes first."""
    lines = b"".join(
        json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for event in events
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+b") as file:
            file.truncate(_whole(file))
            file.seek(0, os.SEEK_END)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NotTaken(_("The file can't be written (%(error)s).") % {"error": error.strerror}) from error


def _whole(file: Any) -> int:
    """Return where the last whole line of a file ends."""
    end: int = file.seek(0, os.SEEK_END)
    at = end
    while at > 0:
        start = max(0, at - _TAIL)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + int(found) + 1
        at = start
    return 0
