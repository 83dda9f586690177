"""Write toolloop's list prices from the pinned genai-prices: `make prices`, after `make lock` has taken a newer one.

The package itself (MIT) is a tool of development: loading its data takes 0.4 s and 19 MB, of which we need 20 kB.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from genai_prices.data import providers
from genai_prices.types import ModelInfo, ModelPrice, Provider, StartDateConstraint, TieredPrices

HOME: Final = Path(__file__).resolve().parent.parent
TABLE: Final = HOME / "platform" / "toolloop" / "providers" / "list_prices.json"
PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "google": "google", "xai": "x-ai"}
# Names of ours for those of the package, in the order of ``toolloop.providers.profile_types.Prices``.
FIELDS: Final = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_long": "cache_write_1h_mtok",
}
# Models that cost more than the tokens of their text (sounds, pictures, searches), and names no request has: unknown to us.
UNPRICED: Final = re.compile(
    r"audio|realtime|live|tts|transcribe|image|search|research|computer-use|robotics|ft-|:"
)
CONTEXTS: Final = {
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
    "batch": {"processing": "batch"},
}


def table(as_of: date) -> dict[str, Any]:
    """Return the prices that hold on a day; of one that changes later the dearer, so that a limit never stops late."""
    by_id = {p.id: p for p in providers}
    return {
        "source": f"genai-prices {version('genai-prices')}",
        "as_of": as_of.isoformat(),
        "models": {ours: dict(_models(by_id[theirs], as_of)) for ours, theirs in PROVIDERS.items()},
    }


def _models(provider: Provider, as_of: date) -> Iterator[tuple[str, dict[str, Any]]]:
    # Beside the package's own names those that we list: it knows "grok-4" as another name of "grok-4-0709".
    sys.path.insert(0, str(HOME / "platform"))
    from toolloop.providers.model_facts import MODELS

    ours = next(name for name, theirs in PROVIDERS.items() if theirs == provider.id)
    for name in sorted({m.id.removesuffix("-latest") for m in provider.models} | set(MODELS[ours])):
        model = None if UNPRICED.search(name) else provider.find_model(name, all_providers=providers)
        found = model and _entry(model, as_of)
        if found:
            yield name, found


def _entry(model: ModelInfo, as_of: date) -> dict[str, Any] | None:
    day = max(_days(model, as_of), key=lambda d: _size(model.get_prices(d)))
    standard = model.get_prices(day)
    if standard.input_mtok is None or standard.output_mtok is None:
        return None
    found: dict[str, Any] = {"prices": _rows(standard)}
    for tier, context in CONTEXTS.items():
        if any(v.when == context for v in model.price_variants or ()):
            found[tier] = _factor(standard, model.get_prices(day, context))
    return found


def _days(model: ModelInfo, as_of: date) -> list[datetime]:
    days = {as_of}
    if isinstance(model.prices, list):
        for condition in model.prices:
            if condition.constraint is None:
                continue
            if not isinstance(condition.constraint, StartDateConstraint):
                raise SystemExit(f"{model.id} has prices by the hour: teach prices.py")
            days.add(max(as_of, condition.constraint.start_date))
    return [datetime.combine(day, time(), UTC) for day in sorted(days)]


def _size(price: ModelPrice) -> Decimal:
    return sum((_at(getattr(price, key), 0) or Decimal() for key in ("input_mtok", "output_mtok")), Decimal())


def _starts(*prices: ModelPrice) -> list[int]:
    tiered = [v for p in prices for v in p.__dict__.values() if isinstance(v, TieredPrices)]
    return sorted({0, *(tier.start for v in tiered for tier in v.tiers)})


def _at(value: Decimal | TieredPrices | None, start: int) -> Decimal | None:
    """Return a price for requests just above so many tokens."""
    if not isinstance(value, TieredPrices):
        return value
    return next((t.price for t in reversed(value.tiers) if start >= t.start), value.base)


def _rows(price: ModelPrice) -> list[dict[str, float | int]]:
    rows = []
    for start in _starts(price):
        row: dict[str, float | int] = {"above_tokens": start} if start else {}
        for ours, theirs in FIELDS.items():
            value = _at(getattr(price, theirs), start)
            if value is not None:
                row[ours] = float(value)
        rows.append(row)
    return rows


def _factor(standard: ModelPrice, other: ModelPrice) -> float:
    """Return how often the standard price another tier costs: of input and output the one that costs more."""
    ratios = [
        other_value / value
        for key in ("input_mtok", "output_mtok")
        for start in _starts(standard, other)
        if (value := _at(getattr(standard, key), start))
        and (other_value := _at(getattr(other, key), start)) is not None
    ]
    return float(max(ratios).quantize(Decimal("0.0001"), ROUND_CEILING)) if ratios else 1.0


def text(found: Mapping[str, Any]) -> str:
    """Return the file's text: a line for each model, so that a change of prices is read as one."""
    head = {key: value for key, value in found.items() if key != "models"}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    lines.append('  "models": {')
    for number, (provider, models) in enumerate(found["models"].items()):
        rows = [f"      {json.dumps(name)}: {json.dumps(entry)}" for name, entry in models.items()]
        end = "," if number < len(found["models"]) - 1 else ""
        lines += [f"    {json.dumps(provider)}: {{", ",\n".join(rows), f"    }}{end}"]
    return "\n".join(["{", *lines, "  }", "}"]) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text(table(datetime.now(UTC).date())), encoding="utf-8")
