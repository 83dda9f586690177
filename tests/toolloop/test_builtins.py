"""Built-in tools: what a model may write into them, however hostile, costs little and says what to do."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from tests.patience import PATIENCE_S
from tests.walked import each
from toolloop.errors import ConfigurationError
from toolloop.messages import ToolCall, ToolResult
from toolloop.tools import Toolset
from toolloop.tools.arithmetic import CannotCalculate, calculated
from toolloop.tools.builtins import BUILTINS, builtin_tools
from toolloop.tools.charting import Chart
from toolloop.tools.context import ToolContext
from toolloop.tools.runtime import call_prepare, call_run


def clock() -> datetime:
    return datetime(2026, 3, 29, 0, 30, tzinfo=UTC)


async def run(tool: str, **arguments) -> ToolResult:
    tools = Toolset(builtin_tools(now=clock, timezone="Europe/Berlin"))
    prepared = call_prepare(ToolCall("c", tool, arguments, json.dumps(arguments)), tools)
    if isinstance(prepared, ToolResult):
        return prepared
    return await call_run(prepared, ToolContext(), timeout_s=PATIENCE_S)


@each(
    "text",
    [
        "9**9**9",
        "9^9^9^9",
        "2**-99999999",
        "(1/3)**99999",
        "10**10**2**3",
        "factorial(10**9)",
        "factorial(factorial(20))",
        "factorial(-1)",
        "factorial(2.5)",
        "comb(10**9, 10**8)",
        "perm(10**9, 10**8)",
        "lcm(" + ",".join(f"{n}**300" for n in (7, 11, 13)) + ")" + "*factorial(400)" * 4,
        "__import__('os').system('id')",
        "().__class__.__mro__",
        "abs.__globals__",
        "x",
        "print(1)",
        "abs",
        "(lambda: 1)()",
        "[i for i in range(10**9)]",
        "[1] * 10**9",
        "'a' * 10**9",
        "f'{1}'",
        "max(*[1, 2])",
        "round(1, ndigits=1)",
        "round(1, 10**9)",
        "1 if 1 else 2",
        "1 << 99999999",
        "1 < 2",
        "True + 1",
        "1j",
        "1e999",
        "exp(1000)",
        "1e308 * 10.0 * exp(700)",
        "sqrt(-1)",
        "(-8) ** 0.5",
        "log(0)",
        "log(5, 1)",
        "acos(2)",
        "1 / 0",
        "1 % 0",
        "0 ** -1",
        "١٢ + ٣",  # Arabic digits
        "１ + １",  # full-width digits
        "ａbs(1)",  # would become "abs" by normalisation
        "1\x00",
        "",
        "   ",
        "2 +",
        "5!",
        "1; 2",
        "a := 1",
        "(" * 400 + "1" + ")" * 400,
        "(" * 90 + "1" + ")" * 90 + "+" * 200 + "1",
        "-" * 490 + "1",
        "1" * 5000,
        "+".join(["1"] * 400),
        "max(" + ",".join("1" for _ in range(150)) + ")",
    ],
)
def test_expression_is_refused_quickly_and_in_words_when_it_is_hostile_or_wrong(text):
    begun = time.process_time()
    with pytest.raises(CannotCalculate) as refused:
        calculated(text)
    assert time.process_time() - begun < 2
    assert 10 < len(str(refused.value)) < 300


@each(
    "text, result, is_exact",
    [
        ("0.1 + 0.2", "0.3", True),
        ("1.005 * 3", "3.015", True),
        ("19.99 * 3 * 1.19", "71.3643", True),
        ("2 ** 100", "1267650600228229401496703205376", True),
        ("2^10", "1024", True),
        ("-2 ** 2", "-4", True),
        ("(1 + 2) × 3 ÷ 4 − 1", "1.25", True),
        ("1_000 * 3", "3000", True),
        ("0x1F", "31", True),
        ("7 // 2 + -7 % 3", "5", True),
        ("10 / 4", "2.5", True),
        ("6 / 3", "2", True),
        ("1 / 3", "0.333333333333333", False),
        ("2 / 3 * 3", "2", True),
        ("1e-7 * 1", "0.0000001", True),
        ("sqrt(16)", "4", True),
        ("sqrt(2.25)", "1.5", True),
        ("sqrt(2)", "1.41421356237310", False),
        ("round(2.675, 2)", "2.68", True),
        ("round(1234.5, -2)", "1200", True),
        ("floor(-2.5) + ceil(2.1) + trunc(-2.9)", "-2", True),
        ("min(3, 1.5, 2) + max(1, 2)", "3.5", True),
        ("sum(1, 2, 3) / mean(1, 2, 3)", "3", True),
        ("factorial(20)", "2432902008176640000", True),
        ("comb(52, 5)", "2598960", True),
        ("gcd(12, 18) + lcm(4, 6)", "18", True),
        ("log10(1000) + log(8, 2)", "6", False),
        ("sin(0) + cos(0)", "1", False),
        ("4 ** 0.5", "2", False),
        ("2 ** -2", "0.25", True),
        ("0 ** 0", "1", True),
        ("100\n* 2", "200", True),
        ("exp(-800)", "0", False),
        ("10 ** 400 / 10 ** 399", "10", True),
        ("1 / 10 ** 400", "1E-400", False),
    ],
)
def test_result_is_right_when_the_expression_is_arithmetic(text, result, is_exact):
    found = calculated(text)
    assert (found.text, found.is_exact) == (result, is_exact)


async def test_model_reads_the_number_and_the_application_gets_it_too():
    result = await run("calculate", expression="12 * 1.5")
    assert (result.content, result.payload) == ("18", {"result": "18", "is_exact": True})
    refused = await run("calculate", expression="9**9**9")
    assert refused.error_code == "tool_error"
    assert "too large" in refused.content


async def test_time_is_told_in_the_zone_asked_for_and_across_the_change_of_clocks():
    berlin = (await run("current_datetime")).payload
    assert berlin["datetime"] == "2026-03-29T01:30:00+01:00"
    assert (berlin["weekday"], berlin["timezone"]) == ("Sunday", "Europe/Berlin")
    kolkata = (await run("current_datetime", timezone="Asia/Kolkata")).payload
    assert kolkata["datetime"] == "2026-03-29T06:00:00+05:30"
    utc = (await run("current_datetime", timezone="utc")).payload
    assert utc["datetime"] == "2026-03-29T00:30:00+00:00"


@pytest.mark.parametrize("zone", ["../../etc/passwd", "/etc/passwd", "Europe/Berln", "a\x00b", "x" * 5000])
async def test_zone_is_refused_with_a_hint_when_it_is_unknown(zone):
    result = await run("current_datetime", timezone=zone)
    assert result.error_code == "tool_error"
    assert len(result.content) < 300
    if zone == "Europe/Berln":
        assert "Europe/Berlin" in result.content


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"date": "2026-01-31", "months": 1}, "2026-02-28"),
        ({"date": "2024-02-29", "years": 1}, "2025-02-28"),
        ({"date": "2026-03-01", "days": -1}, "2026-02-28"),
        ({"date": "2026-11-20", "weeks": 2, "days": 1}, "2026-12-05"),
        ({"date": "2026-11-20", "business_days": 1}, "2026-11-23"),
        ({"date": "2026-11-21", "business_days": 1}, "2026-11-23"),
        ({"date": "2026-11-22", "business_days": -1}, "2026-11-20"),
        ({"date": "2026-11-20", "business_days": 261}, "2027-11-22"),
        ({"date": "2026-11-20", "business_days": -6}, "2026-11-12"),
        ({"date": "2026-11-20", "hours": 5}, "2026-11-20T05:00:00"),
        ({"date": "2026-11-20T22:00:00+02:00", "minutes": 180}, "2026-11-21T01:00:00+02:00"),
        ({"date": "2026-11-20T22:00:00Z", "months": -13}, "2025-10-20T22:00:00+00:00"),
    ],
)
async def test_date_is_right_when_something_is_added(arguments, expected):
    result = await run("date_add", **arguments)
    assert result.payload["date"] == expected, result.content


async def test_business_days_agree_with_counting_them_one_by_one():
    for start in ("2026-11-16", "2026-11-20", "2026-11-21", "2026-11-22"):
        for count in range(1, 16):
            end = (await run("date_add", date=start, business_days=count)).payload["date"]
            back = (await run("date_difference", start=start, end=end)).payload
            assert back["business_days"] == count, (start, count, end)


@pytest.mark.parametrize(
    "arguments",
    [
        {"date": "tomorrow"},
        {"date": "20.11.2026"},
        {"date": "2026-02-30"},
        {"date": "２０２６-11-20"},
        {"date": "9999-12-31", "days": 1},
        {"date": "0001-01-01", "months": -1},
        {"date": "2026-11-20", "days": 10**30},
        {"date": "2026-11-20", "years": 10**30},
        {"date": "2026-11-20", "business_days": 10**30},
    ],
)
async def test_date_is_refused_in_words_when_it_is_none_or_leaves_the_calendar(arguments):
    result = await run("date_add", **arguments)
    assert result.error_code == "tool_error"
    assert len(result.content) < 300


async def test_difference_counts_days_months_and_business_days():
    found = (await run("date_difference", start="2026-01-31", end="2026-11-20")).payload
    assert found["days"] == 293
    assert (found["years"], found["months"], found["remaining_days"]) == (0, 9, 20)
    assert found["business_days"] == 210
    back = (await run("date_difference", start="2026-11-20", end="2026-01-31")).payload
    assert (back["days"], back["months"], back["business_days"]) == (-293, -9, -210)
    hours = await run("date_difference", start="2026-03-29T00:00:00+01:00", end="2026-03-29T12:00:00+02:00")
    assert hours.payload["seconds"] == 11 * 3600


async def test_difference_is_refused_when_only_one_of_two_times_has_an_offset():
    result = await run("date_difference", start="2026-03-29T00:00:00", end="2026-03-29T00:00:00Z")
    assert result.error_code == "tool_error"
    assert "offset" in result.content


async def test_calendar_facts_of_a_date():
    found = (await run("date_info", date="2027-01-01")).payload
    assert found == {
        "date": "2027-01-01",
        "weekday": "Friday",
        "iso_week": "2026-W53",
        "day_of_year": 1,
        "days_in_month": 31,
        "is_leap_year": False,
        "is_weekend": False,
        "quarter": 1,
    }


def test_chosen_built_ins_come_in_a_stable_order_and_unknown_ones_are_refused():
    assert tuple(tool.name for tool in builtin_tools()) == BUILTINS
    chosen = builtin_tools(["date_add", "calculate"])
    assert [tool.name for tool in chosen] == ["calculate", "date_add"]
    with pytest.raises(ConfigurationError, match="calculate"):
        builtin_tools(["calculator"])
    with pytest.raises(ConfigurationError, match="Nowhere"):
        builtin_tools(timezone="Nowhere/Town")


# --- charts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "pie"}, "kind"),
        ({"series": []}, "series"),
        ({"title": " "}, "title"),
        ({"labels": ["a"]}, "give one value for each label"),
        ({"series": [{"values": [None, None]}]}, "at least one number"),
        ({"series": [{"values": [1, 1e300]}]}, "too large"),
        ({"series": [{"values": [1], "name": "a"}, {"values": [1], "name": "a"}]}, "same name"),
        ({"kind": "scatter"}, "as many x as values"),
        ({"kind": "line", "series": [{"values": [1, 2], "x": [1]}]}, "as many x as values"),
        ({"series": [{"values": [1] * 200}]}, "bars fit"),
        ({"series": [{"values": [1] * 1_500}, {"values": [1] * 1_500}]}, "at most 2,000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_numbers_that_make_no_chart_are_refused_with_what_would(given: dict[str, object], said: str):
    result = await run("draw_chart", **{"kind": "bar", "title": "T", "series": [{"values": [1, 2]}], **given})
    assert result.is_error
    assert said in result.content


async def test_charts_are_kept_as_they_are_drawn():
    for kind, more in (("line", {}), ("bar", {}), ("scatter", {"x": [3, 1, 2]}), ("histogram", {})):
        series = [{"name": "One\n  line", "values": [1, None, 2.5], **more}]
        result = await run("draw_chart", kind=kind, title="T" * 500, series=series)
        chart = Chart.from_json(json.loads(json.dumps(result.payload["chart"])))
        assert chart is not None
        assert f"figure:{chart.key})" in result.content
        assert chart.series[0].name == "One line"
        assert len(chart.title) < 200
        if kind == "histogram":
            assert list(chart.series[0].y) == [1, 1]
            assert [row[0] for row in chart.rows()] == ["From", 1, 1.75]
    assert [Chart.from_json(left) for left in (None, "Removed.", {"kind": "bar"}, {"series": 1})] == [
        None
    ] * 4
