"""What the policy says, in the reader's language."""

from __future__ import annotations

from django import template
from django.utils.translation import pgettext

from apps.tools.policy.reasons import note_words, reason_words

register = template.Library()


@register.filter
def reason(why: str | None) -> str:
    """Return why the policy decided so in the language of the page; escaped like any other text."""
    return reason_words(why or "")


@register.filter
def note(text: str | None) -> str:
    """Return a rule's note, that of the first rules in the language of the page."""
    return note_words(text or "")


@register.filter
def effect(name: str) -> str:
    """Return what the policy decided, allow, ask or deny, in the language of the page; another word as it is."""
    return {
        "allow": pgettext("effect", "allow"),
        "ask": pgettext("effect", "ask"),
        "deny": pgettext("effect", "deny"),
    }.get(name, name)
