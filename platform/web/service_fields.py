"""Form fields for how a provider serves requests: tier, lifetime of the prompt cache, background (``toolloop.service``), or by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from batches.delivery import Delivery
from toolloop.service import CACHE_TTLS, TIERS

LABELS: Final = {
    "service_tier": gettext_lazy("Service tier"),
    "cache_ttl": gettext_lazy("Keep the prompt for"),
    "background": gettext_lazy("Answer in the background"),
}
"""What people call the settings."""
HELP: Final = {
    "service_tier": gettext_lazy(
        "Flex costs about half, takes longer and is sometimes refused. Priority is faster and costs more. Only for models that have it."
    ),
    "cache_ttl": gettext_lazy(
        "How long the provider caches the shared start of requests. Longer costs more. Only for "
        "models that have it."
    ),
    "background": gettext_lazy(
        "Long answers survive a lost connection. OpenAI stores questions and answers for a while. Only for OpenAI models."
    ),
}
_LEFT: Final = gettext_lazy("The provider's default")


def tier() -> forms.ChoiceField:
    """Return the field of the service tier."""
    return _choice("service_tier", TIERS)


def cache() -> forms.ChoiceField:
    """Return the field of how long prompts are kept."""
    return _choice("cache_ttl", CACHE_TTLS)


def background() -> forms.BooleanField:
    """Return the field of answers in the background."""
    name = "background"
    return forms.BooleanField(required=False, label=LABELS[name], help_text=HELP[name])


def delivery() -> forms.ChoiceField:
    """Return the field of when models answer, and for how much; see ``batches.delivery``."""
    return forms.ChoiceField(
        required=False,
        label=_("When and for how much"),
        choices=Delivery.choices,
        initial=Delivery.NOW.value,
        help_text=_(
            "Half price: requests go to the provider in batches, which may take up to a day each. An "
            "answer that calls tools takes one batch per turn. Not every model supports it."
        ),
    )


def _choice(name: str, values: Sequence[str]) -> forms.ChoiceField:
    return forms.ChoiceField(
        required=False,
        label=LABELS[name],
        help_text=HELP[name],
        choices=[("", _LEFT), *((value, value.capitalize()) for value in values)],
    )


FIELDS: Final = {"service_tier": tier, "cache_ttl": cache, "background": background}
"""What makes the field of each setting."""
