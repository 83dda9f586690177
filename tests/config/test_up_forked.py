"""Services forked from one process that has imported for all: what is shared, what is not, and what happens when it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from config import env, processes
from config.embedded import EmbeddedPostgres
from tests.config.test_up_supervisor import GRANDCHILD, SETUP, WEB, WORKER, Group, eventually
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(sys.platform != "linux", reason="it forks, and ties processes as only Linux does"),
]

# As config.zygote, with other imports and stand-in services: `python -c <script> <arguments>`.
ZYGOTE = """
import sys
from config import zygote
zygote.imports = lambda: [print("imported", flush=True)]
{first}
try:
    command = zygote.main(int(sys.argv[1]))
except zygote.CannotFork as error:
    sys.exit(f"refused: {{error}}")
sys.argv = list(command[2:])
exec(command[2])
"""
RUNNER = """
import argparse, sys
from config import up
from config.supervisor import Output
setup, web, worker, setup_code, kind, zygote = sys.argv[1:7]
python = sys.executable
commands = up.Commands(
    setup=(python, "-c", setup, setup_code),
    web=(python, "-c", web, "{host}", "{port}"),
    worker=(python, "-c", worker, kind),
    zygote=(python, "-c", zygote, "{channel}"),
)
options = up.arguments(argparse.ArgumentParser()).parse_args(sys.argv[7:])
sys.exit(up.run(options, Output(sys.stdout), commands))
"""


class ForkedGroup(Group):
    """A group whose services are forked; ``kind`` is the worker's, ``first`` what the zygote does before its imports."""

    def __init__(self, folder: Path, *, web: str = WEB, kind: str = "", first: str = "") -> None:
        self._zygote = ZYGOTE.format(first=first)
        super().__init__(folder, web=web, kind=kind)

    def command(self, web: str, setup_code: int, kind: str) -> list[str]:
        services = [SETUP, web, WORKER, str(setup_code), kind, self._zygote]
        return [sys.executable, "-c", RUNNER, *services, "--data-dir", str(self.data_dir)]

    def environment(self) -> dict[str, str]:
        return super().environment() | {"DJANGO_SETTINGS_MODULE": "config.settings.test"}

    def imports(self) -> int:
        self.said_so_far()
        return sum("zygote | imported" in line for line in self.lines)


def test_services_are_forked_from_one_process_and_nothing_is_left(folder: Path) -> None:
    group = ForkedGroup(folder).ready()
    mark = group.mark()
    zygote = group.child("zygote")
    assert zygote.ppid() == group.process.pid
    for name in ("web", "worker"):
        leader = group.child(name)
        assert leader.ppid() == zygote.pid
        assert os.getsid(leader.pid) == leader.pid  # Ctrl-C in a terminal does not reach it
        assert " ".join(leader.cmdline()) == f"groundwork {name}"
    assert group.imports() == 1
    assert any(line.startswith(GRANDCHILD) for line in group.lines)
    assert len(processes.marked(mark)) == 4  # the zygote, web, worker, its child
    assert group.end() == 0
    assert processes.marked(mark) == []
    assert not EmbeddedPostgres(group.data_dir).is_running()


def test_setup_is_forked_too_where_it_changes_nothing_that_is_imported(folder: Path) -> None:
    sign = folder / "begun"

    class Early(ForkedGroup):
        def command(self, web: str, setup_code: int, kind: str) -> list[str]:
            waits = (
                f"import pathlib, time\nwhile not pathlib.Path({str(sign)!r}).exists(): time.sleep(0.01)\n"
            )
            whole = super().command(web, setup_code, kind)
            return [waits + word if word == SETUP else word for word in whole]

        def environment(self) -> dict[str, str]:
            return super().environment() | {"DJANGO_SETTINGS_MODULE": "config.settings.dev"}

    group = Early(folder, first=f"import pathlib; pathlib.Path({str(sign)!r}).touch()").ready()
    assert group.imports() == 1
    assert group.child("web").ppid() == group.child("zygote").pid
    assert group.end() == 0


SETUP_WHEN_ASKED = """
import pathlib, sys, time
pathlib.Path({begun!r}).touch()
while not pathlib.Path({failing!r}).exists(): time.sleep(0.01)
time.sleep(0.2)
print("set up all the same", flush=True)
"""
IMPORTS_THAT_FAIL_LATE = """
import pathlib, time
zygote._EARLY = {setup!r}
def imports():
    print("imported", flush=True)
    while not pathlib.Path({begun!r}).exists():
        yield
        time.sleep(0.01)
    pathlib.Path({failing!r}).touch()
    raise zygote.CannotFork("what is imported last starts a thread")
zygote.imports = imports
"""


def test_setup_is_forked_before_all_is_imported_and_outlives_imports_that_fail(folder: Path) -> None:
    signs = {"begun": str(folder / "early"), "failing": str(folder / "late")}
    setup = SETUP_WHEN_ASKED.format(**signs)

    class Early(ForkedGroup):
        def command(self, web: str, setup_code: int, kind: str) -> list[str]:
            return [setup if word == SETUP else word for word in super().command(web, setup_code, kind)]

        def environment(self) -> dict[str, str]:
            return super().environment() | {"DJANGO_SETTINGS_MODULE": "config.settings.dev"}

    group = Early(folder, first=IMPORTS_THAT_FAIL_LATE.format(setup=setup, **signs)).ready()
    assert [line for line in group.lines if "set up all the same" in line] == ["setup  | set up all the same"]
    assert {group.child(name).ppid() for name in ("web", "worker")} == {group.process.pid}
    assert group.imports() == 2  # the second time for web and worker, which are not forked then
    assert group.end() == 0


def test_killed_service_is_forked_again_and_leaves_its_sibling_alone(folder: Path) -> None:
    group = ForkedGroup(folder).ready()
    mark = group.mark()
    zygote = group.child("zygote")
    for name, other in (("web", "worker"), ("worker", "web")):
        sibling = group.child(other)
        before = {process.pid for process in processes.marked(mark)}
        group.child(name).kill()
        said = group.wait_for("starting it again")
        assert name in said
        assert "killed by SIGKILL" in said
        assert eventually(lambda: len(processes.marked(mark)) == 4)
        again = group.child(name)
        assert again.pid not in before
        assert again.ppid() == zygote.pid
        assert sibling.is_running()
        # The dead worker's child ignores SIGTERM: it was found by its mark, which is not the zygote's.
        kept = before & {process.pid for process in processes.marked(mark)}
        assert len(kept) == (2 if name == "worker" else 3)
    assert group.imports() == 1
    assert group.end() == 0
    assert processes.marked(mark) == []


def test_all_are_started_again_when_the_process_they_are_forked_from_is_killed(folder: Path) -> None:
    group = ForkedGroup(folder).ready()
    mark = group.mark()
    before = {process.pid for process in processes.marked(mark)}
    group.child("zygote").kill()
    group.wait_for("forked from ended (killed by SIGKILL)")
    for _ in ("web", "worker"):
        group.wait_for("starting it again")
    found = processes.marked
    assert eventually(lambda: len({process.pid for process in found(mark)} - before) == 4), (
        group.said_so_far()
    )
    assert eventually(lambda: not before & {process.pid for process in found(mark)})
    assert group.imports() == 2
    assert group.end() == 0
    assert processes.marked(mark) == []


def test_a_stubborn_worker_is_killed_when_its_zygote_is_gone_as_well(folder: Path) -> None:
    group = ForkedGroup(folder, kind="stubborn").ready()
    mark = group.mark()
    group.child("zygote").kill()
    group.wait_for("forked from ended (killed by SIGKILL)")
    group.process.send_signal(signal.SIGINT)
    group.wait_for("stopping")
    assert group.end() == 0
    assert processes.marked(mark) == []


def test_all_end_when_the_supervisor_is_killed(folder: Path) -> None:
    group = ForkedGroup(folder).ready()
    leaders = [*(group.child(name) for name in ("zygote", "web", "worker")), group.postmaster()]
    group.end(signal.SIGKILL)
    assert processes.wait_gone(leaders, PATIENCE_S) == []


def test_next_start_ends_what_everything_killed_has_left(folder: Path) -> None:
    group = ForkedGroup(folder).ready()
    mark = group.mark()
    doomed = [group.child("zygote"), group.child("web"), group.child("worker"), group.postmaster()]
    group.process.kill()
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    group.process.wait()
    assert processes.wait_gone(doomed, PATIENCE_S) == []
    assert len(processes.marked(mark)) == 1  # the worker's child lives on
    again = ForkedGroup(folder)
    again.wait_for("ended 1 processes that an earlier start left behind")
    again.ready()
    assert again.end() == 0


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (
            "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "2 threads run",
        ),
        (
            "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
            "import django; django.setup(); from django.db import connection; connection.connection = object()",
            "a connection to the database is open",
        ),
        ("raise SystemExit('no such module')", "no such module"),
    ],
)
def test_services_are_started_on_their_own_when_forking_is_not_safe(
    folder: Path, first: str, why: str
) -> None:
    group = ForkedGroup(folder, first=first)
    assert group.wait_for(why).startswith("zygote |")
    group.ready()
    assert {group.child(name).ppid() for name in ("web", "worker")} == {group.process.pid}
    mark = group.mark()
    assert len(processes.marked(mark)) == 3
    group.child("web").kill()
    group.wait_for("starting it again")
    assert eventually(lambda: len(processes.marked(mark)) == 3)
    assert group.imports() <= 1  # it was not tried again
    assert group.end() == 0
    assert processes.marked(mark) == []


def test_exit_code_of_a_forked_service_is_told(folder: Path) -> None:
    group = ForkedGroup(folder, web="raise SystemExit(3)")
    group.wait_for("web ended (exit code 3)")
    group.wait_for("web doesn't start")
    assert group.process.wait(PATIENCE_S) == 1
    assert not EmbeddedPostgres(group.data_dir).is_running()


def test_settings_without_a_pool_are_those_of_the_worker() -> None:
    url = "postgresql://someone:secret@db.example:5433/name?sslmode=require"
    chosen = env.database_settings(url, pool=True)
    env.pool_leave(chosen)
    assert chosen == env.database_settings(url, pool=False)
    replica = env.replica_settings(url, pool=True)
    env.pool_leave(replica)
    assert replica == env.replica_settings(url, pool=False)
