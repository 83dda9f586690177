"""Look up what is known about a model. Adapters ask ``profile_for`` and act on the answer, never on a name."""

from __future__ import annotations

from toolloop.providers.model_facts import DEFAULT_MODELS, DEFAULTS, ROWS
from toolloop.providers.profile_types import Prices, Profile

__all__ = ["DEFAULT_MODELS", "Prices", "Profile", "profile_for"]


def profile_for(provider: str, model: str) -> Profile:
    """Return the profile of a bare model name; the provider's safe default for an unknown one.

    Args:
        provider: registry name, e.g. "anthropic".
        model: bare model name; a leading "models/" (Gemini's own form) is ignored.
    """
    name = model.removeprefix("models/")
    matches = [prefix for owner, prefix in ROWS if owner == provider and name.startswith(prefix)]
    if matches:
        return ROWS[provider, max(matches, key=len)]
    return DEFAULTS.get(provider, Profile())
