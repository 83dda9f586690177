"""A program stops at the call that needs approval and goes on in another process, under its own signature only."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.toolloop.code_mode.support import ROOT, get_user
from toolloop.code_mode import CodeMode, Ending, StateRefused
from toolloop.deferred import Decision
from toolloop.errors import ConfigurationError
from toolloop.tools import tool

sent: list[str] = []
KEY = b"a secret of the application"


@tool(needs_approval=True, side_effects=True)
def send(to: str) -> str:
    """Send."""
    sent.append(to)
    return f"sent {to}"


@pytest.fixture(autouse=True)
def _nothing_sent():
    sent.clear()


def mode(binding: str = "tenant 1", key: bytes = KEY) -> CodeMode:
    return CodeMode([get_user, send], state_key=key, binding=binding)


async def test_program_goes_on_after_the_call_when_it_is_approved():
    paused = await mode().execute("u = get_user(1)\nprint('before')\nr = send(u['name'])\nprint(r)\nlen(r)")
    assert paused.is_paused
    assert paused.line == 3
    assert sent == []
    (waiting,) = paused.pending
    assert (waiting.call.name, waiting.call.arguments) == ("send", {"to": "user1"})
    result = await mode().resume(paused.state, {waiting.call.id: waiting.approve()})
    assert (result.output, result.value) == ("before\nsent user1\n", 10)
    assert sent == ["user1"]
    assert [c.name for c in result.calls] == ["get_user", "send"]


async def test_state_goes_on_in_another_process():
    paused = await mode().execute("x = [get_user(i)['name'] for i in (1, 2)]\nprint(send(x[1]), x)")
    code = (
        "import asyncio, json, sys\n"
        "sys.path[:0] = sys.argv[1:3]\n"
        "from tests.toolloop.code_mode.test_pausing import mode\n"
        "from toolloop.deferred import Decision\n"
        "state, call_id = json.load(sys.stdin)\n"
        "result = asyncio.run(mode().resume(state, {call_id: Decision('approve', arguments={'to': 'edited'})}))\n"
        "print(json.dumps(result.to_json()))\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(ROOT), str(ROOT / "platform")],
        input=json.dumps([paused.state, paused.pending[0].call.id]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["output"] == "sent edited ['user1', 'user2']\n"
    assert result["ending"] == "OK"


async def test_program_catches_permission_error_when_the_call_is_rejected():
    code = "try:\n    send('a')\nexcept PermissionError as e:\n    print(e)"
    paused = await mode().execute(code)
    decisions = {paused.pending[0].call.id: Decision("reject", reason="Not today.")}
    result = await mode().resume(paused.state, decisions)
    assert "Not today." in result.output
    assert sent == []


async def test_program_ends_denied_when_it_does_not_catch_the_rejection():
    paused = await mode().execute("x = 1\nsend('a')")
    result = await mode().resume(paused.state, {paused.pending[0].call.id: Decision("reject")})
    assert (result.ending, result.line) == (Ending.TOOL_DENIED, 2)


async def test_answer_takes_the_place_of_the_call_when_somebody_answers():
    paused = await mode().execute("print(send('a'))")
    decisions = {paused.pending[0].call.id: Decision("answer", content="by hand")}
    assert (await mode().resume(paused.state, decisions)).output == "by hand\n"
    assert sent == []


async def test_program_stays_paused_when_nothing_was_decided():
    paused = await mode().execute("send('a')")
    again = await mode().resume(paused.state, {})
    assert again.is_paused
    assert again.pending[0].call.id == paused.pending[0].call.id


async def test_calls_beside_the_waiting_one_run_once_when_parallel_is_paused():
    code = "print(parallel((send, 'a'), (get_user, 1), (send, 'b')))"
    paused = await mode().execute(code)
    assert [w.call.arguments for w in paused.pending] == [{"to": "a"}, {"to": "b"}]
    first, second = paused.pending
    half = await mode().resume(paused.state, {first.call.id: first.approve()})
    assert half.is_paused
    assert sent == ["a"]
    result = await mode().resume(half.state, {second.call.id: second.approve()})
    assert sent == ["a", "b"]
    assert result.output.startswith("['sent a', {'id': 1")
    assert sum(c.name == "get_user" for c in result.calls) == 1


async def test_awaiting_program_goes_on_when_its_futures_were_waiting():
    code = (
        "import asyncio\n"
        "async def one(i):\n"
        "    user = await get_user(i)\n"
        "    return await send(user['name'])\n"
        "print(await asyncio.gather(one(1), one(2), get_user(3)))\n"
    )
    paused = await mode().execute(code)
    assert len(paused.pending) == 2
    decisions = {w.call.id: w.approve() for w in paused.pending}
    result = await mode().resume(paused.state, decisions)
    assert result.output.startswith("['sent user1', 'sent user2', {'id': 3")
    assert sorted(sent) == ["user1", "user2"]


async def test_approval_cannot_be_bypassed_when_the_tool_is_called_by_another_name():
    for code in (
        "f = send\nf('a')",
        "[g('a') for g in (send,)]",
        "list(map(send, ['a']))",
        "parallel(('send', 'a'))",
        "import functools\nfunctools.partial(send, 'a')()",
    ):
        assert (await mode().execute(code)).is_paused, code
    assert sent == []


@pytest.mark.parametrize(("binding", "key"), [("tenant 2", KEY), ("tenant 1", b"another secret, also long")])
async def test_state_is_refused_when_it_belongs_to_someone_else(binding, key):
    paused = await mode().execute("send('a')")
    with pytest.raises(StateRefused, match="signature"):
        await mode(binding, key).resume(paused.state, {})


async def test_state_is_refused_when_it_was_changed():
    state = (await mode().execute("send('a')")).state
    for changed in (state[:60] + ("A" if state[60] != "A" else "B") + state[61:], state[:-8], "", "é"):
        with pytest.raises(StateRefused):
            await mode().resume(changed, {})
    assert sent == []


def test_key_is_demanded_when_a_tool_needs_approval():
    with pytest.raises(ConfigurationError, match="state_key"):
        CodeMode([send])
