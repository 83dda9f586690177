"""Tools that every application can use as they are: arithmetic and dates, where models guess without one, and charts."""

from __future__ import annotations

import calendar
import difflib
import functools
import zoneinfo
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final

from toolloop.errors import ConfigurationError
from toolloop.tools.arithmetic import CannotCalculate, calculated
from toolloop.tools.chart_tool import DRAW_CHART, draw_chart
from toolloop.tools.context import ToolError, ToolOutput
from toolloop.tools.tool import Tool, tool

BUILTINS: Final = (
    "calculate",
    "current_datetime",
    "date_add",
    "date_difference",
    "date_info",
    DRAW_CHART,
)
_UTC_NAMES: Final = frozenset({"UTC", "Z", "GMT", "ETC/UTC"})
_MOST_MONTHS: Final = 12 * 9_998
_MOST_DAYS: Final = 3_652_058
_SHOWN: Final = 60


def builtin_tools(
    names: Sequence[str] | None = None,
    *,
    timezone: str = "UTC",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[Tool, ...]:
    """Return the built-in tools, in the order of ``BUILTINS``.

    Args:
        names: which; all when None.
        timezone: IANA name of the zone in which the time is told when the model names none.
        now: the time, with an offset.

    Raises:
        ConfigurationError: for an unknown tool or zone.
    """
    chosen = BUILTINS if names is None else tuple(names)
    unknown = [name for name in chosen if name not in BUILTINS]
    if unknown:
        raise ConfigurationError(
            f"there is no built-in tool {', '.join(unknown)}: take from {', '.join(BUILTINS)}"
        )
    try:
        home = _zone(timezone)
    except ToolError as error:
        raise ConfigurationError(error.message) from error
    made = (calculate, _clock_tool(home, now), date_add, date_difference, date_info, draw_chart)
    return tuple(entry for entry in made if entry.name in chosen)


@tool(blocking=False, category="math", tags=("arithmetic",), group="builtin.math")
def calculate(expression: str) -> ToolOutput:
    """Compute arithmetic exactly. Use it for every calculation beyond the trivial: you make mistakes in your head.

    Args:
        expression: one expression of numbers, + - * / // % ** and parentheses, with functions such as sqrt, round, min,
            max, sum, mean, log, exp, sin, factorial, comb, and the constants pi and e, for example
            "round(19.99 * 3 * 1.19, 2)". No units, no variables, no thousands separators.
    """
    try:
        found = calculated(expression)
    except CannotCalculate as error:
        raise ToolError(str(error)) from error
    return ToolOutput(found.text, {"result": found.text, "is_exact": found.is_exact})


def _clock_tool(home: tzinfo, now: Callable[[], datetime]) -> Tool:
    @tool(blocking=False, category="time", tags=("date",), group="builtin.time")
    def current_datetime(timezone: str = "") -> dict[str, Any]:
        """Tell date, time and weekday now. Use it before anything that depends on today; you cannot know the date.

        Args:
            timezone: IANA name, for example "Europe/Berlin"; empty for the user's own.
        """
        zone = _zone(timezone) if timezone.strip() else home
        local = now().astimezone(zone).replace(microsecond=0)
        week = local.isocalendar()
        return {
            "datetime": local.isoformat(),
            "weekday": calendar.day_name[local.weekday()],
            "iso_week": f"{week.year}-W{week.week:02}",
            "timezone": str(zone),
        }

    return current_datetime


@tool(blocking=False, category="time", tags=("date",), group="builtin.time")
def date_add(
    date: str,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    business_days: int = 0,
    hours: int = 0,
    minutes: int = 0,
) -> dict[str, Any]:
    """Add to a date, or subtract with negative numbers. A day that a month lacks becomes that month's last.

    Args:
        date: ISO 8601: "2026-11-20", "2026-11-20T14:30:00" or with an offset "2026-11-20T14:30:00+01:00".
        years: calendar years.
        months: calendar months.
        weeks: weeks.
        days: days.
        business_days: days from Monday to Friday; holidays are not known.
        hours: hours on the clock of the given offset.
        minutes: minutes.
    """
    start = _moment(date)
    try:
        moved = _months_added(start, 12 * years + months)
        moved += timedelta(days=7 * weeks + days)
        moved = _business_days_added(moved, business_days)
        moved += timedelta(hours=hours, minutes=minutes)
    except (OverflowError, ValueError) as error:
        raise ToolError("The result lies outside of the years 1 to 9999.") from error
    is_date = _is_date(date) and not hours and not minutes
    text = moved.date().isoformat() if is_date else moved.isoformat()
    return {"date": text, "weekday": calendar.day_name[moved.weekday()]}


@tool(blocking=False, category="time", tags=("date",), group="builtin.time")
def date_difference(start: str, end: str) -> dict[str, Any]:
    """Tell how far two dates lie apart; negative when the end comes first.

    Args:
        start: ISO 8601 date or time, for example "2026-11-20".
        end: the same.
    """
    first, last = _moment(start), _moment(end)
    if (first.tzinfo is None) != (last.tzinfo is None):
        raise ToolError("One time has a UTC offset and the other has none: give both the same way.")
    seconds = (last - first).total_seconds()
    sign = -1 if seconds < 0 else 1
    early, late = (first, last) if sign > 0 else (last, first)
    months = 12 * (late.year - early.year) + late.month - early.month
    if _months_added(early, months) > late:
        months -= 1
    rest = (late - _months_added(early, months)).days
    business = _weekdays_before(last.date()) - _weekdays_before(first.date())
    return {
        "days": sign * (late - early).days,
        "years": sign * (months // 12),
        "months": sign * (months % 12),
        "remaining_days": sign * rest,
        "business_days": business,
        "seconds": int(seconds),
    }


@tool(blocking=False, category="time", tags=("date", "weekday"), group="builtin.time")
def date_info(date: str) -> dict[str, Any]:
    """Tell the weekday of a date, its ISO week, and other facts of the calendar.

    Args:
        date: ISO 8601, for example "2026-11-20".
    """
    day = _moment(date).date()
    week = day.isocalendar()
    return {
        "date": day.isoformat(),
        "weekday": calendar.day_name[day.weekday()],
        "iso_week": f"{week.year}-W{week.week:02}",
        "day_of_year": day.timetuple().tm_yday,
        "days_in_month": calendar.monthrange(day.year, day.month)[1],
        "is_leap_year": calendar.isleap(day.year),
        "is_weekend": day.weekday() >= 5,
        "quarter": (day.month + 2) // 3,
    }


@functools.cache
def _zone_names() -> dict[str, str]:
    return {name.casefold(): name for name in sorted(zoneinfo.available_timezones())}


def _zone(name: str) -> tzinfo:
    """Return a zone by its IANA name, upper and lower case alike; the name never becomes a path."""
    wanted = name.strip()
    if wanted.upper() in _UTC_NAMES:
        return UTC
    known = _zone_names()
    found = known.get(wanted.casefold())
    if found is not None:
        return zoneinfo.ZoneInfo(found)
    close = difflib.get_close_matches(wanted[:_SHOWN].casefold(), known, n=3)
    hint = f" Did you mean {', '.join(known[key] for key in close)}?" if close else ""
    raise ToolError(
        f"There is no time zone {wanted[:_SHOWN]!r}: give an IANA name such as Europe/Berlin.{hint}"
    )


def _moment(text: str) -> datetime:
    stripped = text.strip()
    try:
        if not stripped.isascii():
            raise ValueError("not ASCII")
        return datetime.fromisoformat(stripped)
    except ValueError as error:
        raise ToolError(
            f"{stripped[:_SHOWN]!r} is no date: write ISO 8601, for example 2026-11-20 or 2026-11-20T14:30:00."
        ) from error


def _is_date(text: str) -> bool:
    return not any(sign in text for sign in ("T", "t", " ", ":"))


def _months_added(moment: datetime, months: int) -> datetime:
    if abs(months) > _MOST_MONTHS:
        raise OverflowError("months")
    year, month = divmod(12 * moment.year + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("year")
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _business_days_added(moment: datetime, count: int) -> datetime:
    """Move by days from Monday to Friday; a start at the weekend counts as the Friday before, or the Monday after."""
    if not count:
        return moment
    if abs(count) > _MOST_DAYS:
        raise OverflowError("days")
    weekday = moment.weekday()
    if weekday > 4:
        moment += timedelta(days=4 - weekday if count > 0 else 7 - weekday)
        weekday = moment.weekday()
    weeks, rest = divmod(abs(count), 5)
    step = 1 if count > 0 else -1
    crossed = weekday + rest > 4 if count > 0 else weekday - rest < 0
    return moment + timedelta(days=step * (7 * weeks + rest + (2 if crossed else 0)))


def _weekdays_before(day: date) -> int:
    """Count the days from Monday to Friday before the end of a day; the difference of two counts those between."""
    weeks, rest = divmod(day.toordinal(), 7)  # Day 1 was a Monday.
    return 5 * weeks + min(rest, 5)
