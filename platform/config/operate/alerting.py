"""Tell the operator of alerts by mail or by a call to an address: when one begins, each day that it goes on, and when it is over.

For those who run no Prometheus. Every web process and every worker looks; who was told is kept in the database, so each is
told once. An alert has to be there in two looks one after the other, as the rules of Prometheus wait half a minute.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from smtplib import SMTPException
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import structlog
from django.conf import settings
from django.core.cache import cache
from django.core.mail import send_mail

from blobs.threads import begin_thread
from config.operate.alerts import Alert, alerts_now
from tenancy.readings import readings

log = structlog.get_logger(__name__)
EVERY_S: Final = 15.0
_OVER_S: Final = 90.0
"""An alert that no process has seen for so long is over: each sees its own disk and its own connections."""
_AGAIN_S: Final = 86_400.0
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


class Watch:
    """What one process saw when it looked last."""

    def __init__(self, *, tells_away: bool, clock: Callable[[], float] = time.time) -> None:
        self._tells_away, self._clock = tells_away, clock
        self._before: frozenset[str] = frozenset()
        self._is_away_told = False

    def look(self) -> int:
        """Tell what has begun or ended; returns how many alerts were told of."""
        found = {
            f"{alert.rule.name} {alert.where}".strip(): alert for alert in alerts_now(readings.figures())
        }
        steady = {key: alert for key, alert in found.items() if key in self._before}
        self._before = frozenset(found)
        if _AWAY in found:
            return self._away(steady.get(_AWAY))
        if self._is_away_told:
            self._is_away_told = not tell([_over(_AWAY, "The database answers again.")])
        if not steady and not cache.get(_TOLD):
            return 0
        if not cache.add(_TURN, 1, _TURN_S):
            return 0  # another process is at it; this one looks again soon
        try:
            return _told(steady, self._clock())
        finally:
            cache.delete(_TURN)

    def _away(self, alert: Alert | None) -> int:
        if alert is None or self._is_away_told or not self._tells_away:
            return 0
        self._is_away_told = tell([_begun(alert)])
        return int(self._is_away_told)


def _told(steady: Mapping[str, Alert], now: float) -> int:
    """Tell what differs from what was told before, and keep what was told."""
    told: dict[str, dict[str, Any]] = cache.get(_TOLD) or {}
    for key in steady.keys() & told.keys():
        told[key]["seen"] = now
    begun = [key for key in steady if key not in told or now - told[key]["told"] > _AGAIN_S]
    over = [key for key, row in told.items() if now - row["seen"] > _OVER_S]
    news = [_begun(steady[key]) for key in begun] + [_over(key, told[key]["summary"]) for key in over]
    if news and not tell(news):
        news, begun, over = [], [], []  # tried again at the next look
    for key in begun:
        told[key] = {"seen": now, "told": now, "summary": str(steady[key].rule.summary)}
    for key in over:
        del told[key]
    cache.set(_TOLD, told, _KEPT_S)
    return len(news)


def _begun(alert: Alert) -> News:
    name = f"{alert.rule.name} {alert.where}".strip()
    return News(name, "firing", alert.rule.severity, str(alert.rule.summary), str(alert.rule.action))


def _over(name: str, summary: str) -> News:
    return News(name, "resolved", "info", summary, "")


def tell(news: Sequence[News]) -> bool:
    """Send a message to every receiver; returns whether one at least has taken it. Those that haven't are in the log."""
    problems = [problem for address in settings.ALERTS_TO if (problem := send(address, news))]
    for problem in problems:
        log.warning("alert_not_taken", reason=problem)
    return len(problems) < len(settings.ALERTS_TO)


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
        except (SMTPException, OSError) as error:
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
        response = httpx2.post(address, json=said, timeout=_SECONDS, follow_redirects=False)
    except httpx2.HTTPError as error:
        return f"{where}: {type(error).__name__}"
    return "" if response.is_success else f"{where}: it answered {response.status_code}"
