"""The worker pool of pydantic-monty: made late, never carried over a fork, closed so that the process ends cleanly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.toolloop.code_mode.support import ROOT, get_user
from toolloop.code_mode import CodeMode
from toolloop.code_mode.driver import MontyBackend

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}{os.pathsep}{ROOT}"}
HEAD = """
import asyncio, os, sys
from toolloop.code_mode import CodeMode
from toolloop.code_mode.driver import MontyBackend
from toolloop.tools import tool

@tool
def get_user(user_id: int) -> dict:
    "Return a user."
    return {"id": user_id}

def run(code="get_user(1)['id']"):
    return asyncio.run(CodeMode([get_user], backend=MontyBackend()).execute(code))
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HEAD + code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "ending",
    [
        "assert run().value == 1",
        "assert run().value == 1\nraise SystemExit(0)",
        "from toolloop.code_mode.pool import pool_close\n"
        "async def main():\n"
        "    assert (await CodeMode([get_user], backend=MontyBackend()).execute('1')).value == 1\n"
        "    await pool_close()\n"
        "asyncio.run(main())",
        "assert run('while True: print(1)').ending == 'LIMIT_OUTPUT'",
    ],
)
def test_process_ends_cleanly_when_it_has_run_programs(ending):
    codes = Counter(python(ending).returncode for _ in range(6))
    assert codes == {0: 6}


def test_pool_serves_several_event_loops_and_threads_when_each_runs_its_own():
    done = python(
        "import threading\n"
        "found = []\n"
        "def work():\n"
        "    found.extend(run().value for _ in range(3))\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert found == [1] * 12, found\n"
    )
    assert done.returncode == 0, done.stderr


def test_child_is_told_why_when_it_was_forked_after_programs_had_run():
    done = python(
        "from toolloop.errors import ConfigurationError\n"
        "assert run().value == 1\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    import signal; signal.alarm(20)\n"
        "    try:\n"
        "        run()\n"
        "    except ConfigurationError as error:\n"
        "        os._exit(7 if 'fork' in str(error) else 8)\n"
        "    os._exit(9)\n"
        "_, status = os.waitpid(pid, 0)\n"
        "assert os.waitstatus_to_exitcode(status) == 7, status\n"
        "assert run().value == 1\n"
    )
    assert done.returncode == 0, done.stderr


def test_child_runs_programs_when_it_was_forked_before_the_first_one():
    done = python(
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    import signal; signal.alarm(20)\n"
        "    ok = run().value == 1\n"
        "    import atexit; atexit._run_exitfuncs()\n"
        "    os._exit(0 if ok else 9)\n"
        "_, status = os.waitpid(pid, 0)\n"
        "assert os.waitstatus_to_exitcode(status) == 0, status\n"
        "assert run().value == 1\n"
    )
    assert done.returncode == 0, done.stderr


def test_interpreter_is_not_loaded_when_code_mode_is_only_imported():
    done = python(
        "import toolloop, toolloop.loop\n"
        "CodeMode([get_user]).prompt()\n"
        "assert 'pydantic_monty' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_loop_does_not_load_code_mode():
    code = "import sys, toolloop.loop; assert not any('code_mode' in m for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True, timeout=60)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_worker_has_fewer_rights_than_its_host(monkeypatch):
    from toolloop.code_mode import driver

    seen: list[str] = []
    real = driver._Run._drive

    async def look(self, module, session, snapshot):
        with open(f"/proc/{session.worker_pid}/status") as status:  # noqa: ASYNC230 - /proc
            seen.append(status.read())
        with open(f"/proc/{session.worker_pid}/limits") as limits:  # noqa: ASYNC230
            seen.append(limits.read())
        return await real(self, module, session, snapshot)

    monkeypatch.setattr(driver._Run, "_drive", look)
    assert (await CodeMode([get_user], backend=MontyBackend()).execute("1")).value == 1
    facts = dict(line.split(":\t", 1) for line in seen[0].splitlines() if ":\t" in line)
    assert facts["NoNewPrivs"].strip() == "1"
    assert "1073741824" in seen[1]
    if os.geteuid() == 0:
        assert facts["Uid"].split()[0] == "65534"
        assert int(facts["CapEff"], 16) == 0


async def test_programs_see_nothing_of_each_other_when_they_share_a_worker():
    mode = CodeMode([get_user], backend=MontyBackend())
    await mode.execute("import json\nleft = 'secret of tenant 1'\ndef helper(): return left")
    for name in ("left", "helper()"):
        result = await mode.execute(name)
        assert "NameError" in result.error
