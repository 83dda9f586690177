"""Read the text of an environment variable as a value, or say what was expected."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import quote, urlsplit

from basics.machine import memory_bytes

_SMALL_BYTES = 4_000_000_000


class SecretRefused(ValueError):
    """A value that cannot be used and must not be repeated."""


def as_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError("expected 1 or 0 (also true/false, yes/no, on/off)")


def as_whole(text: str, expected: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(expected) from None


def as_positive(text: str) -> int:
    expected = "expected a whole number above 0"
    value = as_whole(text, expected)
    if value <= 0:
        raise ValueError(expected)
    return value


def as_workers(text: str) -> int:
    """Return how many worker processes; empty: as many as suit the memory of this machine or container."""
    if text.strip():
        return as_positive(text)
    return 1 if memory_bytes() < _SMALL_BYTES else 2


def as_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def as_import_paths(text: str) -> list[str]:
    found = as_list(text)
    for part in found:
        path = part.rpartition("=")[2]
        if not path.startswith("/") or ".." in path.split("/"):
            raise ValueError("expected absolute paths, each with a workspace's name and = before it or not")
    return found


def as_count(text: str) -> int:
    expected = "expected a whole number, 0 or more, at most 1,000,000,000"
    value = as_whole(text, expected)
    if not 0 <= value <= 1_000_000_000:
        raise ValueError(expected)
    return value


def as_port(text: str) -> int:
    expected = "expected a port, 1 to 65535, or 0 for none"
    value = as_whole(text, expected)
    if not 0 <= value <= 65_535:
        raise ValueError(expected)
    return value


def as_token(text: str) -> str:
    token = text.strip()
    if token and not re.fullmatch(r"[!-~]{16,}", token):
        raise SecretRefused("expected 16 characters or more, without spaces")
    return token


def as_url(*schemes: str) -> Callable[[str], str]:
    """Return a parser of an address that may be left empty."""

    def parse(text: str) -> str:
        expected = f"expected {schemes[-1]}:// and a host"
        try:
            parts = urlsplit(text.strip())
            _ = parts.port
        except ValueError:
            raise ValueError(expected) from None
        if text.strip() and (parts.scheme not in schemes or not (parts.hostname or parts.scheme == "unix")):
            raise ValueError(expected)
        return text

    return parse


def as_files_url(text: str) -> str:
    expected = "expected s3://bucket/prefix, gs://bucket/prefix, azure://container/prefix or file:///folder, without a password"
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        raise ValueError(expected) from None
    is_bucket = parts.scheme in ("s3", "gs", "azure") and parts.netloc and "@" not in parts.netloc
    is_folder = parts.scheme == "file" and not parts.netloc and parts.path.startswith("/")
    if text.strip() and not (is_bucket or is_folder):
        raise ValueError(expected)
    return text.strip()


def as_backup_url(text: str) -> str:
    """Return the address of a place for backups; a folder may be written as the command takes it, /srv/backups."""
    folder = text.strip()
    return as_files_url(f"file://{quote(folder)}" if folder.startswith("/") else folder)


def as_alert_receivers(text: str) -> tuple[str, ...]:
    """Return mail addresses and addresses of calls; plain http only for a receiver on this machine."""
    # What an address of a call holds is secret, so it isn't repeated.
    refused = SecretRefused("expected mail addresses or https:// addresses, separated by commas")
    found = tuple(one.strip() for one in text.split(",") if one.strip())
    for one in found:
        try:
            parts = urlsplit(one)
            _ = parts.port
        except ValueError:
            raise refused from None
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1")
        )
        if not (is_safe and parts.hostname) and not re.fullmatch(r"[^@\s:/]+@[^@\s:/]+", one):
            raise refused
    return found


def as_stream_url(text: str) -> str:
    expected = "expected https://host/path, syslog+tls://host:port, syslog+tcp://host:port or file:///path, without a password"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise ValueError(expected) from None
    is_hook = parts.scheme in ("http", "https") and parts.hostname
    is_syslog = parts.scheme in ("syslog+tls", "syslog+tcp") and parts.hostname and port
    is_file = (
        parts.scheme == "file" and not parts.netloc and len(parts.path) > 1 and not parts.path.endswith("/")
    )
    if text.strip() and ("@" in parts.netloc or not (is_hook or is_syslog or is_file)):
        raise ValueError(expected)
    return text.strip()


def as_signing_secret(text: str) -> str:
    secret = text.strip()
    try:
        size = len(base64.b64decode(secret.removeprefix("whsec_"), validate=True))
    except ValueError:
        size = 0
    if secret and not (secret.startswith("whsec_") and 24 <= size <= 64):
        raise SecretRefused("expected whsec_ and 24 to 64 bytes in base64")
    return secret


def as_origins(text: str) -> list[str]:
    found = as_list(text)
    for part in found:
        if not re.fullmatch(r"https?://[^/\s]+", part):
            raise ValueError("expected origins: https:// and a host, without a path")
    return found


def as_fernet_keys(text: str) -> list[str]:
    found = as_list(text)
    for part in found:
        try:
            is_key = len(base64.urlsafe_b64decode(part.encode())) == 32
        except ValueError:
            is_key = False
        if not is_key:
            # The text is a secret: it is not repeated.
            raise SecretRefused("expected Fernet keys: 32 bytes in URL-safe base64 each")
    return found


def as_embedder(text: str) -> str:
    provider, _, model = text.partition("/")
    if text and text != "minilm" and (provider not in {"local", "openai", "google"} or not model):
        raise ValueError("expected minilm, local/<name>, openai/<model> or google/<model>")
    return text


def as_networks(text: str) -> list[str]:
    found = as_list(text)
    for part in found:
        try:
            ip_network(part)
        except ValueError as error:
            raise ValueError(f"expected networks such as 10.2.0.0/16: {error}") from None
    return found


def as_choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError("expected one of: " + ", ".join(allowed))
        return text

    return parse


def as_path(text: str) -> Path:
    return Path(text).expanduser()


def as_optional_path(text: str) -> Path | None:
    return as_path(text) if text.strip() else None


def as_commands(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, line = part.partition("=")
        words = shlex.split(line)
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", name.strip()) or not words:
            raise ValueError("expected name=program and arguments, one after another with ; between")
        found[name.strip()] = words
    return found
