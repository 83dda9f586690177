"""What is known about a model family: the form of the facts that stand in ``toolloop.providers.model_facts``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from toolloop.errors import ConfigurationError
from toolloop.tokens import Usage

UNKNOWN_PRIORITY_FACTOR: Final = 3.0
"""What a priority tier of unknown price costs, times the standard price: above the highest that is known, 2.5."""
UNKNOWN_TIER_FACTOR: Final = 6.0
"""The same for a tier that we do not ask for and only the provider names: the dearest there is costs that much."""


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens for requests of more than ``above_tokens`` input tokens.

    An unknown cache price counts as the input price: a cost limit may stop early, never late. ``cache_write_long`` is that
    of what is kept for longer than usual (``Usage.cache_write_long``); unknown, it counts as twice the input.
    """

    input: float
    output: float
    cached_read: float | None = None
    cache_write: float | None = None
    above_tokens: int = 0
    cache_write_long: float | None = None

    def __post_init__(self) -> None:
        """Refuse what would make a cost limit useless: a price below zero, NaN or infinity."""
        for value in (self.input, self.output, self.cached_read, self.cache_write, self.cache_write_long):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf
            ):
                raise ConfigurationError(
                    f"A price must be a finite number of USD, zero or more, not {value!r}."
                )
        if self.above_tokens < 0:
            raise ConfigurationError("A price tier cannot begin below zero tokens.")


@dataclass(frozen=True, slots=True)
class Tiers:
    """The service tiers of a model family; see ``toolloop.service_tiers`` for what each is.

    A discount that is not known is none, and a surcharge that is not known is high: a cost limit may stop early, never late.

    Attributes:
        offered: which of "flex" and "priority" may be asked for.
        flex, priority, batch: what each costs, times the standard price.
    """

    offered: tuple[str, ...] = ()
    flex: float = 1.0
    priority: float = UNKNOWN_PRIORITY_FACTOR
    batch: float = 1.0

    def factor(self, tier: str) -> float:
        """Return what a tier costs, times the standard price; "" is the standard one."""
        if tier in ("", "standard"):
            return 1.0
        known = {"flex": self.flex, "priority": self.priority, "batch": self.batch}
        return known.get(tier, UNKNOWN_TIER_FACTOR)


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
        prices: by size of the prompt, smallest ``above_tokens`` first; empty when unknown.
        tiers: which service tiers it has, and what they cost.
        structured_output: whether a schema for the answer can be sent, and whether beside tools.
        tools: the model calls tools natively; others need ``toolloop.planner_executor``.
        image_input, pdf_input, audio_input: content of that kind may stand in user messages.
        file_input: so may further files, of the kinds that the provider takes (``providers._media``): text, office files.
        cites_passages: passages in tools' results may be sent as such; the model then cites them by itself.
        web_search, file_search, web_fetch, code_execution: the provider searches, reads pages or runs programs itself when
            it is asked to.
        deferred_tools: schemas may be marked to be loaded when the provider's own tool search finds them.
        stop_sequences: texts can be named before which an answer ends.
        prompt_cache: ``automatic`` where the provider caches prefixes by itself, ``marked`` where the request must say
            what to cache.
        cache_ttls: how long a prompt may be kept on request, shortest first; the provider's words.
        background: the provider can answer without a connection, from which the answer is fetched later.
        deprecated_on: ISO date on which the provider has announced to end the model, "" when it has announced none.
        replaced_by: bare name of the model to use instead, "" when unknown.
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
    tiers: Tiers = Tiers()
    structured_output: Literal["always", "without_tools", "never"] = "always"
    tools: bool = True
    image_input: bool = False
    pdf_input: bool = False
    audio_input: bool = False
    file_input: bool = False
    cites_passages: bool = False
    web_search: bool = False
    file_search: bool = False
    web_fetch: bool = False
    code_execution: bool = False
    deferred_tools: bool = False
    stop_sequences: bool = False
    prompt_cache: Literal["automatic", "marked", "none"] = "none"
    cache_ttls: tuple[str, ...] = ()
    background: bool = False
    deprecated_on: str = ""
    replaced_by: str = ""

    def allows_temperature(self, effort: str | None) -> bool:
        """Tell whether ``temperature`` may be sent together with this effort."""
        return self.temperature == "always" or (self.temperature == "without_reasoning" and effort == "none")

    def cost_usd(self, usage: Usage, tier: str = "") -> float | None:
        """Price one model call in USD, None when the price is unknown.

        Give the usage of a single request: prices depend on the size of each prompt, so the sum of several requests would
        be priced too high.

        Args:
            usage: of one request.
            tier: the service tier it was served in: "" or "standard", "flex", "priority", "batch"; any other word counts as
                dear, see ``UNKNOWN_TIER_FACTOR``.
        """
        if not self.prices:
            return None
        row = self.prices[0]
        for candidate in self.prices:
            if usage.input_total > candidate.above_tokens:
                row = candidate
        read_price = row.input if row.cached_read is None else row.cached_read
        write_price = row.input if row.cache_write is None else row.cache_write
        long_price = row.cache_write_long
        if long_price is None:
            long_price = max(row.input * 2, write_price)
        fresh = max(0, usage.input_total - usage.cached_read - usage.cache_write)
        kept_long = min(usage.cache_write_long, usage.cache_write)
        standard = (
            fresh * row.input
            + usage.cached_read * read_price
            + (usage.cache_write - kept_long) * write_price
            + kept_long * long_price
            + usage.output_total * row.output
        )
        return standard * self.tiers.factor(tier) / 1_000_000
