"""The pure checks: duplicates, contamination, splits by document, personal data and secrets."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.datasets.checks import contamination, duplicates, scan, splits
from apps.datasets.records import parts
from apps.datasets.records import record as r
from apps.datasets.records.texts import normalised
from basics.errors import Invalid
from tests.datasets.row_samples import FULL


def row(name, question, answer="a", **more):
    return r.Record(id=name, question=question, answer=answer, **more)


def source(document, start=0):
    return parts.RecordSource(document, f"words {start}", start=start, end=start + 9)


def test_equal_questions_are_found_whatever_their_dress():
    rows = [
        row("1", "What IS “HTS 1509.10”?"),
        row("2", "what is hts 1509.10"),
        row("3", "What is HTS 1509.20?"),
    ]
    assert [(p.kept, p.dropped) for p in duplicates.exact(rows)] == [("1", "2")]


def test_nearly_equal_questions_are_found_and_nothing_else():
    words = [
        "which",
        "documents",
        "must",
        "an",
        "importer",
        "of",
        "olive",
        "oil",
        "from",
        "Italy",
        "keep",
        "and",
        "for",
        "how",
        "many",
        "years",
        "after",
        "entry",
    ]
    rows = [row("0", " ".join(words))]
    rows += [row("near", " ".join([*words[:-1], "arrival"])), row("equal", " ".join(words).upper())]
    rng = random.Random(7)
    rows += [row(f"f{n}", " ".join(rng.sample(words, len(words)))) for n in range(200)]
    found = {(p.kept, p.dropped): p.similarity for p in duplicates.near(rows)}
    for (kept, dropped), likeness in found.items():
        one, other = (next(x.question for x in rows if x.id == name) for name in (kept, dropped))
        grams = [duplicates.shingles(normalised(text)) for text in (one, other)]
        assert duplicates.jaccard(*grams) == pytest.approx(likeness, abs=1e-4)
        assert likeness >= duplicates.NEAR
    assert {"near"} <= {name for pair in found for name in pair}


def test_minhash_estimates_jaccard():
    one, other = (frozenset(map(str, range(a, b))) for a, b in ((0, 300), (100, 400)))
    share = float(np.mean(duplicates.minhash(one) == duplicates.minhash(other)))
    assert abs(share - 0.5) < 0.15


def test_rows_on_the_same_passage_and_of_the_same_meaning_are_found():
    rows = [
        row("1", "a?", sources=(source("d", 1), source("d", 2)), type=parts.RowType.FACTUAL),
        row("2", "b?", sources=(source("d", 2), source("d", 1)), type=parts.RowType.FACTUAL),
        row("3", "c?", sources=(source("d", 1),), type=parts.RowType.FACTUAL),
        row("4", "d?", sources=(source("d", 1),), type=parts.RowType.HOW_TO),
    ]
    assert [(p.kept, p.dropped) for p in duplicates.same_passage(rows)] == [("1", "2")]
    vectors = np.array([[1, 0], [0, 1], [0.99995, 0.01]], np.float32)
    assert [(p.kept, p.dropped) for p in duplicates.same_meaning(["a", "b", "c"], vectors)] == [("a", "c")]


LONG = (
    "the importer shall keep all records of the entry for five years from the date of liquidation or release"
)


def test_contamination_names_the_shared_words():
    evaluated = [
        row("e1", "How long?", f"By law {LONG} of the goods."),
        row("e2", "What else?", "nothing here is shared with any other row at all"),
    ]
    trained = [
        row("t1", "Who keeps?", f"Note that {LONG}, says the rule."),
        row("t2", "what ELSE"),
        row("t3", "Other?", "all records of the entry for five years, roughly"),
    ]
    found = {(o.evaluated, o.seen): o for o in contamination.contamination(trained, evaluated)}
    assert set(found) == {("e1", "t1"), ("e2", "t2"), ("e1", "t3")}
    assert found["e1", "t1"].text == LONG
    assert found["e1", "t1"].is_contamination
    assert found["e2", "t2"].is_contamination
    assert found["e1", "t3"].words == 8
    assert not found["e1", "t3"].is_contamination


def test_a_phrase_that_many_rows_share_is_no_contamination():
    """How answers abstain stands in thousands of rows: it must not compare each of them with each."""
    phrase = "The documents that were found do not say anything about this question, so there is no answer."
    evaluated = [row(f"e{n}", f"What of part {n}?", phrase) for n in range(contamination.MOST_SHARED + 1)]
    trained = [row("t1", "Anything else?", phrase), row("t2", "what of PART 7", phrase)]
    assert [(o.evaluated, o.seen) for o in contamination.contamination(trained, evaluated)] == [("e7", "t2")]
    assert [o.seen for o in contamination.contamination(trained, evaluated[:1])] == ["t1", "t2"]


def test_examples_of_a_prompt_contaminate_too():
    evaluated = [row("e1", f"Is it true that {LONG}?")]
    found = list(contamination.contamination([], evaluated, {"few-shot": f"Q: {LONG}"}))
    assert [(o.seen, o.is_contamination) for o in found] == [("few-shot", True)]


def test_the_same_question_in_other_words_is_found_by_its_meaning():
    places = {
        "How long are records kept?": (1, 0),
        "For what time must one keep records?": (0.96, 0.28),
        "What is the duty?": (0, 1),
    }

    def embed(texts):
        return np.array([places[text] for text in texts], np.float32)

    asked, other, far = places
    evaluated = [row("e1", asked), row("e2", far)]
    found = list(
        contamination.same_meaning(
            [row("t1", other)], evaluated, embed, {"few-shot": f"Like so:\n{far}\nYes."}
        )
    )
    assert [(o.evaluated, o.seen, o.is_contamination) for o in found] == [
        ("e1", "t1", True),
        ("e2", "few-shot", True),
    ]
    assert found[0].similarity == pytest.approx(0.96, abs=1e-3)
    assert not list(contamination.same_meaning([row("t2", far)], [row("e1", asked)], embed))


@given(st.lists(st.lists(st.integers(0, 12), max_size=3), min_size=1, max_size=60), st.integers(0, 3))
def test_no_document_is_ever_in_two_splits(documents, seed):
    items = [splits.SplitItem(str(n), tuple(map(str, d)), str(n % 3)) for n, d in enumerate(documents)]
    found = splits.divide(items, seed=seed)
    assert set(found) == {item.id for item in items}
    assert not splits.leaks((found[item.id], item.documents) for item in items)
    assert splits.divide(items[::-1], seed=seed) == found


def test_splits_hold_their_shares_of_every_stratum():
    items = [splits.SplitItem(str(n), (f"d{n // 4}",), "hard" if n % 4 else "easy") for n in range(800)]
    found = splits.divide(items, seed=1)
    sizes = Counter(found.values())
    assert {name: round(count / 800, 2) for name, count in sizes.items()} == splits.SHARES
    hard = Counter(found[item.id] for item in items if item.stratum == "hard")
    assert hard["train"] == pytest.approx(480, abs=4)
    assert splits.divide(items, seed=2) != found
    with pytest.raises(Invalid):
        splits.divide(items, {"train": 0.5, "test": 0.6})


SECRETS = [
    ("email", "write to jane.doe+x@acme-corp.co.uk today", "jane.doe+x@acme-corp.co.uk"),
    ("iban", "account DE89 3704 0044 0532 0130 00 please", "DE89 3704 0044 0532 0130 00"),
    ("card", "card 4111 1111 1111 1111, valid", "4111 1111 1111 1111"),
    ("ssn", "SSN 078-05-1120.", "078-05-1120"),
    ("phone", "call +49 30 901820 now", "+49 30 901820"),
    ("phone", "call (202) 555-0143 now", "(202) 555-0143"),
    ("key", "AKIA" + "IOSFODNN7EXAMPLE", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("key", "key sk-proj-" + "a1B2" * 8, "sk-proj-" + "a1B2" * 8),
    ("token", "ghp_" + "a" * 36, "ghp_" + "a" * 36),
    (
        "token",
        "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20,
        "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20,
    ),
    ("password", "password: hunter2secret!", "hunter2secret!"),
    (
        "private_key",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END",
    ),
]


@pytest.mark.parametrize(
    ("kind", "text", "value"), SECRETS, ids=[f"{n}-{k}" for n, (k, *_) in enumerate(SECRETS)]
)
def test_personal_data_and_secrets_are_found_masked_and_hidden(kind, text, value):
    given_row = row("1", "What?", text)
    (found,) = scan.scan(given_row)
    assert (found.kind, found.field) == (kind, "answer")
    assert value not in found.shown
    assert found.fingerprint == scan.fingerprint(kind, value)
    hidden, listed = scan.redact(given_row)
    assert hidden.answer == text.replace(value, f"[{kind.upper()}]")
    assert listed == [found]
    assert scan.scan(hidden) == []


@pytest.mark.parametrize(
    "text",
    [
        "Heading 1509.10.20 at 3.4¢/kg",
        "19 CFR 163.4(a)",
        "4111 1111 1111 1112",
        "2026-11-22 05:39:44",
        "jane@example.com",
        "8471.30.0100 8471.41.0150",
        "DE00 0000 0000 0000",
        "ISBN 978-3-16-148410-0",
        "api_key: short",
        "https://x.test/a?b=1",
    ],
)
def test_what_only_looks_like_it_is_left_alone(text):
    assert scan.scan(row("1", "What?", text)) == []


def test_every_field_is_read_and_hidden():
    secret = "ghp_" + "z" * 36
    full = r.from_values(
        r.to_values(FULL)
        | {
            "meta": {"note": [secret]},
            "tools": [],
            "tags": ["a"],
            "steps": [{"step": 1, "input": {"password": "hunter2secret", "q": secret}}],
        }
    )
    hidden, found = scan.redact(full)
    assert {f.field for f in found} == {"meta", "steps"}
    assert "zzzz" not in r.to_json(hidden)
    assert hidden.steps[0].input == {"password": "[PASSWORD]", "q": "[TOKEN]"}
    assert scan.scan(hidden) == []


@pytest.mark.parametrize(
    "text",
    [
        "a@" * 20_000,
        "1 " * 40_000,
        "+1 " + "12-" * 20_000,
        "eyJ" * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 2_000,
        "DE89" + " 3704" * 10_000,
    ],
)
def test_hostile_texts_are_read_to_their_end(text):
    """A rule that backtracks without bound would not come back from these."""
    scan.matches(text)
