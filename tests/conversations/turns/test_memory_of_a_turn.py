"""A turn leaves nothing of its run behind: neither what refers to itself, which would stay until Python's collector comes,
nor what a thread has in its hand while it waits for other work. A run knows its tools, its whole history and all that was found.
"""

from __future__ import annotations

import gc
from concurrent.futures import Executor

import pytest
from asgiref.sync import sync_to_async

from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from tests.conversations.turns.test_statement_counts import conversation_of, search
from tests.servers import wait_for
from toolloop.providers.scripted import says

pytestmark = pytest.mark.django_db(transaction=True)
OF_A_RUN = {
    "_Run",
    "Tool",
    "ToolFacts",
    "ToolCallPart",
    "ToolResult",
    "Turn",
    "RunReservations",
    "Interrupter",
}


def alive() -> list[str]:
    """Return the names of what a run had made since ``gc.freeze`` and still holds."""
    return sorted(
        type(one).__qualname__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith(("toolloop", "runs", "apps.tools.policy"))
        and type(one).__qualname__ in OF_A_RUN
    )


async def test_what_a_run_has_used_goes_with_it(
    cast: Cast, library: Library, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await sync_to_async(conversation_of)(cast)

    async def turn() -> None:
        asked = await sync_to_async(ask)(cast, conversation=conversation)
        with monkeypatch.context() as patched:  # the scripted model keeps what it was asked
            await answer(asked, lane_threads, patched, [says("", search(0)), says("It is 2.5 percent.")])

    with tenant_scope(cast.tenant.pk):
        await turn()  # loads what a process loads once
        gc.collect()
        gc.freeze()  # from here on only what is new is looked through: all that a run has made takes a second each time
        gc.disable()
        try:
            await turn()
            wait_for(lambda: not alive(), "a thread to let go of its call")
        finally:
            gc.enable()
