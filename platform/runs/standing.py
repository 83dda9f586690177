"""Whether who watches may still watch: a stream outlives the request that was checked, and ends soon after its right.

``while_allowed`` is laid around the frames of any stream, and knows nothing of them. All streams of one caller in one event
loop share a look at the database: on a notification, which whoever takes rights away sends, and every ``LOOK_S`` seconds. It
holds no connection while it waits.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal

import psycopg
import structlog

from basics.event_stream import frame
from runs.draining import draining, farewell
from runs.hub import hub
from runs.stream import rows_read
from tenancy.actors import Actor
from tenancy.permissions import ACTIONS, ROLE_ACTIONS, expand_scopes

log = structlog.get_logger(__name__)

RIGHTS = "rights"
"""Topic on which a workspace is told that somebody in it has lost rights."""
LOOK_S = 2.0
SIGNED_OUT = frame("signed out", event="end")

_STANDING = """
SELECT t.is_active,
    (SELECT m.role FROM tenancy_membership m JOIN tenancy_user u ON u.id = m.user_id
        WHERE m.tenant_id = own_tenant() AND m.user_id = %s AND u.is_active) AS role,
    (SELECT jsonb_build_array(k.scopes, k.collections) FROM tenancy_apikey k WHERE k.tenant_id = own_tenant() AND k.id = %s
        AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())) AS key
FROM tenancy_tenant t WHERE t.id = %s
"""


class _Look:
    """One caller's standing, looked at for all their streams in one event loop."""

    def __init__(self, actor: Actor, right: str) -> None:
        self._actor, self._right = actor, right
        self.lost, self.changed = asyncio.Event(), asyncio.Event()
        self.users = 0
        self.task = asyncio.create_task(self._run(), name=f"standing-{actor.tenant_id}")

    async def _run(self) -> None:
        async with hub.subscribe(self._actor.tenant_id, RIGHTS) as waker:
            while not self.lost.is_set():
                await waker.wait(LOOK_S)
                try:
                    standing = await standing_now(self._actor, self._right)
                    if standing != "same":
                        self.changed.set()
                    if standing == "lost":
                        self.lost.set()
                except (psycopg.Error, OSError) as error:
                    # Nothing can be read for the stream either; it is looked at again.
                    log.warning("standing_unknown", error=str(error))


_looks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Actor, str], _Look]] = (
    weakref.WeakKeyDictionary()
)


async def standing_now(actor: Actor, right: str) -> Literal["same", "changed", "lost"]:
    """Tell how an actor that was let in stands now: "changed" has the right, and otherwise another role or other scopes."""
    if actor.kind == "system":
        return "same"
    rows = await rows_read(actor.tenant_id, _STANDING, (actor.user_id, actor.api_key_id, actor.tenant_id))
    role, key = (rows[0]["role"], rows[0]["key"]) if rows and rows[0]["is_active"] else (None, None)
    if role is None and (actor.kind == "user" or actor.user_id is not None):
        return "lost"
    actions = ROLE_ACTIONS[role] if role is not None else ACTIONS
    collections = actor.collections
    if actor.kind == "api_key":
        if key is None:
            return "lost"
        scopes, limited = key
        actions = actions & expand_scopes(scopes)
        collections = None if limited is None else frozenset(limited)
    if right not in actions:
        return "lost"
    return "same" if (actions, collections) == (actor.actions, actor.collections) else "changed"


async def while_allowed(
    frames: AsyncGenerator[bytes, None],
    *,
    actor: Actor,
    right: str,
    last: bytes | None = None,
    also: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """Yield a stream's frames for as long as the actor may read them; then say so, and close the stream.

    A browser's stream also ends when this process does: its client comes back, and another process goes on after what it has.

    Args:
        right: what whoever opened the stream had to have.
        last: tells the client in its own form that nothing more comes. None for a browser's stream, which is told in ours,
            and which is also cut when the caller has other rights than before: it opens again by itself, with those.
        also: asked every ``LOOK_S`` seconds whether what is streamed may still be read.
    """
    looks = _looks.setdefault(asyncio.get_running_loop(), {})
    look = looks.get((actor, right))
    if look is None:
        look = looks[actor, right] = _Look(actor, right)
    look.users += 1
    # One context for all of the stream: it may enter the tenant's scope at one frame and leave it at another.
    inside = contextvars.copy_context()
    ending = look.changed if last is None else look.lost
    ended = asyncio.create_task(ending.wait())
    drained = asyncio.create_task(draining().wait()) if last is None else None
    watched = {ended} if drained is None else {ended, drained}
    coming: asyncio.Task[bytes | None] | None = None
    looked = time.monotonic()
    try:
        while True:
            if coming is None or coming.done():
                coming = asyncio.create_task(_next(frames), context=inside)
            await asyncio.wait(
                {coming, *watched},
                timeout=None if also is None else LOOK_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if ending.is_set():
                if look.lost.is_set():
                    yield SIGNED_OUT if last is None else last
                return
            if drained is not None and drained.done():
                yield farewell()
                return
            if also is not None and time.monotonic() - looked >= LOOK_S:
                if not await also():
                    yield SIGNED_OUT if last is None else last
                    return
                looked = time.monotonic()
            if not coming.done():
                continue
            found = coming.result()
            if found is None:
                return
            yield found
    finally:
        for task in watched:
            task.cancel()
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        look.users -= 1
        if not look.users:
            look.task.cancel()
            del looks[actor, right]
        await asyncio.create_task(frames.aclose(), context=inside)


async def _next(frames: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(frames, None)
