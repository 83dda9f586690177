"""The list prices are what the pinned genai-prices says, and cost what it computes."""

from __future__ import annotations

import json
import random
import runpy
from datetime import UTC, date, datetime, time
from pathlib import Path

import genai_prices
import pytest

from toolloop.providers.model_facts import MODELS
from toolloop.providers.profiles import list_prices_for, profile_for
from toolloop.tokens import Usage

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = runpy.run_path(str(ROOT / "requirements" / "prices.py"))
WRITTEN = json.loads(SCRIPT["TABLE"].read_text())
AS_OF = date.fromisoformat(WRITTEN["as_of"])
MILLION = Usage(input_total=100_000, output_total=100_000)


def test_file_is_what_the_pinned_package_gives():
    """After an upgrade of genai-prices run `make prices`, and look at what has changed."""
    assert SCRIPT["text"](SCRIPT["table"](AS_OF)) == SCRIPT["TABLE"].read_text()


def usages():
    rng = random.Random(17)
    for size in (900, 90_000, 150_000, 250_000, 400_000):
        for _ in range(6):
            read, write = rng.randint(0, size // 3), rng.randint(0, size // 3)
            long = rng.randint(0, write)
            yield Usage(
                input_total=size,
                cached_read=read,
                cache_write=write,
                cache_write_long=long,
                output_total=rng.randint(0, 9_000),
            )


def theirs(provider, model, usage, context=None, day=AS_OF):
    """Return what genai-prices computes; what the cache took for longer is told where it has a price of its own."""
    given = genai_prices.Usage(
        input_tokens=usage.input_total,
        cache_read_tokens=usage.cached_read,
        cache_write_tokens=usage.cache_write,
        cache_write_1h_tokens=usage.cache_write_long,
        output_tokens=usage.output_total,
    )
    return float(
        genai_prices.calc_price(
            given,
            model,
            provider_id=SCRIPT["PROVIDERS"][provider],
            genai_request_timestamp=datetime.combine(day, time(12), UTC),
            price_context=context,
        ).total_price
    )


LISTED = [(provider, model) for provider, models in WRITTEN["models"].items() for model in models]


def test_every_listed_model_costs_what_the_package_computes_or_what_it_will_cost_later():
    compared = 0
    for provider, model in LISTED:
        prices = profile_for(provider, model).prices
        # Where a price of the cache is unknown, ours is the input's on purpose: no limit may stop late.
        is_whole = prices[0].cached_read is not None and prices[0].cache_write_long is not None
        for usage in usages():
            if not is_whole:
                usage = Usage(input_total=usage.input_total, output_total=usage.output_total)
            found = profile_for(provider, model).cost_usd(usage)
            today = theirs(provider, model, usage)
            later = theirs(provider, model, usage, day=date(2099, 1, 1))
            assert found == pytest.approx(max(today, later), rel=1e-9), (provider, model, usage)
            compared += 1
    assert compared > 4_000


def test_tiers_cost_what_the_package_computes_and_never_less():
    compared = 0
    for provider, model in LISTED:
        for tier, context in SCRIPT["CONTEXTS"].items():
            if tier not in WRITTEN["models"][provider][model]:
                continue
            found = profile_for(provider, model).cost_usd(MILLION, tier)
            expected = theirs(provider, model, MILLION, context)
            assert found >= expected * (1 - 1e-9), (provider, model, tier)
            compared += found == pytest.approx(expected, rel=0.01)
    assert compared > 80


def test_models_we_offer_have_a_price():
    """But this one, whose price nobody has published."""
    unknown = [(p, m) for p, models in MODELS.items() for m in models if not profile_for(p, m).prices]
    assert unknown == [("anthropic", "claude-mythos-5")]


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("gpt-4o-latest", "gpt-4o"),
        # Variants cost a multiple of what their family costs, so their price is unknown until it is listed.
        ("gpt-5-ultra", None),
        ("gpt-4o-audio-preview", None),
        ("gpt-5x", None),
    ],
)
def test_dates_are_looked_through_and_variants_are_not(name, listed):
    found = list_prices_for("openai", name)
    assert found == (None if listed is None else list_prices_for("openai", listed))
    assert (found is None) == (listed is None)
