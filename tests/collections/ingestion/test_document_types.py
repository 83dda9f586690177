from __future__ import annotations

import copy

import pytest

from apps.collections.ingestion.document_types import (
    RulesInvalid,
    document_sample,
    document_type_infer,
    document_type_rules_parse,
    trade_compliance_data,
    trade_compliance_rules,
)
from apps.collections.ingestion.extraction import document_extract
from tests.collections.ingestion.files import shared_file

SECTION_301 = (
    "OFFICE OF THE UNITED STATES TRADE REPRESENTATIVE\nNotice of Modification of Section 301 Action: China's Acts, "
    "Policies, and Practices Related to Technology Transfer, Intellectual Property, and Innovation\nThe U.S. Trade "
    "Representative has determined to modify the action in this Section 301 investigation by adding duties on products "
    "of China under heading 9903.88.03. Section 301 exclusions expire soon.\n"
)
GUIDE = (
    "What Every Member of the Trade Community Should Know About: Customs Value\nAn Informed Compliance Publication\n"
    "U.S. Customs and Border Protection\nCBP publishes this guide so that importers meet reasonable care. File the "
    "entry summary (CBP Form 7501) or ask a customs broker. CBP may ask for more.\n"
)
SCHEDULE = "Heading/ Subheading  Article Description  Unit of Quantity  Rates of Duty\n" + "".join(
    f"0{100 + i}.20.{i % 90:02d} Some goods of this kind  kg  Free  10%\n" for i in range(60)
)
RULE = (
    "AGENCY: U.S. Fish and Wildlife Service.\nACTION: Final rule.\nSUMMARY: We amend 50 CFR part 17.\n"
    "DATES: Effective now.\n[FR Doc. 2026-1 Filed]\n"
)
PLAN = (
    "U.S. Department of Energy\nStrategic Plan, Fiscal Years 2026-2030\nUnder the GPRA Modernization Act the "
    "Department sets its goals.\n"
)
LETTER = (
    "Dear Ana,\nthe shipment of lamps under 8539.50.00 arrived. CBP asked about section 301 duties.\nBo\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SECTION_301, "section301_tariff"),
        (GUIDE, "cbp_guide"),
        (SCHEDULE, "hts_schedule"),
        (RULE, "agency_regulation"),
        (PLAN, "gov_publication"),
        (LETTER, "general"),
        ("", "general"),
    ],
)
def test_type_follows_from_the_text_when_the_name_says_nothing(text, expected):
    rules = trade_compliance_rules()
    found, reason = document_type_infer(rules, "scan0001.pdf", "application/pdf", text)
    assert found == expected
    assert reason.endswith(".")


TRADE = {
    "chapter99_2026_rev_6.txt": "hts_schedule",
    "brazil_eo_nov2025_annexes.pdf": "hts_schedule",
    "Metals-ANNEXES-I-A-I-B-II-III-IV.pdf": "hts_schedule",
    "s232_auto_parts.txt": "hts_schedule",
    "s232_mhd_parts.txt": "hts_schedule",
    "2025-15819.pdf": "agency_regulation",
    "2025-23316.pdf": "agency_regulation",
    "s232_metals_update_note.pdf": "general",
    "architecture.md": "general",
    "assumptions.md": "general",
    "methodology.md": "general",
    "policy_timing.md": "general",
}
REPORTS = [
    "DHS2020",
    "DOC2022",
    "DOL2022",
    "EDAPP2022",
    "EPA2022",
    "GSA2022",
    "2013-annual-performance-report",
]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [("trade-us", name, kind) for name, kind in TRADE.items()]
    + [("pdf-us-gov", f"{name}.pdf", "gov_publication") for name in REPORTS],
)
def test_real_document_has_its_type_with_and_without_its_name(folder, name, expected):
    document = document_extract(shared_file(folder, name), name=name)
    sample = document_sample(document)
    for called in (name, "upload"):
        found = document_type_infer(trade_compliance_rules(), called, document.media_type, sample)
        assert found[0] == expected, found


def test_types_are_listed_with_the_default_last():
    assert trade_compliance_rules().types[-1] == "general"
    assert len(trade_compliance_rules().types) == 6


def broken(**changes: object) -> dict[str, object]:
    data = copy.deepcopy(trade_compliance_data())
    data["rules"][0]["signals"][0].update(changes)
    return data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "must be an object"),
        ({"version": 2, "rules": []}, "version"),
        ({"version": 1, "rules": "x"}, "rules"),
        ({"version": 1, "rules": [], "defualt": "x"}, "defualt"),
        ({"version": 1, "rules": [], "default": "Général"}, "default"),
        (broken(pattern="(unclosed"), "isn't a regular expression"),
        (broken(pattern="a*"), "matches anything"),
        (broken(pattern=""), "1 to 500"),
        (broken(pattern="x" * 501), "1 to 500"),
        (broken(field="title"), "must be one of"),
        (broken(weight="2"), "number"),
        (broken(weight=float("nan")), "number"),
        (broken(at_least=0), "at_least"),
        (broken(at_least=True), "at_least"),
        (
            {
                "version": 1,
                "rules": [
                    {"type": "a", "threshold": 9, "signals": [{"field": "name", "pattern": "a", "weight": 1}]}
                ],
            },
            "never win",
        ),
        ({"version": 1, "rules": [{"type": "a", "signals": []}]}, "signals"),
    ],
)
def test_rule_set_is_refused_when_it_is_wrong(data, said):
    with pytest.raises(RulesInvalid) as caught:
        document_type_rules_parse(data)
    assert said in caught.value.message
    assert caught.value.status == 400


def rules_of(*signals: dict[str, object], threshold: float = 1) -> object:
    return {"version": 1, "rules": [{"type": "mine", "threshold": threshold, "signals": list(signals)}]}


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(\w+\s?)*!", r"(.*a){20}b"])
def test_search_ends_when_a_pattern_explodes(pattern):
    rules = document_type_rules_parse(
        rules_of({"field": "content", "pattern": pattern}, {"field": "name", "pattern": "x"})
    )
    # Searched to its end, the pattern would take longer than anyone lives.
    found, reason = document_type_infer(rules, "x.txt", "text/plain", "a" * 20_000 + " -")
    assert found == "mine"
    assert "name has" in reason


def test_matches_are_counted_when_a_signal_asks_for_several():
    rules = document_type_rules_parse(rules_of({"field": "content", "pattern": r"\bduty\b", "at_least": 3}))
    assert document_type_infer(rules, "a", "text/plain", "Duty, duty")[0] == "general"
    assert document_type_infer(rules, "a", "text/plain", "Duty, duty and DUTY")[0] == "mine"


def test_first_rule_wins_when_two_score_the_same():
    signal = {"field": "name", "pattern": "x"}
    rule = {"threshold": 1, "signals": [signal]}
    rules = document_type_rules_parse(
        {"version": 1, "rules": [{"type": "first", **rule}, {"type": "second", **rule}]}
    )
    assert document_type_infer(rules, "x", "", "")[0] == "first"
