"""The headings that a list of conversations is grouped by: pinned, then by the day of last use."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

Row = TypeVar("Row")

PINNED = gettext_lazy("Pinned")
_WEEK = 7


@dataclass(frozen=True, slots=True)
class DayGroup(Generic[Row]):
    """Rows under one heading; ``is_of_day``: it names their day, so that each needs only its hour."""

    name: str
    rows: list[Row]
    is_of_day: bool = False


def day_name(moment: datetime.datetime, *, now: datetime.datetime, zone: datetime.tzinfo) -> str:
    """Return the heading of a moment: "Today", "Yesterday", "Previous 7 days", or its month, with the year if not this.

    Args:
        now: the moment from which the days are counted.
        zone: whose midnights divide the days.
    """
    day, today = moment.astimezone(zone).date(), now.astimezone(zone).date()
    ago = (today - day).days
    if ago <= 0:
        return _("Today")
    if ago == 1:
        return _("Yesterday")
    if ago <= _WEEK:
        return _("Previous 7 days")
    return formats.date_format(day, "MONTH" if day.year == today.year else "MONTH_YEAR")


def days_grouped(
    rows: Iterable[Row],
    *,
    used_at: Callable[[Row], datetime.datetime],
    is_pinned: Callable[[Row], bool],
    zone: datetime.tzinfo,
) -> list[DayGroup[Row]]:
    """Return rows, pinned ones first and then the last used first, under their headings in the same order."""
    now = timezone.now()

    def heading(row: Row) -> str:
        return str(PINNED) if is_pinned(row) else day_name(used_at(row), now=now, zone=zone)

    near = (_("Today"), _("Yesterday"))
    return [DayGroup(name, list(group), name in near) for name, group in groupby(rows, key=heading)]
