"""Whatever a model writes, a marker leads to one and the same passage live, after a reload, in REST and in OpenAI's form."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.conversations.citations.markers import (
    CitablePassage,
    answer_cite,
    answer_number,
    flagged,
    numbers_of,
)
from apps.conversations.display.answer_forms import shown_text, value_cited
from apps.conversations.display.marks import marks_read
from apps.conversations.display.rendering import blocks_render
from apps.conversations.openai.wire import answer_of
from apps.conversations.support.sentences import unsupported_find
from runs.models import Run

PASSAGES = {
    n: CitablePassage(n, n % 3, f"Doc {n % 3}", "Col", f"Passage {n} says that rate {n} holds for lot {n}.")
    for n in range(1, 7)
}
IDS = st.integers(1, 9)  # 7 to 9 were never retrieved
ONE = st.builds("[c{}]".format, IDS)
SEVERAL = st.lists(IDS, min_size=2, max_size=3).map(lambda ids: f"[{', '.join(f'c{n}' for n in ids)}]")
WORDS = st.sampled_from(
    [
        "The rate 3 holds for lot 3",
        ". ",
        "\n\n",
        "- ",
        "> ",
        "**",
        "`",
        "| a | b |\n",
        "[",
        "]",
        "](x)",
        "1. ",
        "c4",
        "[1]",
        "Nothing.",
    ]
)
ANSWERS = st.lists(st.one_of(ONE, SEVERAL, WORDS), max_size=25).map("".join)
_REST, _HTML = re.compile(r"\[(\d+)\]"), re.compile(r'data-cite="5-(\d+)"')


@settings(max_examples=400, deadline=None)
@given(ANSWERS)
def test_every_marker_resolves_to_the_same_passage_everywhere(text: str) -> None:
    live = answer_cite(text, PASSAGES)
    chunk_of = {s.number: s.passage.chunk_id for s in live.sources}
    stored = numbers_of((s.passage.chunk_id, s.number, s.markers) for s in live.sources)
    cited = [n for piece in live.pieces for n in piece.numbers]
    # After a reload, from the stored rows; with what is flagged, too.
    again = answer_number(text, stored)
    assert [(p.text, p.numbers) for p in again.pieces] == [(p.text, p.numbers) for p in live.pieces]
    marked = flagged(
        again.pieces,
        (
            (m.start, m.end, m.reason)
            for m in marks_read(
                unsupported_find(live, {s.number: s.passage.text for s in live.sources}), live.text
            )
        ),
    )
    assert [n for piece in marked for n in piece.numbers] == cited
    # In the page: markers that stand in code are text, all others buttons; none leads elsewhere.
    html = "".join(b.html for b in blocks_render(marked, run_id=5, labels={}))
    assert {int(n) for n in _HTML.findall(html)} <= set(chunk_of)
    if "`" not in text and "](x)" not in text:
        assert [int(n) for n in _HTML.findall(html)] == cited
    # In REST: the text's markers are the citations' numbers ("[1]" that a model wrote itself is none).
    if "[1]" not in text and "c4" not in text and "](x)" not in text and "[[" not in text:
        assert [int(n) for n in _REST.findall(live.text)] == cited
    # In OpenAI's form.
    run = Run(pk=5, created_at=datetime(2026, 1, 1, tzinfo=UTC))
    told = answer_of(
        run,
        model="m",
        text=text,
        told="",
        passages=PASSAGES,
        pending=(),
        approvals=(),
        notice="",
        usage={},
        stop="end",
    )
    assert {c["number"]: c["chunk"] for c in told.citations} == chunk_of
    assert told.text == live.text.lstrip("\n")
    # Every source is a passage that was retrieved, with words of it; the others are counted.
    for source in live.sources:
        assert source.quote in PASSAGES[source.passage.chunk_id].text
    wanted = [int(n) for m in re.findall(r"\[([cC]\d+(?:, c\d+)*)\]", text) for n in re.findall(r"\d+", m)]
    assert live.removed == sum(n not in PASSAGES for n in wanted)


@settings(max_examples=150, deadline=None)
@given(ANSWERS, st.lists(IDS, max_size=4), ANSWERS)
def test_markers_inside_fields_hold_too(answer: str, ids: list[int], note: str) -> None:

    value = {"answer": answer, "notes": [{"text": note}], "citations": [f"c{n}" for n in ids]}
    live = answer_cite(shown_text(json.dumps(value), True), PASSAGES)
    numbers = {s.passage.chunk_id: s.number for s in live.sources}
    kept = value_cited(value, {chunk: [number] for chunk, number in numbers.items()})
    assert kept["citations"] == [f"[{numbers[n]}]" for n in ids if n in numbers]
    assert {n for n in ids if n in PASSAGES} <= set(numbers)
    assert not re.search(r"\[[cC]\d+\]", kept["answer"])
