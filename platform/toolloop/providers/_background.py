"""Answers of the Responses API that go on without a connection: https://developers.openai.com/api/docs/guides/background.

The provider stores such an answer while it is made and for a while after, which is what makes it survive: a cut connection
is taken up behind the last event that came, a killed process fetches the answer by its id, and a stop must be told to the
provider, because closing the connection no longer ends anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from toolloop.errors import BadRequest, ProviderError
from toolloop.providers._common import cut_stream, mapping, objects, string, timed_out
from toolloop.providers._failures import normalised_errors
from toolloop.providers.base import ModelRequest

if TYPE_CHECKING:
    from toolloop.providers._openai_wire import OpenAIWire

logger = logging.getLogger(__name__)

_UNDER_WAY: Final = frozenset({"queued", "in_progress"})
_USABLE: Final = frozenset({"completed", "incomplete"})
_TRIES: Final = 6
"""Attempts in a row to take up a connection without a single event."""
_LONGEST_WAIT_S: Final = 8.0
_CANCEL_S: Final = 10.0


class BackgroundCalls:
    """The answers in the background of one adapter.

    Args:
        wire: of the account.
        name, key: for errors.
    """

    def __init__(self, wire: OpenAIWire, name: str, key: str) -> None:
        self._wire, self._name, self._key = wire, name, key
        self._cancels: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Wait until the provider has been told of every stop, for a few seconds at most."""
        if self._cancels:
            await asyncio.wait(self._cancels, timeout=_CANCEL_S)

    async def events(
        self, request: ModelRequest, body: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of an answer, across cut connections, until the one that ends it.

        Args:
            request: with ``resume`` set, the answer of that id is fetched, and asked for anew only if it is of no use.
            body: of the request, with ``background``, ``store`` and ``stream`` set.

        Raises:
            ProviderError: the answer cannot be had, or the time is over.
        """
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        response_id, is_over = "", False
        try:
            if request.resume is not None and request.resume.response_id:
                stored = await self._fetched(request.resume.response_id, deadline)
                status = string(stored.get("status"))
                if status in _USABLE:
                    request.resume.response_id = ""
                    for event in _replayed(stored):
                        yield event
                    return
                if status in _UNDER_WAY:
                    response_id = request.resume.response_id
            seen = -1 if response_id else None
            failures = 0
            while not is_over:
                came = False
                try:
                    async with self._opened(response_id, seen, body, deadline) as (_, stream):
                        async for event in stream:
                            came, failures = True, 0
                            number = event.get("sequence_number")
                            seen = number if isinstance(number, int) else seen
                            if not response_id:
                                response_id = string(mapping(event.get("response")).get("id"))
                                if response_id and request.resume is not None:
                                    await request.resume.started(response_id)
                            is_over = _ends(event)
                            if is_over and request.resume is not None:
                                request.resume.response_id = ""  # The next attempt is another answer.
                            yield event
                            if is_over:
                                break
                        else:
                            raise cut_stream(self._name)
                except ProviderError as error:
                    failures += not came
                    if not response_id or not error.retryable or failures > _TRIES:
                        raise
                    await self._wait(failures, deadline)
        except (GeneratorExit, asyncio.CancelledError):
            if response_id and not is_over and (request.resume is None or request.resume.is_given_up()):
                self._cancel(response_id)
            raise
        except ProviderError:
            if response_id and asyncio.get_running_loop().time() >= deadline:
                self._cancel(response_id)
            raise

    def _opened(self, response_id: str, seen: int | None, body: dict[str, Any], deadline: float) -> Any:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise timed_out()
        if not response_id:
            return self._wire.post("/responses", body, left)
        after = f"&starting_after={seen}" if seen is not None and seen >= 0 else ""
        return self._wire.follow(f"/responses/{response_id}?stream=true{after}", left)

    async def _fetched(self, response_id: str, deadline: float) -> dict[str, Any]:
        """Return a stored response, {} for one that is no longer there."""
        left = max(0.1, deadline - asyncio.get_running_loop().time())
        try:
            with normalised_errors(self._name, self._key):
                return await self._wire.get(f"/responses/{response_id}", left)
        except BadRequest as error:
            if error.status in (400, 404):
                return {}
            raise

    async def _wait(self, failures: int, deadline: float) -> None:
        """Wait before the connection is taken up again; at once after a cut of one that worked."""
        if failures:
            await asyncio.sleep(min(_LONGEST_WAIT_S, 0.5 * 2 ** (failures - 1)))
        if asyncio.get_running_loop().time() >= deadline:
            raise timed_out()

    def _cancel(self, response_id: str) -> None:
        """Tell the provider to stop, without keeping whoever stops waiting."""
        task = asyncio.get_running_loop().create_task(self._cancelled(response_id))
        self._cancels.add(task)
        task.add_done_callback(self._cancels.discard)

    async def _cancelled(self, response_id: str) -> None:
        try:
            with normalised_errors(self._name, self._key):
                await self._wire.post_plain(f"/responses/{response_id}/cancel", _CANCEL_S)
        except ProviderError as error:
            # It ends by itself; what it makes until then is billed.
            logger.warning("%s could not be told to stop an answer (%s)", self._name, error.code)


def _ends(event: dict[str, Any]) -> bool:
    kind = string(event.get("type"))
    status = string(mapping(event.get("response")).get("status"))
    return kind == "error" or (
        kind.startswith("response.")
        and kind.count(".") == 1
        and (status in _USABLE or status in {"failed", "cancelled"})
    )


def _replayed(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a stored response as the events that would have brought it."""
    items = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(objects(stored.get("output")))
    ]
    return [*items, {"type": f"response.{stored['status']}", "response": stored}]
