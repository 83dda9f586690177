"""Batches of the Gemini API. Wire facts: https://ai.google.dev/gemini-api/docs/batch-api and /api/batch-api.

Always by file, never with the requests inside the call: inlined answers would come with every question after the batch,
all at once. Files are deleted by the provider after 48 hours, so that results must be read before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from toolloop.batches._answers import Answer, answers_of, cancelled, counts_of, whose_batch
from toolloop.batches._handles import MAX_PAGES, handle_of, id_in, too_many
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
from toolloop.errors import BadRequest, ProviderError, ProviderUnavailable
from toolloop.providers._common import json_body, mapping, number, objects, string
from toolloop.providers._failures import classify, normalised_errors
from toolloop.providers.base import ModelRequest
from toolloop.providers.google import GoogleProvider

# With BATCH_STATE_ or JOB_STATE_ before; any other means that something may still happen.
_OVER: Final[dict[str, BatchStatus]] = {
    "SUCCEEDED": "ended",
    "PARTIALLY_SUCCEEDED": "ended",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}
# A failed line carries a code of gRPC where a failed call has an HTTP status.
_CANCELLED: Final = 1
_CODES: Final = {
    4: "deadline_exceeded",
    7: "permission_denied",
    8: "resource_exhausted",
    13: "internal",
    14: "unavailable",
    16: "unauthenticated",
}


class GoogleBatches:
    """See ``toolloop.batches.base.BatchProvider``."""

    name: str = "google"
    # How many lines it takes is not documented. It aims at 24 hours and gives up after 48.
    limits = BatchLimits(max_lines=50_000, max_bytes=64 * 1024 * 1024, hours=48)

    def __init__(self, adapter: GoogleProvider) -> None:
        self._adapter = adapter
        self._calls = adapter.calls()

    async def aclose(self) -> None:
        """Close the adapter."""
        await self._adapter.aclose()

    def line(self, key: str, request: ModelRequest) -> bytes:
        """Return a request as a line of the file."""
        request_checked(request)
        line = {"key": key, "request": self._adapter.body(request)}
        with normalised_errors(self.name, ""):
            return line_checked(key, json_body(line), self.limits)

    async def submit(self, lines: Sequence[bytes], *, model: str, mark: str) -> dict[str, Any]:
        """Upload the lines and begin a batch of them."""
        submission_checked(lines, mark, self.limits)
        file = await self._calls.upload(mark, b"\n".join([*lines, b""]))
        file_id = id_in(file, "name")
        path = model if "/" in model else f"models/{model}"
        body = {"batch": {"displayName": mark, "inputConfig": {"fileName": file_id}}}
        try:
            batch = await self._calls.ask("POST", f"{quote(path, safe='/')}:batchGenerateContent", body=body)
        except ProviderError as error:
            if not error.retryable:
                await self._delete(file_id)
            raise
        return handle_of(self.name, id_in(batch, "name"), model)

    async def find(self, mark: str, *, model: str, total: int, since: datetime) -> dict[str, Any] | None:
        """Look for the mark in the names of the account's batches; nothing else tells more."""
        query: dict[str, str | int] = {"pageSize": 100}
        for _ in range(MAX_PAGES):
            page = await self._calls.ask("GET", "batches", query=query)
            for batch in objects(page.get("operations")):
                if mapping(batch.get("metadata")).get("displayName") == mark:
                    return handle_of(self.name, id_in(batch, "name"), model)
            token = string(page.get("nextPageToken"))
            if not token:
                return None
            query["pageToken"] = token
        raise too_many()

    async def standing(self, handle: Mapping[str, Any]) -> BatchStanding:
        """Ask how far a batch has come."""
        batch = await self._batch(handle)
        total, done, failed = counts_of(
            mapping(mapping(batch.get("metadata")).get("batchStats")),
            "requestCount",
            "successfulRequestCount",
            "failedRequestCount",
        )
        status = _status(batch)
        if status in {"expired", "cancelled"}:
            failed = max(failed, total - done)
        return BatchStanding(status, total, done, failed, string(mapping(batch.get("error")).get("message")))

    async def results(self, handle: Mapping[str, Any]) -> AsyncGenerator[tuple[str, Answer]]:
        """Read the file of answers."""
        batch = await self._batch(handle)
        status = _status(batch)
        if status == "running":
            raise BatchUndecided("The batch is still running.")
        output = _output(batch)
        if not output:
            if status == "ended":
                raise BatchGone("The batch has ended, and Gemini names no file of its answers.")
            return
        model = string(handle.get("model"))
        with whose_batch(self.name):
            async with self._calls.download(f"{id_in(output, 'responsesFile')}:download?alt=media") as pieces:
                found = answers_of(
                    pieces,
                    lambda line: string(line.get("key")),
                    lambda line: self._answer(line, model),
                    set(),
                )
                async with aclosing(found):
                    async for answer in found:
                        yield answer

    async def cancel(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider to stop."""
        try:
            with whose_batch(self.name):
                await self._calls.ask("POST", f"{id_in(handle, 'id')}:cancel", body={})
        except ProviderError as error:
            # One that is over can't be cancelled, and needn't be.
            if error.status not in {400, 409} or not (await self.standing(handle)).is_over:
                raise

    async def forget(self, handle: Mapping[str, Any]) -> None:
        """Delete the batch and its files."""
        try:
            batch = await self._batch(handle)
        except BatchGone:
            return
        given = mapping(mapping(batch.get("metadata")).get("inputConfig"))
        for data, field in ((given, "fileName"), (_output(batch), "responsesFile")):
            if data.get(field):
                await self._delete(id_in(data, field))
        await self._delete(id_in(handle, "id"))

    async def _batch(self, handle: Mapping[str, Any]) -> dict[str, Any]:
        with whose_batch(self.name):
            return await self._calls.ask("GET", id_in(handle, "id"))

    async def _delete(self, name: str) -> None:
        try:
            await self._calls.ask("DELETE", name)
        except ProviderError as error:
            # Of a file that is not there it says as well that one may not see it.
            if error.status not in {403, 404}:
                raise

    def _answer(self, line: dict[str, Any], model: str) -> Answer:
        response = mapping(line.get("response"))
        error = mapping(line.get("error")) or mapping(response.get("error"))
        if not error and response:
            return self._adapter.turn(response, model)
        code = number(error.get("code"))
        if code == _CANCELLED:
            return cancelled()
        return classify(
            string(error.get("message")) or "Gemini gave neither an answer nor a reason.",
            words=(error.get("status"), _CODES.get(code)),
            status=code if code >= 400 else None,
            fallback=BadRequest if error else ProviderUnavailable,
        )


def _status(batch: dict[str, Any]) -> BatchStatus:
    state = string(mapping(batch.get("metadata")).get("state"))
    known = _OVER.get(state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_"))
    if known is None and batch.get("done") is True:
        return "failed" if batch.get("error") else "ended"
    return known or "running"


def _output(batch: dict[str, Any]) -> dict[str, Any]:
    """Return where a finished batch says what its answers are in: its metadata, or the operation's response."""
    output = mapping(mapping(batch.get("metadata")).get("output"))
    return output if output.get("responsesFile") else mapping(batch.get("response"))
