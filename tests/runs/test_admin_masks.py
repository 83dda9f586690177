"""The admin shows a model's turn without what the log of its calls masks."""

from __future__ import annotations

import pytest

from runs.admin import _masked_texts
from toolloop.masking import MASK, masked

SCHEMA = {"properties": {"note": {"type": "string", "writeOnly": True}}}


@pytest.mark.parametrize(
    ("arguments", "hidden"),
    [
        ({"note": "Zqelda", "n": 1}, ["Zqelda"]),
        ({"note": ["Zqelda"]}, ['["Zqelda"]']),
        ('{"note": "Zqelda', ['{"note": "Zqelda']),
        ({"inner": {"password": "a"}, "list": [{"token": "longer"}]}, ["longer", "a"]),
        ({"other": "Zqelda"}, []),
    ],
)
def test_what_is_masked_is_found_longest_first(arguments: object, hidden: list[str]) -> None:
    shown = masked(arguments, SCHEMA)
    assert (MASK in str(shown)) == bool(hidden)
    assert list(_masked_texts(arguments, shown)) == hidden
