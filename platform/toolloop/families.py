"""The calls that one tool makes: their ids, results and places, and which of an earlier attempt's calls each of them is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from toolloop.deferred import Decision, ParkCall


@dataclass(slots=True, eq=False)
class Family:
    """The calls of one parent.

    Attributes:
        own: the task that the parent's function runs in; tools make others, for calls at once.
        stored: results by call id as JSON, with the call's key; part of the state when the parent parks.
        waits: by call id, calls that wait and have done something already, with their keys; part of the state too.
        parked: id and key of the call an earlier attempt parked at, and ``decision`` about it.
        known: by key, ids of an earlier attempt's calls that were not made again yet; ``keys`` the other way round.
        taken: ids that stand for a call.
        tasks: those that make calls, and those that run them (``running``).
        parking: what parks the parent, once one of its calls must wait.
    """

    slots: asyncio.Semaphore
    size: int
    own: asyncio.Task[Any] | None
    whole: asyncio.Lock = field(default_factory=asyncio.Lock)
    made: int = 0
    stored: dict[str, Any] = field(default_factory=dict)
    waits: dict[str, Any] = field(default_factory=dict)
    parked: tuple[str, str] | None = None
    decision: Decision | None = None
    known: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    running: set[asyncio.Task[Any]] = field(default_factory=set)
    parking: ParkCall | None = None
    is_kept_elsewhere: bool = False  # The parked call's id was the tool's own: it keeps it itself.

    def remember(self, keys: Mapping[str, str]) -> None:
        """Take the ids and keys of an earlier attempt's calls."""
        for call_id, key in sorted(keys.items(), key=lambda item: (len(item[0]), item[0])):
            self.keys[call_id] = key
            self.known.setdefault(key, []).append(call_id)
            self.taken.add(call_id)

    def id_of(self, parent_id: str, key: str, *, has_effect: bool) -> str:
        """Return the id of the next call: the one it had when the parent ran before, or a new number.

        A call is known by what it asks for, so that calls that are made at once may come in another order. One with an
        effect is also known by its place, where the parent makes its calls one after the other: it never runs twice even
        where its arguments hold the time.
        """
        self.made += 1
        place = f"{parent_id}.{self.made}"
        found = self.known.get(key)
        call_id = found[0] if found else ""
        if not call_id and has_effect and asyncio.current_task() is self.own:
            before = self.keys.get(place, "")
            is_open = place in self.known.get(before, ())
            if is_open and before.rpartition(" ")[0] == key.rpartition(" ")[0]:
                call_id = place
        if call_id:
            self.known[self.keys[call_id]].remove(call_id)
            return call_id
        number = self.made
        while (call_id := f"{parent_id}.{number}") in self.taken:
            number += 1
        self.taken.add(call_id)
        return call_id

    @asynccontextmanager
    async def slot(self, *, alone: bool) -> AsyncIterator[None]:
        """Take a place; ``alone`` takes them all, one by one, so only one caller at a time may collect them."""
        taken = 0
        try:
            if alone:
                async with self.whole:
                    for _ in range(self.size):
                        await self.slots.acquire()
                        taken += 1
            else:
                await self.slots.acquire()
                taken = 1
            yield
        finally:
            for _ in range(taken):
                self.slots.release()
