"""The status page: whether the parts that people notice work, in words, without a figure, a name or a version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from tenancy.readings import Figure, readings

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

State = Literal["ok", "slow", "down"]
WORDS: Final[dict[State, StrOrPromise]] = {
    "ok": gettext_lazy("Works"),
    "slow": gettext_lazy("Slower than usual"),
    "down": gettext_lazy("Doesn't work"),
}
ANSWERS_SLOW_S = 60
DOCUMENTS_SLOW_S = 600


@dataclass(frozen=True, slots=True)
class PartState:
    """One part as people know it."""

    name: str
    about: str
    state: State

    @property
    def words(self) -> str:
        """Its state in words."""
        return str(WORDS[self.state])


def parts_now(figures: list[Figure]) -> list[PartState]:
    """Return the parts with their states, from the figures of ``/metrics``, which are kept for some seconds."""
    plain = {one.name: one.value for one in figures if not one.labels}
    waiting = {
        one.labels["lane"]: one.value
        for one in figures
        if one.name == "queue_oldest_seconds" and "lane" in one.labels
    }
    has_database = bool(plain.get("database_up"))
    has_worker = has_database and bool(plain.get("workers"))

    def of_lane(lane: str, slow_s: float) -> State:
        if not has_worker:
            return "down"
        return "slow" if waiting.get(lane, 0.0) > slow_s else "ok"

    return [
        PartState(_("Pages and API"), _("Signing in, reading, searching"), "ok" if has_database else "down"),
        PartState(_("Answers"), _("New answers in conversations"), of_lane("loop", ANSWERS_SLOW_S)),
        PartState(_("Documents"), _("Reading new documents"), of_lane("cpu", DOCUMENTS_SLOW_S)),
    ]


def overall(parts: list[PartState]) -> State:
    """Return the worst state of them."""
    states = {part.state for part in parts}
    return "down" if "down" in states else "slow" if "slow" in states else "ok"


@never_cache
@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """Show the status to everyone, or (``GROUNDWORK_STATUS_PAGE=private``) to the operator alone.

    Asks the database on a connection of its own, for five seconds at most, and is there while the database is away.
    """
    if settings.STATUS_PAGE != "public":
        user = cast("Any", request.user)
        if not (user.is_active and user.is_superuser):
            raise Http404
    parts = parts_now(readings.figures())
    state = overall(parts)
    context = {"parts": parts, "state": state, "at": timezone.now()}
    return render(request, "operate/status.html", context, status=503 if state == "down" else 200)
