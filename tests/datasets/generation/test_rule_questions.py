"""Questions by rules: which sentences, lists and rows are asked about, how, and which are left alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from apps.datasets.generation.by_rules import filter_reason, gold_make, judge_make, plain
from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.material import gold_of
from apps.datasets.generation.rule_claims import claims_of, title_of
from apps.datasets.generation.rule_questions import question_make
from tests.walked import each


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
    "condition of one of many": (
        "If the berth is an Ex berth, the Harbour Board of Zenda will be paid by the captain of the ship.",
        "What happens if the berth is an Ex berth, according to “port rules 2024”?",
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
    "what is called": (
        "Default pumps of the Zenda system may call other pumps of the same dock.",
        "What may default pumps of the Zenda system call?",
    ),
    "what is asked for": (
        "The pilots of the Zenda system must ask for a permit of the same dock.",
        "What must the pilots of the Zenda system ask for?",
    ),
    "who is called": (
        "The pilots of the Zenda system must call the harbour office of the same dock.",
        "Whom must the pilots of the Zenda system call?",
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
    assert plain("as [[ISO 1]](refs.md#iso) and [Piers][1] or [dm] say[^2]") == "as ISO 1 and Piers or dm say"
    assert plain("the “Types”<!-- ignore --> section") == "the “Types” section"
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
    silent = "The Harbour Office of Ruritania includes two cranes and a warehouse."
    telling = f"{silent} It has 40 employees, was founded in 1894 and hears you at 555-1234."
    assert question_make([passage(silent)], "unanswerable", "easy") is not None
    assert question_make([passage(telling)], "unanswerable", "easy") is None


@pytest.mark.parametrize(
    ("subject", "asks"),
    [
        ("The Harbour Office of Ruritania", "the Harbour Office of Ruritania"),
        ("The Ruritania Pilot Program", "How much does the Ruritania Pilot Program cost"),
        ("The Northern Pier of Ruritania", ""),
        ("The setting OTEL_PIER_LIMIT", ""),
        ("The Office", ""),
        ("Any Ruritania Office", ""),
        ("Harbour Office", ""),
        ("The Harbour Office and the Pilot Office of Zenda", ""),
        ("The foreign policy of Ruritania", ""),
    ],
)
def test_what_is_absent_is_asked_only_of_a_named_thing_of_which_people_ask_it(
    subject: str, asks: str
) -> None:
    made = question_make([passage(f"{subject} includes two cranes and a warehouse.")], "unanswerable", "easy")
    assert (made is not None) == bool(asks)
    assert made is None or (asks in made.question and made.quotes == [])
    table = "| Name | Description |\n|---|---|\n| Harbour Office | keeps the logs of all pilots |"
    assert question_make([passage(table)], "unanswerable", "easy") is None, "a row of a table is no office"


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
    assert asked(headed) == ["What is given as “Length” for the pier “North pier” in “port rules 2024”?"]


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
    assert compared.question == (
        "What is the customs fee for ships of Ruritania, and how does the customs fee for ships of Zenda compare?"
    )
    assert len(compared.quotes) == 2
    assert question_make([rate, far], "comparison", "easy") is None, "they have nothing in common"


def test_titles_are_said_instead_of_names_of_files_where_they_say_more() -> None:
    def titled(title: str) -> str:
        return title_of(replace(passage("x"), title=title))

    assert titled("Rules of the port 4.2") == "“Rules of the port 4.2”"
    for poor in (
        "",
        "Rules",
        "rules.doc",
        "Microsoft Word - a b.doc",
        "任务书编号： 密级：",
        "Rules of the port:",
    ):
        assert titled(poor) == "“port rules 2024”"


TABLE = (
    "| Setting | Description | Default | Notes |\n|---|---|---|---|\n"
    "| PIER_LIMIT | Most ships at a [pier](p.md) | 12 ships | see below |\n"
    "| PIER_LOG | n/a | `yes` | |\n"
    "| PIER_NAME | What a \\| b is called | | |"
)


def test_a_row_is_answered_with_the_cell_that_was_asked_for() -> None:
    one = passage(TABLE)
    found = {claim.question: claim for claim in claims_of(one)}
    told = {question: claim.told for question, claim in found.items()}
    assert told == {
        "What is given as “Description” for the setting “PIER_LIMIT” in “port rules 2024”?": "Most ships at a pier",
        "What is given as “Default” for the setting “PIER_LIMIT” in “port rules 2024”?": "12 ships",
        "What is given as “Description” for the setting “PIER_NAME” in “port rules 2024”?": "What a | b is called",
    }
    for question, claim in found.items():
        made = question_make([one], "factual", "hard")
        assert made is not None
        gold = gold_of([one], [claim.sentence])
        answer, used = gold_make(gold, [one.source()], question, claim.told)
        assert (answer, used) == (claim.told, [one.chunk_id])
        row = plain(claim.sentence, question)
        levels = [
            judge_make(question, said, [], [one.source()], gold, "answer", claim.told)
            for said in (answer, row)
        ]
        assert levels[0]["relevance"][0] == levels[0]["completeness"][0] == 5
        assert levels[0]["accuracy"][0] == 5


def test_the_judge_sees_the_cells_that_nobody_asked_for() -> None:
    one = passage(TABLE)
    claim = next(claim for claim in claims_of(one) if claim.told == "12 ships")
    gold = gold_of([one], [claim.sentence])
    row = "Most ships at a pier; 12 ships; see below"
    cell, whole = (
        judge_make(claim.question, said, [], [one.source()], gold, "answer", claim.told)
        for said in (claim.told, row)
    )
    assert whole["relevance"][0] < cell["relevance"][0]


def test_the_judge_sees_an_answer_to_half_of_the_question_and_one_that_is_lost_in_others() -> None:
    fee = "The customs fee for ships of Ruritania is 12 euros per day and night."
    choir = "The choir of Ruritania has 40 singers, an organist and a conductor."
    other = "The archive of Lisbon opens at nine, closes at noon, keeps quotes for years and sells copies to lawyers."
    more = "A tariff of heading 8703 counts cars, trucks, wheels and engines of many makers, whoever imports them."
    one = passage(f"{fee} {choir} {other} {more}")
    gold = gold_of([one], [fee, choir])
    question = "What is the customs fee for ships of Ruritania, and how many singers does its choir have?"

    def accuracy(answer: str) -> int:
        return judge_make(question, answer, [], [one.source()], gold, "answer")["accuracy"][0]

    assert accuracy(f"{fee} {choir}") == 5
    assert accuracy(fee) < 3
    assert accuracy(f"{other} {fee} {more} {choir}") < 3


LEANING = {
    "adds to what came before": "Any importer of cars from Ruritania must also submit a certificate of origin.",
    "what stands above": "Any importer of cars from Ruritania must submit the certificate described above.",
    "what a reader has seen": "The Zenda berth list is a plain list that follows the rules we covered in Chapter 7.",
    "what a figure shows": "The Zenda berth list is a shortcut for the plan that stands in Listing 9-4.",
    "a heading run in": "Fees of the Port The Harbour Board of Zenda includes five captains.",
    "said twice": "Harbour Board of Zenda harbour board of Zenda includes five captains.",
    "adverb first": "Accordingly the Harbour Board of Zenda includes five captains.",
    "an example": "For example, the Harbour Board of Zenda includes five captains.",
    "items run in": "Logs of the Zenda pilots were kept for ten years; Keep and record the names; Write them down.",
    "one thing without an article": "Berth request of the Zenda pilots must include a plan.",
    "as another is": "The customs fee for ships of Zenda is the same as that of Ruritania.",
    "in the future": "Further piers of the Zenda terminal can be added in the future.",
    "one of many, in passing": "A new berth is added to an existing pier.",
    "what users may": "Users can provide a name for the ship.",
    "what something has": "The port of Zenda has one of the highest fees of all.",
    "praise with it": "The port of Zenda provides captains with an enormous opportunity.",
    "no act": "The second phase of the Zenda works should take two weeks.",
    "it tells somebody to": "If more than one captain has approved the fees of a berth, clarify who will pay for them.",
    "generic": "The overall effect is a gentle nudge toward shorter stays in the port.",
    "words glued": "The Harbour Board ofZenda includes five captains.",
    "what another section tells": "Any captain of the Zenda port must meet the requirements of Section 5.2.",
    "what somebody will provide": "The Harbour Board of Zenda will provide regular training to all pilots.",
    "a noun that looks like a verb": "The Zenda process promotes a structured means to balance the fees.",
    "by whom not": "The logs of the Zenda pilots shall not be taken by a captain as proof of a visit.",
    "a more of something": "Careful piloting in Zenda creates a more secure port for all captains.",
    "a heading and a name run in": "Definition Data warehouse uptime of Zenda includes all hours.",
    "a name said twice": "Data Verification Data of Zenda includes all hours.",
    "a clause within": "A Live badge of Zenda appears when the chart is synchronized with the newest log.",
    "a clause between": "The port documented all fees of Zenda in a paper, which names the piers, identifies pilots.",
    "called what it is called": "The 2006 Plan of Zenda is a plan to which the Harbour Act applies.",
    "praise that is stressed": "The Zenda Net is a particularly important source of trust.",
    "figures of several cases": "The Zenda berth score is 0, 1, or 2 points.",
    "quantity": "Multiple crews of the Zenda port are allowed to submit logs.",
    "when, not how": "The Zenda pilot test will be performed through 42 months of age.",
}


@each("case", LEANING)
def test_what_leans_on_the_text_around_it_is_not_asked(case: str) -> None:
    assert asked(LEANING[case]) == []


WORDED = {
    "key words in capitals": (
        "Callbacks of the Zenda client MUST use a binary format.",
        "What must callbacks of the Zenda client use?",
    ),
    "count": (
        "The choir of Zenda has 40 singers and an organist.",
        "How many singers does the choir of Zenda have?",
    ),
    "duration": (
        "Major versions of the Zenda client must be supported for a minimum of **three years**.",
        "For how long must major versions of the Zenda client be supported?",
    ),
    "agent with a small letter": (
        "The logs of the Zenda pilots are reviewed by the harbour committee.",
        "By whom are the logs of the Zenda pilots reviewed?",
    ),
    "no agent": (
        "The yearly score of the Zenda pilots is determined by the number of employees who answer.",
        "How is the yearly score of the Zenda pilots determined?",
    ),
    "a scale with a name": (
        "The skill of the Zenda pilots is assessed by the Rotterdam Ladder of Skills.",
        "How is the skill of the Zenda pilots assessed?",
    ),
    "what is to be done": (
        "If a berth of the Zenda pier is no longer in use, it should be closed by the pilots.",
        "What should be done if a berth of the Zenda pier is no longer in use?",
    ),
    "several acts": (
        "Any captain of the Zenda port must accept the fees, obtain a permit and notify the pilots.",
        "What must any captain of the Zenda port do?",
    ),
    "the board of this text": (
        "By March 3, 2025, the Board will submit a plan of all piers.",
        "By March 3, 2025, what will the Board submit, according to “port rules 2024”?",
    ),
}


@pytest.mark.parametrize("case", WORDED)
def test_a_question_asks_in_the_words_that_fit(case: str) -> None:
    text, question = WORDED[case]
    assert asked(text) == [question]


def test_what_two_sentences_answer_differently_is_not_asked() -> None:
    one = "The Harbour Board of Zenda includes five captains."
    other = "The Harbour Board of Zenda includes three pilots and a clerk."
    assert len(asked(one)) == 1
    assert asked(f"{one} {other}") == []
