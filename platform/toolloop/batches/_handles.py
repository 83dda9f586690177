"""Names of batches and files at a provider, and the lists that batches are looked for in.

Names are put into addresses, and so are not taken as they come.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any, Final

from toolloop.batches.base import BatchUndecided
from toolloop.errors import MalformedResponse
from toolloop.providers._calls import Calls
from toolloop.providers._common import objects

# How far our clock and a provider's may be apart.
CLOCKS_APART: Final = timedelta(hours=1)
# Pages of a hundred batches that are looked through for one.
MAX_PAGES: Final = 100

_ID: Final = re.compile(r"(?:(?:batches|files)/)?[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


def handle_of(provider: str, batch_id: str, model: str) -> dict[str, Any]:
    """Return the handle of a batch."""
    return {"provider": provider, "id": batch_id, "model": model}


def id_in(data: Mapping[str, Any], field: str) -> str:
    """Return the name of a batch or file that stands in a field.

    Raises:
        MalformedResponse: there is none, or one that could lead an address elsewhere.
    """
    value = data.get(field)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise MalformedResponse(
            f"A batch or file came without a usable name in {field}: {str(value)[:80]!r}.", retryable=False
        )
    return value


async def newest_first(calls: Calls, path: str, after: str) -> AsyncGenerator[dict[str, Any]]:
    """Give the batches of an account page by page, as OpenAI and Anthropic list them: the newest first.

    Args:
        calls: of the account.
        path: of the list.
        after: parameter that names the last batch of the page before.

    Raises:
        BatchUndecided: there are more than are looked through.
    """
    query: dict[str, str | int] = {"limit": 100}
    for _ in range(MAX_PAGES):
        page = await calls.ask("GET", path, query=query)
        batches = objects(page.get("data"))
        for batch in batches:
            yield batch
        if not batches or not page.get("has_more"):
            return
        query[after] = id_in(batches[-1], "id")
    raise too_many()


def too_many() -> BatchUndecided:
    """Return the error of a search that was given up."""
    return BatchUndecided(
        f"The account has more batches than are looked through for one ({MAX_PAGES * 100:,})."
    )
