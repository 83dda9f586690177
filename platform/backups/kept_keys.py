"""The keys that stored credentials need: which ones, and themselves in sealed backups only.

A backup without a backup key holds credentials as the database does, encrypted, and says which keys read them. The keys
are kept apart then: who has such a backup has no provider's key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.conf import settings

from backups.errors import BackupRefused
from tenancy import crypto
from tenancy.scope import platform_scope
from tenancy.second_factors import factor_secrets

SUFFIX = "_encrypted"
FILE = "restored_keys.env"


@dataclass(slots=True)
class KeysUsed:
    """Which keys the stored secrets need.

    Attributes:
        ids: of these keys, by ``tenancy.crypto.key_ids``.
        secrets: how many secrets were looked at.
        unreadable: what no key of this server reads, as table and id.
    """

    ids: set[str] = field(default_factory=set)
    secrets: int = 0
    unreadable: list[str] = field(default_factory=list)


def keys_used() -> KeysUsed:
    """Decrypt every stored credential and second factor, and say with which keys."""
    found = KeysUsed()
    for where, stored in _stored():
        found.secrets += 1
        key = crypto.key_id_of(stored)
        if key is None:
            found.unreadable.append(where)
        else:
            found.ids.add(key)
    return found


def _stored() -> Iterator[tuple[str, bytes]]:
    with platform_scope():
        for model in apps.get_models():
            for column in model._meta.concrete_fields:
                if column.name.endswith(SUFFIX):
                    rows = model._default_manager.filter(**{f"{column.name}__isnull": False}).order_by("pk")
                    for pk, stored in rows.values_list("pk", column.name).iterator(chunk_size=200):
                        yield f"{model._meta.label} {pk}", bytes(stored)
        for factor in Authenticator.objects.order_by("pk").iterator(chunk_size=200):
            for stored_text in factor_secrets(factor.data):
                yield f"mfa.Authenticator {factor.pk}", stored_text.encode()


def keys_text() -> bytes:
    """Return this server's keys, for a part that is sealed."""
    return json.dumps(
        {
            "secret_key": settings.SECRET_KEY,
            "fallbacks": list(settings.SECRET_KEY_FALLBACKS),
            "credential_keys": list(settings.CREDENTIAL_KEYS),
        }
    ).encode()


def keys_fit(needed: list[str]) -> bool:
    """Tell whether this server has every key that a backup's credentials need."""
    return set(needed) <= set(crypto.key_ids())


def keys_restore(text: bytes | None, needed: list[str]) -> str:
    """Give this server the keys that a backup's credentials need, where it has none of its own choice.

    Args:
        text: what ``keys_text`` returned, None when the backup has no keys in it.
        needed: ids of the keys that credentials need.

    Returns:
        What was done, in a sentence; "" when the keys fit already.

    Raises:
        BackupRefused: the operator has to set them; where the backup has them, they were written to a file.
    """
    if keys_fit(needed):
        return ""
    if text is None:
        raise BackupRefused(
            "This server's keys can't read the credentials in this backup, and the keys aren't in it. Set "
            "GROUNDWORK_SECRET_KEY and GROUNDWORK_CREDENTIAL_KEYS as they were on the server it is from, and try again. "
            "With --without-credentials the rest is restored, and credentials and second factors have to be entered again."
        )
    kept: dict[str, Any] = json.loads(text)
    is_own = not os.environ.get("GROUNDWORK_SECRET_KEY") and not settings.CREDENTIAL_KEYS
    if is_own and not kept["credential_keys"]:
        path = Path(settings.DATA_DIR) / "secret_key"
        _write(path, kept["secret_key"])
        return f"The secret key was restored to {path}."
    path = Path(settings.DATA_DIR) / FILE
    lines = [f"GROUNDWORK_SECRET_KEY={kept['secret_key']}"]
    if kept["credential_keys"]:
        lines.append(f"GROUNDWORK_CREDENTIAL_KEYS={','.join(kept['credential_keys'])}")
    _write(path, "\n".join(lines) + "\n")
    raise BackupRefused(
        f"This server's keys can't read the credentials in this backup. Its keys were written to {path}: set these "
        "variables, delete the file, and try again. With --without-credentials the rest is restored under this server's "
        "own keys."
    )


def _write(path: Path, text: str) -> None:
    """Write a file of mode 0600 in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
