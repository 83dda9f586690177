"""Gated calls below tools and programs, over real rows: each happens once, in any order of decisions, and every run ends."""

from __future__ import annotations

import json
import random
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.approvals.services import call_decide
from runs.models import Run, ToolCall
from runs.selectors import decision_list
from runs.services import run_execute
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.runs.support import events_of, make_run, take, transcript
from tests.toolloop.parked import Effects, tools_of
from toolloop.code_mode import CodeMode
from toolloop.deferred import Decision
from toolloop.limits import Limits
from toolloop.messages import ToolCall as Call
from toolloop.messages import UserMessage
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.storable import json_storable
from toolloop.tools import Toolset, tool
from toolloop.tools.guards import call_key

pytestmark = pytest.mark.django_db(transaction=True)


def group(how: str, count: int, mark: str = "") -> Any:
    """A group of tools that each have a free effect and then a gated one, with arguments no store keeps as they are."""
    odd = ["\x00", "\ud800", 1.0, -0.0, 1e22, {"b": [1], "a": None}]
    plan = [
        [
            "group",
            {
                "how": "in turn",
                "plan": [
                    ["free", {"name": f"f{mark}{n}"}],
                    ["gated", {"name": f"e{mark}{n}", "value": odd[n % len(odd)]}],
                ],
            },
        ]
        for n in range(count)
    ]
    return call("group", how=how, plan=plan)


PROGRAM = """
for n in range(3):
    print(gated('p' + str(n)))
print(parallel((group, 'gather', [['free', {'name': 'q'}], ['gated', {'name': 'r'}]]), (gated, 's')))
"""

CASES: dict[str, tuple[Any, set[str], set[str]]] = {
    "one": ([group("in turn", 1)], {"e0"}, {"f0"}),
    "ten gathered": ([group("gather", 10)], {f"e{n}" for n in range(10)}, {f"f{n}" for n in range(10)}),
    "ten in a task group": (
        [group("taskgroup", 10)],
        {f"e{n}" for n in range(10)},
        {f"f{n}" for n in range(10)},
    ),
    "side by side": (
        [group("gather", 2, "x"), group("swallow", 2, "y"), call("gated", name="z")],
        {"ex0", "ex1", "ey0", "ey1", "z"},
        {"fx0", "fx1", "fy0", "fy1"},
    ),
    "program": ([call("execute_tools", code=PROGRAM)], {"p0", "p1", "p2", "r", "s"}, {"q"}),
}


class Play:
    """A run whose process forgets everything between two attempts."""

    def __init__(self, cast: Cast, lane: Executor, script: Any) -> None:
        self.cast, self.lane, self.script = cast, lane, script
        self.effects = Effects()
        self.attempts = 0

    async def attempt(self, run: Run) -> Any:
        """Work on the run once, with a fresh row, journal, toolset and context, as another worker."""
        self.attempts += 1
        with tenant_scope(run.tenant_id):
            row = await sync_to_async(lambda: Run.objects.select_related("job").get(pk=run.pk))()
        ctx = await sync_to_async(take)(row.job, f"w{self.attempts}", self.lane)
        tools = tools_of(self.effects)
        is_program = any(made.name == "execute_tools" for made in self.script[0].calls)
        mode = CodeMode(tools, state_key=b"k" * 16, binding=str(run.pk))
        with tenant_scope(run.tenant_id):
            return await run_execute(
                ctx,
                row,
                toolset=mode.toolset() if is_program else Toolset(tools),
                system="",
                history=[UserMessage("Go.")],
                provider=ScriptedProvider(self.script, by_history=True),
                limits=Limits(repeat_stop=99, failure_stop=99),
            )

    def waiting(self, run: Run) -> list[Any]:
        """Return what waits, with nothing but rows to go by."""
        with tenant_scope(run.tenant_id):
            return list(decision_list(Run.objects.get(pk=run.pk)))

    def decide(self, run: Run, pk: int, decision: Decision) -> None:
        """Decide as the run's own person."""
        with tenant_scope(run.tenant_id):
            call_decide(
                tenant=self.cast.tenant,
                actor=self.cast.actor("member"),
                run=run,
                decision_id=pk,
                decision=decision,
            )


@pytest.mark.parametrize(
    ("case", "verdicts"),
    [
        ("one", "approve"),
        ("ten gathered", "mixed"),
        ("ten in a task group", "edited"),
        ("side by side", "mixed"),
        ("program", "approve"),
        ("program", "mixed"),
        ("program", "edited"),
    ],
)
async def test_each_gated_call_happens_once_and_the_run_ends(
    case: str, verdicts: str, cast: Cast, lane_threads: Executor
) -> None:
    made, gated, free = CASES[case]
    rng = random.Random(f"{case} {verdicts}")
    play = Play(cast, lane_threads, [calls(*made), says("done")])
    run, _ = await sync_to_async(make_run)(cast)
    asked: list[str] = []
    expected: set[str] = set()
    finished = await play.attempt(run)
    while finished.status == "parked":
        assert play.attempts < 30, "the run asks for ever"
        waiting = await sync_to_async(play.waiting)(run)
        assert waiting
        rng.shuffle(waiting)
        for row in waiting:
            name = row.arguments["name"]
            asked.append(name)
            if verdicts == "mixed" and rng.random() < 0.4:
                decision = Decision("reject", reason="no")
            elif verdicts == "edited":
                decision = Decision("approve", arguments={"name": f"edited {name}"})
                expected.add(f"edited {name}")
            else:
                decision = Decision("approve")
                expected.add(name)
            await sync_to_async(play.decide)(run, row.pk, decision)
        finished = await play.attempt(run)
    if not (case == "program" and verdicts == "mixed"):
        assert finished.status == "completed"
        assert sorted(asked) == sorted(gated), "each is asked about once"
        assert sorted(play.effects.made) == sorted(expected | free)
    assert len(play.effects.made) == len(set(play.effects.made)), "each effect once"
    assert finished.status == "completed", "a program that is refused ends, and the run with it"

    def open_rows() -> int:
        with tenant_scope(run.tenant_id):
            return ToolCall.objects.filter(run=run, status__in=("running", "waiting")).count()

    assert await sync_to_async(open_rows)() == 0


def _through_jsonb(values: list[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT jsonb_agg(v ORDER BY n) FROM jsonb_array_elements(%s::jsonb) WITH ORDINALITY AS t(v, n)",
            [json.dumps(json_storable(values), allow_nan=False)],
        )
        found: Any = cursor.fetchone()[0]
    back: list[Any] = json.loads(found) if isinstance(found, str) else found
    return back


texts = st.text(st.characters(codec="utf-8") | st.sampled_from("\x00\ud800é"), max_size=8)
arguments = st.dictionaries(
    texts,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | texts
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(given_arguments=st.lists(arguments, min_size=5, max_size=20))
def test_keys_of_calls_are_the_same_after_a_jsonb_column(given_arguments: list[Any]) -> None:
    back = _through_jsonb(given_arguments)
    for before, after in zip(given_arguments, back, strict=True):
        assert call_key(Call("c", "n", before)) == call_key(Call("c", "n", after))


async def test_pieces_of_a_running_tool_are_events_and_end_with_it(
    cast: Cast, lane_threads: Executor
) -> None:
    @tool
    async def count():
        """Count."""
        for n in range(5):
            yield f"{n}\x00 "

    run, job = await sync_to_async(make_run)(cast)
    ctx = await sync_to_async(take)(job, "w1", lane_threads)
    with tenant_scope(run.tenant_id):
        finished = await run_execute(
            ctx,
            run,
            toolset=Toolset([count]),
            system="",
            history=[UserMessage("Go.")],
            provider=ScriptedProvider([calls(call("count")), says("done")]),
        )
    assert finished is not None
    assert finished.status == "completed"
    events = await sync_to_async(events_of)(run)
    told = [data for _, kind, data in events if kind == "tool_progress"]
    assert "".join(data["text"] for data in told) == "0\ufffd 1\ufffd 2\ufffd 3\ufffd 4\ufffd "
    kinds = [kind for _, kind, _ in events]
    assert kinds.index("tool_started") < kinds.index("tool_progress") < kinds.index("tool_finished")
    seen = await sync_to_async(transcript)(run)
    assert (seen.progress, seen.running) == ({}, {})
    with tenant_scope(run.tenant_id):
        row = await sync_to_async(ToolCall.objects.get)(run=run)
    assert row.content == "0\ufffd 1\ufffd 2\ufffd 3\ufffd 4\ufffd "
