"""Secrets that an installation makes for itself and keeps in its data directory."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def kept_secret(data_dir: Path, name: str) -> str:
    """Return the secret of this name, made at first use (50 random bytes, file mode 0600).

    Two processes that start at once agree: the file appears under its name by an atomic link, and the loser reads it.
    """
    path = data_dir / name
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = data_dir / f".{name}.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was first; its secret counts
        finally:
            draft.unlink()
        return path.read_text(encoding="ascii").strip()
