"""The state file of the embedded database and the locks beside it.

``run/postgres.json`` (mode 0600) holds port and passwords: whoever may read it may connect. The locks are flocks, which
the kernel releases when their last holder dies, so kill -9 leaves none behind:

- ``postgres.start.lock``  held while the server is being started or stopped; others wait.
- ``postgres.alive.lock``  held by the postmaster and its children themselves (an inherited descriptor): free means that
  no server of ours runs on the data directory, whatever a pid file says, also across containers that share a volume.
- ``postgres.users.lock``  shared by everyone who uses the server; the last one out stops it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from config.embedded.errors import EmbeddedPostgresError

HOST = "127.0.0.1"
USER = "groundwork"
DATABASE = "groundwork"
SUPERUSER = "postgres"


@dataclass(frozen=True, slots=True)
class State:
    """What is needed to find the server and to connect to it."""

    pgdata: str
    port: int
    password: str
    superuser_password: str

    def url(self, *, superuser: bool = False, database: str = DATABASE) -> str:
        """Return the connection URL; passwords are URL-safe by construction."""
        user, password = (SUPERUSER, self.superuser_password) if superuser else (USER, self.password)
        return f"postgresql://{user}:{password}@{HOST}:{self.port}/{database}"


def state_path(data_dir: Path) -> Path:
    """Return where the state file of a data directory lies."""
    return data_dir / "run" / "postgres.json"


def load(data_dir: Path) -> State | None:
    """Return the recorded state, or None when there is none (or only a torn one: it is made anew).

    Raises:
        EmbeddedPostgresError: the file belongs to another user.
    """
    path = state_path(data_dir)
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise EmbeddedPostgresError(
            f"{path} can't be read by this user. Run as the user who started the database, "
            "or give this one its own folder with GROUNDWORK_DATA_DIR."
        ) from error
    except (ValueError, TypeError):
        return None


def save(data_dir: Path, state: State) -> None:
    """Write the state file in one step, readable by its owner only."""
    path = state_path(data_dir)
    # mkstemp makes files of mode 0600
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".postgres-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(state), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_state(data_dir: Path) -> str | None:
    """Return the URL of the embedded database of ``data_dir``, or None when none was ever started there.

    The server need not be running: the port is kept from start to start unless somebody else took it meanwhile.
    """
    state = load(data_dir)
    return state.url() if state else None


@contextlib.contextmanager
def start_lock(data_dir: Path) -> Iterator[None]:
    """Wait for, then hold the right to start or stop the server."""
    descriptor = _open(data_dir, "start")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def take_alive_lock(data_dir: Path) -> int | None:
    """Return a descriptor that holds the alive lock, or None when a server holds it.

    The lock belongs to the open file, not to this process: pass the descriptor to the postmaster and close it here.
    """
    return _try(data_dir, "alive", fcntl.LOCK_EX)


def is_alive(data_dir: Path) -> bool:
    """Say whether a server of ours (any of its processes) lives on the data directory."""
    descriptor = take_alive_lock(data_dir)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def join_users(data_dir: Path) -> int:
    """Return a descriptor that counts its holder among the server's users until it is closed."""
    descriptor = _open(data_dir, "users")
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def has_users(data_dir: Path) -> bool:
    """Say whether anyone is counted among the server's users."""
    descriptor = _try(data_dir, "users", fcntl.LOCK_EX)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def _open(data_dir: Path, name: str) -> int:
    return os.open(data_dir / "run" / f"postgres.{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)


def _try(data_dir: Path, name: str, kind: int) -> int | None:
    descriptor = _open(data_dir, name)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
