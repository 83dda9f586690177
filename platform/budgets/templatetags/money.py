"""Amounts of money in templates, so that every page writes them the same way."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.template.defaultfilters import floatformat
from django.utils.translation import get_language_bidi

register = template.Library()


@register.filter(is_safe=True)
def dollars(amount: Decimal | float | None, places: int | str) -> str:
    """Write an amount of US dollars with its sign: ``{{ cost|dollars:4 }}`` gives ``$0.0042``.

    Args:
        amount: in US dollars. None gives "", so that no sign is left alone.
        places: decimal places, as ``floatformat`` takes them; ``"2g"`` groups thousands.
    """
    # In a line of Arabic the sign would go to the other side of its number.
    mark = "\u200e" if get_language_bidi() else ""
    return f"{mark}${floatformat(amount, places)}" if amount is not None else ""


@register.filter(is_safe=True)
def usd(amount: Decimal | float | None, places: int | str) -> str:
    """Write an amount with its unit behind it: ``{{ cost|usd:4 }}`` gives ``0.0042 USD``.

    For small amounts among other figures with a unit, such as seconds and tokens.

    Args:
        amount: in US dollars. None gives "".
        places: as for ``dollars``.
    """
    return f"{floatformat(amount, places)} USD" if amount is not None else ""
