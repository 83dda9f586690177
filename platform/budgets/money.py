"""Amounts of money in words. Pure."""

from __future__ import annotations

from decimal import Decimal


def dollars(amount: Decimal) -> str:
    """Write an amount as people do: ``$20``, ``$1,250.50``, ``$0.0042``."""
    places = 0 if amount == amount.to_integral_value() else 2 if abs(amount) >= Decimal("0.01") else 4
    return f"${amount:,.{places}f}"
