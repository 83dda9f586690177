"""The data directory: usable, of this version, and closed to the machine's other users; looked at before anything else.

Every command comes through here (``config.settings.base``, ``config.up``), so a wrong directory is one line at once.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

from config.env import SettingsError

POSTGRES_MAJOR = "18"
_OURS = frozenset(
    [
        "demo_password",
        "files",
        "imports",
        "logs",
        "models",
        "plugins",
        "postgres",
        "run",
        "secret_key",
        "static",
        "lost+found",
    ]
)
"""What this product makes right in it."""
_HINT = "Set GROUNDWORK_DATA_DIR (or --data-dir) to another folder."
_REASONS = {
    errno.EACCES: "cannot be written by this user: give it to the user, or run as its owner",
    errno.EPERM: "cannot be written by this user: give it to the user, or run as its owner",
    errno.EROFS: "is on a read-only file system",
    errno.ENOSPC: "is on a full disk: free some space",
    errno.EDQUOT: "is over its quota: free some space",
}


def data_dir_open(path: Path) -> Path:
    """Return the data directory, made where it was missing and closed to others whatever the umask is or was.

    From then on this process makes files that its user alone can read.

    Raises:
        SettingsError: it cannot be used; one line that says what to do.
    """
    os.umask(0o077)
    try:
        if path.exists() and not path.is_dir():
            raise SettingsError(f"The data directory {path} is a file. {_HINT}")
        if not path.exists():
            if not path.parent.is_dir():
                raise SettingsError(
                    f"The data directory {path} can't be created: there is no folder {path.parent}. Create "
                    f"it, or set "
                    "GROUNDWORK_DATA_DIR (or --data-dir) to another folder."
                )
            path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700)
            path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        # Tried, not computed from modes: read-only mounts and full disks count too.
        with tempfile.NamedTemporaryFile(dir=path, prefix=".probe-") as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    except OSError as error:
        why = _REASONS.get(error.errno or 0, f"cannot be used ({error.strerror or error})")
        raise SettingsError(f"The data directory {path} {why}. {_HINT}") from None
    _version_check(path)
    _close(path)
    return path


def _version_check(path: Path) -> None:
    try:
        major = (path / "postgres" / "PG_VERSION").read_text(encoding="ascii").strip()
    except OSError:
        return  # none here, or not ours to read: then its server says more
    if major != POSTGRES_MAJOR:
        raise SettingsError(
            f"The database in {path} was made by PostgreSQL {major[:10]}, and this version of Groundwork runs "
            f"{POSTGRES_MAJOR}. Dump it with the version that made it (manage.py pg dump) and restore it into a new data "
            "directory, or set GROUNDWORK_DATA_DIR (or --data-dir) to another folder."
        )


def _close(path: Path) -> None:
    """Take from others what an earlier version, a copy or a person gave them: of the directory and what lies right in it.

    What lies deeper cannot be reached then. Root's directory can be passed through, by the database's own user, and
    not listed.
    """
    open_ones: list[str] = []
    found = [path / name for name in _OURS if (path / name).exists()]
    # A folder of other things as well (a home, /tmp) is not closed whole: only what we have made in it.
    shared = (
        path.stat().st_mode & stat.S_ISVTX
        or {one.name for one in path.iterdir() if not one.name.startswith(".")} - _OURS
    )
    for one in found if shared else (path, *found):
        try:
            status = one.lstat()
            if stat.S_ISLNK(status.st_mode):
                continue
            kept = 0o711 if one == path and os.geteuid() == 0 else 0o700
            mode = stat.S_IMODE(status.st_mode)
            if mode & 0o077 & ~kept:
                one.chmod(mode & kept)
        except FileNotFoundError:  # another process's draft
            continue
        except OSError:
            open_ones.append(one.name if one != path else str(path))
    if open_ones:
        sys.stderr.write(
            f"Warning: other users of this machine can enter {', '.join(sorted(open_ones)[:5])} in the data directory {path}, "
            "and it is not ours to close. Run as its owner: chmod -R go= on it.\n"
        )
