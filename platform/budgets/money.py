"""Amounts of money in words. Pure."""

from __future__ import annotations

from decimal import Decimal

from basics.texts import Told, number_told


def dollars(amount: Decimal) -> Told:
    """Write an amount as people do: ``$20``, ``$1,250.50`` (``$1.250,50`` in German), ``$0.0042``."""
    places = 0 if amount == amount.to_integral_value() else 2 if abs(amount) >= Decimal("0.01") else 4
    return number_told(amount, places, "$")
