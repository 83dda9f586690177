"""Look up what is known about a model. Adapters ask ``profile_for`` and act on the answer, never on a name.

Prices are in ``list_prices.json``, written from genai-prices by `make prices` and read when first asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from toolloop.providers.model_facts import DEFAULT_MODELS, DEFAULTS, ROWS
from toolloop.providers.profile_types import Prices, Profile, Tiers
from toolloop.providers.tier_facts import TIERS

__all__ = ["DEFAULT_MODELS", "Prices", "Profile", "Tiers", "list_name", "list_prices_for", "profile_for"]

# What may follow a model's name without making it another model: a date, a number of a version, "latest".
_SAME: Final = re.compile(r"(?:-(?:latest|preview|\d{2,8}))*")
_FACTORS: Final = ("flex", "priority", "batch")


@dataclass(frozen=True, slots=True)
class ListPrices:
    """What a model costs: by size of the prompt, and its service tiers in times of that, as far as they are published."""

    prices: tuple[Prices, ...]
    factors: tuple[tuple[str, float], ...]


def profile_for(provider: str, model: str) -> Profile:
    """Return the profile of a bare model name; the provider's safe default for an unknown one.

    Args:
        provider: registry name, e.g. "anthropic".
        model: bare model name; a leading "models/" (Gemini's own form) is ignored.
    """
    name = model.removeprefix("models/")
    return _joined(
        provider,
        _longest(ROWS, provider, name),
        _longest(TIERS, provider, name),
        list_prices_for(provider, name),
    )


@cache
def _joined(provider: str, row: str | None, tiers: str | None, listed: ListPrices | None) -> Profile:
    profile = DEFAULTS.get(provider, Profile()) if row is None else ROWS[provider, row]
    if tiers is not None:
        profile = replace(profile, tiers=TIERS[provider, tiers])
    if listed is None:
        return profile
    factors: dict[str, Any] = dict(listed.factors)
    return replace(profile, prices=listed.prices, tiers=replace(profile.tiers, **factors))


def _longest(keys: Iterable[tuple[str, str]], provider: str, name: str) -> str | None:
    matches = [prefix for owner, prefix in keys if owner == provider and name.startswith(prefix)]
    return max(matches, key=len, default=None)


def list_prices_for(provider: str, name: str) -> ListPrices | None:
    """Return the list prices of a model, None when they are unknown.

    A variant of a known model costs a multiple of it as often as not: only dates and versions are looked through.

    Args:
        provider: registry name.
        name: bare model name.
    """
    known = list_name(provider, name)
    return _table()[provider][known] if known else None


def list_name(provider: str, name: str) -> str:
    """Return the name under which the list prices have a model, without the dates and versions of its own; "" for none."""
    names = [
        known
        for known in _table().get(provider, {})
        if name.startswith(known) and _SAME.fullmatch(name, len(known))
    ]
    return max(names, key=len, default="")


@cache
def _table() -> dict[str, dict[str, ListPrices]]:
    from pathlib import Path  # here, because what imports the loop may never price anything

    read: dict[str, Any] = json.loads(
        Path(__file__).with_name("list_prices.json").read_text(encoding="utf-8")
    )
    return {
        provider: {name: _entry(entry) for name, entry in models.items()}
        for provider, models in read["models"].items()
    }


def _entry(entry: dict[str, Any]) -> ListPrices:
    factors = tuple((tier, entry[tier]) for tier in _FACTORS if tier in entry)
    return ListPrices(tuple(Prices(**row) for row in entry["prices"]), factors)
