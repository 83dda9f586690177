"""A stranger's regular expression cannot take all the memory there is."""

from __future__ import annotations

import pytest
import regex

from basics.patterns import pattern_compile


@pytest.mark.parametrize(
    "text",
    [
        "(?:(?:a{1000}){1000}){1000}",
        "(?:a{1000}){1,1000}",
        "(?:a{,1000}){1000,}",
        "a{99999999999}",
        "(?x)(?: a{ 1000 } ){ 1000 }",
        "(",
    ],
    ids=["nested", "range", "open", "long", "verbose", "unreadable"],
)
def test_expression_that_grows_without_end_is_refused(text: str) -> None:
    with pytest.raises(regex.error):
        pattern_compile(text)


def test_what_people_write_is_taken() -> None:
    assert pattern_compile(r"\b\d{4}\.\d{2}(\.\d{2}){0,2}\b").search("8539.50.00.10")
    assert pattern_compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert pattern_compile(r"\w{3,}", regex.IGNORECASE)
