"""The embedded database against what really goes wrong: kill -9, stale pid files, lost state, taken ports, root."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config import processes
from config.embedded import EmbeddedPostgres, EmbeddedPostgresError, account, read_state, state
from config.embedded.server import remove
from tests.patience import PATIENCE_S
from tests.processes import is_gone
from tests.servers import wait_for

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[2]
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder the database's user can reach: pytest's tmp_path is 0700, which is another test's subject."""
    path = Path(tempfile.mkdtemp(prefix="groundwork-test-"))
    path.chmod(0o711)
    yield path / "var"
    with contextlib.suppress(EmbeddedPostgresError):
        EmbeddedPostgres(path / "var").stop(force=True)
    shutil.rmtree(path)


@pytest.fixture
def server(shared_folder: Path) -> Iterator[EmbeddedPostgres]:
    """A running server, without notes."""
    postgres = EmbeddedPostgres(shared_folder / "var", durable=True)
    postgres.start()
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP TABLE IF EXISTS note")
    yield postgres
    postgres.stop(force=True)


def child(code: str, *args: object, python: str = sys.executable, **kwargs: Any) -> subprocess.Popen[str]:
    """Run code in another process that can import the project."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}
    return subprocess.Popen(
        [python, "-c", code, *map(str, args)],
        env=env,
        cwd="/",
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **kwargs,
    )


def postmaster(postgres: EmbeddedPostgres) -> int:
    return processes.postgres_on(postgres.pgdata)[0].pid


def write_note(postgres: EmbeddedPostgres, text: str) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS note (text text)")
        connection.execute("INSERT INTO note VALUES (%s)", [text])


def notes(postgres: EmbeddedPostgres) -> list[str]:
    with psycopg.connect(postgres.url) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM note ORDER BY 1")]


def test_vectors_work_and_the_role_is_no_superuser_when_started(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT current_setting('is_superuser'), current_setting('server_version_num')::int,"
            " ('[1,2]'::vector <-> '[1,4]'::vector)::float, to_tsvector('simple', 'a “Zürich” b')::text"
        ).fetchone()
        assert row is not None
        assert row[0] == "off"
        assert row[1] >= 180_000
        assert row[2] == 2.0
        assert "'zürich'" in row[3]
        # What a test run needs: an own database that has pgvector already, and roles.
        connection.execute("CREATE DATABASE test_x")
        connection.execute("CREATE ROLE some_role NOLOGIN")
    with psycopg.connect(server.url.rpartition("/")[0] + "/test_x") as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE TABLE v (e halfvec(3))")


def test_connection_is_refused_when_password_is_wrong_or_missing(server: EmbeddedPostgres) -> None:
    for user in ("postgres", "groundwork"):
        for password in ("wrong", ""):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(
                    host="127.0.0.1", port=server.port, user=user, password=password, dbname="postgres"
                )
    method = "SELECT auth_method FROM pg_hba_file_rules"
    with psycopg.connect(server.superuser_url) as connection:
        assert {row[0] for row in connection.execute(method)} == {"scram-sha-256"}
        assert connection.execute("SHOW unix_socket_directories").fetchone() == ("",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)


def test_state_file_is_private_when_written(server: EmbeddedPostgres) -> None:
    mode = stat.S_IMODE(state.state_path(server.data_dir).stat().st_mode)
    assert mode == 0o600
    assert stat.S_IMODE(server.pgdata.stat().st_mode) == 0o700
    assert read_state(server.data_dir) == server.url
    assert read_state(server.data_dir / "elsewhere") is None


def test_last_user_stops_the_server_when_several_attach(server: EmbeddedPostgres) -> None:
    other = child(
        "import sys; from pathlib import Path; from config.embedded import EmbeddedPostgres\n"
        "e = EmbeddedPostgres(Path(sys.argv[1])); e.start(); print(e.process, flush=True)\n"
        "sys.stdin.read(); print(e.stop())",
        server.data_dir,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "None\n"  # attached, not started
    assert server.stop() is False
    assert server.is_ready()
    out, err = other.communicate(timeout=PATIENCE_S)
    assert (out, err) == ("True\n", "")
    assert not server.is_running()
    assert processes.postgres_on(server.pgdata) == []


def test_user_killed_by_sigkill_does_not_keep_the_server_when_last_one_leaves(
    server: EmbeddedPostgres,
) -> None:
    other = child(
        "import sys; from pathlib import Path; from config.embedded import EmbeddedPostgres\n"
        "EmbeddedPostgres(Path(sys.argv[1])).start(); print('in', flush=True); sys.stdin.read()",
        server.data_dir,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "in\n"
    other.kill()
    other.communicate()
    assert server.stop() is True


def test_one_server_runs_when_four_processes_start_it_at_once(data_dir: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from config.embedded import EmbeddedPostgres\n"
        "e = EmbeddedPostgres(Path(sys.argv[1])); e.start()\n"
        "print(e.process is not None, e.url, flush=True); sys.stdin.read(); e.stop()"
    )
    starters = [child(code, data_dir) for _ in range(4)]
    answers = [starter.stdout.readline().split() for starter in starters if starter.stdout]
    assert sorted(answer[0] for answer in answers) == ["False", "False", "False", "True"]
    assert len({answer[1] for answer in answers}) == 1
    for starter in starters:
        assert starter.communicate(timeout=PATIENCE_S)[1] == ""
    assert not EmbeddedPostgres(data_dir).is_running()


def test_data_is_kept_when_postmaster_is_killed(server: EmbeddedPostgres) -> None:
    write_note(server, "before")
    with psycopg.connect(server.url):  # a backend that must notice by itself
        os.kill(postmaster(server), signal.SIGKILL)
        # Not reaped: the dead postmaster is our zombie child while the next one starts.
        again = EmbeddedPostgres(server.data_dir)
        again.start()
    assert notes(again) == ["before"]
    assert again.stop(force=True)


@pytest.mark.parametrize("kind", ["dead", "reused", "zombie"])
def test_server_starts_when_pid_file_is_stale(server: EmbeddedPostgres, kind: str) -> None:
    pid_file = server.pgdata / "postmaster.pid"
    write_note(server, kind)
    text = pid_file.read_text()
    server.stop(force=True)
    innocent = subprocess.Popen(["sleep", "60"], cwd=server.pgdata)
    try:
        if kind != "reused":
            innocent.kill()
            wait_for(lambda: is_gone(innocent.pid), "its end")
        if kind == "dead":
            innocent.wait()
        pid_file.write_text(text.replace(text.split()[0], str(innocent.pid), 1))
        shutil.chown(pid_file, server.pgdata.stat().st_uid)
        server.start()
        assert notes(server) == [kind]
        assert server.stop(force=True)
        # The other process stands in the data directory and was in the pid file, and is still not ours to end.
        assert (innocent.poll() is None) == (kind == "reused")
    finally:
        innocent.kill()
        innocent.wait()


def test_new_passwords_are_made_when_state_file_is_lost(server: EmbeddedPostgres) -> None:
    write_note(server, "kept")
    old = server.url
    state.state_path(server.data_dir).unlink()  # while it runs
    again = EmbeddedPostgres(server.data_dir)
    again.start()
    assert notes(again) == ["kept"]
    assert again.url != old
    again.stop(force=True)
    state.state_path(server.data_dir).write_text('{"torn')  # while it does not
    again.start()
    assert notes(again) == ["kept"]
    again.stop(force=True)
    known = json.loads(state.state_path(server.data_dir).read_text())
    state.state_path(server.data_dir).write_text(json.dumps(known | {"password": "older"}))
    again.start()
    assert notes(again) == ["kept"]


def test_server_moves_to_another_port_when_its_port_is_taken(server: EmbeddedPostgres) -> None:
    port = server.port
    server.stop(force=True)
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        server.start()
        assert server.port != port
        assert server.is_ready()
        server.stop(force=True)
        wanted = EmbeddedPostgres(server.data_dir, port=port)
        with pytest.raises(EmbeddedPostgresError, match=f"Port {port} .* is in use"):
            wanted.start()
    server.start()
    assert server.port != port  # once moved, it stays: others may have noted the new port


def test_two_projects_do_not_meet_when_on_one_machine(
    server: EmbeddedPostgres, data_dir: Path, make_database: Callable[[Path], None]
) -> None:
    make_database(data_dir)
    state.state_path(data_dir).unlink()  # else both are copies with the same passwords
    with EmbeddedPostgres(data_dir) as other:
        assert other.port != server.port
        write_note(server, "one")
        write_note(other, "two")
        assert (notes(server), notes(other)) == (["one"], ["two"])
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.url.replace(str(server.port), str(other.port)))
    assert server.is_ready()
    remove(other.data_dir)
    assert not (other.data_dir / "postgres").exists()
    with pytest.raises(EmbeddedPostgresError, match="is running"):
        remove(server.data_dir)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux")
def test_server_ends_when_its_supervisor_is_killed(
    data_dir: Path, make_database: Callable[[Path], None]
) -> None:
    make_database(data_dir)
    starter = child(
        "import sys; from pathlib import Path; from config.embedded import EmbeddedPostgres\n"
        "e = EmbeddedPostgres(Path(sys.argv[1]), die_with_parent=True); e.start()\n"
        "print(e.url, flush=True); sys.stdin.read()",
        data_dir,
    )
    assert starter.stdout is not None
    url = starter.stdout.readline().strip()
    busy = psycopg.connect(url)
    busy.execute("SELECT 1")  # an open transaction does not hold the server back
    starter.kill()
    starter.communicate()
    wait_for(lambda: not EmbeddedPostgres(data_dir).is_running(), "the server's end")
    with pytest.raises(psycopg.OperationalError, match="administrator command"):
        busy.execute("SELECT 1")
    busy.close()
    assert not EmbeddedPostgres(data_dir).is_running()
    with EmbeddedPostgres(data_dir) as again:
        assert again.url == url


def test_server_starts_when_first_set_up_was_killed(data_dir: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from config.embedded import EmbeddedPostgres\n"
        "EmbeddedPostgres(Path(sys.argv[1]), die_with_parent=True).start()"
    )
    for delay in (0.15, 0.35, 0.5, 0.65, 0.8):
        starter = child(code, data_dir)
        time.sleep(delay)
        starter.kill()
        starter.communicate()
    with EmbeddedPostgres(data_dir) as postgres:
        write_note(postgres, "well")
        assert notes(postgres) == ["well"]
    assert list(data_dir.glob("postgres.new*")) == []


def test_server_starts_when_path_is_long_and_odd(data_dir: Path) -> None:
    odd = data_dir.parent / ("long " * 20 + "it's ünsafe $HOME") / "var"
    odd.parent.mkdir()
    odd.parent.chmod(0o711)  # whatever the umask
    with EmbeddedPostgres(odd) as postgres:
        assert postgres.is_ready()
        assert postgres.pgdata == odd / "postgres"


def test_foreign_files_are_left_alone_when_they_lie_in_the_way(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    data_dir.chmod(0o711)  # whatever the umask
    (data_dir / "postgres" / "thesis.txt").write_text("mine")
    with pytest.raises(EmbeddedPostgresError, match="no PostgreSQL database"):
        EmbeddedPostgres(data_dir).start()
    assert (data_dir / "postgres" / "thesis.txt").read_text() == "mine"


@pytest.mark.skipif(not IS_ROOT, reason="needs root, to be another user")
def test_data_lies_outside_when_database_user_cannot_reach_the_project(data_dir: Path) -> None:
    home = data_dir.parent / "home"
    home.mkdir(mode=0o700)
    system_dir = data_dir.parent / "lib"
    project = home / "project" / "var"
    with EmbeddedPostgres(project, system_dir=system_dir) as postgres:
        write_note(postgres, "outside")
        assert postgres.pgdata.parent == system_dir
        assert postgres.pgdata.stat().st_uid != 0
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not (project / "postgres").exists()
    # The state file lost: found again by the project's place.
    state.state_path(project).unlink()
    with EmbeddedPostgres(project, system_dir=system_dir) as postgres:
        assert notes(postgres) == ["outside"]


@pytest.mark.skipif(not IS_ROOT, reason="needs root, to be another user")
def test_programs_are_copied_when_database_user_cannot_reach_them(
    data_dir: Path, make_database: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_database(data_dir)
    closed = data_dir.parent / "home"
    closed.mkdir(mode=0o700)
    spec = importlib.util.find_spec(account.PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    original = Path(spec.submodule_search_locations[0])
    unused = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(original / "pginstall18", closed / account.PACKAGE / "pginstall18", ignore=unused)
    (closed / account.PACKAGE / "__init__.py").touch()
    libraries = original.with_name(original.name + ".libs")
    shutil.copytree(libraries, closed / libraries.name)
    monkeypatch.syspath_prepend(str(closed))
    system_dir = data_dir.parent / "lib"
    with EmbeddedPostgres(data_dir, system_dir=system_dir) as postgres:
        program = Path(processes.postgres_on(postgres.pgdata)[0].exe())
        assert program.is_relative_to(system_dir)
        assert program.stat().st_uid == 0
        write_note(postgres, "copied")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def _can_run(python: str, site: Path, user: dict[str, Any]) -> bool:
    try:
        code = "import sys; sys.path.append(sys.argv[1]); import psycopg, psutil"
        return child(code, site, python=python, **user).wait(PATIENCE_S) == 0
    except PermissionError:
        return False


@pytest.mark.skipif(not IS_ROOT, reason="needs root, to become another user")
def test_server_starts_when_user_is_ordinary(data_dir: Path, make_database: Callable[[Path], None]) -> None:
    nobody = pwd.getpwnam("nobody")
    user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    site = Path(psycopg.__file__).parents[1]
    python = next((p for p in (sys.executable, "/usr/bin/python3") if _can_run(p, site, user)), None)
    if python is None:
        pytest.skip("no Python that an ordinary user can run with the installed packages")
    own = data_dir.parent / "own"
    own.mkdir()
    shutil.chown(own, nobody.pw_uid, nobody.pw_gid)
    code = (
        "import sys; sys.path.append(sys.argv[2]); from pathlib import Path\n"
        "from config.embedded import EmbeddedPostgres, EmbeddedPostgresError\n"
        "try:\n"
        "    with EmbeddedPostgres(Path(sys.argv[1])) as e: print(e.is_ready(), e.pgdata.owner())\n"
        "except EmbeddedPostgresError as error: print(error)\n"
    )
    ordinary = child(code, own / "var", site, python=python, **user)
    assert ordinary.communicate(timeout=PATIENCE_S) == ("True nobody\n", "")
    # Root on the same folder: runs it as its owner. And the other way round: told what to do.
    with EmbeddedPostgres(own / "var") as postgres:
        assert postgres.is_ready()
        assert processes.postgres_on(postgres.pgdata)[0].username() == "nobody"
    make_database(data_dir)
    with EmbeddedPostgres(data_dir):
        refused = child(code, data_dir, site, python=python, **user)
        out, _ = refused.communicate(timeout=PATIENCE_S)
    assert "GROUNDWORK_DATA_DIR" in out
