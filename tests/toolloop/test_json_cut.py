"""What is cut stays JSON where it was JSON, fits, and says what it lacks."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolloop.json_cut import LEAST, json_cut, text_cut
from toolloop.tools.runtime import output_cut

PIECES = ("a", "ü", '"', "\\", "\n", "\x01", "漢", "😀", " word ")


def made(chance: random.Random, depth: int) -> Any:
    """Return a random JSON value."""
    kind = chance.randrange(7 if depth else 4)
    if kind == 0:
        return chance.choice([None, True, False, 0, -1.5, 10**30, 1e300])
    if kind < 4:
        return "".join(chance.choices(PIECES, k=chance.choice([0, 3, 40, 400])))
    items = [made(chance, depth - 1) for _ in range(chance.choice([0, 1, 4, 30]))]
    if kind < 6:
        return items
    return {f"{chance.choice(PIECES)}{i}" * chance.choice([1, 1, 30]): v for i, v in enumerate(items)}


def test_whatever_is_cut_is_json_and_fits() -> None:
    cut = 0
    for seed in range(600):
        chance = random.Random(seed)
        value = made(chance, 4)
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
        limit = chance.randrange(LEAST, 2000)
        found = text_cut(text, limit)
        assert len(found) <= limit, seed
        if isinstance(value, dict | list) and len(text) > limit:
            shown = json.loads(found)
            assert type(shown) is type(value), seed
            if len(json.dumps(value, ensure_ascii=False)) > limit:
                assert "left out ...]" in found, seed
                cut += 1
    assert cut > 80


def test_first_items_and_all_short_values_are_kept() -> None:
    hits = [{"id": n, "text": "x" * 50} for n in range(100)]
    found = json.loads(json_cut(json.dumps({"hits": hits, "total": 100}), 1000) or "")
    assert found["total"] == 100
    assert found["hits"][:5] == hits[:5]
    assert found["hits"][-1].startswith("[... 8")
    assert found["hits"][-1].endswith(" items left out ...]")


@pytest.mark.parametrize(
    "text", ["plain " * 100, "[1, 2" * 100, '{"a": NaN, "b": "' + "x" * 400 + '"}', '"' + "x" * 400 + '"']
)
def test_what_is_no_json_is_cut_where_the_limit_falls(text: str) -> None:
    assert json_cut(text, 200) is None
    assert text_cut(text, 200) == text[:200]


def test_model_is_told_in_json_what_a_tool_gave_too_much_of() -> None:
    rows = json.dumps([{"n": n} for n in range(1000)])
    found = json.loads(output_cut(rows, 500))
    assert found[:3] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert "items left out" in found[-1]
    assert output_cut("words " * 1000, 500).endswith("characters are shown ...]")
