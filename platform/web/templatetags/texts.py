"""Texts that rows keep, in the reader's language."""

from __future__ import annotations

from django import template

from basics import texts

register = template.Library()


@register.filter
def told(text: str | None) -> str:
    """Return a kept text (``basics.texts``) in the language of the page; escaped like any other text."""
    return texts.told(text or "")
