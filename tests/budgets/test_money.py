"""Amounts of money as pages write them."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from django.template import Context, Template

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("{{ large|dollars:4 }}", "$1234.5068"),
        ('{{ large|dollars:"2g" }}', "$1,234.51"),
        ("{{ small|dollars:6 }}", "$0.004200"),
        ("{{ zero|dollars:2 }}", "$0.00"),
        ("{{ none|dollars:2 }}", ""),
        ("{{ small|usd:4 }}", "0.0042 USD"),
        ("{{ none|usd:4 }}", ""),
    ],
)
def test_an_amount_carries_its_currency(written: str, shown: str):
    amounts = {"large": Decimal("1234.50678"), "small": 0.0042, "zero": Decimal(0), "none": None}
    assert Template("{% load money %}" + written).render(Context(amounts)) == shown


def test_no_template_writes_an_amount_by_hand():
    by_hand = re.compile(r"\$\{\{|floatformat:\d+ \}\}\s+USD")
    found = [
        str(p.relative_to(TEMPLATES)) for p in TEMPLATES.rglob("*.html") if by_hand.search(p.read_text())
    ]
    assert found == []
