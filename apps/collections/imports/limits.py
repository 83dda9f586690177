"""What imports may do on this installation, as the operator's settings say."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from apps.collections.ingestion.sources.base import SourceLimits

MAX_PAGE_BYTES = 50_000_000  # of one web page, which is held in memory


def import_limits() -> SourceLimits:
    """Return what one import may bring."""
    return SourceLimits(
        max_entries=settings.IMPORT_MAX_FILES,
        max_bytes=settings.IMPORT_MAX_BYTES,
        max_file_bytes=settings.MAX_UPLOAD_BYTES,
    )


def page_limits() -> SourceLimits:
    """Return what an import of web pages may bring."""
    return SourceLimits(
        max_entries=settings.IMPORT_MAX_FILES,
        max_bytes=settings.IMPORT_MAX_BYTES,
        max_file_bytes=min(MAX_PAGE_BYTES, settings.MAX_UPLOAD_BYTES),
    )


def paths_allowed(tenant_slug: str) -> list[Path]:
    """Return the folders of the server that a workspace may import from."""
    found: list[Path] = []
    for text in settings.IMPORT_PATHS:
        slug, equals, path = text.partition("=")
        if not equals:
            found.append(Path(text))
        elif slug == tenant_slug:
            found.append(Path(path))
    return found
