"""The assembled text of a record: its steps and answer as one text with special tokens, and back. Pure.

Each step is ``<|step|>N``, then ``<|thought|>``, ``<|action|>`` (the tool's name and its arguments as JSON) and
``<|observation|>``, each on a line of its own and only where the step has it. The answer follows as a last step that is
called ``answer``. Where a text contains such a token itself (a page that was quoted can say anything), a backslash
stands in it (``<\\|step|>``), so that it ends nothing and is read back as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from apps.datasets.records.parts import Step
from basics.errors import Invalid
from basics.texts import gettext as _

STEP, THOUGHT, ACTION, OBSERVATION = "<|step|>", "<|thought|>", "<|action|>", "<|observation|>"
TOKENS = (STEP, THOUGHT, ACTION, OBSERVATION)
_NAMES = "step|thought|action|observation"
_TOKEN = re.compile(rf"<\|({_NAMES})\|>")
_IN_TEXT = re.compile(rf"<(\\*)\|({_NAMES})\|>")
_ESCAPED = re.compile(rf"<\\(\\*)\|({_NAMES})\|>")
_ANSWER = "answer"


def assemble(steps: Sequence[Step], answer: str) -> str:
    """Return steps and answer as one text; ``parse`` gives them back."""
    lines: list[str] = []
    for step in steps:
        lines.append(f"{STEP}{step.step}")
        if step.thought:
            lines.append(THOUGHT + _escape(step.thought))
        if step.action or step.input:
            arguments = json.dumps(dict(step.input), ensure_ascii=False, sort_keys=True)
            lines.append(f"{ACTION}{_escape(step.action)} {_escape(arguments)}")
        if step.observation:
            lines.append(OBSERVATION + _escape(step.observation))
    lines.append(f"{STEP}{_ANSWER}\n{_escape(answer)}")
    return "\n".join(lines)


def parse(text: str) -> tuple[tuple[Step, ...], str]:
    """Return the steps and the answer of an assembled text. Raises Invalid for one that is not well formed."""
    steps: list[Step] = []
    parts: dict[str, str] = {}
    number: int | None = None
    for name, body in _pieces(text):
        if name != "step":
            if number is None or name in parts:
                raise _malformed(f"<|{name}|> is in the wrong place")
            parts[name] = body
            continue
        if number is not None:
            steps.append(_step(number, parts))
        head, _, rest = body.partition("\n")
        if head == _ANSWER:
            if text.rfind(STEP) != text.rfind(f"{STEP}{_ANSWER}\n"):
                raise _malformed("a step follows the answer")
            return tuple(steps), _unescape(rest)
        if not head.isdecimal() or rest:
            raise _malformed("a step has no number")
        number, parts = int(head), {}
    raise _malformed("the answer is missing")


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    marks = list(_TOKEN.finditer(text))
    if not marks or marks[0].start():
        raise _malformed(f"it must begin with {STEP}")
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        body = text[mark.end() : after.start() if after else len(text)]
        yield mark[1], body if after is None else body.removesuffix("\n")


def _step(number: int, parts: dict[str, str]) -> Step:
    action, _, arguments = parts.get("action", "").partition(" ")
    try:
        values = json.loads(_unescape(arguments)) if arguments else {}
    except ValueError as error:
        raise _malformed(f"the arguments of step {number} aren't JSON") from error
    if not isinstance(values, dict):
        raise _malformed(f"the arguments of step {number} aren't an object")
    thought, observation = parts.get("thought", ""), parts.get("observation", "")
    return Step(number, _unescape(thought), _unescape(action), values, _unescape(observation))


def _escape(text: str) -> str:
    return _IN_TEXT.sub(lambda found: f"<\\{found[1]}|{found[2]}|>", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"<{found[1]}|{found[2]}|>", text)


def _malformed(why: str) -> Invalid:
    return Invalid(
        "assembled_text_malformed", _("The assembled text cannot be read: %(why)s.") % {"why": why}
    )
