"""Answers with a form: as people read them, while they are written, and whatever a model puts into them."""

from __future__ import annotations

import json

from apps.conversations.citations.markers import CitablePassage, answer_cite
from apps.conversations.display.answer_forms import (
    STRUCTURED,
    confidence_of,
    follow_ups_of,
    markdown_of,
    shown_text,
    value_cited,
    value_of,
)
from apps.conversations.display.rendering import blocks_render
from toolloop.output import output_of

TRADE = {
    "summary": "Leather gloves fall under 4203.21 [c7].",
    "hts_codes": ["4203.21", "4203.29.05"],
    "agencies": [{"name": "CBP", "source": "c7"}, {"name": "FDA | food", "source": "c8"}],
    "required_documents": ["Commercial invoice", "Packing list [c7]"],
    "tariff_info": {"rate": "14 % [c8]", "is_preferential": False, "note": None},
    "citations": ["c7", {"id": "c8", "quote": "x"}, "nonsense"],
    "confidence": 0.9,
    "follow_up_questions": ["Is there a quota?"],
    "schema_version": "1.0",
}


def test_fields_become_headings_lists_code_and_tables() -> None:
    text = markdown_of(TRADE)
    assert text.startswith("Leather gloves fall under 4203.21 [c7].\n\n## HTS codes")
    assert "`4203.21` `4203.29.05`" in text
    assert "| Name | Source |\n| --- | --- |\n| CBP | [c7] |\n| FDA \\| food | [c8] |" in text
    assert "- Commercial invoice\n- Packing list [c7]" in text
    assert "- **Rate:** 14 % [c8]\n- **Is preferential:** no" in text
    assert text.endswith("## Citations\n\n[c7] [c8]")
    assert "quota" not in text
    assert "Confidence" not in text
    assert (confidence_of(TRADE), follow_ups_of(TRADE)) == ("high", ["Is there a quota?"])


def test_panel_holds_no_json_and_nothing_a_model_wrote_acts() -> None:
    hostile = {
        "answer": "Fine <img src=x onerror=alert(1)> <script>1</script> [x](javascript:alert(1)) [c7].",
        "<b>key</b>": {"a|b": "<svg onload=1>"},
        "rows": [{"x": "| y |\n# h", "id": "c7"}],
        "confidence": "<script>",
    }
    passages = {7: CitablePassage(7, 1, "Doc", "Col", "Fine.")}
    cited = answer_cite(shown_text(json.dumps(hostile), True), passages)
    html = "".join(b.html for b in blocks_render(cited.pieces, run_id=1, labels={1: "Doc"}))
    assert "{" not in html
    for word in ("<img", "<script", "<svg", 'href="javascript', "<b>key"):
        assert word not in html
    assert html.count("data-cite=") == 2
    assert confidence_of(hostile) == ""


def test_every_prefix_of_an_answer_can_be_shown() -> None:
    whole = json.dumps(TRADE)
    for end in range(len(whole) + 1):
        text = shown_text(whole[:end], True)
        assert "{" not in text
        assert '"summary"' not in text
    assert shown_text(whole, True) == markdown_of(TRADE)
    assert shown_text("It is 14 %.", True) == "It is 14 %."
    assert shown_text(whole, False) == whole
    assert shown_text(f"Let me see.\n\n```json\n{whole}\n```", True) == markdown_of(TRADE)


def test_stored_value_has_numbers_for_markers_and_nothing_unknown() -> None:
    value = value_cited(TRADE, {7: [1]})
    assert value["summary"] == "Leather gloves fall under 4203.21 [1]."
    assert value["citations"] == ["[1]", {"id": "", "quote": "x"}, "nonsense"]
    assert value["tariff_info"]["rate"] == "14 %"
    assert value["hts_codes"] == TRADE["hts_codes"]


def test_values_that_are_no_object_are_not_taken_for_one() -> None:
    assert value_of("[1, 2]") is None
    assert value_of("{") == {}
    assert value_of("{]") is None
    assert follow_ups_of({"follow_up_questions": "no list"}) == []
    assert output_of(STRUCTURED).wire.strict
