"""The data directory is closed to other users, and a wrong one is one line at once, for every command."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config import demo
from config.addresses import is_loopback
from config.data_dir import data_dir_open
from config.env import SettingsError
from config.secrets import kept_secret
from tenancy.models import User

ROOT = Path(__file__).resolve().parents[2]
ROOTS = 0o711 if os.geteuid() == 0 else 0o700


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {p.name: stat.S_IMODE(p.lstat().st_mode) for p in folder.iterdir()}


def test_new_directory_is_closed_whatever_the_umask(tmp_path: Path) -> None:
    folder = data_dir_open(tmp_path / "var")
    assert stat.S_IMODE(folder.stat().st_mode) == ROOTS
    (folder / "files").mkdir()
    (folder / "note").write_text("x")
    kept_secret(folder, "secret_key")
    assert modes(folder) == {"files": 0o700, "note": 0o600, "secret_key": 0o600}


def test_directory_that_was_open_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    (folder / "files" / "deep").mkdir(parents=True)
    (folder / "secret_key").write_text("s")
    (folder / "models").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("not ours")
    (tmp_path / "elsewhere").chmod(0o644)
    folder.chmod(0o777)
    data_dir_open(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == ROOTS
    assert modes(folder)["files"] == 0o700
    assert modes(folder)["secret_key"] == 0o600
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o644


def test_what_is_not_ours_to_close_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "var"
    folder.mkdir(mode=0o777)

    def refused(self: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(Path, "chmod", refused)
    data_dir_open(folder)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(folder) in said


def no_parent(tmp_path: Path) -> Path:
    return tmp_path / "nowhere" / "var"


def a_file(tmp_path: Path) -> Path:
    (tmp_path / "var").write_text("")
    return tmp_path / "var"


def below_a_file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "var"


def other_version(tmp_path: Path) -> Path:
    (tmp_path / "var" / "postgres").mkdir(parents=True)
    (tmp_path / "var" / "postgres" / "PG_VERSION").write_text("17\n")
    return tmp_path / "var"


def read_only(tmp_path: Path) -> Path:
    return Path("/proc/self")


WRONG = [no_parent, a_file, below_a_file, other_version, read_only]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_directory_says_what_to_do(wrong: Any, tmp_path: Path) -> None:
    path = wrong(tmp_path)
    with pytest.raises(SettingsError) as refused:
        data_dir_open(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "GROUNDWORK_DATA_DIR" in str(refused.value)


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENOSPC, "full"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "owner"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, "error"),
    ],
)
def test_disk_that_takes_nothing_is_named(
    number: int, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", fails)
    with pytest.raises(SettingsError, match=word):
        data_dir_open(tmp_path)


@pytest.mark.parametrize("command", [["up"], ["prepare"], ["doctor"], ["pg", "status"], ["migrate"]])
def test_every_command_ends_at_once_in_one_line(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "GROUNDWORK_DATA_DIR": str(a_file(tmp_path))}
    environment["DJANGO_SETTINGS_MODULE"] = "config.settings.dev"
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = (done.stdout + done.stderr).strip()
    assert done.returncode != 0
    assert said.count("\n") == 0, said
    assert "is a file" in said


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("example.org", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_only_loopback_counts_as_this_machine(host: str, own: bool) -> None:
    assert is_loopback(host) is own


@pytest.mark.django_db
def test_demo_of_an_earlier_start_is_locked_where_others_reach_it(tmp_path: Path) -> None:
    assert demo.demo_lock(tmp_path) == []
    assert not (tmp_path / "demo_password").exists()
    password = demo.demo_password(tmp_path)
    User.objects.create_user(demo.EMAIL, password)
    User.objects.create_user(demo.OTHER_EMAIL, "a password of their own")
    assert demo.demo_lock(tmp_path) == [demo.EMAIL]
    assert not User.objects.get(email=demo.EMAIL).check_password(password)
    assert User.objects.get(email=demo.OTHER_EMAIL).check_password("a password of their own")
    demo.demo_unlock(tmp_path)
    assert User.objects.get(email=demo.EMAIL).check_password(password)
    assert User.objects.get(email=demo.OTHER_EMAIL).check_password("a password of their own")


def test_folder_of_other_things_is_not_closed_whole(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "letters").mkdir()
    (folder / "secret_key").write_text("s")
    folder.chmod(0o755)
    data_dir_open(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert modes(folder) == {"letters": 0o777, "secret_key": 0o600}
