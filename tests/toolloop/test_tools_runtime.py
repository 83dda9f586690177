"""What a tool returns, and threads that outlive their call."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
from typing import Any

import pydantic
import pytest

from tests.patience import PATIENCE_S
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import Tool, ToolContext, ToolOutput
from toolloop.tools.runtime import CheckedCall, call_run, output_cut, run_in_thread


class Row(pydantic.BaseModel):
    day: dt.date


async def result_of(value: Any) -> ToolResult:
    made = Tool("t", "d", {"type": "object", "properties": {}}, lambda: value)
    prepared = CheckedCall(ToolCall("c", "t", {}), made, {})
    return await call_run(prepared, ToolContext(), timeout_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("value", "content", "payload"),
    [
        ("text", "text", None),
        ("", "", None),
        (None, "Done; there is no output.", None),
        ({"ü": [1, None]}, '{"ü": [1, null]}', {"ü": [1, None]}),
        (Row(day=dt.date(2026, 1, 2)), '{"day": "2026-01-02"}', {"day": "2026-01-02"}),
        ([Row(day=dt.date(2026, 1, 2))], '[{"day": "2026-01-02"}]', [{"day": "2026-01-02"}]),
        ({"b", "a"}, '["a", "b"]', ["a", "b"]),
        (ToolOutput("short", {"long": 1}), "short", {"long": 1}),
    ],
)
async def test_return_value_becomes_text_for_the_model_and_payload(value, content, payload):
    result = await result_of(value)
    assert (result.content, result.payload, result.is_error) == (content, payload, False)


async def test_thread_that_ends_late_disturbs_nobody():
    release = threading.Event()
    ended = threading.Event()

    def slow() -> str:
        release.wait(PATIENCE_S)
        ended.set()
        return "late"

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run_in_thread(slow), 0.02)
    release.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE_S)
    await asyncio.sleep(0.02)  # The late result arrives at the loop and is dropped.


async def test_stop_iteration_in_a_thread_is_an_error_and_no_hang():
    def odd() -> str:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run_in_thread(odd), PATIENCE_S)


def test_cut_says_how_much_is_missing():
    assert output_cut("abc", 3) == "abc"
    assert output_cut("abcdef", 3) == "abc\n[... cut: the first 3 of 6 characters are shown ...]"
