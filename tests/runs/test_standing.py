"""How soon a stream ends after its reader's right: by construction within five seconds, whatever the machine does."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.conversations.chat import frames
from jobs.notify import notify
from runs import draining, standing
from tenancy.models import User
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
BOUND_S = 5.0


def test_rights_are_looked_at_often_enough() -> None:
    """A look decides, and the one after a loss comes at most so much later; each leaves as long again for its own work."""
    assert standing.LOOK_S <= BOUND_S / 2
    assert frames._JUDGED_S <= BOUND_S / 2


async def test_first_look_after_the_loss_ends_the_stream(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks are driven by notifications here, so that none is a matter of time; the loss itself tells nobody."""
    monkeypatch.setattr(standing, "LOOK_S", 3600.0)
    found: list[tuple[bool, str]] = []
    is_lost = False
    looked = asyncio.Event()
    look = standing.standing_now

    async def watched(*of: Any) -> Any:
        began_after = is_lost
        said = await look(*of)
        found.append((began_after, said))
        looked.set()
        return said

    monkeypatch.setattr(standing, "standing_now", watched)

    async def endless() -> AsyncGenerator[bytes, None]:
        yield b"first"
        await asyncio.Event().wait()

    def wake() -> None:
        with tenant_scope(cast.tenant.pk):
            notify(cast.tenant.pk, standing.RIGHTS)

    async def look_once() -> None:
        looked.clear()
        async with asyncio.timeout(60):
            while not looked.is_set():  # a notification before the connection listens reaches nobody
                await sync_to_async(wake)()
                with_grace = asyncio.create_task(looked.wait())
                await asyncio.wait({with_grace}, timeout=1)
                with_grace.cancel()

    actor = await sync_to_async(cast.actor)("member")
    stream = standing.while_allowed(endless(), actor=actor, right="conversation.read")
    told: list[bytes] = []

    async def read() -> None:
        told.extend([part async for part in stream])

    reading = asyncio.create_task(read())
    await look_once()
    assert {said for _, said in found} == {"same"}
    assert not reading.done()
    await sync_to_async(User.objects.filter(pk=cast.member.user_id).update)(is_active=False)
    is_lost = True
    await look_once()
    async with asyncio.timeout(60):
        await reading
    # A look that a second notification began before the loss may be the one that finds it.
    assert {said for after, said in found if after} <= {"lost"}, "one look was enough"
    assert [said for _, said in found].count("lost") == 1
    assert told == [b"first", standing.SIGNED_OUT]


@pytest.mark.parametrize(("last", "told"), [(None, b"retry: "), (b"over", b"second")])
async def test_stream_that_can_be_followed_elsewhere_ends_with_its_process(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, last: bytes | None, told: bytes
) -> None:
    """Another client's, which could not come back to it, is left to its end."""
    monkeypatch.setattr(draining, "_begun", weakref.WeakKeyDictionary())
    may_go_on, is_closed = asyncio.Event(), False

    async def frames_two() -> AsyncGenerator[bytes, None]:
        nonlocal is_closed
        try:
            yield b"first"
            await may_go_on.wait()
            yield b"second"
        finally:
            is_closed = True

    actor = await sync_to_async(cast.actor)("member")
    stream = standing.while_allowed(frames_two(), actor=actor, right="conversation.read", last=last)
    assert await anext(stream) == b"first"
    draining.drain_begin(asyncio.get_running_loop())
    if last is not None:
        may_go_on.set()
    rest = [part async for part in stream]
    assert len(rest) == 1
    assert rest[0].startswith(told)
    assert is_closed
