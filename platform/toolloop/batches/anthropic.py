"""Batches of Anthropic. Wire facts: https://platform.claude.com/docs/en/api/messages/batches.

There is no field for a mark, so the name of each request carries it, as a digest before the key. Names can be read when
the batch has ended, and only then. The address of the results that the provider names is not used: it would get the key
wherever it leads; the documented one does as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from toolloop.batches._answers import (
    Answer,
    LineDecoder,
    answers_of,
    cancelled,
    counts_of,
    expired,
    whose_batch,
)
from toolloop.batches._handles import CLOCKS_APART, handle_of, id_in, newest_first
from toolloop.batches.base import (
    BatchGone,
    BatchLimits,
    BatchStanding,
    BatchStatus,
    BatchUndecided,
    line_checked,
    request_checked,
    submission_checked,
)
from toolloop.errors import ConfigurationError, ProviderError
from toolloop.providers._common import digest, json_body, mapping, string
from toolloop.providers._failures import classify, normalised_errors
from toolloop.providers.anthropic import AnthropicProvider
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import profile_for

_PATH: Final = "/v1/messages/batches"
_BEGIN: Final = b'{"custom_id":"'
_COUNTS: Final = ("succeeded", "errored", "canceled", "expired", "processing")


class AnthropicBatches:
    """See ``toolloop.batches.base.BatchProvider``."""

    name: str = "anthropic"
    limits = BatchLimits(max_lines=100_000, max_bytes=64 * 1024 * 1024, hours=24)

    def __init__(self, adapter: AnthropicProvider) -> None:
        self._adapter = adapter
        self._calls = adapter.calls()

    async def aclose(self) -> None:
        """Close the adapter."""
        await self._adapter.aclose()

    def line(self, key: str, request: ModelRequest) -> bytes:
        """Return a request as an entry of the list that is sent; ``submit`` puts the mark into it."""
        request_checked(request)
        # Its own citations need the request to be read; the answer of a batch comes without it, with the marks in its text.
        profile = request.profile or profile_for(self.name, request.model)
        marked = replace(request, profile=replace(profile, cites_passages=False))
        line = {"custom_id": key, "params": self._adapter.body(marked)}
        with normalised_errors(self.name, ""):
            return line_checked(key, json_body(line), self.limits)

    async def submit(self, lines: Sequence[bytes], *, model: str, mark: str) -> dict[str, Any]:
        """Send the lines, each with the mark before its key."""
        submission_checked(lines, mark, self.limits)
        if not all(line.startswith(_BEGIN) for line in lines):
            raise ConfigurationError("These lines aren't from this provider.")
        begin = _BEGIN + _prefix(mark).encode()
        entries = b",".join([begin + line[len(_BEGIN) :] for line in lines])
        body = b"".join((b'{"requests":[', entries, b"]}"))
        batch = await self._calls.ask("POST", _PATH, body=body)
        return self._handle(batch, model, mark)

    async def find(self, mark: str, *, model: str, total: int, since: datetime) -> dict[str, Any] | None:
        """Look into the batches of that many requests begun since then, as far as they have ended."""
        earliest = since - CLOCKS_APART
        running = False
        async with aclosing(newest_first(self._calls, _PATH, "after_id")) as batches:
            async for batch in batches:
                begun = _time(batch.get("created_at"))
                if begun is not None and begun < earliest:
                    break
                if sum(counts_of(mapping(batch.get("request_counts")), *_COUNTS)) != total:
                    continue
                if batch.get("processing_status") != "ended":
                    running = True
                elif await self._has(batch, mark):
                    return self._handle(batch, model, mark)
        if running:
            raise BatchUndecided(
                f"A batch of {total:,} requests is in progress at Anthropic; whether it is this one is "
                f"known only when it ends, at most 24 hours after it began."
            )
        return None

    async def standing(self, handle: Mapping[str, Any]) -> BatchStanding:
        """Ask how far a batch has come; Anthropic counts what became of its requests when all of it has ended."""
        batch = await self._batch(handle)
        counts = counts_of(mapping(batch.get("request_counts")), *_COUNTS)
        succeeded, errored, stopped, late, _ = counts
        status: BatchStatus = "running"
        if batch.get("processing_status") == "ended":
            status = "cancelled" if stopped else "expired" if late else "ended"
        return BatchStanding(status, sum(counts), succeeded, errored + stopped + late)

    async def results(self, handle: Mapping[str, Any]) -> AsyncGenerator[tuple[str, Answer]]:
        """Read the file of answers."""
        if not (await self.standing(handle)).is_over:
            raise BatchUndecided("The batch is still running.")
        prefix, model = string(handle.get("prefix")), string(handle.get("model"))
        with whose_batch(self.name):
            async with self._calls.download(f"{_PATH}/{id_in(handle, 'id')}/results") as pieces:
                found = answers_of(
                    pieces, lambda line: _key(line, prefix), lambda line: self._answer(line, model), set()
                )
                async with aclosing(found):
                    async for answer in found:
                        yield answer

    async def cancel(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider to stop."""
        try:
            with whose_batch(self.name):
                await self._calls.ask("POST", f"{_PATH}/{id_in(handle, 'id')}/cancel")
        except ProviderError as error:
            # One that is over can't be cancelled, and needn't be.
            if error.status not in {400, 409} or not (await self.standing(handle)).is_over:
                raise

    async def forget(self, handle: Mapping[str, Any]) -> None:
        """Delete the batch with its requests and answers."""
        try:
            await self._calls.ask("DELETE", f"{_PATH}/{id_in(handle, 'id')}")
        except ProviderError as error:
            if error.status != 404:
                raise

    def _handle(self, batch: dict[str, Any], model: str, mark: str) -> dict[str, Any]:
        return {**handle_of(self.name, id_in(batch, "id"), model), "prefix": _prefix(mark)}

    async def _batch(self, handle: Mapping[str, Any]) -> dict[str, Any]:
        with whose_batch(self.name):
            return await self._calls.ask("GET", f"{_PATH}/{id_in(handle, 'id')}")

    async def _has(self, batch: dict[str, Any], mark: str) -> bool:
        """Tell whether a batch that has ended is of a mark: by the first name that can be read."""
        decoder = LineDecoder()
        path = f"{_PATH}/{id_in(batch, 'id')}/results"
        try:
            with whose_batch(self.name):
                async with self._calls.download(path) as pieces:
                    async for piece in pieces:
                        for line in decoder.feed(piece):
                            if line is not None and string(line.get("custom_id")):
                                return bool(_key(line, _prefix(mark)))
        except BatchGone:
            pass  # Deleted, or older than the 29 days that results are kept: of no use any more.
        return False

    def _answer(self, line: dict[str, Any], model: str) -> Answer:
        result = mapping(line.get("result"))
        kind = result.get("type")
        if kind == "succeeded":
            return self._adapter.turn(mapping(result.get("message")), model)
        if kind == "expired":
            return expired()
        if kind == "canceled":
            return cancelled()
        outer = mapping(result.get("error"))
        error = mapping(outer.get("error")) or outer
        return classify(
            string(error.get("message")) or "Anthropic gave neither an answer nor a reason.",
            words=(error.get("type"),),
        )


def _prefix(mark: str) -> str:
    """Return what stands before a key: of one length for every mark, so that none begins like another."""
    return f"{digest(mark, 24)}_"


def _key(line: dict[str, Any], prefix: str) -> str:
    name = string(line.get("custom_id"))
    return name.removeprefix(prefix) if prefix and name.startswith(prefix) else ""


def _time(value: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(string(value))
    except ValueError:
        return None
    return time if time.tzinfo else None
