"""Facts per model family: what a model accepts, how much fits, what it costs.

This table is the only place of the package that knows model names. An adapter asks ``profile_for`` and acts on the
answer, so a new model needs a row here and nothing else; a model without a row gets its provider's safe default, which
sends no parameter that some model of that provider refuses.

Prices are list prices in USD per million tokens as published in November 2026, None or absent where unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from toolloop.messages import Usage


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens for requests of more than ``above_tokens`` input tokens.

    An unknown cache price counts as the input price: a cost limit may stop early, never late.
    """

    input: float
    output: float
    cached_read: float | None = None
    cache_write: float | None = None
    above_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """What adapters and limits need to know about one model family.

    Attributes:
        context_window, max_output_tokens: tokens, None when unknown.
        temperature: whether the parameter is accepted; ``without_reasoning`` means only with effort "none".
        efforts: accepted reasoning efforts, weakest first; any other value is dropped.
        thinking: how reasoning is steered: ``effort`` (OpenAI), ``adaptive`` or ``budget`` (Anthropic), ``level`` or
            ``budget`` (Gemini), ``none`` for models without it.
        encrypted_reasoning: reasoning items can be had encrypted and must be echoed.
        reasoning_summary: a readable summary of the reasoning can be asked for.
        strict_tools: schemas that qualify may be sent as strict.
        parallel_tool_calls: the parameter of that name is understood.
        forced_tool_choice: "required" is accepted; otherwise it becomes "auto".
        max_tokens_field: name of the output limit on the chat completions wire.
        prices: tiers, smallest ``above_tokens`` first; empty when unknown.
        structured_output: whether a schema for the answer can be sent, and whether beside tools.
    """

    context_window: int | None = None
    max_output_tokens: int | None = None
    temperature: Literal["always", "without_reasoning", "never"] = "never"
    efforts: tuple[str, ...] = ()
    thinking: Literal["none", "effort", "adaptive", "budget", "level"] = "none"
    encrypted_reasoning: bool = False
    reasoning_summary: bool = False
    strict_tools: bool = False
    parallel_tool_calls: bool = True
    forced_tool_choice: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    prices: tuple[Prices, ...] = ()
    structured_output: Literal["always", "without_tools", "never"] = "always"

    def allows_temperature(self, effort: str | None) -> bool:
        """Tell whether ``temperature`` may be sent together with this effort."""
        return self.temperature == "always" or (
            self.temperature == "without_reasoning" and effort == "none"
        )

    def cost_usd(self, usage: Usage) -> float | None:
        """Price one model call in USD, None when the price is unknown.

        Give the usage of a single request: price tiers depend on the size of each prompt, so the sum of several
        requests would be priced too high.
        """
        if not self.prices:
            return None
        tier = self.prices[0]
        for candidate in self.prices:
            if usage.input_total > candidate.above_tokens:
                tier = candidate
        read_price = tier.input if tier.cached_read is None else tier.cached_read
        write_price = tier.input if tier.cache_write is None else tier.cache_write
        fresh = max(0, usage.input_total - usage.cached_read - usage.cache_write)
        return (
            fresh * tier.input
            + usage.cached_read * read_price
            + usage.cache_write * write_price
            + usage.output_total * tier.output
        ) / 1_000_000


_ALL_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CLAUDE_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

_OPENAI_DEFAULT: Final = Profile(encrypted_reasoning=True, strict_tools=True)
_GPT_5: Final = Profile(
    400_000,
    128_000,
    efforts=("minimal", "low", "medium", "high"),
    thinking="effort",
    encrypted_reasoning=True,
    reasoning_summary=True,
    strict_tools=True,
)
_GPT_5_1: Final = replace(
    _GPT_5,
    temperature="without_reasoning",
    efforts=("none", "low", "medium", "high", "xhigh"),
)
_GPT_6: Final = replace(
    _GPT_5_1,
    context_window=1_050_000,
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
)
_O_SERIES: Final = replace(
    _GPT_5, context_window=200_000, max_output_tokens=100_000, efforts=("low", "medium", "high")
)
_GPT_4: Final = Profile(128_000, 16_384, temperature="always", strict_tools=True)
_GPT_4_1: Final = replace(_GPT_4, context_window=1_047_576, max_output_tokens=32_768)

_ANTHROPIC_DEFAULT: Final = Profile(forced_tool_choice=False, structured_output="never")
_CLAUDE_4_5: Final = Profile(
    200_000,
    64_000,
    temperature="always",
    efforts=("low", "medium", "high"),
    thinking="budget",
)
_CLAUDE_4_6: Final = Profile(200_000, 64_000, efforts=_CLAUDE_EFFORTS, thinking="adaptive")
_CLAUDE_5: Final = replace(_CLAUDE_4_6, context_window=1_000_000, max_output_tokens=128_000)
_CLAUDE_5_5: Final = replace(_CLAUDE_5, forced_tool_choice=False)

_GOOGLE_DEFAULT: Final = Profile(structured_output="without_tools")
_GEMINI_2_5: Final = Profile(
    1_048_576,
    65_536,
    temperature="always",
    efforts=("low", "medium", "high"),
    thinking="budget",
    structured_output="without_tools",
)
_GEMINI_3: Final = replace(_GEMINI_2_5, thinking="level", structured_output="always")

_XAI_DEFAULT: Final = Profile(encrypted_reasoning=True)
_GROK_REASONING: Final = Profile(
    encrypted_reasoning=True, efforts=("low", "medium", "high"), thinking="effort"
)

# Local servers know neither strict schemas nor reasoning efforts for sure; endpoint settings switch them on.
_COMPATIBLE_DEFAULT: Final = Profile(temperature="always", efforts=_ALL_EFFORTS)


def _claude_prices(input_price: float, output_price: float, read: float) -> tuple[Prices, ...]:
    return (Prices(input_price, output_price, read, input_price * 1.25),)


_DEFAULTS: Final[dict[str, Profile]] = {
    "openai": _OPENAI_DEFAULT,
    "anthropic": _ANTHROPIC_DEFAULT,
    "google": _GOOGLE_DEFAULT,
    "xai": _XAI_DEFAULT,
    "compatible": _COMPATIBLE_DEFAULT,
    "extractive": Profile(prices=(Prices(0.0, 0.0),), structured_output="never"),
    "scripted": Profile(temperature="always", prices=(Prices(0.0, 0.0),)),
}

# (provider, prefix of the model name): the longest matching prefix wins.
_ROWS: Final[dict[tuple[str, str], Profile]] = {
    ("openai", "gpt-6.1-sol"): replace(
        _GPT_6,
        temperature="never",
        efforts=("low", "medium", "high", "xhigh", "max"),
        prices=(Prices(2.0, 10.0, 0.10), Prices(4.0, 15.0, 0.20, above_tokens=272_000)),
    ),
    ("openai", "gpt-6.1-terra"): replace(
        _GPT_6,
        prices=(Prices(1.0, 5.0, 0.05), Prices(2.0, 7.5, 0.10, above_tokens=272_000)),
    ),
    ("openai", "gpt-6"): _GPT_6,
    ("openai", "gpt-6-sol"): replace(
        _GPT_6,
        prices=(
            Prices(2.0, 10.0, 0.20, 2.50),
            Prices(4.0, 15.0, 0.40, 5.0, above_tokens=272_000),
        ),
    ),
    ("openai", "gpt-6-luna"): replace(
        _GPT_6,
        prices=(
            Prices(0.10, 0.50, 0.01, 0.125),
            Prices(0.20, 0.75, 0.02, 0.25, above_tokens=272_000),
        ),
    ),
    ("openai", "gpt-5"): replace(_GPT_5, prices=(Prices(1.25, 10.0, 0.125),)),
    ("openai", "gpt-5-mini"): replace(_GPT_5, prices=(Prices(0.25, 2.0, 0.025),)),
    ("openai", "gpt-5-nano"): replace(_GPT_5, prices=(Prices(0.05, 0.40, 0.005),)),
    ("openai", "gpt-5.1"): replace(_GPT_5_1, prices=(Prices(1.25, 10.0, 0.125),)),
    ("openai", "gpt-5.2"): replace(_GPT_5_1, prices=(Prices(1.75, 14.0, 0.175),)),
    ("openai", "gpt-5."): _GPT_5_1,
    ("openai", "gpt-5.6"): _GPT_6,
    ("openai", "o1"): _O_SERIES,
    ("openai", "o3"): replace(_O_SERIES, prices=(Prices(2.0, 8.0, 0.50),)),
    ("openai", "o3-mini"): _O_SERIES,
    ("openai", "o4-mini"): replace(_O_SERIES, prices=(Prices(1.10, 4.40, 0.275),)),
    ("openai", "gpt-3.5"): Profile(16_385, 4_096, temperature="always", structured_output="never"),
    ("openai", "gpt-4"): Profile(8_192, 4_096, temperature="always", structured_output="never"),
    ("openai", "gpt-4.1"): replace(_GPT_4_1, prices=(Prices(2.0, 8.0, 0.50),)),
    ("openai", "gpt-4.1-mini"): replace(_GPT_4_1, prices=(Prices(0.40, 1.60, 0.10),)),
    ("openai", "gpt-4.1-nano"): replace(_GPT_4_1, prices=(Prices(0.10, 0.40, 0.025),)),
    ("openai", "gpt-4o"): replace(_GPT_4, prices=(Prices(2.50, 10.0, 1.25),)),
    ("openai", "gpt-4o-mini"): replace(_GPT_4, prices=(Prices(0.15, 0.60, 0.075),)),
    ("anthropic", "claude-haiku-4-5"): replace(_CLAUDE_4_5, prices=_claude_prices(1.0, 5.0, 0.10)),
    ("anthropic", "claude-sonnet-4-5"): replace(
        _CLAUDE_4_5, prices=_claude_prices(3.0, 15.0, 0.30)
    ),
    ("anthropic", "claude-opus-4-5"): replace(_CLAUDE_4_5, prices=_claude_prices(5.0, 25.0, 0.50)),
    ("anthropic", "claude-sonnet-4-6"): replace(
        _CLAUDE_4_6, prices=_claude_prices(3.0, 15.0, 0.30)
    ),
    ("anthropic", "claude-opus-4-"): _CLAUDE_4_6,
    ("anthropic", "claude-opus-5"): replace(_CLAUDE_5, prices=_claude_prices(5.0, 25.0, 0.50)),
    ("anthropic", "claude-opus-5-5"): replace(_CLAUDE_5_5, prices=_claude_prices(4.0, 20.0, 0.20)),
    ("anthropic", "claude-sonnet-5"): replace(_CLAUDE_5, prices=_claude_prices(2.0, 10.0, 0.20)),
    ("anthropic", "claude-sonnet-5-5"): replace(
        _CLAUDE_5_5, prices=_claude_prices(2.0, 10.0, 0.20)
    ),
    # The cache-read prices of this one are unknown here: they count as input.
    ("anthropic", "claude-haiku-5-5"): replace(
        _CLAUDE_5_5,
        prices=(
            Prices(0.10, 0.50, None, 0.125),
            Prices(0.50, 2.50, None, 0.625, above_tokens=100_000),
        ),
    ),
    ("anthropic", "claude-fable-5"): _CLAUDE_5_5,
    ("anthropic", "claude-fable-5-1"): replace(_CLAUDE_5_5, prices=(Prices(10.0, 50.0),)),
    ("anthropic", "claude-mythos-5"): _CLAUDE_5_5,
    ("google", "gemini-2.5-pro"): replace(
        _GEMINI_2_5, prices=(Prices(1.25, 10.0), Prices(2.50, 15.0, above_tokens=200_000))
    ),
    ("google", "gemini-2.5-flash"): replace(_GEMINI_2_5, prices=(Prices(0.30, 2.50),)),
    ("google", "gemini-2.5-flash-lite"): replace(_GEMINI_2_5, prices=(Prices(0.10, 0.40),)),
    ("google", "gemini-3"): _GEMINI_3,
    ("google", "gemini-3-flash"): replace(_GEMINI_3, prices=(Prices(0.50, 3.0),)),
    # The regular price; half of it is charged until the end of 2026.
    ("google", "gemini-3.8-flash"): replace(_GEMINI_3, prices=(Prices(1.50, 7.50, 0.15),)),
    ("xai", "grok-3-mini"): Profile(131_072, efforts=("low", "high"), thinking="effort"),
    ("xai", "grok-4"): Profile(256_000, encrypted_reasoning=True),
    ("xai", "grok-4.3"): replace(_GROK_REASONING, context_window=1_000_000),
    ("xai", "grok-4.5"): replace(
        _GROK_REASONING, context_window=500_000, prices=(Prices(2.0, 6.0, 0.50),)
    ),
}

DEFAULT_MODELS: Final[dict[str, tuple[str, ...]]] = {
    "openai": ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"),
    "anthropic": ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"),
    "google": ("gemini-3.8-flash", "gemini-3.1-flash-lite"),
    "xai": ("grok-4.5", "grok-4.3"),
}
"""Models offered when a key is there and nobody chose others, the best default first."""


def profile_for(provider: str, model: str) -> Profile:
    """Return the profile of a bare model name; the provider's safe default for an unknown one.

    Args:
        provider: registry name, e.g. "anthropic".
        model: bare model name; a leading "models/" (Gemini's own form) is ignored.
    """
    name = model.removeprefix("models/")
    matches = [prefix for owner, prefix in _ROWS if owner == provider and name.startswith(prefix)]
    if matches:
        return _ROWS[provider, max(matches, key=len)]
    return _DEFAULTS.get(provider, Profile())
