"""Every parked state survives every store: 1 to 10 gated calls, made in every way, each happen once, and every run ends."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolloop.parked import STORAGES, Effects, drive, storable, tools_of
from toolloop.code_mode import CodeMode
from toolloop.deferred import Decision, PendingCall
from toolloop.messages import ToolCall
from toolloop.providers.scripted import ScriptedTurn, call, calls, says
from toolloop.tools import Toolset
from toolloop.tools.guards import call_key

ODD = ["plain", "\x00nul", "half \ud800", "ü", 1.0, 1e22, -0.0, 1.7e308, {"b": 1, "a": [2.0]}, True, 10**30]


def yes(pending: PendingCall) -> Decision:
    return pending.answer("told") if pending.kind == "external" else pending.approve()


def steps(count: int, kind: str = "gated") -> list[list[Any]]:
    return [[kind, {"name": f"e{n}", "value": ODD[n % len(ODD)]}] for n in range(count)]


def nested(how: str, count: int) -> list[list[Any]]:
    """Groups within groups, with free effects before each gated one."""
    plan: list[list[Any]] = []
    for n in range(count):
        inner = [["free", {"name": f"f{n}"}], ["gated", {"name": f"e{n}", "value": ODD[n % len(ODD)]}]]
        plan.append(["group", {"how": "in turn", "plan": inner}])
    return [["group", {"how": how, "plan": plan}]]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("how", ["in turn", "gather", "swallow", "taskgroup"])
@pytest.mark.parametrize("count", [1, 2, 3, 10])
async def test_each_gated_call_happens_once_and_the_run_ends(storage: str, how: str, count: int) -> None:
    effects = Effects()
    script = [calls(call("group", how=how, plan=steps(count))), says("done")]
    end, attempts = await drive(script, tools_of(effects), STORAGES[storage], yes)
    assert (end.status, end.text) == ("completed", "done")
    assert sorted(effects.made) == sorted(f"e{n}" for n in range(count))
    assert attempts == count + 1, "each is asked about once"


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("how", ["in turn", "gather", "swallow", "taskgroup"])
async def test_free_effects_around_gated_ones_happen_once(storage: str, how: str) -> None:
    effects = Effects()
    script = [calls(call("group", how="in turn", plan=nested(how, 4))), says("done")]
    end, attempts = await drive(script, tools_of(effects), STORAGES[storage], yes)
    assert end.status == "completed"
    assert sorted(effects.made) == sorted([f"e{n}" for n in range(4)] + [f"f{n}" for n in range(4)])
    assert attempts == 5


@pytest.mark.parametrize("kind", ["outside", "asking", "gated"])
@pytest.mark.parametrize("how", ["in turn", "gather"])
async def test_calls_of_every_kind_wait_below_others(kind: str, how: str) -> None:
    effects = Effects()
    script = [calls(call("group", how=how, plan=steps(5, kind))), says("done")]
    end, attempts = await drive(script, tools_of(effects), storable, yes)
    assert (end.status, attempts) == ("completed", 6)
    whole = [f"e{n}" for n in range(5)] if kind != "outside" else []
    assert sorted(e for e in effects.made if "begins" not in e) == whole
    if kind == "asking":
        assert sorted(e for e in effects.made if "begins" in e) == [f"e{n} begins" for n in range(5)]


@pytest.mark.parametrize("seed", range(6))
async def test_decisions_come_in_any_order_some_are_denied_and_some_are_late(seed: int) -> None:
    rng = random.Random(seed)
    effects = Effects()
    plans = [
        [["free", {"name": f"{k}f"}], ["gated", {"name": f"{k}a"}], ["gated", {"name": f"{k}b"}]]
        for k in "xyz"
    ]
    how = ("gather", "in turn", "taskgroup")
    script = [calls(*(call("group", how=h, plan=p) for h, p in zip(how, plans, strict=True))), says("done")]
    denied: set[str] = set()
    asked: list[str] = []

    def decide(pending: PendingCall) -> Decision | None:
        name = (pending.asked.arguments or {})["name"]
        if rng.random() < 0.5:
            return None  # Later.
        asked.append(name)
        if rng.random() < 0.4:
            denied.add(name)
            return pending.reject("no")
        return pending.approve()

    end, _ = await drive(script, tools_of(effects), storable, decide)
    assert end.status == "completed"
    wanted = {f"{k}{x}" for k in "xyz" for x in "ab"}
    assert sorted(asked) == sorted(wanted), "each is asked about once"
    assert sorted(effects.made) == sorted(wanted - denied | {f"{k}f" for k in "xyz"})


async def test_edited_arguments_stay_edited_when_the_call_waits_again() -> None:
    effects = Effects()
    plan = [["gated", {"name": "first"}], ["gated", {"name": "second"}]]
    small = [["gated", {"name": "only"}]]
    script = [calls(call("gated_group", how="in turn", plan=plan)), says("done")]
    seen: list[str] = []

    def decide(pending: PendingCall) -> Decision:
        seen.append(pending.asked.name)
        if pending.asked.name == "gated_group":
            return pending.approve({"how": "in turn", "plan": small})
        return pending.approve()

    end, _ = await drive(script, tools_of(effects), storable, decide)
    assert end.status == "completed"
    assert (seen, effects.made) == (["gated_group", "gated"], ["only"])


async def test_edit_of_a_nested_call_is_what_runs() -> None:
    effects = Effects()
    script = [calls(call("group", how="gather", plan=steps(3))), says("done")]

    def decide(pending: PendingCall) -> Decision:
        return pending.approve({"name": f"edited {(pending.asked.arguments or {})['name']}"})

    end, attempts = await drive(script, tools_of(effects), storable, decide)
    assert (end.status, attempts) == ("completed", 4)
    assert sorted(effects.made) == [f"edited e{n}" for n in range(3)]


PROGRAMS = {
    "one after the other": "\n".join(f"print(gated('e{n}'))" for n in range(4)),
    "loop": "for n in range(4):\n    print(gated('e' + str(n)))",
    "parallel": "print(parallel(" + ", ".join(f"(gated, 'e{n}')" for n in range(4)) + "))",
    "gathered": (
        "import asyncio\nasync def main():\n    return await asyncio.gather("
        + ", ".join(f"gated('e{n}')" for n in range(4))
        + ")\nprint(await main())"
    ),
    "nested": "\n".join(
        f"print(group('gather', [['free', {{'name': 'f{n}'}}], ['gated', {{'name': 'e{n}'}}]]))"
        for n in range(4)
    ),
    "nested in parallel": "print(parallel("
    + ", ".join(
        f"(group, 'in turn', [['free', {{'name': 'f{n}'}}], ['gated', {{'name': 'e{n}'}}]])" for n in range(4)
    )
    + "))",
}


@pytest.mark.parametrize("program", PROGRAMS)
async def test_programs_wait_and_each_call_happens_once(program: str) -> None:
    effects = Effects()
    mode = CodeMode(tools_of(effects), state_key=b"k" * 16)
    script = [calls(call("execute_tools", code=PROGRAMS[program])), says("done")]

    def toolset() -> Toolset:
        return mode.toolset()

    end, attempts = await drive(script, (), storable, yes, toolset=toolset)
    assert (end.status, attempts) == ("completed", 5)
    assert [effects.count(f"e{n}") for n in range(4)] == [1] * 4
    assert len(effects.made) == (8 if "nested" in program else 4)


# A plan is any tree of groups over gated, free, external and self-asking calls.
names = st.text(st.characters(codec="utf-8") | st.sampled_from('\x00\ud800é"'), max_size=6)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
leaves = st.tuples(st.sampled_from(["gated", "gated", "free", "outside", "asking"]), values)
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(
        st.sampled_from(["in turn", "gather", "swallow", "taskgroup"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


def plan_of(tree: Any, numbers: Any, gated: list[str], free: list[str], outside: list[str]) -> Any:
    head, rest = tree
    if head in ("gated", "free", "outside", "asking"):
        name = f"e{next(numbers)}"
        {"gated": gated, "asking": gated, "free": free, "outside": outside}[head].append(name)
        return [head, {"name": name, "value": rest}]
    plan = [plan_of(part, numbers, gated, free, outside) for part in rest]
    return ["group", {"how": head, "plan": plan}]


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(tree=trees, storage=st.sampled_from(sorted(STORAGES)), verdicts=st.integers(0, 2**12))
async def test_any_plan_ends_with_each_effect_once(tree: Any, storage: str, verdicts: int) -> None:
    gated: list[str] = []
    free: list[str] = []
    outside: list[str] = []
    plan = plan_of(tree, iter(range(99)), gated, free, outside)
    effects = Effects()
    asked: list[str] = []
    denied: set[str] = set()

    def decide(pending: PendingCall) -> Decision:
        name = (pending.asked.arguments or {})["name"]
        asked.append(name)
        if verdicts >> (int(name[1:]) % 12) & 1:
            denied.add(name)
            return pending.reject("no")
        return yes(pending)

    script: list[ScriptedTurn] = [calls(call("group", how="in turn", plan=[plan])), says("done")]
    end, _ = await drive(script, tools_of(effects), STORAGES[storage], decide)
    assert end.status == "completed"
    assert sorted(asked) == sorted(gated + outside)
    made = sorted(e for e in effects.made if "begins" not in e)
    assert made == sorted([*(set(gated) - denied), *free])


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(name=names, arguments=st.dictionaries(names, values, max_size=4))
def test_key_of_a_call_is_printable_and_survives_every_store(name: str, arguments: Any) -> None:
    key = call_key(ToolCall("c", name, arguments))
    assert key.rpartition(" ")[2].isalnum()
    assert "\x00" not in key
    for storage in STORAGES.values():
        back = ToolCall.from_json(storage(ToolCall("c", name, arguments).to_json()))
        assert call_key(back) == key
        assert storage({"key": key})["key"] == key
