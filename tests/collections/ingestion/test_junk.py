from __future__ import annotations

import time

import pytest

from apps.collections.ingestion.junk import junk_reason, mark_junk
from apps.collections.ingestion.types import JunkReason, PageText

BODY = (
    "This page tells at some length what the agency did during the year and why it matters to people.\n" * 5
)
CONTENTS = "Table of Contents\n" + "".join(
    f"Chapter {i} of the report ........ {i * 7}\n" for i in range(1, 15)
)
PLAIN_CONTENTS = "Contents\n" + "".join(f"A chapter about things {i * 7}\n" for i in range(1, 15))
INDEX = "Index\n" + "".join(
    f"{w}, {i}, {i + 9}–{i + 12}\n" for i, w in enumerate(["alpha", "beta", "gamma"] * 8, 3)
)


def page(text: str, number: int = 1) -> PageText:
    return PageText(number, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BODY, None),
        ("", JunkReason.TOO_SHORT),
        ("12", JunkReason.TOO_SHORT),
        ("This page intentionally left blank", JunkReason.INTENTIONALLY_BLANK),
        ("Agency Report\n[THIS PAGE IS INTENTIONALLY BLANK]\n14", JunkReason.INTENTIONALLY_BLANK),
        (BODY + "The form was intentionally left blank by the applicant.\n", None),
        (CONTENTS, JunkReason.TABLE_OF_CONTENTS),
        (PLAIN_CONTENTS, JunkReason.TABLE_OF_CONTENTS),
        (INDEX, JunkReason.INDEX),
        ("The contents of the box\n" + BODY, None),
        ("".join(f"Product number {i} costs {i * 3}\n" for i in range(30)), None),
    ],
)
def test_page_is_judged_by_rule_when_it_looks_like_this(text, reason):
    assert junk_reason(page(text)) is reason


def test_header_only_page_is_junk_when_the_header_repeats():
    header = "Annual Performance Report of the Agency for Fiscal Year 2024\n"
    pages = [page(header + BODY.replace("year", f"year {'abcdefg'[i]}"), i + 1) for i in range(7)]
    pages[3] = page(header + "4\n", 4)
    marked = mark_junk(pages)
    assert [p.number for p in marked if p.junk] == [4]
    assert marked[3].junk is JunkReason.HEADER_ONLY


def test_page_stays_when_it_alone_holds_a_code():
    contents = CONTENTS + "Lamps of 8539.50.00 ........ 99\n"
    assert mark_junk([page(contents), page(BODY, 2)])[0].junk is None
    marked = mark_junk([page(contents), page(BODY + "see 8539.50.00", 2)])
    assert marked[0].junk is JunkReason.TABLE_OF_CONTENTS


def test_all_pages_stay_when_all_would_go():
    assert [p.junk for p in mark_junk([page("Short note."), page("Bye.", 2)])] == [None, None]


def test_page_is_judged_quickly_when_a_line_never_ends():
    started = time.process_time()
    for line in (". " * 100_000 + "!", "a " * 100_000 + "!", "word, 1" * 30_000 + "."):
        assert junk_reason(page("Contents\n" + f"{line}\n" * 5)) is None
    assert time.process_time() - started < 2
