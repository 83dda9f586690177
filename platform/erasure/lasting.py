"""What no retention rule removes, and why, as the page of the rules tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Lasting:
    """Something that no rule removes, and why."""

    label: StrOrPromise
    why: StrOrPromise


LASTING = (
    Lasting(
        gettext_lazy("Audit log"),
        gettext_lazy(
            "Each event is sealed with the one before it, so that removing any would break its verification. It is "
            "erased with the workspace."
        ),
    ),
    Lasting(
        gettext_lazy("Usage and cost"),
        gettext_lazy("Budgets and invoices are calculated from it. It has no content."),
    ),
    Lasting(
        gettext_lazy("Passages in answers"),
        gettext_lazy(
            "Which passages an answer was made from: it hides answers from people who lost access to a document. It is "
            "deleted with the conversation."
        ),
    ),
    Lasting(
        gettext_lazy("Erasure reports"),
        gettext_lazy("Proof of what was erased. They have numbers and no names."),
    ),
)
"""What has no rule, for the page."""
