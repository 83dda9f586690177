"""Facts per model family: what a model accepts, how much fits, when it ends.

These tables and ``tier_facts`` are the only place of the package that knows model names, but for the prefixes by which
``toolloop.models.routing`` routes a bare name. A new model needs a row here and nothing else; a model without a row gets its
provider's safe default, which sends no parameter that some model of that provider refuses.

Prices are in ``list_prices.json``. Ends are those that the providers' own packages (openai 3.52, anthropic 2.11) name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from toolloop.providers.profile_types import Prices, Profile

__all__ = ["DEFAULTS", "DEFAULT_MODELS", "MODELS", "ROWS"]

_ALL_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CLAUDE_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

_OPENAI_DEFAULT: Final = Profile(
    encrypted_reasoning=True, strict_tools=True, prompt_cache="automatic", background=True
)
_GPT_5: Final = Profile(
    400_000,
    128_000,
    efforts=("minimal", "low", "medium", "high"),
    thinking="effort",
    encrypted_reasoning=True,
    reasoning_summary=True,
    strict_tools=True,
    image_input=True,
    pdf_input=True,
    file_input=True,
    web_search=True,
    file_search=True,
    code_execution=True,
    prompt_cache="automatic",
    background=True,
)
# https://developers.openai.com/api/docs/guides/prompt-caching: the retention of these, and the lifetimes of later ones.
_GPT_5_1: Final = replace(
    _GPT_5,
    cache_ttls=("24h",),
    temperature="without_reasoning",
    efforts=("none", "low", "medium", "high", "xhigh"),
)
_GPT_5_4: Final = replace(_GPT_5_1, deferred_tools=True)
_GPT_6: Final = replace(
    _GPT_5_4,
    context_window=1_050_000,
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
    cache_ttls=("30m", "12h"),
)
_O_SERIES: Final = replace(
    _GPT_5, context_window=200_000, max_output_tokens=100_000, efforts=("low", "medium", "high")
)
_GPT_4: Final = Profile(
    128_000,
    16_384,
    temperature="always",
    strict_tools=True,
    image_input=True,
    pdf_input=True,
    file_input=True,
    web_search=True,
    file_search=True,
    code_execution=True,
    prompt_cache="automatic",
    background=True,
)
_GPT_OLD: Final = Profile(
    8_192,
    4_096,
    temperature="always",
    structured_output="never",
    deprecated_on="2026-10-23",
    replaced_by="gpt-6-luna",
)
_GPT_4_1: Final = replace(_GPT_4, context_window=1_047_576, max_output_tokens=32_768)

_ANTHROPIC_DEFAULT: Final = Profile(
    forced_tool_choice=False,
    structured_output="never",
    image_input=True,
    pdf_input=True,
    file_input=True,
    stop_sequences=True,
    prompt_cache="marked",
    cache_ttls=("5m", "1h"),
)
# strict_tools stays off although these models have it: one request takes 20 strict tools, 24 optional and 16 union
# parameters, and beyond a size of grammar that nobody has written down it is refused as a whole (decisions.md).
_CLAUDE_4_5: Final = Profile(
    200_000,
    64_000,
    temperature="always",
    efforts=("low", "medium", "high"),
    thinking="budget",
    image_input=True,
    pdf_input=True,
    file_input=True,
    cites_passages=True,
    web_search=True,
    deferred_tools=True,
    stop_sequences=True,
    web_fetch=True,
    code_execution=True,
    prompt_cache="marked",
    cache_ttls=("5m", "1h"),
)
_CLAUDE_4_6: Final = replace(_CLAUDE_4_5, temperature="never", efforts=_CLAUDE_EFFORTS, thinking="adaptive")
_CLAUDE_5: Final = replace(_CLAUDE_4_6, context_window=1_000_000, max_output_tokens=128_000)
_CLAUDE_5_5: Final = replace(_CLAUDE_5, forced_tool_choice=False)

_GOOGLE_DEFAULT: Final = Profile(
    structured_output="without_tools",
    image_input=True,
    pdf_input=True,
    file_input=True,
    stop_sequences=True,
    prompt_cache="automatic",
)
_GEMINI_2_5: Final = Profile(
    1_048_576,
    65_536,
    temperature="always",
    efforts=("low", "medium", "high"),
    thinking="budget",
    structured_output="without_tools",
    image_input=True,
    pdf_input=True,
    audio_input=True,
    file_input=True,
    web_search=True,
    file_search=True,
    stop_sequences=True,
    web_fetch=True,
    code_execution=True,
    prompt_cache="automatic",
)
_GEMINI_3: Final = replace(_GEMINI_2_5, thinking="level", structured_output="always")

_XAI_DEFAULT: Final = Profile(encrypted_reasoning=True, prompt_cache="automatic")
_GROK_4: Final = replace(
    _XAI_DEFAULT,
    context_window=256_000,
    image_input=True,
    web_search=True,
    file_search=True,
    code_execution=True,
)
_GROK_REASONING: Final = replace(_GROK_4, efforts=("low", "medium", "high"), thinking="effort")

# Local servers know neither strict schemas nor reasoning efforts for sure; endpoint settings switch them on.
_COMPATIBLE_DEFAULT: Final = Profile(temperature="always", efforts=_ALL_EFFORTS, stop_sequences=True)


DEFAULTS: Final[dict[str, Profile]] = {
    "openai": _OPENAI_DEFAULT,
    "anthropic": _ANTHROPIC_DEFAULT,
    "google": _GOOGLE_DEFAULT,
    "xai": _XAI_DEFAULT,
    "compatible": _COMPATIBLE_DEFAULT,
    "extractive": Profile(prices=(Prices(0.0, 0.0),), structured_output="never"),
    "scripted": Profile(temperature="always", prices=(Prices(0.0, 0.0),)),
}

# (provider, prefix of the model name): the longest matching prefix wins.
ROWS: Final[dict[tuple[str, str], Profile]] = {
    ("openai", "gpt-6.1-sol"): replace(
        _GPT_6,
        temperature="never",
        efforts=("low", "medium", "high", "xhigh", "max"),
    ),
    ("openai", "gpt-6.1-terra"): _GPT_6,
    ("openai", "gpt-6"): _GPT_6,
    ("openai", "gpt-6-sol"): _GPT_6,
    ("openai", "gpt-6-luna"): _GPT_6,
    ("openai", "gpt-5"): replace(_GPT_5, deprecated_on="2026-12-11", replaced_by="gpt-6.1-terra"),
    ("openai", "gpt-5-mini"): replace(_GPT_5, deprecated_on="2026-12-11", replaced_by="gpt-6-luna"),
    ("openai", "gpt-5-nano"): replace(_GPT_5, deprecated_on="2026-12-11", replaced_by="gpt-6-luna"),
    ("openai", "gpt-5-pro"): _GPT_5,
    ("openai", "gpt-5.2-pro"): _GPT_5_1,
    ("openai", "o3-pro"): _O_SERIES,
    ("openai", "o3-deep-research"): _O_SERIES,
    ("openai", "o4-mini-deep-research"): _O_SERIES,
    ("openai", "gpt-4o-audio"): _OPENAI_DEFAULT,
    ("openai", "gpt-4o-mini-audio"): _OPENAI_DEFAULT,
    ("openai", "gpt-4o-search"): replace(_GPT_4, tools=False, deprecated_on="2026-07-23"),
    ("openai", "gpt-4o-mini-search"): replace(_GPT_4, tools=False, deprecated_on="2026-07-23"),
    ("openai", "gpt-5.1"): replace(_GPT_5_1, deprecated_on="2027-04-01", replaced_by="gpt-6.1-terra"),
    ("openai", "gpt-5.2"): _GPT_5_1,
    ("openai", "gpt-5."): _GPT_5_1,
    ("openai", "gpt-5.4"): _GPT_5_4,
    ("openai", "gpt-5.4-nano"): replace(_GPT_5_4, deprecated_on="2027-04-01", replaced_by="gpt-6-luna"),
    ("openai", "gpt-5.5"): _GPT_5_4,
    ("openai", "gpt-5.6"): _GPT_6,
    ("openai", "o1"): replace(_O_SERIES, deprecated_on="2026-10-23", replaced_by="gpt-6.1-terra"),
    ("openai", "o1-mini"): replace(_O_SERIES, tools=False, deprecated_on="2025-10-27"),
    ("openai", "o1-preview"): replace(_O_SERIES, tools=False, deprecated_on="2025-07-28"),
    ("openai", "o3"): replace(_O_SERIES, deprecated_on="2026-12-11", replaced_by="gpt-6.1-terra"),
    ("openai", "o3-mini"): replace(
        _O_SERIES,
        image_input=False,
        pdf_input=False,
        file_input=False,
        deprecated_on="2026-10-23",
        replaced_by="gpt-6-luna",
    ),
    ("openai", "o4-mini"): replace(_O_SERIES, deprecated_on="2026-10-23", replaced_by="gpt-6-luna"),
    ("openai", "gpt-3.5"): replace(_GPT_OLD, context_window=16_385),
    ("openai", "gpt-4"): _GPT_OLD,
    ("openai", "gpt-4.1"): replace(_GPT_4_1, deprecated_on="2027-01-14", replaced_by="gpt-6.1-terra"),
    ("openai", "gpt-4.1-mini"): replace(_GPT_4_1, deprecated_on="2027-01-14", replaced_by="gpt-6-luna"),
    ("openai", "gpt-4.1-nano"): replace(
        _GPT_4_1,
        web_search=False,
        deprecated_on="2026-10-23",
        replaced_by="gpt-6-luna",
    ),
    ("openai", "gpt-4o"): replace(_GPT_4, deprecated_on="2027-01-14", replaced_by="gpt-6.1-terra"),
    ("openai", "gpt-4o-mini"): replace(_GPT_4, deprecated_on="2027-01-14", replaced_by="gpt-6-luna"),
    ("openai", "chatgpt-4o"): replace(_GPT_4, tools=False, deprecated_on="2026-02-17"),
    ("anthropic", "claude-haiku-4-5"): replace(_CLAUDE_4_5, deferred_tools=False),
    ("anthropic", "claude-sonnet-4-5"): replace(
        _CLAUDE_4_5,
        deprecated_on="2026-11-30",
        replaced_by="claude-sonnet-5-5",
    ),
    ("anthropic", "claude-opus-4-5"): _CLAUDE_4_5,
    ("anthropic", "claude-sonnet-4-6"): _CLAUDE_4_6,
    ("anthropic", "claude-opus-4-"): _CLAUDE_4_6,
    ("anthropic", "claude-opus-5"): _CLAUDE_5,
    ("anthropic", "claude-opus-5-5"): _CLAUDE_5_5,
    ("anthropic", "claude-sonnet-5"): _CLAUDE_5,
    ("anthropic", "claude-sonnet-5-5"): _CLAUDE_5_5,
    ("anthropic", "claude-haiku-5-5"): _CLAUDE_5_5,
    ("anthropic", "claude-fable-5"): _CLAUDE_5_5,
    ("anthropic", "claude-fable-5-1"): _CLAUDE_5_5,
    ("anthropic", "claude-mythos-5"): _CLAUDE_5_5,
    ("google", "gemini-2.5-pro"): _GEMINI_2_5,
    ("google", "gemini-2.5-flash"): _GEMINI_2_5,
    ("google", "gemini-2.5-flash-lite"): _GEMINI_2_5,
    ("google", "gemini-3"): _GEMINI_3,
    ("google", "gemini-3-flash"): _GEMINI_3,
    ("google", "gemini-3.8-flash"): _GEMINI_3,
    ("xai", "grok-3-mini"): Profile(
        131_072, efforts=("low", "high"), thinking="effort", prompt_cache="automatic"
    ),
    ("xai", "grok-4"): _GROK_4,
    ("xai", "grok-4.3"): replace(_GROK_REASONING, context_window=1_000_000),
    ("xai", "grok-4.5"): replace(_GROK_REASONING, context_window=500_000),
}

DEFAULT_MODELS: Final[dict[str, tuple[str, ...]]] = {
    "openai": ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"),
    "anthropic": ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"),
    "google": ("gemini-3.8-flash", "gemini-3.1-flash-lite"),
    "xai": ("grok-4.5", "grok-4.3"),
}
"""Models offered when a key is there and nobody chose others, the best default first."""

MODELS: Final[dict[str, tuple[str, ...]]] = {
    "openai": tuple(
        """
        gpt-6.1-sol gpt-6.1-terra gpt-6-luna gpt-6-sol gpt-6-astra gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna
        gpt-5.5 gpt-5.4 gpt-5.4-mini gpt-5.4-nano gpt-5.2 gpt-5.2-pro gpt-5.1 gpt-5 gpt-5-mini gpt-5-nano
        gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o gpt-4o-mini gpt-4 gpt-3.5-turbo o4-mini o3 o3-mini o1
    """.split()
    ),
    "anthropic": (
        "claude-sonnet-5-5",
        "claude-opus-5-5",
        "claude-haiku-5-5",
        "claude-fable-5-1",
        "claude-sonnet-5",
        "claude-opus-5",
        "claude-fable-5",
        "claude-mythos-5",
        "claude-opus-4-8",
        "claude-opus-4-7",
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-4-5",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    ),
    "google": (
        "gemini-3.8-flash",
        "gemini-3.1-flash-lite",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        "gemini-2.5-flash-lite",
    ),
    "xai": ("grok-4.5", "grok-4.3", "grok-4", "grok-3-mini"),
}
"""Models that a catalog lists, per provider the best default first. Others work too, by the rows of their family."""
