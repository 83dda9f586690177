"""An embedded server for a while, on which a backup is verified that this installation's own has no room for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backups.errors import BackupRefused
from config import env
from config.embedded.errors import EmbeddedPostgresError
from config.embedded.server import EmbeddedPostgres


@contextmanager
def scratch_server() -> Iterator[dict[str, Any]]:
    """Run an empty server for the block, which is gone afterwards; yields its settings as an entry of ``DATABASES``.

    Raises:
        BackupRefused: it can't be started; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="groundwork-scratch-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data", durable=False, die_with_parent=True)
        try:
            server.start()
        except EmbeddedPostgresError as error:
            raise BackupRefused(str(error)) from error
        try:
            yield env.database_settings(server.url, pool=False)
        finally:
            server.stop()
