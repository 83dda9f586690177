"""What a model puts around a title isn't kept with it."""

from __future__ import annotations

import pytest

from apps.conversations.turns.titles import title_plain
from tests.walked import each

pytestmark = pytest.mark.rules


@each(
    "made, title",
    [
        *(
            (f"{before}Winter tariff{after}", "Winter tariff")
            for before, after in (
                ("", ""),
                ("", "."),
                ("", "。"),
                ("", " [c12]"),
                ("", "[c1][c2]."),
                ("", " [c1, c2]"),
                ("", " [1]"),
                ("", "[^1]"),
                ("", "【3†source】"),
                ('"', '"'),
                ("“", "”"),
                ("„", "“."),
                ("« ", " »"),
                ("「", "」"),
                ("Title: ", ""),
                ("Titel: „", "“"),
                ("**Title:** ", ""),
                ("**", "**"),
                ("*", "*"),
                ("__", "__"),
                ("# ", ""),
                ("### **", "**\n\nIt is about the tariff."),
                ("- ", ""),
                ("> ", ""),
                ("`", "`"),
                ("\n\n  ", "  \nSecond line"),
                ("タイトル：", ""),
                ("العنوان: ", ""),
                ("Titre : « ", " »."),
                ("“", ""),
                ("", "”"),
                ("[", "](https://example.org)"),
                ("***\n", ""),
                ('"Title: “', '.”"'),
            )
        ),
        ("C#", "C#"),
        ("What __init__ does", "What __init__ does"),
        ("“A” and “B”", "“A” and “B”"),
        ("The word “tariff” in law", "The word “tariff” in law"),
        ("Apples' and pears' prices", "Apples' and pears' prices"),
        (".NET migration", ".NET migration"),
        ("Subtitle: a history", "Subtitle: a history"),
        ("Array [i] in Python 3.11", "Array [i] in Python 3.11"),
        ("And then...", "And then..."),
        ("", ""),
        ('**\n""\n', ""),
    ],
)
def test_a_title_is_kept_bare(made: str, title: str) -> None:
    assert title_plain(made) == title
