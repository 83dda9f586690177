"""The multipart body of an upload, as pages and REST take it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy

from basics.errors import Invalid
from basics.texts import gettext as _
from blobs.services import too_large

_FORM_OVERHEAD = 1_000_000  # what a multipart body may hold besides the file


UPLOAD_FORMATS = gettext_lazy("PDF, Office, HTML, email, Markdown, tables, images, text and source code")


def upload_limits() -> dict[str, Any]:
    """Return what a page says beside its drop zone: ``upload_formats``, a text, and ``upload_max_mb``."""
    return {
        "upload_formats": UPLOAD_FORMATS,
        "upload_max_mb": settings.MAX_UPLOAD_BYTES // 1_000_000,
    }


def posted_file(request: Any) -> dict[str, Any]:
    """Return name and chunks of the multipart field ``file``, for ``document_upload``.

    Args:
        request: Django's or REST framework's.

    Raises:
        Invalid: there is none, or the body says that it is too large.
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > settings.MAX_UPLOAD_BYTES + _FORM_OVERHEAD:
        raise too_large(settings.MAX_UPLOAD_BYTES)
    file = request.FILES.get("file")
    if file is None:
        raise Invalid(
            "file_missing",
            _("The request has no file. Send it as multipart/form-data in the field “file”."),
            data={"fields": {"file": [_("This field is required.")]}},
        )
    return {"name": file.name or "", "chunks": file.chunks()}
