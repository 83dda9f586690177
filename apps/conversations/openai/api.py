"""Chat completions for OpenAI's clients, whose base URL is /api/v1. Errors are ours with OpenAI's ``error`` beside, so that both sides read them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.openai.follow import CHUNKS_LOST, Followed, FollowEnd, answer_wait, chunks_follow
from apps.conversations.openai.services import completion_start
from apps.conversations.openai.shapes import ChatCompletionOutput, ChatCompletionShape, request_read
from apps.conversations.transcript.shown import is_readable, run_watch
from basics.event_stream import EVENT_STREAM
from budgets.ledger import BudgetExceeded
from runs.actors import actor_again
from runs.standing import while_allowed
from tenancy.database.waiting import wait_for
from web.departures import has_left
from web.drf.streaming import StreamingAPIView
from web.errors import error_body

_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}
_STATUSES = {"server_error": 503, "rate_limit_error": 429}


class OpenAIView(StreamingAPIView):
    """Base of the compatible views: the same keys, rights and limits as everywhere, and errors that OpenAI's clients read."""

    takes_unknown_fields = True

    @property
    def site(self) -> str:
        """Where this installation is reached, as the client sees it."""
        return self.request.build_absolute_uri("/").rstrip("/")

    def stream(
        self, frames: AsyncGenerator[bytes, None], followed: Followed, last: bytes
    ) -> StreamingHttpResponse:
        """Return server-sent events that nothing on the way holds back, as long as the caller may read them; then ``last``."""
        lasting = while_allowed(
            frames,
            actor=self.actor,
            right="conversation.write",
            last=last,
            also=partial(is_readable, run_watch(self.actor, followed.run)),
        )
        response = StreamingHttpResponse(lasting, content_type=EVENT_STREAM)
        response["Cache-Control"] = "no-cache, no-transform"
        response["X-Accel-Buffering"] = "no"
        return response

    def waited(self, followed: Followed) -> FollowEnd:
        """Return what a run has to say once it has said it; a client that goes away before stops it."""
        found = wait_for(answer_wait, followed, partial(has_left, self.request._request))
        actor_again(self.actor).require("conversation.write")  # it may have waited for minutes
        return found

    def failed(self, code: str, problem: Mapping[str, Any]) -> Response:
        """Return the refusal of a run that has failed: by our name of it, and as OpenAI's clients read it."""
        body = error_body(self.request._request, code, problem["message"])
        body["error"] = problem
        if problem["type"] == "insufficient_quota":
            return _no_money(Response(body))
        return Response(body, status=_STATUSES.get(problem["type"], 400))

    def handle_exception(self, exc: Exception) -> Response:
        """Add the error in OpenAI's shape."""
        response: Response = super().handle_exception(exc)
        if isinstance(response.data, dict) and "message" in response.data:
            place, problem = _first_problem((response.data.get("details") or {}).get("fields"))
            kind = (
                "server_error"
                if response.status_code >= 500
                else _TYPES.get(response.status_code, "invalid_request_error")
            )
            is_vague = response.data["code"] == "invalid" and place and place not in response.data["message"]
            response.data["error"] = {
                "message": f"{place}: {problem}" if is_vague else response.data["message"],
                "type": kind,
                "param": place or None,
                "code": response.data["code"],
            }
        return _no_money(response) if response.status_code == BudgetExceeded.default_status else response


def _no_money(response: Response) -> Response:
    """Say that a budget is used up as OpenAI says that an account is: clients of theirs know it, and do not ask again."""
    response.status_code = 429
    response["x-should-retry"] = "false"
    return response


def _first_problem(fields: Any) -> tuple[str, str]:
    """Return the place and the words of the first of the problems that a shape found, "" for none."""
    place = ""
    while isinstance(fields, dict) and fields:
        name, fields = next(iter(fields.items()))
        if str(name).isdecimal():
            place += f"[{name}]"
        elif name != "non_field_errors":
            place += f".{name}" if place else str(name)
    return place, str(fields[0]) if isinstance(fields, list) and fields else ""


class ChatCompletionsView(OpenAIView):
    """Chat completions."""

    actions = {"POST": "conversation.write"}
    waits = True

    # The stream is left out of the schema: whoever wants it uses a client of OpenAI's, which knows its chunks.
    @extend_schema(
        operation_id="chat_completions",
        tags=["chat completions"],
        request=ChatCompletionShape,
        responses={(200, "application/json"): ChatCompletionOutput},
    )
    def post(self, request: Request) -> Response | StreamingHttpResponse:
        """Answer a chat: at once, or as a stream of chunks."""
        shape = ChatCompletionShape(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        asked = request_read(values)
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
        if values["stream"]:
            with_usage = bool((values["stream_options"] or {}).get("include_usage"))
            return self.stream(chunks_follow(followed, with_usage=with_usage), followed, CHUNKS_LOST)
        outcome = self.waited(followed)
        if outcome.problem is not None:
            return self.failed(outcome.code, outcome.problem)
        return Response(outcome.answer.to_json())
