"""From the message to its first visible word: what does the platform add to the model's own time?

One person at a time: the portal's form is posted, the stream that comes with its answer is opened, and the clock stops when the
first word of the answer has come through it. The model writes into each word when it was said; what it took from being asked
until then (its time, by its own log) is taken off.

Run: python benchmarks/first_text.py [--messages 60]. Makes a database of its own on the server of DATABASE_URL, or on an
embedded one. Bar (a quiet machine of two cores): p50 under 60 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
import uuid

from _common import write_result
from _portal import CLOCK, Portal, person
from _stack import database, load, percentile, product

MODEL = "fake-clock-words5-gap50"
"""As models stream: an answer that is over with its first word comes with the end of its run, whose rows it waits for."""


def main() -> None:
    """Measure and write results/first_text.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=60)
    args = parser.parse_args()
    before = load()
    with database(), product(MODEL, GROUNDWORK_WORKERS="2") as (stack, _):
        tenant, actor, user = person("first")
        portal = Portal(stack.port, tenant.slug, user)
        times = [measure(portal, tenant, actor) for _ in range(args.messages + 5)][5:]
    whole = [first - sent for sent, asked, said, first, _ in times]
    added = [(first - sent) - (said - asked) for sent, asked, said, first, _ in times]
    result = {
        "messages": args.messages,
        "message_to_text_p50_ms": round(1000 * percentile(whole, 0.5), 1),
        "added_p50_ms": round(1000 * percentile(added, 0.5), 1),
        "added_p95_ms": round(1000 * percentile(added, 0.95), 1),
        "until_the_model_is_asked_p50_ms": round(1000 * percentile([t[1] - t[0] for t in times], 0.5), 1),
        "until_the_form_is_answered_p50_ms": round(1000 * percentile([t[4] - t[0] for t in times], 0.5), 1),
        "from_the_word_to_the_reader_p50_ms": round(1000 * percentile([t[3] - t[2] for t in times], 0.5), 1),
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:40} {value}")
    print(write_result("first_text", result))
    sys.exit(0 if result["added_p50_ms"] < 60 else 1)


def measure(portal: Portal, tenant, actor) -> tuple[float, ...]:
    """Send one message; return when it was sent, the model asked, the first word said and there, the form answered."""
    import httpx2

    from apps.conversations.turns.conversations import conversation_create
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant.pk):
        conversation = conversation_create(tenant=tenant, actor=actor, model=f"compatible/{MODEL}").pk
    sent = time.time()
    page = portal.post(f"{conversation}/turns/", text="What time is it?", client_id=str(uuid.uuid4()))
    answered = time.time()
    found = re.search(rf"{conversation}/runs/(\d+)/stream/", page)
    assert found is not None, page
    said, first = asyncio.run(first_word(portal, conversation, int(found[1])))
    log = os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"].removesuffix("/v1") + "/log"
    # The first after it: a title may be asked for as well, once the answer is there.
    asked = min(e["asked_at"] for e in httpx2.get(log).json() if e["asked_at"] > sent)
    return sent, asked, said, first, answered


async def first_word(portal: Portal, conversation: int, run: int) -> tuple[float, float]:
    """Return when the first word was said and when it came; waits for the end, so that the next message is alone."""
    word = None
    async for at, piece in portal.stream(conversation, run):
        if word is None and (found := CLOCK.search(piece)):
            word = float(found[0]), at
        if b"event: end" in piece:
            break
    if word is None:
        raise RuntimeError("the answer had no text")
    return word


if __name__ == "__main__":
    main()
