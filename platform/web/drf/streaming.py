"""What REST views share that answer with a stream of events."""

from __future__ import annotations

from typing import Any

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from basics.event_stream import EVENT_STREAM
from web.drf.views import TenantAPIView


class EventStreamRenderer(JSONRenderer):
    """Lets clients ask for ``text/event-stream``: the view makes the stream itself, and errors stay JSON by name too."""

    media_type = EVENT_STREAM
    format = "sse"


class StreamingAPIView(TenantAPIView):
    """Base of views that may answer with a stream of events."""

    renderer_classes = [JSONRenderer, EventStreamRenderer]

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Name an error what it is: JSON, whatever the client hoped for."""
        final = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(final, Response):
            final.content_type = JSONRenderer.media_type
        return final
