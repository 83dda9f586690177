"""Tell the operator of alerts by mail or by a call to an address: when one begins, each day that it goes on, and when it is over.

For those who run no Prometheus. Every web process and every worker looks; what each receiver was told is kept in the database, so
they are told once. An alert has to be there in two looks one after the other, as the rules of Prometheus wait half a minute.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from smtplib import SMTPException
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import structlog
from django.conf import settings
from django.core.cache import cache
from django.core.mail import send_mail
from django.db import connection

from config.operate.alerts import Alert, alerts_now
from tenancy.readings import readings
from tenancy.threads import begin_thread

log = structlog.get_logger(__name__)
EVERY_S: Final = 15.0
_OVER_S: Final = 90.0
"""An alert that no process has seen for so long is over: each sees its own disk and its own connections."""
_UNKNOWN_S: Final = 3600.0
"""The same for one whose figure isn't there: what can't be read isn't well again."""
_AGAIN_S: Final = 86_400.0
_RETRY_S: Final = 60.0
"""So long a receiver that didn't take a message is left alone."""
_TOLD, _TURN = "alerts-told", "alerts-turn"
_KEPT_S: Final = 30 * 86_400
_TURN_S: Final = 120
_SECONDS: Final = 10.0
_AWAY: Final = "GroundworkDatabaseAway"


@dataclass(frozen=True, slots=True)
class News:
    """What a message tells of one alert.

    Attributes:
        status: "firing" or "resolved".
        action: what to do; "" when it is over.
    """

    name: str
    status: str
    severity: str
    summary: str
    action: str


TEST: Final = News(
    "GroundworkTest", "firing", "info", "This is a test: alerts of this server arrive here.", "Nothing to do."
)


def alerting_start(*, tells_away: bool) -> None:
    """Look in a thread of this process from now on, where ``GROUNDWORK_ALERTS_TO`` names anybody.

    Args:
        tells_away: tell of a database that is away. Who was told is then not known, so each process that may tells it.
    """
    if settings.ALERTS_TO:
        begin_thread(Watch(tells_away=tells_away).look, every_s=EVERY_S, name="alerts")


def database_time() -> float:
    """Return the seconds that the database's clock tells: processes whose own ones differ would end each other's alerts."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float")
        return float(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class Sight:
    """What one process sees at a look.

    Attributes:
        found: what is beyond its rule now, by the name that messages have.
        steady: what was there at the look before, too.
        figures: what could be read at all.
        is_long: this process has looked for so long without a break that it may tell the end of an alert.
    """

    now: float
    found: Mapping[str, Alert]
    steady: Mapping[str, Alert]
    figures: Set[str]
    is_long: bool

    def is_over(self, row: Mapping[str, Any]) -> bool:
        """Tell whether an alert that was told is over."""
        limit = _OVER_S if row["figure"] in self.figures else _UNKNOWN_S
        return self.is_long and self.now - row["seen"] > limit


class Watch:
    """What one process saw when it looked last.

    Args:
        clock: seconds, the same for all processes; it is asked only while the database answers.
    """

    def __init__(self, *, tells_away: bool, clock: Callable[[], float] = database_time) -> None:
        self._tells_away, self._clock = tells_away, clock
        self._before: frozenset[str] = frozenset()
        self._since: float | None = None
        self._told_away: set[str] = set()

    def look(self) -> int:
        """Tell what has begun or ended; returns how many messages were taken."""
        figures = readings.figures()
        found = {_name(alert): alert for alert in alerts_now(figures)}
        steady = {name: alert for name, alert in found.items() if name in self._before}
        self._before = frozenset(found)
        if _AWAY in found:
            self._since = None
            return self._away(steady.get(_AWAY))
        taken = self._back()
        now = self._clock()
        if self._since is None:
            self._since = now
        read = {figure.name for figure in figures}
        sight = Sight(now, found, steady, read, is_long=now - self._since > _OVER_S)
        return taken + sum(_tell(address, sight) for address in settings.ALERTS_TO)

    def _away(self, alert: Alert | None) -> int:
        if alert is None or not self._tells_away:
            return 0
        left = [address for address in settings.ALERTS_TO if address not in self._told_away]
        taken = {address for address in left if _taken(address, [_begun(alert)])}
        self._told_away |= taken
        return len(taken)

    def _back(self) -> int:
        """Tell those who were told that the database is away."""
        over = [_over(_AWAY, "The database answers again.")]
        taken = {address for address in self._told_away if _taken(address, over)}
        self._told_away -= taken
        return len(taken)


def _tell(address: str, sight: Sight) -> int:
    """Tell a receiver what differs from what it was told before; returns 1 when it has taken a message."""
    who = hashlib.sha256(address.encode()).hexdigest()
    if not sight.steady and not cache.get(f"{_TOLD}-{who}"):
        return 0
    if not cache.add(f"{_TURN}-{who}", 1, _TURN_S):
        return 0  # another process is at it; this one looks again soon
    try:
        kept = cache.get(f"{_TOLD}-{who}") or {"alerts": {}, "refused": 0.0}
        taken = _told(address, sight, kept)
        cache.set(f"{_TOLD}-{who}", kept if kept["alerts"] or kept["refused"] else None, _KEPT_S)
    finally:
        cache.delete(f"{_TURN}-{who}")
    return int(taken)


def _told(address: str, sight: Sight, kept: dict[str, Any]) -> bool:
    """Change what is kept of a receiver by what it was told now; returns whether it has taken a message."""
    rows: dict[str, dict[str, Any]] = kept["alerts"]
    for name in sight.found.keys() & rows.keys():
        rows[name]["seen"] = sight.now
    begun = [name for name in sight.steady if name not in rows or sight.now - rows[name]["told"] > _AGAIN_S]
    over = [name for name, row in rows.items() if sight.is_over(row)]
    if not begun and not over:
        kept["refused"] = 0.0
        return False
    if sight.now - kept["refused"] < _RETRY_S:
        return False
    news = [_begun(sight.steady[name]) for name in begun]
    if not _taken(address, news + [_over(name, rows[name]["summary"]) for name in over]):
        kept["refused"] = sight.now
        return False
    for name in begun:
        rule = sight.steady[name].rule
        rows[name] = {
            "seen": sight.now,
            "told": sight.now,
            "summary": str(rule.summary),
            "figure": rule.figure,
        }
    for name in over:
        del rows[name]
    kept["refused"] = 0.0
    return True


def _taken(address: str, news: Sequence[News]) -> bool:
    """Send a message to a receiver; returns whether it has taken it. If not, the log says why."""
    problem = send(address, news)
    if problem:
        log.warning("alert_not_taken", reason=problem)
    return not problem


def _name(alert: Alert) -> str:
    """Return what a message calls an alert: its rule, and where."""
    return f"{alert.rule.name} {alert.where}".strip()


def _begun(alert: Alert) -> News:
    return News(_name(alert), "firing", alert.rule.severity, str(alert.rule.summary), str(alert.rule.action))


def _over(name: str, summary: str) -> News:
    return News(name, "resolved", "info", summary, "")


def send(address: str, news: Sequence[News]) -> str:
    """Send a message to one receiver; returns what went wrong, "" when it was taken.

    The address of a call is a secret, as those of chat programs are: what went wrong names its host alone.
    """
    host = socket.gethostname()
    lines = [
        f"{one.summary} {one.action}".strip() if one.status == "firing" else f"Over: {one.summary}"
        for one in news
    ]
    title = f"Groundwork on {host}: {lines[0] if len(lines) == 1 else f'{len(lines)} alerts'}"
    if "://" not in address:
        body = "\n\n".join(
            f"{one.status.upper()}, {one.severity}: {one.name}\n{line}"
            for one, line in zip(news, lines, strict=True)
        )
        try:
            send_mail(title[:150], f"{body}\n\nSee /operate/ on this server.\n", None, [address])
        # ValueError: an address that can't be written as mail needs it.
        except (SMTPException, OSError, ValueError) as error:
            return f"{address}: the mail wasn't sent ({type(error).__name__}: {error})"
        return ""
    said = {
        "text": "\n".join([title] if len(lines) == 1 else [title, *lines]),
        "server": host,
        "alerts": [
            {
                "name": one.name,
                "status": one.status,
                "severity": one.severity,
                "summary": one.summary,
                "action": one.action,
            }
            for one in news
        ],
    }
    where = urlsplit(address).hostname
    try:
        with httpx2.stream("POST", address, json=said, timeout=_SECONDS, follow_redirects=False) as response:
            is_taken, status = (
                response.is_success,
                response.status_code,
            )  # its text may be long, and isn't read
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"{where}: {type(error).__name__}"
    return "" if is_taken else f"{where}: it answered {status}"
