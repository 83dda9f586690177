"""A database that was made once, for tests that are about what becomes of one and not about its making."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from config import processes
from config.embedded import EmbeddedPostgres, state
from config.records import read_record


@pytest.fixture(scope="package")
def make_database() -> Iterator[Callable[[Path], None]]:
    """Give a function that puts a stopped embedded database into a new data directory.

    It is a copy of one that the product made: initdb and its set-up take a second of processor time, a copy next to none.
    A copy takes a port of its own at its first start.
    """
    folder = Path(tempfile.mkdtemp(prefix="groundwork-test-"))
    folder.chmod(0o711)  # the database's user passes through
    made = folder / "var"
    with EmbeddedPostgres(made, durable=False):
        pass

    def copy(data_dir: Path) -> None:
        subprocess.run(["cp", "-a", made, data_dir], check=True)  # with owners and modes
        (data_dir / "logs" / "postgres.log").unlink()
        known = state.load(data_dir)
        assert known is not None
        assert known.pgdata == str(Path(os.path.realpath(made)) / "postgres")
        own = str(Path(os.path.realpath(data_dir)) / "postgres")
        state.save(data_dir, replace(known, pgdata=own, port=0))

    yield copy
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared_folder(make_database: Callable[[Path], None]) -> Iterator[Path]:
    """A folder for all tests of a module, whose ``var`` has a stopped database.

    The 1,300 files of a database of its own cost each test more than what it does.
    """
    path = Path(tempfile.mkdtemp(prefix="groundwork-test-"))
    path.chmod(0o711)
    make_database(path / "var")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def folder(shared_folder: Path) -> Iterator[Path]:
    """The folder of the module, whose database ``manage.py up`` has not set up yet."""
    var = shared_folder / "var"
    (var / "run" / "prepared.json").unlink(missing_ok=True)
    yield shared_folder
    end_group(var)


def end_group(data_dir: Path) -> None:
    """End what a group has left running on a data directory, and its database."""
    earlier = read_record(data_dir / "run" / "up.json") or {}
    if mark := earlier.get("mark"):
        processes.end(processes.marked(str(mark)), grace_s=1)
    EmbeddedPostgres(data_dir).stop(force=True)
