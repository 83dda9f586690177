"""Responses for OpenAI's clients: the same runs as chat completions, kept so that a later request can go on from one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.openai.api import OpenAIView
from apps.conversations.openai.follow import LOST, Followed, FollowEnd, outcome_read, progress_follow
from apps.conversations.openai.responses import (
    Stored,
    inputs_read,
    previous_read,
    response_delete,
    response_get,
)
from apps.conversations.openai.responses_shapes import (
    ResponseDeletedOutput,
    ResponseInputsFilter,
    ResponseInputsOutput,
    ResponseOutput,
    ResponseShape,
    items_page,
    response_request_read,
)
from apps.conversations.openai.responses_wire import ResponseWriter, event_frame, items_of
from apps.conversations.openai.services import completion_start, completion_stop
from basics.event_stream import HEARTBEAT


class ResponsesView(OpenAIView):
    """Responses."""

    actions = {"POST": "conversation.write"}
    waits = True

    # The stream is left out of the schema: whoever wants it uses a client of OpenAI's, which knows its events.
    @extend_schema(
        operation_id="responses_create",
        tags=["responses"],
        request=ResponseShape,
        responses={(200, "application/json"): ResponseOutput},
    )
    def post(self, request: Request) -> Response | StreamingHttpResponse:
        """Answer an input: at once, or as a stream of typed events."""
        shape = ResponseShape(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        named = values["previous_response_id"]
        previous = previous_read(tenant=self.tenant, actor=self.actor, response_id=named) if named else None
        asked = response_request_read(values, previous)
        run = completion_start(tenant=self.tenant, actor=self.actor, request=asked)
        followed = Followed(
            self.tenant,
            self.actor,
            run,
            asked.model,
            run.last_seq,
            with_events=bool((values["groundwork"] or {}).get("events")),
            site=self.site,
        )
        repeated = (asked.response or {})["asked"]
        writer = ResponseWriter(
            run.pk, followed.after, int(run.created_at.timestamp()), asked.model, repeated
        )
        if values["stream"]:
            return self.stream(_frames(followed, writer), followed, _LOST)
        outcome = self.waited(followed)
        if outcome.problem is not None:
            return self.failed(outcome.code, outcome.problem)
        return Response(writer.whole(outcome))


class ResponseView(OpenAIView):
    """One response."""

    actions = {"GET": "conversation.read", "DELETE": "conversation.write"}

    @extend_schema(
        operation_id="responses_get",
        tags=["responses"],
        responses={(200, "application/json"): ResponseOutput},
    )
    def get(self, request: Request, response_id: str) -> Response:
        """Return a stored response, complete or in progress."""
        stored = response_get(actor=self.actor, response_id=response_id)
        outcome = outcome_read(replace(stored.followed(self.tenant, self.actor), site=self.site))
        return Response(_writer(stored).whole(outcome))

    @extend_schema(
        operation_id="responses_delete",
        tags=["responses"],
        responses={(200, "application/json"): ResponseDeletedOutput},
    )
    def delete(self, request: Request, response_id: str) -> Response:
        """Delete a response, so that later requests can't refer to it. It is stopped if in progress; its run is kept."""
        response_delete(tenant=self.tenant, actor=self.actor, response_id=response_id)
        return Response({"id": response_id, "object": "response", "deleted": True})


class ResponseCancelView(OpenAIView):
    """The end of a response that is under way."""

    actions = {"POST": "conversation.write"}
    waits = True

    @extend_schema(
        operation_id="responses_cancel",
        tags=["responses"],
        request=None,
        responses={(200, "application/json"): ResponseOutput},
    )
    def post(self, request: Request, response_id: str) -> Response:
        """Stop a response and return its text so far; a finished one stays as it is."""
        stored = response_get(actor=self.actor, response_id=response_id)
        followed = replace(stored.followed(self.tenant, self.actor), site=self.site)
        if stored.segment.until is None:
            completion_stop(tenant=self.tenant, actor=self.actor, run=stored.run)
            outcome = self.waited(followed)
        else:
            outcome = outcome_read(followed)
        return Response(_writer(stored).whole(outcome))


class ResponseInputsView(OpenAIView):
    """What a response answers."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="responses_input_items",
        tags=["responses"],
        parameters=[ResponseInputsFilter],
        responses={(200, "application/json"): ResponseInputsOutput},
    )
    def get(self, request: Request, response_id: str) -> Response:
        """List the input items of a response and of those before it; only the names of images and files."""
        asked = ResponseInputsFilter(data=request.query_params)
        asked.is_valid(raise_exception=True)
        developer, messages = inputs_read(tenant=self.tenant, actor=self.actor, response_id=response_id)
        return Response(items_page(items_of(developer, messages), **asked.validated_data))


# https://developers.openai.com/api/reference/resources/responses: "error" is an event of its own, and the last.
_LOST = event_frame({"type": "error", "code": LOST["code"], "message": LOST["message"], "param": None})


def _writer(stored: Stored) -> ResponseWriter:
    """Return what writes a kept response."""
    run = stored.run
    asked = run.request["response"]["asked"]
    repeated = {**asked, "previous_response_id": stored.previous_id}
    created, model = int(run.created_at.timestamp()), run.request["completion"]["model"]
    return ResponseWriter(run.pk, stored.segment.after, created, model, repeated)


async def _frames(followed: Followed, writer: ResponseWriter) -> AsyncGenerator[bytes, None]:
    """Yield a response as server-sent events. A client that goes away stops the run."""
    for event in writer.begin():
        yield event_frame(event)
    async with aclosing(progress_follow(followed)) as progress:
        async for step in progress:
            if step is None:
                yield HEARTBEAT
                continue
            if isinstance(step, FollowEnd):
                events = writer.end(step)
            elif isinstance(step, str):
                events = writer.text(step)
            else:
                events = writer.events(step)
            yield b"".join(event_frame(event) for event in events)
