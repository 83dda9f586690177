"""``calendar`` for programs."""

import datetime
from typing import Any

month_name = [
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
month_abbr = [name[:3] for name in month_name]
day_name = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
day_abbr = [name[:3] for name in day_name]
MONDAY = 0
TUESDAY = 1
WEDNESDAY = 2
THURSDAY = 3
FRIDAY = 4
SATURDAY = 5
SUNDAY = 6


def isleap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def leapdays(y1: int, y2: int) -> int:
    return len([year for year in range(y1, y2) if isleap(year)])


def weekday(year: int, month: int, day: int) -> int:
    return datetime.date(year, month, day).weekday()


def monthrange(year: int, month: int) -> Any:
    if not 1 <= month <= 12:
        raise ValueError(f"bad month number {month}; must be 1-12")
    days = [31, 29 if isleap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return weekday(year, month, 1), days[month - 1]


def monthcalendar(year: int, month: int) -> Any:
    first, days = monthrange(year, month)
    cells = [0] * first + list(range(1, days + 1))
    cells += [0] * (-len(cells) % 7)
    return [cells[i : i + 7] for i in range(0, len(cells), 7)]
