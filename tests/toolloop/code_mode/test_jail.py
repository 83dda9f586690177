"""The process that runs a program: nothing but computing is left to it, whatever its rules let through."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.toolloop.code_mode.support import ROOT, get_user
from toolloop.code_mode import CodeLimits, CodeMode, Ending, StateRefused
from toolloop.code_mode.jail import answers, line, rules
from toolloop.code_mode.jail.channel import Channel, ChannelClosed, Frames
from toolloop.code_mode.jail.driver import CPythonBackend
from toolloop.code_mode.jail.zygote import is_possible, zygote_get
from toolloop.tools import tool

pytestmark = pytest.mark.skipif(not is_possible(), reason="no CPython can be confined here")
ORDER = {
    "tools": ["ping"],
    "awaits": False,
    "clock": [],
    "seed": 1,
    "run_s": 5,
    "turn_s": 5,
    "memory": 64 << 20,
    "nodes": 20000,
    "size": 1_000_000,
    "most_calls": 50,
    "depth": 1000,
}


def raw(source: str, **more: Any) -> list[Any]:
    """Run a program that no rule has looked at, and return its last word: what holds then is the kernel alone."""
    with zygote_get().fork() as end:
        end.setblocking(True)
        channel = Channel(end)
        assert channel.receive()[0] == "hello"
        channel.send("order", {**ORDER, "source": source, **more})
        last: list[Any] = ["nothing"]
        while True:
            try:
                frame = channel.receive()
            except ChannelClosed:
                return last
            last = frame
            if frame[0] in ("end", "error", "late", "unconfined"):
                return last


ESCAPES = {
    "file": "import posix\nposix.open('/etc/passwd', 0)",
    "write": "import posix\nposix.open('/tmp/gw-escape', 65, 0o600)",
    "folder": "import posix\nposix.listdir('/')",
    "stat": "import posix\nposix.stat('/')",
    "environment": "import posix\nposix.open('/proc/self/environ', 0)",
    "fork": "import posix\nposix.fork()",
    "run": "import posix\nposix.execv('/bin/sh', ['sh'])",
    "spawn": "import subprocess\nsubprocess.run(['/bin/true'])",
    "kill": "import posix\nposix.kill(posix.getppid(), 9)",
    "own_parent": "import posix\nposix.kill(1, 0)",
    "socket": "import socket\nsocket.socket()",
    "pair": "import socket\nsocket.socketpair()",
    "thread": "import _thread\n_thread.start_new_thread(print, ())",
    "mount": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nif lib.mount(b'/', b'/', b'x', 0, None): raise OSError(ctypes.get_errno(), 'not permitted')",
    "code": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nlib.mmap.restype = ctypes.c_long\nif lib.mmap(None, 4096, 7, 34, -1, 0) == -1: raise OSError(ctypes.get_errno(), 'not permitted')",
    "executable": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nlib.mmap.restype = ctypes.c_long\nat = lib.mmap(None, 4096, 3, 34, -1, 0)\nif lib.mprotect(ctypes.c_long(at), 4096, 5): raise OSError(ctypes.get_errno(), 'not permitted')",
    "limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "ptrace": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nif lib.ptrace(16, 1, 0, 0): raise OSError(ctypes.get_errno(), 'not permitted')",
    "filter": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nif lib.prctl(1, 0, 0, 0, 0): raise OSError(ctypes.get_errno(), 'not permitted')",
    "other_call": "import ctypes\nlib = ctypes.CDLL(None, use_errno=True)\nif lib.syscall(425, 1, 0) == -1: raise OSError(ctypes.get_errno(), 'not permitted')",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_kernel_refuses_what_a_program_may_not_do_when_no_rule_stopped_it(name):
    last = raw(ESCAPES[name])
    assert last[0] == "error", last
    # CPython's words for the kernel's "not permitted", one of threads and one of limits among them.
    assert last[1] in ("PermissionError", "RuntimeError", "ValueError", "ModuleNotFoundError"), last
    assert "not" in last[2] or "can't" in last[2], last
    assert not os.path.exists("/tmp/gw-escape")


def test_kernel_ends_a_process_that_uses_the_other_numbering_of_calls():
    source = "import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)\nprint('alive')"
    assert raw(source) == ["nothing"]


def test_process_holds_one_file_only_and_no_secret(monkeypatch):
    monkeypatch.setenv("CANARY", "CANARY-IN-ENVIRONMENT")
    seen = raw("import os\nsorted(os.environ)")
    assert seen[0] == "end"
    assert set(seen[1]) <= {"LC_ALL", "LC_CTYPE", "PYTHONHASHSEED", "TZ"}
    with zygote_get().fork() as end:
        end.setblocking(True)
        pid = Channel(end).receive()[1]
        assert len(os.listdir(f"/proc/{pid}/fd")) == 1


def test_rights_of_root_are_gone():
    with zygote_get().fork() as end:
        end.setblocking(True)
        pid = Channel(end).receive()[1]
        with open(f"/proc/{pid}/status") as file:
            facts = dict(part.split(":\t", 1) for part in file.read().splitlines() if ":\t" in part)
    if os.geteuid() == 0:
        assert facts["Uid"].split()[0] == "65534"
        assert int(facts["CapEff"], 16) == 0
        assert facts["NoNewPrivs"].strip() == "1"


ROUNDABOUT = [
    "getattr((), '__cla' + 'ss__').__name__ and getattr((), '__ba' + 'se__')",
    "f = '{0.__cla' + 'ss__.__ba' + 'se__}'\nf.format(1)",
    "f = '{a.__glo' + 'bals__}'\nf.format_map({'a': get_user})",
    "import operator\noperator.attrgetter('__class__.__ba' + 'se__')(1)",
    "import operator\noperator.methodcaller('__subcl' + 'asses__')(int)",
    "exec('import subp' + 'rocess')",
    "exec('print(().__class__.__ba' + 'ses__)')",
    "eval('__imp' + 'ort__(\"os\")')",
    "eval('op' + 'en(\"/etc/passwd\")')",
    "name = 'gi_fr' + 'ame'\ngetattr((i for i in ()), name)",
    "setattr(get_user, '__co' + 'de__', None)",
    "import functools\nfunctools.partial(getattr, get_user)('__glo' + 'bals__')",
    "list(map(getattr, [get_user], ['__clo' + 'sure__']))",
    "class A: pass\nA.__getattribute__",
]


@pytest.mark.parametrize("code", ROUNDABOUT)
async def test_way_inside_ends_in_an_error_when_its_name_is_put_together(code):
    result = await CodeMode([get_user]).execute(code)
    assert result.ending in (Ending.RUNTIME_ERROR, Ending.UNSUPPORTED_SYNTAX), result.to_text()
    assert "cannot be used here" in result.error or "cannot be imported" in result.error
    assert result.output == ""


REFUSED = {
    "import_": "import requests",
    "member": "from json import codecs",
    "module_in_module": "import json\njson.codecs.open('x')",
    "name": "open('x')",
    "attribute": "().__class__.__base__",
    "format": "'{0.__globals__}'.format(get_user)",
    "f_string": "f'{get_user.__globals__}'",
    "match": "match get_user:\n    case object(__globals__=g): print(g)",
    "file": "from pathlib import Path\nPath('x').read_text()",
    "late_import": "def f():\n    import socket\nf()",
    "poison": "import json\njson.dumps = print",
    "names": "print(vars())",
    "star": "from os import *",
    "unbound": "list(map(str.format, ['{0}'], [1]))",
    "guard": "_gw_text = print",
    "exit": "import sys\nsys.exit(1)",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_program_is_refused_before_any_call_when_it_cannot_work(name):
    result = await CodeMode([get_user]).execute("get_user(1)\n" + REFUSED[name])
    assert result.ending in ("UNSUPPORTED_SYNTAX", "UNSUPPORTED_IMPORT"), result.to_text()
    assert result.calls == ()
    assert result.line > 1
    assert result.advice


async def test_names_of_modules_are_those_of_this_python():
    for module in sorted(rules.MODULES - {"__future__"}):
        result = await CodeMode([]).execute(f"import {module}\n'ok'")
        assert result.value == "ok", (module, result.to_text())


def test_frames_of_a_hostile_program_are_bounded():
    frames = Frames(longest=100)
    frames.add(b"\x00\x00\x01\x00")
    with pytest.raises(ValueError, match="too long"):
        frames.take()
    for text in (b"{}", b"[]", b"[" * 50, b"nonsense", b"1" * 90):
        frames = Frames()
        frames.add(len(text).to_bytes(4, "big") + text)
        with pytest.raises(ValueError, match=r"."):
            frames.take()


LIES = [
    '["call", 0, "no_tool", [[], {}], 1]',
    '["call", 0, "parallel", [[], {}], 1]',
    '["call", 0, "get_user", 5, 1]',
    '["call", 0, "get_user", [[], []], 1]',
    '["sleep", NaN, 1]',
    '["sleep", -1, 1]',
    '["wait", 1e400]',
    '["clock", ["x"]]',
    '["hello", 1]',
    '["out", "stdin", "x"]',
    '["end"]',
    '["error", "ValueError"]',
    '{"a": 1}',
    "[" * 3000,
]


@pytest.mark.parametrize("lie", LIES)
async def test_program_is_ended_when_it_says_what_no_program_says(lie, monkeypatch):
    real = line.ProgramProcess.next
    said: set[int] = set()

    async def next_frame(self: line.ProgramProcess) -> list[Any]:
        frame = await real(self)
        if frame[0] != "hello" and self.pid not in said:
            said.add(self.pid)
            self._frames._bytes[:0] = len(lie).to_bytes(4, "big") + lie.encode()
            return await real(self)
        return frame

    monkeypatch.setattr(line.ProgramProcess, "next", next_frame)
    result = await CodeMode([get_user]).execute("get_user(1)\nprint('after')")
    assert result.ending is Ending.WORKER_CRASHED, result.to_text()
    assert result.calls == ()


async def test_calls_that_never_reach_a_tool_are_counted_too():
    code = "n = 0\nwhile True:\n    try:\n        get_user({1})\n    except TypeError:\n        n += 1"
    result = await CodeMode([get_user], limits=CodeLimits(tool_calls=3)).execute(code)
    assert result.ending is Ending.LIMIT_CALLS, result.to_text()
    assert len(result.calls) < 300


async def test_ending_is_crashed_when_the_process_dies_after_a_call(monkeypatch):
    pids: list[int] = []
    real = answers.Answers.answer

    async def kill(self: Any, frame: list[Any]) -> Any:
        if self._host.log:
            os.kill(pids[-1], signal.SIGKILL)
        return await real(self, frame)

    greet = line.ProgramProcess.greet

    async def greeted(self: line.ProgramProcess) -> None:
        await greet(self)
        pids.append(self.pid)

    monkeypatch.setattr(line.ProgramProcess, "greet", greeted)
    monkeypatch.setattr(answers.Answers, "answer", kill)
    result = await CodeMode([get_user]).execute("get_user(1)\nget_user(2)\nprint('never')")
    assert result.ending is Ending.WORKER_CRASHED, result.to_text()
    assert len(pids) == 1, "a program that had called a tool must not start again by itself"
    monkeypatch.undo()
    assert (await CodeMode([get_user]).execute("1 + 1")).value == 2


async def test_programs_run_again_when_the_process_that_forks_them_was_killed():
    assert (await CodeMode([get_user]).execute("1")).value == 1
    zygote = zygote_get()
    os.kill(zygote._process.pid, signal.SIGKILL)
    zygote._process.wait()
    assert (await CodeMode([get_user]).execute("1 + 1")).value == 2


@tool(needs_approval=True, side_effects=True)
def send(to: str) -> str:
    """Send."""
    return f"sent {to}"


def paused_mode() -> CodeMode:
    return CodeMode([get_user, send], state_key=b"a secret of the application", binding="t")


async def test_program_finds_the_same_world_when_it_goes_on_after_a_pause():
    code = (
        "import datetime, random, time, uuid\n"
        "facts = [str(datetime.datetime.now()), time.time(), random.random(), str(uuid.uuid4()), list({'a', 'b', 'c'})]\n"
        "print(facts)\n"
        "time.sleep(0.01)\n"
        "print(send(str(facts)))\n"
        "print(random.random())\n"
    )
    paused = await paused_mode().execute(code)
    (waiting,) = paused.pending
    await asyncio.sleep(0.05)
    result = await paused_mode().resume(paused.state, {waiting.call.id: waiting.approve()})
    assert result.success, result.to_text()
    assert result.output.splitlines()[0] == paused.output.splitlines()[0]
    assert waiting.call.arguments is not None
    assert result.output.splitlines()[1] == f"sent {waiting.call.arguments['to']}"


async def test_program_is_ended_when_it_does_not_repeat_itself():
    code = "import time\nget_user(int(time.perf_counter_ns() % 10**9))\nsend('a')"
    paused = await paused_mode().execute(code)
    (waiting,) = paused.pending
    result = await paused_mode().resume(paused.state, {waiting.call.id: waiting.approve()})
    assert result.ending is Ending.RUNTIME_ERROR
    assert "did not repeat" in result.error
    assert [call.name for call in result.calls] == ["get_user"]


async def test_state_of_another_interpreter_is_refused(monkeypatch):
    paused = await paused_mode().execute("send('a')")
    monkeypatch.setattr("toolloop.code_mode.jail.driver.INTERPRETER", "cpython 2.7")
    with pytest.raises(StateRefused, match="paused by"):
        await paused_mode().resume(paused.state, {})


HEAD = """
import asyncio, os, sys
from toolloop.code_mode import CodeMode
from toolloop.tools import tool

@tool
def get_user(user_id: int) -> dict:
    "Return a user."
    return {"id": user_id}

def run(code="get_user(1)['id']"):
    return asyncio.run(CodeMode([get_user]).execute(code))
"""


@pytest.mark.parametrize(
    "ending",
    [
        "assert run().value == 1",
        "assert run('while True: print([0] * 10_000)').ending == 'LIMIT_OUTPUT'",
        "import threading\nfound = []\n"
        "def work(): found.extend(run().value for _ in range(3))\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert found == [1] * 12, found",
        "assert run().value == 1\npid = os.fork()\n"
        "if pid == 0:\n    ok = run().value == 1\n    os._exit(0 if ok else 9)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\nassert run().value == 1",
    ],
)
def test_process_ends_cleanly_when_it_has_run_programs(ending):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + ending],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_backend_is_told_apart_by_its_name():
    assert CPythonBackend().name == "cpython"


async def test_recursion_ends_where_it_ends_in_cpython(tmp_path):
    code = (
        "n = 0\n"
        "def f():\n    global n\n    n += 1\n    f()\n"
        "def g(x):\n    global n\n    n += 1\n    return sorted([x], key=g)\n"
        "for call in (f, lambda: g(1)):\n"
        "    n = 0\n"
        "    try:\n        call()\n    except RecursionError as e:\n        print(n, e)\n"
    )
    script = tmp_path / "program.py"
    script.write_text(code)
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(script)], capture_output=True, text=True, check=True
    )
    assert (await CodeMode([get_user]).execute(code)).output == done.stdout


SAMPLES = {
    "round": "round(2.675, 2), round(0.5), round(-1.5), round(25, -1)",
    "built_in_attributes": "hasattr('', 'upper'), hasattr([], 'push'), getattr([1], 'count')(1), getattr(3, 'x', None)",
    "laziness": "next((r['id'] for r in map(get_user, [1, 2, 3])), None)",
    "sets": "list({30, 1, 17, 9})",
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_known_differences_of_small_interpreters_are_none_here(name):
    result = await CodeMode([get_user]).execute(SAMPLES[name])
    made: list[int] = []

    def own(user_id: int) -> dict[str, Any]:
        made.append(user_id)
        return {"id": user_id}

    want = eval(SAMPLES[name], {"get_user": own})  # noqa: S307 - written above
    assert result.value == (list(want) if isinstance(want, tuple) else want)
    assert [call.arguments["user_id"] for call in result.calls] == made


async def test_no_call_is_made_beyond_the_one_at_which_a_loop_breaks():
    code = "for user in map(get_user, range(9)):\n    if user['id'] == 2:\n        break\n"
    result = await CodeMode([get_user]).execute(code)
    assert [call.arguments["user_id"] for call in result.calls] == [0, 1, 2]


async def test_parallel_takes_functions_of_the_program_beside_tools():
    code = "parallel((get_user, 1), lambda: get_user(2)['name'], lambda: get_user(user_id=3), lambda: 4)"
    result = await CodeMode([get_user]).execute(code)
    one, two, three, four = result.value
    assert (one["id"], two, three["id"], four) == (1, "user2", 3, 4)


async def test_awaiting_program_that_never_rests_gets_its_answers():
    code = (
        "import asyncio\n"
        "async def main():\n"
        "    task = asyncio.create_task(get_user(1))\n"
        "    while not task.done():\n"
        "        await asyncio.sleep(0)\n"
        "    return task.result()['name']\n"
        "asyncio.run(main())\n"
    )
    assert (await CodeMode([get_user]).execute(code)).value == "user1"
