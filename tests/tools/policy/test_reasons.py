"""Why a call was decided so is told in the reader's language, whether engine, guard or loop says it."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path

from django.utils.translation import override

from apps.tools.policy.engine import Grant, Subject, ToolFacts, decide, policy_compile
from apps.tools.policy.reasons import DEFAULT_NOTE, note_words, reason_words

ROOT = Path(__file__).resolve().parents[3]


def sentences() -> set[str]:
    """Return the reasons that are whole sentences in the source of those who give them."""
    guard = ast.parse((ROOT / "apps/tools/toolset/guard.py").read_text())
    found = {
        str(call.args[2].value)
        for call in ast.walk(guard)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Decision"
        if len(call.args) > 2 and isinstance(call.args[2], ast.Constant)
    }
    gate = ast.parse((ROOT / "platform/toolloop/tools/gate.py").read_text())
    named = {
        ast.unparse(node.targets[0]): str(node.value.value)
        for node in gate.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    return found | {named["_OTHER_APPROVER"], named["_TOOL_ASKS"]}


def why(*grants: Grant) -> str:
    return decide(
        policy_compile(grants, now=datetime(2026, 11, 20, tzinfo=UTC)),
        Subject("member", 1),
        ToolFacts("read"),
        None,
        {},
    ).why


def test_every_reason_is_told_in_the_readers_language() -> None:
    fixed = sentences() | {why(), "its policy could not be evaluated"}
    assert len(fixed) > 5
    with override("de"):
        assert [said for said in fixed if reason_words(said) == said] == []
        rule = Grant(7, "allow", "pattern", "*", note="Von Hand (2)")
        assert reason_words(why(rule)) == "Regel 7 erlaubt diesen Aufruf: Von Hand (2)"
        default = Grant(8, "ask", "pattern", "*", note=DEFAULT_NOTE)
        assert reason_words(why(default)) == (
            "Regel 8 fragt bei diesem Aufruf nach: Standardregel jedes Arbeitsbereichs."
        )
        broken = Grant(9, "allow", "pattern", "*", subject_kind="ghost")
        assert reason_words(why(broken)).startswith(
            "Regel 9 lässt sich nicht auswerten und verweigert daher: "
        )
        assert reason_words("it needs the right “tool.run”") == "es braucht das Recht „tool.run“"
        assert reason_words("Send 5 USD to rule 7?") == "Send 5 USD to rule 7?"  # a tool's own words
        assert note_words("Dateien") == "Dateien"
    assert reason_words(why(rule)) == "rule 7 allows this call: Von Hand (2)"
