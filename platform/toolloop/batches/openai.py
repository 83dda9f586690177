"""Batches of OpenAI. Wire facts: https://platform.openai.com/docs/guides/batch and /docs/api-reference/batch.

A file of requests is uploaded, a batch of it is begun, and its answers come as two files: of what was answered, and of
what was not. Whatever is left behind expires by itself after a week.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from toolloop.batches._answers import Answer, answers_of, cancelled, counts_of, expired, whose_batch
from toolloop.batches._handles import CLOCKS_APART, handle_of, id_in, newest_first
from toolloop.batches.base import (
    BatchLimits,
    BatchStanding,
    BatchStatus,
    BatchUndecided,
    line_checked,
    request_checked,
    submission_checked,
)
from toolloop.errors import ProviderError, ProviderUnavailable
from toolloop.providers._common import json_body, mapping, number, objects, string
from toolloop.providers._failures import classify, normalised_errors
from toolloop.providers.base import ModelRequest
from toolloop.providers.openai import OpenAIProvider

_WEEK: Final = {"anchor": "created_at", "seconds": 7 * 24 * 3600}
_MARK: Final = "groundwork_mark"
# Any other status means that something may still happen.
_OVER: Final[dict[str, BatchStatus]] = {
    "completed": "ended",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
_GIVEN_UP: Final = {"batch_expired": expired, "batch_cancelled": cancelled}


class OpenAIBatches:
    """See ``toolloop.batches.base.BatchProvider``."""

    name: str = "openai"
    limits = BatchLimits(max_lines=50_000, max_bytes=64 * 1024 * 1024, hours=24)

    def __init__(self, adapter: OpenAIProvider) -> None:
        self._adapter = adapter
        self._calls = adapter.calls()

    async def aclose(self) -> None:
        """Close the adapter."""
        await self._adapter.aclose()

    def line(self, key: str, request: ModelRequest) -> bytes:
        """Return a request as a line of the file."""
        request_checked(request)
        line = {
            "custom_id": key,
            "method": "POST",
            "url": "/v1/responses",
            "body": self._adapter.body(request),
        }
        with normalised_errors(self.name, ""):
            return line_checked(key, json_body(line), self.limits)

    async def submit(self, lines: Sequence[bytes], *, model: str, mark: str) -> dict[str, Any]:
        """Upload the lines and begin a batch of them."""
        submission_checked(lines, mark, self.limits)
        content = b"\n".join([*lines, b""])
        fields = {"purpose": "batch", "expires_after": _WEEK}
        file = await self._calls.upload("/files", f"{mark}.jsonl", content, fields)
        file_id = id_in(file, "id")
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/responses",
            "completion_window": "24h",
            "metadata": {_MARK: mark},
            "output_expires_after": _WEEK,
        }
        try:
            batch = await self._calls.ask("POST", "/batches", body=body)
        except ProviderError as error:
            if not error.retryable:
                await self._delete(file_id)
            raise
        return handle_of(self.name, id_in(batch, "id"), model)

    async def find(self, mark: str, *, model: str, total: int, since: datetime) -> dict[str, Any] | None:
        """Look for the mark in the metadata of the account's batches; ``total`` adds nothing to it."""
        earliest = (since - CLOCKS_APART).timestamp()
        async with aclosing(newest_first(self._calls, "/batches", "after")) as batches:
            async for batch in batches:
                if mapping(batch.get("metadata")).get(_MARK) == mark:
                    return handle_of(self.name, id_in(batch, "id"), model)
                if number(batch.get("created_at")) < earliest:
                    break
        return None

    async def standing(self, handle: Mapping[str, Any]) -> BatchStanding:
        """Ask how far a batch has come."""
        batch = await self._batch(handle)
        total, done, failed = counts_of(mapping(batch.get("request_counts")), "total", "completed", "failed")
        status = _OVER.get(string(batch.get("status")), "running")
        if status in {"expired", "cancelled"}:
            failed = max(failed, total - done)
        problems = objects(mapping(batch.get("errors")).get("data"))
        message = " ".join(string(problem.get("message")) for problem in problems[:3])
        return BatchStanding(status, total, done, failed, message)

    async def results(self, handle: Mapping[str, Any]) -> AsyncGenerator[tuple[str, Answer]]:
        """Read the file of answers, then the one of failures."""
        batch = await self._batch(handle)
        if string(batch.get("status")) not in _OVER:
            raise BatchUndecided("The batch is still running.")
        model, seen = string(handle.get("model")), set[str]()
        for field in ("output_file_id", "error_file_id"):
            if not batch.get(field):
                continue
            path = f"/files/{id_in(batch, field)}/content"
            with whose_batch(self.name):
                async with self._calls.download(path) as pieces:
                    found = answers_of(
                        pieces,
                        lambda line: string(line.get("custom_id")),
                        lambda line: self._answer(line, model),
                        seen,
                    )
                    async with aclosing(found):
                        async for answer in found:
                            yield answer

    async def cancel(self, handle: Mapping[str, Any]) -> None:
        """Ask the provider to stop."""
        try:
            with whose_batch(self.name):
                await self._calls.ask("POST", f"/batches/{id_in(handle, 'id')}/cancel")
        except ProviderError as error:
            # One that is over can't be cancelled, and needn't be.
            if error.status not in {400, 409} or not (await self.standing(handle)).is_over:
                raise

    async def forget(self, handle: Mapping[str, Any]) -> None:
        """Delete the batch's files; the batch itself can't be deleted, and holds no text."""
        batch = await self._batch(handle)
        for field in ("input_file_id", "output_file_id", "error_file_id"):
            if batch.get(field):
                await self._delete(id_in(batch, field))

    async def _batch(self, handle: Mapping[str, Any]) -> dict[str, Any]:
        with whose_batch(self.name):
            return await self._calls.ask("GET", f"/batches/{id_in(handle, 'id')}")

    async def _delete(self, file_id: str) -> None:
        try:
            await self._calls.ask("DELETE", f"/files/{file_id}")
        except ProviderError as error:
            if error.status != 404:
                raise

    def _answer(self, line: dict[str, Any], model: str) -> Answer:
        error, response = mapping(line.get("error")), mapping(line.get("response"))
        if code := string(error.get("code")):
            return _GIVEN_UP[code]() if code in _GIVEN_UP else _failure(error, None)
        body, status = mapping(response.get("body")), number(response.get("status_code"))
        if error or status >= 400 or not body:
            return _failure(mapping(body.get("error")) or error, status)
        return self._adapter.turn(body, model, string(response.get("request_id")))


def _failure(error: dict[str, Any], status: int | None) -> ProviderError:
    return classify(
        string(error.get("message")) or "OpenAI gave neither an answer nor a reason.",
        words=(error.get("code"), error.get("type")),
        status=status,
        fallback=ProviderUnavailable,
    )
