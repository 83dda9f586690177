"""What a model reads: signatures, shapes of results, rules; and how its code is found in its reply."""

from __future__ import annotations

from typing import Literal, TypedDict

import pytest
from pydantic import BaseModel

from toolloop.code_mode import CodeMode
from toolloop.errors import ConfigurationError
from toolloop.tools import Tool, tool


class Weather(TypedDict):
    city: str
    days: list[float]


class Order(BaseModel):
    id: int
    note: str | None = None


@tool
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> Weather:
    """Get the weather.

    Args:
        city: name of the city.
        unit: of the temperature.
    """
    return {"city": city, "days": [1.0]}


@tool
def list_orders(user_id: int) -> list[Order]:
    """List orders."""
    return []


@tool
def plain(limit: int = 5) -> str:
    """Do something plain."""
    return ""


def test_prompt_shows_signatures_and_rules():
    text = CodeMode([get_weather, plain], preamble="PRE", postamble="POST").prompt()
    assert text.startswith("PRE")
    assert text.endswith("POST")
    assert "def get_weather(city: str, unit: Literal['c', 'f'] = 'c') -> dict:" in text
    assert "city: name of the city." in text
    assert "def plain(limit: int = 5) -> str:" in text
    assert "parallel(" in text
    assert "statistics" in text
    assert "Returns:" not in text


def test_prompt_shows_shapes_when_chaining_help_is_on():
    text = CodeMode(
        [get_weather, list_orders, plain],
        assist_tool_chaining=True,
        return_schemas={"plain": {"type": "object", "properties": {"ok": {"type": "boolean"}}}},
    ).prompt()
    assert "# Returns: {city: str, days: [float]}" in text
    assert "# Returns: [{id: int, note?: str | None}]" in text
    assert "# Returns: {ok: bool}" in text


async def test_tool_is_found_when_its_name_is_no_identifier():
    async def answer() -> str:
        return "yes"

    odd = Tool("ask-it", "Ask.", {"type": "object", "properties": {}}, answer)
    mode = CodeMode([odd])
    assert "def ask_it()" in mode.prompt()
    assert (await mode.execute("ask_it()")).value == "yes"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Text\n```python\nx = 1\n```\nmore", "x = 1"),
        ("```py\na\n```\nthen\n```Python\nb\n```", "b"),
        ("~~~python\nx\n~~~", "x"),
        ("```\nx = 2\n```", "x = 2"),
        ("```json\n{}\n```\n```\nx\n```", "x"),
        ("```python\nx\n```\n```\noutput\n```", "x"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''"),
        ("1. Do:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y"),
        ("```python\nx = 1", None),
        ("no code", None),
        ("```bash\nls\n```", None),
        ("```python\nfirst\n```\n```python\ncut off", "first"),
    ],
)
def test_last_complete_program_is_found_in_a_reply(reply, code):
    assert CodeMode.extract_code(reply) == code


async def test_model_without_tools_answers_by_programs():
    replies = [
        "```python\nget_weather('X')['nope']\n```",
        "```py\nprint(get_weather('X')['city'])\n```",
        "It is X.",
    ]
    asked: list[str] = []

    async def ask(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        return replies[len(asked) - 1]

    answer, results = await CodeMode([get_weather]).converse("Which city?", ask)
    assert answer == "It is X."
    assert [r.success for r in results] == [False, True]
    assert "<execution_result>" in asked[1]
    assert "RUNTIME_ERROR in line 1" in asked[1]
    assert asked[2] == "<execution_result>\nX\n</execution_result>"


def test_filter_keeps_what_is_named():
    mode = CodeMode([get_weather, list_orders, plain])
    assert [t.name for t in mode.filter(names=["plain"])] == ["plain"]
    assert len(mode.filter(predicate=lambda t: t.name != "plain")) == 2
    assert mode.get_tool("plain") is plain
    with pytest.raises(ValueError, match="no tool is left"):
        mode.filter(names=["x"])
    with pytest.raises(ValueError, match="pass names"):
        mode.filter()


def test_execute_tools_cannot_be_a_tool_of_programs():
    with pytest.raises(ConfigurationError, match="cannot start programs"):
        CodeMode([CodeMode([plain]).tool()])
