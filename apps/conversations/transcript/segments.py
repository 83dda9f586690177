"""The responses that one run gives: each ends where the run waits for its client's tools, or with the run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runs.models import PendingDecision
from runs.transcript import DECIDED, PARKED

_ID = re.compile(r"resp_g(\d{1,18})_(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Segment:
    """Events after ``after``, up to and with ``until``; None while nothing ends it but the run."""

    after: int
    until: int | None = None


def segments_of(events: Iterable[tuple[int, str, Mapping[str, Any]]]) -> list[Segment]:
    """Return the responses of a run, from its ``parked`` and ``decided`` events in order.

    What waits for somebody's approval here ends none: the client is not asked.
    """
    found = [Segment(0)]
    theirs: set[int] = set()
    for seq, kind, data in events:
        if kind == PARKED:
            external = PendingDecision.Kind.EXTERNAL
            theirs = {w["id"] for w in data.get("pending", ()) if w["kind"] == external}
            if theirs:
                found[-1] = Segment(found[-1].after, seq)
        elif kind == DECIDED and data["id"] in theirs:
            if found[-1].until is None:  # several were answered: the last answer begins the next response
                found.pop()
            found.append(Segment(seq))
    return found


def response_id_of(run_id: int, after: int) -> str:
    """Return the id of the response that a run gives after one of its events."""
    return f"resp_g{run_id}_{after}"


def response_id_read(text: str) -> tuple[int, int] | None:
    """Return (run id, event) of an id that ``response_id_of`` made."""
    found = _ID.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None
