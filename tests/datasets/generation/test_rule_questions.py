"""Questions by rules: which sentences, lists and rows are asked about, how, and which are left alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apps.datasets.generation.by_rules import filter_reason, judge_make, plain
from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.material import gold_of
from apps.datasets.generation.rule_claims import claims_of
from apps.datasets.generation.rule_questions import question_make


def passage(
    text: str,
    *,
    headings: Sequence[str] = (),
    at: int = 0,
    name: str = "",
    document: str = "port-rules-2024.pdf",
) -> CorpusPassage:
    return CorpusPassage(
        chunk_id=len(text),
        document_id=1,
        document=document,
        collection="Ports",
        text=text,
        char_start=at,
        page=None,
        headings=tuple(headings),
        kind="function" if name else "doc",
        name=name,
    )


def asked(text: str, *, headings: Sequence[str] = (), at: int = 0) -> list[str]:
    return [claim.question for claim in claims_of(passage(text, headings=headings, at=at))]


STATED = {
    "definition": (
        "A bonded warehouse means a building in which goods of the port lie before duty is paid.",
        "What does a bonded warehouse mean, according to “port rules 2024”?",
    ),
    "code as subject": (
        "Heading 8703.22.01 applies to passenger cars of up to 1,500 cc.",
        "What does heading 8703.22.01 apply to?",
    ),
    "limit": (
        "The yearly import volume under heading 8703.22.01 shall be limited to 65,205 cars.",
        "What shall the yearly import volume under heading 8703.22.01 be limited to?",
    ),
    "duty of a person": (
        "Any importer of cars from Ruritania shall submit a certificate of origin.",
        "What shall any importer of cars from Ruritania submit?",
    ),
    "deadline": (
        "Harbour pilots of the northern terminal should contact desk@port.example no later than March 3, 2025.",
        "By when should harbour pilots of the northern terminal contact desk@port.example?",
    ),
    "date": (
        "The yearly meeting of the Rotterdam pilots will be held on March 3, 2025, from 9:30 a.m. to noon.",
        "When will the yearly meeting of the Rotterdam pilots be held?",
    ),
    "amount": (
        "A mooring permit of the Rotterdam terminal is $20 per day and berth.",
        "How much is a mooring permit of the Rotterdam terminal?",
    ),
    "calculation": (
        "The net tonnage of a container vessel shall be calculated by subtracting its fuel from its weight.",
        "How shall the net tonnage of a container vessel be calculated?",
    ),
    "condition": (
        "If the Rotterdam terminal is closed by March 31, 2026, the Harbour Board will pay the fees back.",
        "What will the Harbour Board do if the Rotterdam terminal is closed by March 31, 2026?",
    ),
    "exception before it": (
        "Except as provided in headings 8703.10, 8703.21, and 8704.10, heading 8703.22 provides the duty on cars.",
        "What does heading 8703.22 provide?",
    ),
    "circumstance before it": (
        "Beginning on January 1, 2026, the quota of the Rotterdam terminal shall be limited to 100 ships.",
        "Beginning on January 1, 2026, what shall the quota of the Rotterdam terminal be limited to?",
    ),
    "amendment": (
        "(b) By amending subdivision (k) to note 19 by deleting “8401” and inserting “8402” in lieu thereof;",
        "How is subdivision (k) to note 19 amended?",
    ),
    "agent": (
        "The lighthouse at Cape Ruritania was built by the Harbour Board.",
        "By whom was the lighthouse at Cape Ruritania built?",
    ),
    "responsibility": (
        "The Harbour Board is responsible for the safety of all piers.",
        "What is the Harbour Board responsible for?",
    ),
}


@pytest.mark.parametrize("case", STATED)
def test_what_a_sentence_states_is_asked_for_in_words_that_stand_alone(case: str) -> None:
    text, question = STATED[case]
    one = passage(text)
    made = question_make([one], "factual", "medium")
    assert made is not None, "no question"
    assert made[0] == question
    (gold,) = gold_of([one], made[2])
    assert gold.quote == text[gold.start : gold.end]
    assert gold.quote.endswith(text[-20:])
    assert filter_reason(question, [one], "factual", gold=1) == ""


REFUSED = {
    "dangling subject": "This warehouse is a building in which goods lie before duty is paid.",
    "dangling words in it": "The fee described in this section shall be limited to 65,205 dollars.",
    "points to the text": "The duty on cars is the one given in the following table of the port.",
    "bare agent": "The Board will develop a plan.",
    "what was named before": "The plan is a list of the piers that the port has to repair.",
    "cut at its end": "The duty on passenger cars of heading 8703 is the one that the port and",
    "cut at its beginning": "of the port is a building in which goods lie before duty is paid.",
    "noun of a verb's form": "A mooring permit fee of the port was proposed twice.",
    "list that goes on elsewhere": "(b) By amending note 19, by inserting the following provisions in their order: 7216.91.0010; 7302.90.9000;",
    "no verb": "Harbour Board, Rotterdam, room 12, from Monday to Friday.",
    "question": "What is the duty on passenger cars of heading 8703 in the port?",
}


DOUBTFUL = {
    "praise": "The harbour guide of Rotterdam is a helpful resource for new captains.",
    "a word for anything": "The yearly inspection of Rotterdam is one of the steps that the Harbour Board takes.",
    "several verbs": "Strong customs rules of Ruritania fuel trade in the region, spur new ports, and protect consumers.",
    "verb that does not agree": "The harbour pilots of Rotterdam serves as the first contact of captains.",
    "another verb before it": "Fishing cases of Ruritania often involve several crews with varying means who share a boat.",
    "verb without an object": "The pilot station of Rotterdam operates within the northern terminal of the port.",
    "object told elsewhere": "Any captain of the Harbour Board may use this service for free.",
    "it tells somebody": "Ensure all crews of Ruritania are addressed in a manner of the Harbour Board.",
    "nobody acts": "Preventing damage to the piers of Rotterdam must always be our top priority.",
    "as it happens": "New ports of Ruritania are created as opportunities in the region arise.",
    "for the first time": "In 2012, the harbour radar of Rotterdam was used for the first time.",
    "what follows is missing": "To decide whether a pier of Rotterdam is safe, use the following decision trees.",
    "half a line of a list": "Berths - the harbour office of Rotterdam can assign them by a request in writing.",
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_what_says_nothing_or_is_built_otherwise_is_not_asked(case: str) -> None:
    assert asked(DOUBTFUL[case]) == []


def test_a_person_is_asked_for_as_a_person_and_a_name_keeps_its_capitals() -> None:
    assert asked("Rudolf Rassendyll is a senior consultant of the Harbour Board in Rotterdam.") == [
        "Who is Rudolf Rassendyll?"
    ]
    assert asked("Office of Ships outreach will include companies of the northern terminal.") == [
        "What will Office of Ships outreach include?"
    ]


def test_an_answer_is_said_in_plain_words_and_without_what_the_question_has_named() -> None:
    assert (
        plain("> The **fee** of the [port](https://port.example/a_(b)) is\n12 euros.")
        == "The fee of the port is 12 euros."
    )
    assert (
        plain("Ships need:\n\n- a pilot,\n  on board\n- a crew")
        == "Ships need:\n- a pilot, on board\n- a crew"
    )
    assert plain("| `North pier` | 120 m | |", "How long is “North pier”?") == "120 m"
    dotted = "2812.12.00 ...... Phosphorus oxychloride ...... Pharma."
    assert plain(dotted, "What does the code 2812.12.00 cover?") == "Phosphorus oxychloride; Pharma."
    assert plain("a * b and snake_case_name and 2 * 3") == "a * b and snake_case_name and 2 * 3"


def test_the_judge_sees_a_true_sentence_that_answers_another_question() -> None:
    one = passage(
        "The customs fee for ships of Ruritania is 12 euros. The choir of Ruritania has 40 singers."
    )
    (gold,) = gold_of([one], ["The customs fee for ships of Ruritania is 12 euros."])
    sources = [one.source()]

    def accuracy(answer: str) -> int:
        question = "What is the customs fee for ships of Ruritania?"
        return judge_make(question, answer, [], sources, [gold], "answer")["accuracy"][0]

    assert accuracy("The customs fee for ships of Ruritania is 12 euros.") == 5
    assert accuracy("The choir of Ruritania has 40 singers.") == 1


def test_nothing_is_asked_as_absent_that_the_passage_may_tell() -> None:
    silent = "The northern pier of Ruritania includes two cranes and a warehouse."
    telling = f"{silent} It costs 12 euros, has 40 employees, was founded in 1894 and is led by a Board. Call 555-1234, in any language."
    assert question_make([passage(silent)], "unanswerable", "easy") is not None
    assert question_make([passage(telling)], "unanswerable", "easy") is None


def test_only_what_has_people_is_asked_who_is_in_charge_of_it() -> None:
    told = "It costs 12 euros since 1894, in any language; call 555-1234."
    thing = f"The northern pier of Ruritania includes two cranes and a warehouse. {told}"
    office = f"The harbour office of Ruritania includes two cranes and a warehouse. {told}"
    assert question_make([passage(thing)], "unanswerable", "easy") is None
    made = question_make([passage(office)], "unanswerable", "easy")
    assert made is not None
    assert "the harbour office of Ruritania" in made[0]


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_nonsense_alone_is_not_asked(case: str) -> None:
    assert asked(REFUSED[case]) == []


def test_lines_of_a_page_are_no_sentences_and_headings_are_none_either() -> None:
    text = (
        "Opening of the Pier\nThe northern pier of the\nHarbour Board includes two\ncranes and, by 19 C.F.R. 146.43, a\n"
        "warehouse.\nSUMMARY: The customs fee for\nships of Ruritania is 12 euros\nper day."
    )
    questions = [
        "What does the northern pier of the Harbour Board include?",
        "What is the customs fee for ships of Ruritania?",
    ]
    assert asked(text, headings=["Opening of the Pier"], at=900) == questions
    assert asked(text.partition("\n")[2], at=900) == questions[1:], "its beginning may be missing"


def test_a_list_is_quoted_whole_with_its_lead() -> None:
    lead = "Heading 8703.22.01 does not apply to the following:"
    one = passage(
        f"{lead}\n\n(i) parts of cars;\n(ii) goods of subdivision\n(g) of the schedule; or\n(iii) bicycles.\n\nOther words."
    )
    made = question_make([one], "factual", "easy")
    assert made is not None
    assert made[0] == "What does heading 8703.22.01 not apply to?"
    assert gold_of([one], made[2])[0].quote.endswith("(iii) bicycles.")
    assert asked(f"{lead}\n\n(i) parts of cars;\n(ii) goods of") == [], "a list that is cut"


def test_rows_of_tables_are_asked_for_a_cell() -> None:
    coded = "0101.21.00 | Purebred breeding horses | Free\n0101.29.00 | Other live horses | 4.5%"
    assert asked(coded) == [
        "What does the code 0101.21.00 cover?",
        "What is the rate for 0101.21.00, Purebred breeding horses?",
        "What does the code 0101.29.00 cover?",
        "What is the rate for 0101.29.00, Other live horses?",
    ]
    dotted = "2804.10.00 ........ Hydrogen ........ Pharma.\n2804.21.00 ........ Argon, and other gases or"
    assert asked(dotted) == ["What does the code 2804.10.00 cover?"], (
        "the second goes on in a line that is missing"
    )
    headed = "| Pier | Length | Notes |\n|---|---|---|\n| North pier | 120 m | old |\n| South pier | 80 m | |\n| South pier | 90 m | |"
    assert asked(headed) == ["What does “port rules 2024” give as “Length” for the pier “North pier”?"]


def test_code_is_asked_for_what_its_docstring_or_its_head_says() -> None:
    def of(text: str) -> str:
        made = question_make([passage(text, name="rates.duty")], "code", "easy")
        return made[0] if made else ""

    assert (
        of('def duty(code: str) -> float:\n    """Return the duty in percent."""')
        == "What does `rates.duty` return?"
    )
    assert of('class duty:\n    """Rates of a port."""') == "What does `rates.duty` do in the code?"
    assert (
        of("def duty(\n    self, code: str\n) -> float:\n    return 1")
        == "Which parameters does `rates.duty` take?"
    )
    assert of("def duty(self) -> float:\n    return 1") == "How is `rates.duty` declared?"
    assert of("    return 1\n") == ""


def test_types_take_the_sentences_that_fit_them() -> None:
    rate = passage("The customs fee for ships of Ruritania is 12 euros per day.")
    how = passage(
        "The net tonnage of ships of Ruritania shall be calculated by subtracting its fuel from its weight.",
        document="b2.pdf",
    )
    far = passage("The choir of Zenda has 40 singers and an organist.", document="c.pdf")
    assert question_make([rate], "how_to", "easy") is None
    assert question_make([how], "how_to", "easy") is not None
    like = passage("The customs fee for ships of Zenda is 15 euros per night.", document="b2.pdf")
    compared = question_make([rate, like], "comparison", "easy")
    assert compared is not None
    assert "“port rules 2024”" in compared[0], "a file's name has codes that no text has"
    assert len(compared[2]) == 2
    assert question_make([rate, far], "comparison", "easy") is None, "they have nothing in common"
    assert question_make([rate, how], "multi_hop", "easy") is None, "two questions, and no more"
    of_it = passage("The customs fee for ships of Ruritania shall be paid by the captain of the ship.")
    hops = question_make([rate, of_it], "multi_hop", "easy")
    assert hops is not None
    assert hops[0].startswith("What is the customs fee for ships of Ruritania, and ")
    assert len(hops[2]) == 2
    absent = question_make([rate], "unanswerable", "easy")
    assert absent is not None
    assert absent[2] == []
