"""Facts per model family: which service tiers it has, and what they cost times its standard price.

As the providers' pages said in November 2026; docs/providers.md says which. A row is looked up like those of
``toolloop.providers.model_facts``: the longest prefix wins, and a model without one has no tier that may be asked for.
What ``list_prices.json`` knows of a model's tiers counts before what is here.

- OpenAI: flex and batch at half price; priority ("fast mode") by its own list, which ``list_prices.json`` has.
- Gemini: flex and batch at half price, priority at 1.75 to 2 times: it counts as 2.
- Anthropic: batch at half price. Priority is capacity bought beforehand, of which a token takes what its list price says: it
  counts as standard.
- xAI: priority at twice the price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from toolloop.providers.profile_types import Tiers

_NONE: Final = Tiers(batch=0.5)
_BOTH: Final = Tiers(("flex", "priority"), flex=0.5, batch=0.5)
_PRIORITY: Final = Tiers(("priority",), batch=0.5)
_FLEX: Final = Tiers(("flex",), flex=0.5, batch=0.5)
_CLAUDE: Final = Tiers(("priority",), priority=1.0, batch=0.5)
_GEMINI: Final = replace(_BOTH, priority=2.0)
_GROK: Final = Tiers(("priority",), priority=2.0)

TIERS: Final[dict[tuple[str, str], Tiers]] = {
    ("openai", "gpt-"): _NONE,
    ("openai", "o"): _NONE,
    ("openai", "gpt-6"): _BOTH,
    ("openai", "gpt-6.1-sol"): _BOTH,
    ("openai", "gpt-5.6"): _BOTH,
    ("openai", "gpt-5.5"): _BOTH,
    ("openai", "gpt-5.4"): _BOTH,
    ("openai", "gpt-5.4-nano"): _FLEX,
    ("openai", "gpt-5.2"): _BOTH,
    ("openai", "gpt-5.2-pro"): _NONE,
    ("openai", "gpt-5.1"): _BOTH,
    ("openai", "gpt-5"): _BOTH,
    ("openai", "gpt-5."): _NONE,
    ("openai", "gpt-5-pro"): _NONE,
    ("openai", "gpt-5-mini"): _BOTH,
    ("openai", "gpt-5-nano"): _FLEX,
    ("openai", "o3"): _BOTH,
    ("openai", "o3-pro"): _NONE,
    ("openai", "o3-mini"): _NONE,
    ("openai", "o3-deep-research"): _NONE,
    ("openai", "o4-mini"): _BOTH,
    ("openai", "o4-mini-deep-research"): _NONE,
    ("openai", "gpt-4.1"): _PRIORITY,
    ("openai", "gpt-4.1-nano"): _PRIORITY,
    ("openai", "gpt-4o"): _PRIORITY,
    ("openai", "gpt-4o-audio"): _NONE,
    ("openai", "gpt-4o-search"): _NONE,
    ("openai", "gpt-4o-mini-audio"): _NONE,
    ("openai", "gpt-4o-mini-search"): _NONE,
    ("anthropic", "claude-"): _CLAUDE,
    ("google", "gemini-2.5"): _GEMINI,
    ("google", "gemini-3"): _GEMINI,
    ("xai", "grok-4"): _GROK,
}
