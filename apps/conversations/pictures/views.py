"""Hand out pictures of conversations."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_GET

from apps.conversations.models import Picture
from apps.conversations.pictures.selectors import picture_get
from apps.conversations.transcript import selectors
from web.downloads import attachment
from web.requests import TenantRequest, allowed

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}


@require_GET
@allowed("conversation.read")
def picture(request: TenantRequest, tenant_slug: str, pk: int, picture_pk: int) -> HttpResponseBase:
    """Return a picture of a conversation; ``?download=1`` as a file to be saved."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = picture_get(actor=request.actor, conversation=conversation, pk=picture_pk)
    return picture_response(request, row)


def picture_response(request: HttpRequest, row: Picture) -> HttpResponseBase:
    """Return a picture to a reader who may see it; a browser asks each time whether that is still so."""
    name = f"picture-{row.pk}.{_ENDINGS[row.media_type]}"
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": attachment(name) if request.GET.get("download") else "inline",
        "ETag": f'"{row.sha256}"',
        "X-Content-Type-Options": "nosniff",
    }
    response = HttpResponse(bytes(row.content), content_type=row.media_type, headers=headers)
    return get_conditional_response(request, etag=headers["ETag"], response=response) or response
