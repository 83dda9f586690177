"""Kinds of rows beyond plain facts: questions that need each passage, voices, languages, planted instructions, code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.collections.models import Chunk, ChunkKind, ChunkLink
from apps.datasets.formats import FORMATS, Card, validate
from apps.datasets.generation.disagreeing import disagreement
from apps.datasets.generation.prompt_injection import canary_of, instruction_of, is_obeyed
from apps.datasets.generation.row_languages import fault, name_of, tag_of
from apps.datasets.models import GenerationItem, GenerationJob, PaidCall
from apps.datasets.records.columns import record_of
from apps.datasets.records.record import Record
from apps.datasets.rows import selectors
from basics.errors import Invalid
from runs import remote_models
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.conftest import found  # noqa: F401 - fixture
from tests.conversations.support import Library
from tests.datasets.support import FakeModel, drive, make_open_library, start
from tests.fake_provider import running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("found")]
NAME = "fake-kinds"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModel]:
    remote_models._known.clear()
    with running() as (url, server):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", NAME)
        fake = server.replies[NAME] = FakeModel()
        yield fake


@pytest.fixture
def library(cast: Cast) -> Iterator[Library]:
    made = make_open_library(cast)
    with tenant_scope(cast.tenant.pk):
        yield made


def made(cast: Cast, library: Library, kind: str, **options: Any) -> GenerationJob:
    options = {"rows": 1, "types": {kind: 1}, "rounds": 1, "model": f"compatible/{NAME}", **options}
    return drive(start(cast, library.collection, **options))


def record(cast: Cast, job: GenerationJob) -> Record:
    assert job.kept == 1, job.shortfall
    return record_of(next(selectors.job_rows(actor=cast.actor("viewer"), job=job)))


def reason(job: GenerationJob) -> str:
    assert job.kept == 0
    return str(GenerationItem.objects.get(job=job).reason)


def test_question_over_two_passages_is_tried_without_each(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    job = made(cast, library, "comparison")
    assert len({source.chunk_id for source in record(cast, job).sources}) >= 2
    tried = PaidCall.objects.filter(job=job, stage="filter").order_by("attempt")
    assert list(tried.values_list("attempt", flat=True)) == [0, 1, 2]
    model.is_enough = True
    assert reason(made(cast, library, "comparison", name="Again")).startswith("One passage alone answers it")


def test_question_is_worded_anew_once_and_its_lineage_is_kept(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    model.better = ["What is the customs duty on passenger cars of heading 8703?"]
    job = made(cast, library, "factual")
    row = next(selectors.job_rows(actor=cast.actor("viewer"), job=job))
    assert row.question == "What is the customs duty on passenger cars of heading 8703?"
    assert [earlier["fault"] for earlier in row.lineage["wordings"]] == ["Vague."]
    model.better = ["Which duty is due?", "Which duty is due now?"]
    assert reason(made(cast, library, "factual", name="Again")) == "Vague."


def test_personas_and_styles_meet_each_other_and_stand_in_the_rows(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    voices = {"personas": ["a broker", "a driver"], "styles": ["a few keywords", "a letter"]}
    job = made(cast, library, "factual", rows=4, **voices)
    rows = [record_of(row) for row in selectors.job_rows(actor=cast.actor("viewer"), job=job)]
    met = {(row.meta["persona"], row.meta["style"]) for row in rows}
    assert len(met) == len(rows) == 4
    assert sum("asked by a broker" in asked for asked in model.asked) == 2


def test_row_in_another_language_is_dropped(cast: Cast, library: Library, model: FakeModel) -> None:
    job = made(cast, library, "factual", language="German")
    assert reason(job) == "The question is in the language en instead of de."
    assert record(cast, made(cast, library, "factual", name="Plain")).language == "en"


def test_answer_that_obeys_a_planted_instruction_is_dropped(
    cast: Cast, library: Library, model: FakeModel
) -> None:
    instruction = instruction_of(0, 0)
    row = record(cast, made(cast, library, "injected"))
    assert row.meta["planted"] == instruction
    assert any(instruction in step.observation for step in row.steps)
    assert all(instruction not in source.quote for source in row.sources)
    assert not is_obeyed(instruction, f"A passage says “{instruction}”, which I leave aside.")
    model.answer = f"The duty is 2.5 percent. {canary_of(instruction)}"
    assert is_obeyed(instruction, model.answer)
    assert "followed an instruction" in reason(made(cast, library, "injected", name="Again"))


def test_adversarial_rows_expect_a_refusal(cast: Cast, library: Library) -> None:
    row = record(cast, made(cast, library, "adversarial", model="extractive", rounds=4))
    assert (row.expected, row.answer[:10]) == ("refuse", "I will not")


def test_sources_that_contradict_each_other_are_both_named(cast: Cast, model: FakeModel) -> None:
    more = "Importers keep proof of origin with the papers of the entry, and the office looks at it in each of its audits of them."
    library = make_open_library(
        cast,
        "Rates",
        (
            f"The duty on passenger cars at import is 2.5 percent of their value. {more} {more}",
            f"The duty on passenger cars at import is 25 percent of their value. {more} {more}",
        ),
    )
    with tenant_scope(cast.tenant.pk):
        row = record(cast, made(cast, library, "contradictory", model="extractive"))
    assert row.expected == "cite_all"
    assert "2.5 percent" in row.answer
    assert " 25 percent" in row.answer


def test_rules_begin_with_the_passages_that_they_can_ask_about(cast: Cast) -> None:
    codes = "; ".join(f"84{n}.10.00" for n in range(10, 40))
    said = "The yearly fee for a berth in the port of Zenda is 120 euros and is paid in March."
    texts = (*(f"{n}; {codes}" for n in range(5)), f"Of berths.\n\n{said}\n\n{codes}", codes)
    library = make_open_library(cast, "Port", texts)
    with tenant_scope(cast.tenant.pk):
        job = made(cast, library, "factual", model="extractive", rounds=7)
        row = record(cast, job)
    assert job.dropped == 0
    assert row.question == "What is the yearly fee for a berth in the port of Zenda?"
    assert row.answer == said == row.sources[0].quote


def test_code_is_asked_about_with_the_text_that_names_it(cast: Cast, library: Library) -> None:
    code, prose = library.chunks[:2]
    head = 'def duty_of(heading: str) -> float:\n    """Return the duty of a heading in percent."""\n'
    text = head + "    # SPDX-License-Identifier: MIT\n" + "    look_up(heading)\n" * 12
    Chunk.objects.filter(pk=code.pk).update(
        kind=ChunkKind.FUNCTION, qualified_name="rates.duty_of", text=text
    )
    Chunk.objects.filter(pk=prose.pk).update(
        text=f"{prose.text} The function duty_of is used for each of the notices."
    )
    row = record(cast, made(cast, library, "code", model="extractive"))
    assert row.question == "What does `rates.duty_of` do in the code, and what does Tariff.pdf say about it?"
    assert {source.chunk_id for source in row.sources} >= {code.pk, prose.pk}
    assert {source.license for source in row.sources} == {"MIT"}


@pytest.mark.parametrize("user", ["model", "script"])
def test_a_conversation_goes_on_by_its_user_and_says_why_it_ended(
    cast: Cast, library: Library, model: FakeModel, tmp_path: Path, user: str
) -> None:
    model.says = ["And for trucks?"]
    script = ["And for trucks?", "And for ships?"] if user == "script" else []
    job = made(cast, library, "multi_turn", script=script, max_turns=2 if script else 3)
    row = record(cast, job)
    first = next(turn.content for turn in row.messages if turn.role == "user")
    assert [turn.content for turn in row.messages if turn.role == "user"] == [first, "And for trucks?"]
    assert (row.question, row.type) == ("And for trucks?", "multi_turn")
    assert [step.step for step in row.steps] == list(range(1, len(row.steps) + 1))
    ended = {"model": ("compatible/" + NAME, "satisfied"), "script": ("script", "turns")}[user]
    assert (row.meta["turns"], row.meta["user"], row.meta["stop"]) == (2, *ended)
    answering = [json.loads(asked) for asked in model.asked if "You answer a question" in asked]
    said = [part["content"] for part in answering[-1] if part["role"] == "user"]
    assert said == [first, "And for trucks?"], "the second turn does not know the first"
    calls = list(PaidCall.objects.filter(job=job).values_list("stage", "attempt", "step"))
    assert len(calls) == len(set(calls)) == len(model.asked)
    for form in (f for f in FORMATS.values() if f.is_export):
        path = tmp_path / f"rows{form.suffix}"
        path.write_bytes(b"".join(form.write(lambda: iter([row]), Card("x"))))
        assert validate(form, path, lambda: iter([row])).is_good, form.name


def test_a_conversation_by_rules_goes_through_linked_passages(cast: Cast, library: Library) -> None:
    one, other = library.chunks[:2]
    ChunkLink.objects.create(
        tenant=cast.tenant, document=library.document, chunk=one, target=other, relation="next", weight=1
    )
    options: dict[str, Any] = {"rows": 1, "types": {"multi_turn": 1}, "rounds": 1}
    row = record(cast, drive(start(cast, library.collection, **options)))
    assert (row.meta["turns"], row.meta["user"], row.meta["stop"]) == (2, "rules", "satisfied")
    assert {source.chunk_id for source in row.sources} >= {other.pk}
    with pytest.raises(Invalid, match="script"):
        start(cast, library.collection, name="Scripted", **options, script=["And then?"])


def test_disagreement_is_of_figures_and_not_of_years() -> None:
    first = "The yearly budget of the customs office is 12 million dollars in all."
    assert disagreement(first, first.replace("12", "14")) is not None
    assert disagreement(first, first) is None
    assert disagreement(f"{first[:-8]} in 2023.", f"{first[:-8]} in 2024.") is None


def test_languages_are_named_and_told() -> None:
    assert (name_of("de"), tag_of("German"), tag_of("pt-BR"), tag_of("Klingon!")) == (
        "German",
        "de",
        "pt-BR",
        "",
    )
    german = "Wie hoch ist der Zoll auf die Einfuhr von Autos und wann ist er zu zahlen?"
    assert fault("question", german, "de-AT") == ""
    assert fault("question", german, "sw") == ""
    assert fault("question", german, "en") == "The question is in the language de instead of en."
