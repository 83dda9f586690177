"""What service tiers and long cache lifetimes cost, by the providers' published prices."""

from __future__ import annotations

import pytest

from toolloop.models import compute_cost
from toolloop.providers.model_facts import MODELS
from toolloop.providers.profile_types import (
    UNKNOWN_PRIORITY_FACTOR,
    UNKNOWN_TIER_FACTOR,
    Prices,
    Profile,
    Tiers,
)
from toolloop.providers.profiles import profile_for
from toolloop.tokens import Usage

MILLION = Usage(input_total=1_000_000, output_total=1_000_000)


@pytest.mark.parametrize(
    ("provider", "model", "tier", "usd"),
    [
        # https://openai.com/api-priority-processing/: input and output per million tokens.
        ("openai", "gpt-5", "priority", 2.50 + 20.0),
        ("openai", "gpt-5-mini", "priority", 0.45 + 3.60),
        ("openai", "gpt-5.1-2025-11-13", "priority", 2.50 + 20.0),
        ("openai", "gpt-5.2", "priority", 3.50 + 28.0),
        ("openai", "gpt-4.1", "priority", 3.50 + 14.0),
        ("openai", "gpt-4.1-mini", "priority", 0.70 + 2.80),
        ("openai", "gpt-4.1-nano", "priority", 0.20 + 0.80),
        ("openai", "gpt-4o-2024-11-20", "priority", 4.25 + 17.0),
        # https://developers.openai.com/api/docs/guides/flex-processing: "priced at Batch API rates", which are half.
        ("openai", "gpt-5", "flex", (1.25 + 10.0) / 2),
        ("openai", "gpt-5", "batch", (1.25 + 10.0) / 2),
        ("openai", "gpt-4o", "batch", (2.50 + 10.0) / 2),
        # https://ai.google.dev/gemini-api/docs/optimization: half, and up to twice the price.
        ("google", "gemini-2.5-flash", "flex", (0.30 + 2.50) / 2),
        ("google", "gemini-2.5-flash", "batch", (0.30 + 2.50) / 2),
        ("google", "gemini-2.5-flash", "priority", (0.30 + 2.50) * 2),
        ("anthropic", "claude-sonnet-5-5", "batch", (2.0 + 10.0) / 2),
        ("anthropic", "claude-sonnet-5-5", "priority", 2.0 + 10.0),
    ],
)
def test_tiers_cost_what_is_published(provider, model, tier, usd):
    below = profile_for(provider, model)
    row = below.prices[0]
    plain = Profile(prices=(row,), tiers=below.tiers)
    assert plain.cost_usd(MILLION, tier) == pytest.approx(usd)


def test_no_listed_model_has_a_tier_that_is_priced_below_half_or_a_priority_below_standard():
    for provider, models in MODELS.items():
        for model in models:
            tiers = profile_for(provider, model).tiers
            assert tiers.factor("") == tiers.factor("standard") == 1.0
            assert 0.5 <= tiers.flex <= 1.0, model
            assert 0.5 <= tiers.batch <= 1.0, model
            assert 1.0 <= tiers.priority <= UNKNOWN_PRIORITY_FACTOR, model
            assert "flex" not in tiers.offered or tiers.flex < 1.0, model


def test_what_is_not_known_is_never_priced_too_low():
    tiers = Tiers()
    assert [tiers.factor(t) for t in ("flex", "batch")] == [1.0, 1.0]
    assert tiers.factor("priority") == UNKNOWN_PRIORITY_FACTOR
    assert tiers.factor("ultrafast") == UNKNOWN_TIER_FACTOR
    assert profile_for("compatible", "llama3").tiers == Tiers()
    assert profile_for("openai", "a-model-of-tomorrow").tiers.offered == ()
    assert Profile().cost_usd(MILLION, "flex") is None


def test_what_the_cache_keeps_for_longer_costs_more():
    """https://platform.claude.com/docs/en/build-with-claude/prompt-caching: 1.25 times the input, and twice."""
    usage = Usage(input_total=3_000_000, cache_write=2_000_000, cache_write_long=1_000_000)
    priced = Profile(prices=(Prices(2.0, 10.0, 0.2, 2.5, cache_write_long=4.0),))
    assert priced.cost_usd(usage) == pytest.approx(2.0 + 2.5 + 4.0)
    assert compute_cost("anthropic/claude-sonnet-5-5", usage) == pytest.approx(2.0 + 2.5 + 4.0)
    assert compute_cost("anthropic/claude-sonnet-5-5", usage, "batch") == pytest.approx(4.25)
    unknown = Profile(prices=(Prices(2.0, 10.0),))
    assert unknown.cost_usd(usage) == pytest.approx(2.0 + 2.0 + 4.0)


def test_usage_keeps_what_was_cached_for_longer():
    usage = Usage(10, cache_write=4, cache_write_long=3)
    assert Usage.from_json(usage.to_json()) == usage
    assert (usage + usage).cache_write_long == 6
    assert Usage.from_json({"input_total": 5}) == Usage(5)
