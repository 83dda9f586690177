"""Answers in templates: their text, as the live view draws it too."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.safestring import SafeString, mark_safe

from apps.conversations.display.rendering import Block, block_element

register = template.Library()


@register.simple_tag
def answer_text(blocks: Iterable[Block], run_id: int | str) -> SafeString:
    """Return an answer's blocks as elements; they are clean (``display.rendering``)."""
    return mark_safe("".join(block_element(block, run_id) for block in blocks))  # noqa: S308
