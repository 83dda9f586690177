"""How a provider is to serve a request: in which tier, how long it keeps the prompt, and whether it goes on without us.

These options change what a call costs or where its data stays, so what a model does not have is refused before anything is
sent; nothing of it is dropped. They travel in ``ModelRequest.options`` as ``service_tier``, ``cache_ttl`` and ``background``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from toolloop.errors import UnsupportedFeature
from toolloop.limits import Limits
from toolloop.providers.profile_types import Profile

STANDARD: Final = "standard"
TIERS: Final = (STANDARD, "flex", "priority")
"""What may be asked for: the usual one; cheap, slow and at times refused; dear and quick."""
CACHE_TTLS: Final = ("5m", "30m", "1h", "12h", "24h")
"""How long a prompt may be kept; each model has its own of these, see ``Profile.cache_ttls``."""
NAMES: Final = ("service_tier", "cache_ttl", "background")
"""The names of these options."""
FLEX_SECONDS: Final = 900.0
"""What a call in the flex tier may take at least: https://developers.openai.com/api/docs/guides/flex-processing advises it."""
_USED: Final[Mapping[str, str]] = {
    # What a request asked for is not what it got: until the answer is there, nobody has decided.
    "auto": "",
    "unspecified": "",
    "default": STANDARD,
    "standard_only": STANDARD,
    # OpenAI's later name for it: https://developers.openai.com/api/docs/guides/fast-mode.
    "fast": "priority",
}


@dataclass(frozen=True, slots=True)
class Service:
    """What is asked of a provider's service.

    Attributes:
        tier: of ``TIERS``, "" leaves it to the provider and the settings of the account there.
        cache_ttl: of ``CACHE_TTLS``, "" for the provider's default.
        background: the provider answers whether or not we are connected, and stores the answer for that.
    """

    tier: str = ""
    cache_ttl: str = ""
    background: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Read the options of a request.

        Raises:
            UnsupportedFeature: a value that there is nowhere.
        """
        tier, ttl = options.get("service_tier") or "", options.get("cache_ttl") or ""
        background = options.get("background") or False
        if tier not in ("", *TIERS):
            raise UnsupportedFeature(f"Unknown service tier {tier!r}. Choose one of: {', '.join(TIERS)}.")
        if ttl not in ("", *CACHE_TTLS):
            raise UnsupportedFeature(
                f"A prompt can't be cached for {ttl!r}. Choose one of: {', '.join(CACHE_TTLS)}."
            )
        if not isinstance(background, bool):
            raise UnsupportedFeature("background must be true or false.")
        return cls(tier, ttl, background)

    def problem(self, profile: Profile, model: str) -> str:
        """Say in a sentence what of it a model does not have, "" for nothing."""
        offered = (STANDARD, *profile.tiers.offered)
        if self.tier and self.tier not in offered:
            return f"{model} has no service tier “{self.tier}”. It has: {', '.join(offered)}."
        if self.cache_ttl and self.cache_ttl not in profile.cache_ttls:
            has = ", ".join(profile.cache_ttls)
            tail = f"It has: {has}." if has else "Leave the setting out."
            return f"{model} can't cache a prompt for {self.cache_ttl}. {tail}"
        if self.background and not profile.background:
            return f"{model} cannot answer in the background. Leave the setting out."
        return ""


def service_checked(options: Mapping[str, Any], profile: Profile, model: str) -> Service:
    """Read the options of a request to a model.

    Raises:
        UnsupportedFeature: the model does not have one of them; the message says which it has.
    """
    asked = Service.of(options)
    if problem := asked.problem(profile, model):
        raise UnsupportedFeature(problem)
    return asked


def tier_used(word: str) -> str:
    """Return our name for the tier that an answer names, "" where it names none; a word we do not know stays as it is."""
    word = word.lower()
    return _USED.get(word, word)[:40]


def tier_charged(used: str, asked: str) -> str:
    """Return the tier that a call is priced by: the one used, else the dearer of what was asked for and the standard one."""
    return used or ("priority" if asked == "priority" else "")


def seconds_allowed(seconds: float, tier: str) -> float:
    """Return what a call may take in a tier: in flex it waits for its turn."""
    return max(seconds, FLEX_SECONDS) if tier == "flex" else seconds


def limits_patient(limits: Limits, options: Mapping[str, Any]) -> Limits:
    """Return limits with time for the tier that is asked for, where nobody sits and waits for the answer."""
    if limits.max_seconds is None:
        return limits
    tier = Service.of(options).tier
    return replace(limits, max_seconds=seconds_allowed(limits.max_seconds, tier))
