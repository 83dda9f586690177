"""Look up what is known about a model. Adapters ask ``profile_for`` and act on the answer, never on a name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from toolloop.providers.model_facts import DEFAULT_MODELS, DEFAULTS, ROWS
from toolloop.providers.profile_types import Prices, Profile, Tiers
from toolloop.providers.tier_facts import TIERS

__all__ = ["DEFAULT_MODELS", "Prices", "Profile", "Tiers", "profile_for"]


def profile_for(provider: str, model: str) -> Profile:
    """Return the profile of a bare model name; the provider's safe default for an unknown one.

    Args:
        provider: registry name, e.g. "anthropic".
        model: bare model name; a leading "models/" (Gemini's own form) is ignored.
    """
    name = model.removeprefix("models/")
    return _joined(provider, _longest(ROWS, provider, name), _longest(TIERS, provider, name))


@cache
def _joined(provider: str, row: str | None, tiers: str | None) -> Profile:
    profile = DEFAULTS.get(provider, Profile()) if row is None else ROWS[provider, row]
    return profile if tiers is None else replace(profile, tiers=TIERS[provider, tiers])


def _longest(keys: Iterable[tuple[str, str]], provider: str, name: str) -> str | None:
    matches = [prefix for owner, prefix in keys if owner == provider and name.startswith(prefix)]
    return max(matches, key=len, default=None)
