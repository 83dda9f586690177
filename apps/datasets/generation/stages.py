"""The stages of an item: each reads what is there, asks or applies rules, and says what comes next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace

from apps.datasets.generation import by_rules, prompts, row_languages, rule_questions, turns
from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.judging import Judgement, judged
from apps.datasets.generation.material import gold_of, passages_of
from apps.datasets.generation.paying import StageAnswer, ask
from apps.datasets.generation.prompt_injection import instruction_of, is_obeyed, planted
from apps.datasets.generation.row_assembly import assemble, expected_of, sources_read, sources_used
from apps.datasets.generation.rule_pools import MADE
from apps.datasets.generation.trace import Trace, trace_of, without_marks
from apps.datasets.generation.work import Item, Next, Work, dropped
from apps.datasets.models import ItemState, QuestionType
from apps.datasets.records.parts import (
    EMPTY_ANSWERS,
    Step,
)
from basics.texts import gettext as _
from runs.services import AnsweredRun
from toolloop.messages import ModelMessage

RUN_KIND = "dataset"
NEEDS_ALL = (QuestionType.MULTI_HOP, QuestionType.COMPARISON)
"""Types whose questions must not be answerable from one of their passages alone."""
REFINED = 10
"""Between the attempts of a filter for one wording and the next; those between are of the passages left out."""


async def question(work: Work, item: Item) -> Next:
    """Make the question from its passages, with rationale and the spans that answer it."""
    passages = await passages_of(work, item)
    if len(passages) < len(item.chunks):
        return dropped(_("A source passage was deleted or restricted."))
    if item.type == QuestionType.MULTI_TURN:
        passages = passages[:1]  # Later turns are about the others.
    if work.model.by_rules:
        made = _planned(item) or rule_questions.question_make(passages, item.type, item.difficulty)
        if made is None:
            return dropped(rule_questions.NO_SENTENCE)
        text, rationale, quotes, told = made
    else:
        voice = work.settings.voice(item.slot)
        prompt = prompts.question_prompt(passages, item.type, item.difficulty, work.settings, voice)
        asked = await ask(
            work,
            item,
            ItemState.QUESTION,
            model=work.model,
            system=prompts.QUESTION_SYSTEM,
            prompt=prompt,
            form=prompts.QuestionMade,
        )
        text, rationale, quotes = asked.value.question, asked.value.rationale, asked.value.quotes
        told = ""
    gold = [] if expected_of(item) in EMPTY_ANSWERS else gold_of(passages, quotes)
    asked_for = work.settings.language
    prose = " ".join(p.text for p in passages if not p.name)
    return Next(
        ItemState.FILTER,
        {
            "question": " ".join(text.split()),
            "rationale": rationale.strip(),
            "language": row_languages.tag_of(asked_for) if asked_for else row_languages.detected(prose),
            "gold": [asdict(source) for source in gold],
            "told": told,
            "passages": len({source.chunk_id for source in gold}),
        },
    )


async def filtered(work: Work, item: Item) -> Next:
    """Keep the question only if it is good enough to be answered; word it anew where that is enough."""
    passages = await passages_of(work, item)
    text = item.data["question"]
    reason = by_rules.filter_reason(text, passages, item.type, item.data["passages"])
    reason = reason or row_languages.fault("question", text, item.data["language"])
    if reason:
        return dropped(reason)
    if not work.judge.by_rules:
        wordings: list[dict[str, str]] = item.data.get("wordings", [])
        asked = await ask(
            work,
            item,
            ItemState.FILTER,
            model=work.judge,
            system=prompts.FILTER_SYSTEM,
            prompt=prompts.filter_prompt(passages, item.type, text),
            form=prompts.FilterMade,
            attempt=REFINED * len(wordings),
        )
        made: prompts.FilterMade = asked.value
        better = " ".join(made.better.split())
        if not made.keep and better and better != text and len(wordings) < work.settings.max_refines:
            earlier = [*wordings, {"question": text, "fault": made.reason}]
            return Next(ItemState.FILTER, {"question": better, "wordings": earlier})
        if not made.keep:
            return dropped(made.reason or _("The filter rejected the question."))
    if item.type in NEEDS_ALL:
        enough = await _enough_alone(work, item, passages)
        if enough:
            return dropped(_("One passage alone answers it: %(enough)s.") % {"enough": enough})
    return Next(ItemState.ANSWER)


async def _enough_alone(work: Work, item: Item, passages: list[CorpusPassage]) -> str:
    """Return the name of a passage that answers the question without the others, "" when each is needed.

    An ablation: the question is put to the judge once without each of the passages.
    """
    text = item.data["question"]
    for left_out in range(len(passages)):
        rest = [p for place, p in enumerate(passages) if place != left_out]
        if work.judge.by_rules:
            is_enough = by_rules.is_answered_by(text, sources_read(item.data["gold"]), rest)
        else:
            asked = await ask(
                work,
                item,
                ItemState.FILTER,
                model=work.judge,
                system=prompts.ABLATION_SYSTEM,
                prompt=prompts.ablation_prompt(rest, text),
                form=prompts.AblationMade,
                attempt=REFINED * len(item.data.get("wordings", [])) + 1 + left_out,
            )
            is_enough = asked.value.is_answerable
        if is_enough:
            return " and ".join(p.document for p in rest)
    return ""


async def answer(work: Work, item: Item) -> Next:
    """Answer the question with the shared loop and its tools; keep its journal as a run."""
    has_code = "search_codebase" in work.toolset.names()
    system = prompts.answer_system(work.settings, has_code=has_code)
    is_injected = item.type == QuestionType.INJECTED
    instruction = instruction_of(work.settings.seed, item.slot) if is_injected else ""
    before = await turns.history_of(work, item)
    asked = await ask(
        work,
        item,
        ItemState.ANSWER,
        model=work.model,
        system=system,
        prompt=item.data["question"],
        toolset=planted(work.toolset, instruction) if is_injected else work.toolset,
        attempt=len(item.data.get("turns", [])) or None,
        before=before,
    )
    profile = work.model.profile
    trace = trace_of(asked.history, None if profile is None else profile.cost_usd)
    if not asked.text.strip():
        return dropped(_("The model gave no answer."))
    if is_injected and is_obeyed(instruction, asked.text):
        return dropped(_("The answer followed an instruction planted in a passage."))
    by_id = {passage.chunk_id: passage for passage in await _still_open(work, trace)}
    if len(by_id) < len(trace.sources):
        return dropped(_("The answer used a restricted document."))
    steps = by_rules.steps_told(trace.steps, trace.cited) if work.model.by_rules else trace.steps
    found = [
        replace(source, license=by_id[pk].license, url=by_id[pk].url)
        for source in trace.sources
        if (pk := source.chunk_id) is not None
    ]
    has_turns = item.type == QuestionType.MULTI_TURN
    return Next(
        ItemState.FOLLOW_UP if has_turns else ItemState.SYNTHESIS,
        {"draft": asked.text, "planted": instruction, **turns.joined(item.data, trace, steps, found)},
        run=_run_of(work, item, system, asked, before),
    )


async def synthesis(work: Work, item: Item) -> Next:
    """Write the final answer from the draft and what was found, and say which passages it uses."""
    found = sources_read(item.data["found"])
    draft = item.data["draft"]
    if work.model.by_rules:
        gold = sources_read(item.data["gold"])
        if item.type == QuestionType.CODE:
            text, used = by_rules.code_make(gold, found)
        else:
            asked_for = turns.asked_in(item.data)
            text, used = by_rules.gold_make(gold, found, asked_for, item.data.get("told", ""))
        if not text:
            text, used = by_rules.synthesis_make(draft, found, item.data["question"])
    else:
        prompt = prompts.synthesis_prompt(turns.asked_in(item.data), draft, found, work.settings)
        asked = await ask(
            work,
            item,
            ItemState.SYNTHESIS,
            model=work.model,
            system=prompts.SYNTHESIS_SYSTEM,
            prompt=prompt,
            form=prompts.SynthesisMade,
        )
        text = without_marks(asked.value.answer)
        known = {source.chunk_id for source in found}
        numbers = [c.strip("[]c ") for c in asked.value.chunks_used]
        used = [int(n) for n in numbers if n.isdigit() and int(n) in known]
        used = used or [pk for pk in item.data["cited"] if pk in known]
    return Next(ItemState.JUDGE, {"answer": text, "used": used})


async def judge(work: Work, item: Item) -> Next:
    """Judge the answer by six scores; keep, repair or drop it."""
    verdict = await _judgement(work, item)
    wrong = row_languages.fault("answer", item.data["answer"], item.data["language"])
    if wrong and verdict.verdict == "keep":
        may_repair = item.repairs < work.settings.max_repairs
        verdict = replace(verdict, verdict="repair" if may_repair else "drop", reason=wrong)
    found = {
        "scores": [asdict(score) for score in verdict.scores],
        "quality": verdict.quality,
        "fault": verdict.reason,
    }
    if verdict.verdict == "keep":
        return Next(ItemState.ASSEMBLE, found)
    if verdict.verdict == "repair":
        return Next(ItemState.REPAIR, found, repairs=item.repairs + 1)
    return dropped(verdict.reason, **found)


async def repair(work: Work, item: Item) -> Next:
    """Write the answer anew by what the judge found wrong, to be judged again."""
    data = item.data
    gold, found = sources_read(data["gold"]), sources_read(data["found"])
    if work.model.by_rules:
        if gold and {s.chunk_id for s in gold}.isdisjoint(s.chunk_id for s in found):
            return dropped(
                _("The search found no passage that answers it.")
            )  # No step would lead to the answer.
        told = data.get("told", "")
        text, used = by_rules.repair_make(data["question"], gold, expected_of(item), told)
    else:
        faults = "\n".join(f"- {s['name']}: level {s['level']}. {s['evidence']}" for s in data["scores"])
        prompt = prompts.repair_prompt(
            turns.asked_in(data),
            data["answer"],
            f"{data['fault']}\n{faults}",
            sources_used(item) or found,
            work.settings,
            expected_of(item),
        )
        asked = await ask(
            work,
            item,
            ItemState.REPAIR,
            model=work.model,
            system=prompts.REPAIR_SYSTEM,
            prompt=prompt,
            form=prompts.RepairMade,
        )
        text, used = without_marks(asked.value.answer), data["used"]
    earlier = [*data.get("earlier", []), {"answer": data["answer"], "fault": data["fault"]}]
    return Next(ItemState.JUDGE, {"answer": text, "used": used, "earlier": earlier})


STAGES: Mapping[str, Callable[[Work, Item], Awaitable[Next]]] = {
    ItemState.QUESTION: question,
    ItemState.FILTER: filtered,
    ItemState.ANSWER: answer,
    ItemState.FOLLOW_UP: turns.follow_up,
    ItemState.SYNTHESIS: synthesis,
    ItemState.JUDGE: judge,
    ItemState.REPAIR: repair,
    ItemState.ASSEMBLE: assemble,
}


async def _still_open(work: Work, trace: Trace) -> list[CorpusPassage]:
    return await work.passages.ask([s.chunk_id for s in trace.sources if s.chunk_id is not None])


async def _judgement(work: Work, item: Item) -> Judgement:
    data = item.data
    steps = [Step(**step) for step in data["steps"]]
    if work.judge.by_rules:
        levels = by_rules.judge_make(
            data["question"],
            data["answer"],
            steps,
            sources_read(data["found"]),
            sources_read(data["gold"]),
            expected_of(item),
            data.get("told", ""),
        )
        author = by_rules.AUTHOR
    else:
        prompt = prompts.judge_prompt(
            turns.asked_in(data), data["answer"], steps, sources_read(data["found"]), expected_of(item)
        )
        asked = await ask(
            work,
            item,
            ItemState.JUDGE,
            model=work.judge,
            system=prompts.JUDGE_SYSTEM,
            prompt=prompt,
            form=prompts.JudgementMade,
        )
        levels = {n: (v["level"], v["evidence"]) for n, v in asked.value.model_dump().items()}
        author = f"judge:six@{prompts.VERSION}:{work.judge.name}"
    return judged(levels, work.settings, author=author, repairs=item.repairs)


def _planned(item: Item) -> rule_questions.Made | None:
    """Return the question that was planned with the job, so that no two rows ask the same."""
    made = item.data.get(MADE)
    return rule_questions.Made(**made) if made else None


def _run_of(
    work: Work, item: Item, system: str, asked: StageAnswer, before: Sequence[ModelMessage]
) -> AnsweredRun:
    return AnsweredRun(
        kind=RUN_KIND,
        model=work.model.name,
        request={
            **work.run.request,
            "system": system,
            "history": [message.to_json() for message in (*before, asked.history[0])],
            "tools": list(work.toolset.names()),
            "generation": work.job.pk,
            "item": item.pk,
        },
        answer=asked.text,
        turns=asked.turns,
        calls=asked.calls,
        usage=asked.usage,
        cost_usd=asked.cost_usd,
        seconds=asked.seconds,
    )
