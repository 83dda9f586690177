"""Shared by formats that kreuzberg turns into Markdown: conversion, and the check that no identifier was lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.readers.base import Reading, clean_text, require_text, split_parts
from apps.collections.ingestion.readers.markdown import markdown_reading
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.texts import gettext as _

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]\\]|\\.)*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\s*\)")
_IMAGE = re.compile(r"!\[((?:[^\[\]\\]|\\.)*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\s*\)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~&$])")
# kreuzberg writes an HTML page's <title> as front matter, which it then may render as a heading.
_FRONT_MATTER = re.compile(r"\A---\n\s*(?:#+ )?(?:[\w-]+:.*\n)+(?:---\n)?")
_BLANK_LINES = re.compile(r"\n{3,}")
_RAISED = re.compile(r"\^(\d{1,3})\^", re.ASCII)  # as kreuzberg writes them
_TO_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NOT_TEXT = re.compile(r"[\W_]+")
_KEPT_SHARE = 0.95  # of the source's letters and digits; real files keep all but a few


def read_with_kreuzberg(
    path: Path, media_type: str, noun: str, limits: ReaderLimits, source_text: Callable[[], str]
) -> Reading:
    """Convert a file to Markdown, or to plain text when Markdown loses identifiers.

    When both lose text (kreuzberg leaves out, without a word, what is nested deeper than some hundred elements), the
    source text itself is taken: text without its layout is better than layout without its text.

    Args:
        path: the file.
        media_type: what it is; kreuzberg does not guess.
        noun: how messages call it.
        limits: of this document.
        source_text: gives the file's text by independent, simple means, for the comparison.

    Raises:
        ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
    """
    source = source_text()
    wanted = set(identifier_list(source))
    markdown, title = _extract(path, media_type, "markdown", noun)
    markdown = _strip_links(markdown)
    lost = wanted - set(identifier_list(markdown))
    is_whole = _keeps_text(source, markdown)
    if is_whole and not lost:
        require_text(markdown, limits)
        reading = markdown_reading(markdown, title=title)
        reading.metadata["text_mode"] = "markdown"
        return reading
    plain, _title = _extract(path, media_type, "plain", noun)
    plain = _strip_links(plain)
    if not is_whole and not _keeps_text(source, plain):
        return _source_reading(source, title, noun, limits)
    lost_plain = wanted - set(identifier_list(plain))
    if not is_whole or len(lost_plain) < len(lost):
        require_text(plain, limits)
        parts = list(split_parts(plain, [], []))
        reading = Reading(len(parts), iter(parts), is_paged=False, title=title)
        reading.metadata["text_mode"] = "plain"
        lost = lost_plain
    else:
        require_text(markdown, limits)
        reading = markdown_reading(markdown, title=title)
        reading.metadata["text_mode"] = "markdown"
    if lost:
        shown = ", ".join(sorted(lost)[:5])
        reading.warnings.append(
            _("%(lost)s of %(wanted)s identifiers could not be kept (for example %(shown)s).")
            % {"lost": len(lost), "wanted": len(wanted), "shown": shown}
        )
        reading.metadata["identifiers_lost"] = len(lost)
    return reading


def _keeps_text(source: str, text: str) -> bool:
    return len(_NOT_TEXT.sub("", text)) >= _KEPT_SHARE * len(_NOT_TEXT.sub("", source))


def _source_reading(source: str, title: str, noun: str, limits: ReaderLimits) -> Reading:
    text = _BLANK_LINES.sub("\n\n", clean_text(source)).strip() + "\n"
    require_text(text, limits)
    parts = list(split_parts(text, [], []))
    reading = Reading(len(parts), iter(parts), is_paged=False, title=title)
    reading.metadata["text_mode"] = "source"
    reading.warnings.append(
        _(
            "Headings and tables of this %(noun)s could not be recognised, because its markup is "
            "damaged or nested too deeply. Its text is complete."
        )
        % {"noun": _(noun)}
    )
    return reading


def _extract(path: Path, media_type: str, output_format: str, noun: str) -> tuple[str, str]:
    import kreuzberg

    config = kreuzberg.ExtractionConfig(
        use_cache=False, output_format=output_format, enable_quality_processing=False
    )
    try:
        result = kreuzberg.extract_file_sync(path, mime_type=media_type, config=config)
    except (kreuzberg.KreuzbergError, ValueError, RuntimeError, OSError) as error:
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("The %(noun)s cannot be read; it seems damaged. Save it again and upload the new file.")
            % {"noun": _(noun)},
        ) from error
    metadata: dict[str, Any] = dict(result.metadata or {})
    return clean_text(result.content), clean_text(str(metadata.get("title") or "")).strip()


def raised(digits: str) -> str:
    """Return digits as they are raised: of a note's mark or a power, which are no part of the word before them."""
    return digits.translate(_TO_RAISED)


def _strip_links(text: str) -> str:
    """Keep the words of links and images, not their targets, and undo escapes that hide codes (``get\\_name``)."""
    text = _FRONT_MATTER.sub("", text, count=1)
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _ESCAPE.sub(r"\1", text)
    text = _RAISED.sub(lambda found: raised(found[1]), text)
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"
