"""Chat completions for OpenAI's clients, whose base URL is /api/v1. Errors are ours with OpenAI's ``error`` beside, so that both sides read them."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.api import StreamingAPIView
from apps.conversations.openai.follow import Followed, answer_wait, chunks_follow
from apps.conversations.openai.services import completion_start
from apps.conversations.openai.shapes import ChatCompletionOutput, ChatCompletionShape, request_read
from runs.stream import EVENT_STREAM

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}  # fmt: skip


class OpenAIView(StreamingAPIView):
    """Base of the compatible views: the same keys, rights and limits as everywhere, and errors that OpenAI's clients read."""

    def handle_exception(self, exc: Exception) -> Response:
        """Add the error in OpenAI's shape."""
        response: Response = super().handle_exception(exc)
        if isinstance(response.data, dict) and "message" in response.data:
            fields = (response.data.get("details") or {}).get("fields") or {}
            kind = "server_error" if response.status_code >= 500 else _TYPES.get(response.status_code, "invalid_request_error")  # fmt: skip
            response.data["error"] = {
                "message": response.data["message"],
                "type": kind,
                "param": next(iter(fields), None),
                "code": response.data["code"],
            }
        return response


class ChatCompletionsView(OpenAIView):
    """Chat completions."""

    actions = {"POST": "conversation.write"}
    waits = True

    # The stream is left out of the schema: whoever wants it uses a client of OpenAI's, which knows its chunks.
    @extend_schema(operation_id="chat_completions", tags=["chat completions"], request=ChatCompletionShape, responses={(200, "application/json"): ChatCompletionOutput})  # fmt: skip
    def post(self, request: Request) -> Response | StreamingHttpResponse:
        """Answer a chat: at once, or as a stream of chunks."""
        shape = ChatCompletionShape(data=request.data)
        shape.is_valid(raise_exception=True)
        values = shape.validated_data
        asked = request_read(values)
        run = completion_start(tenant=self.tenant, actor=self.actor, request=asked)
        followed = Followed(self.tenant, self.actor, run, asked.model, run.last_seq)
        if values["stream"]:
            with_usage = bool((values["stream_options"] or {}).get("include_usage"))
            response = StreamingHttpResponse(
                chunks_follow(followed, with_usage=with_usage), content_type=EVENT_STREAM
            )
            response["Cache-Control"] = "no-cache, no-transform"
            response["X-Accel-Buffering"] = "no"
            return response
        answer, problem = async_to_sync(answer_wait)(followed)
        if problem is None:
            return Response(answer.to_json())
        status = 503 if problem["type"] == "server_error" else 400
        return Response(
            {"code": problem["code"], "message": problem["message"], "details": {}, "request_id": "", "error": problem},
            status=status,
        )  # fmt: skip
