"""The scorers of an experiment, made from what it keeps of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.datasets.records.rubric import SIX, Criterion, Rubric
from apps.evaluations.judges.asking import ByBatch, CachedAsk
from apps.evaluations.judges.claim_rubrics import CLAIMS, kind_of
from apps.evaluations.models import RubricVersion
from apps.evaluations.scorers.base import Scorer
from apps.evaluations.scorers.claims import ByModel
from apps.evaluations.scorers.judges import Jury, Repeated, RubricJudge
from apps.evaluations.scorers.lexical import ByWords, LexicalRubric
from apps.evaluations.scorers.rag import RagJudge
from apps.evaluations.scorers.registry import COMPARING, JUDGES, rule_scorer
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from budgets.ledger import BillingAccount
from runs.providers import EXTRACTIVE
from tenancy.actors import Actor
from tenancy.models import Tenant

LEXICAL = "lexical"
"""Instead of a model: judges that count words, for where no model has a key."""


class JudgeOptions(BaseModel):
    """Options of a judge.

    Attributes:
        rubric, number: which version of which rubric; the newest without a number. A judge of claims has a rubric of its own.
        models: who judges; several are a jury. ``lexical`` counts words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    rubric: str = SIX.slug
    number: int | None = None
    models: tuple[str, ...] = Field((LEXICAL,), min_length=1, max_length=7)


def judge_options(kind: str, options: Mapping[str, Any]) -> JudgeOptions:
    """Return checked options. Raises Invalid ``scorer_invalid``."""
    try:
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        return JudgeOptions.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = _("Scorer “%(kind)s”, %(place)s: %(msg)s.") % {
            "kind": kind,
            "place": place,
            "msg": first["msg"],
        }
        raise Invalid("scorer_invalid", message, data={"fields": {"scorers": [message]}}) from error


def rubric_value(version: RubricVersion) -> Rubric:
    """Return the plain value of a stored rubric."""
    criteria = tuple(Criterion(**{**one, "anchors": tuple(one["anchors"])}) for one in version.criteria)
    return Rubric(version.rubric.slug, version.number, criteria)


def rubric_version_get(*, actor: Actor, slug: str, number: int | None = None) -> RubricVersion:
    """Return a rubric's version, the newest without a number. Raises Missing."""
    rows = RubricVersion.objects.visible_to(actor).filter(rubric__slug=slug)
    if number is not None:
        rows = rows.filter(number=number)
    found: RubricVersion | None = rows.select_related("rubric").order_by("-number").first()
    if found is None:
        raise Missing("rubric")
    return found


def judge_rubric(*, actor: Actor, kind: str, chosen: JudgeOptions) -> RubricVersion | None:
    """Return what people grade a judge's scores by; None where its answers cannot be graded so, as of pairs.

    Raises:
        Missing: the workspace has no such rubric. Invalid: the rubric belongs to a judge of claims.
    """
    if kind in CLAIMS:
        return rubric_version_get(actor=actor, slug=CLAIMS[kind].slug, number=chosen.number)
    if kind != "rubric":
        return None
    if (other := kind_of(chosen.rubric)) is not None:
        message = _(
            "“%(rubric)s” is the rubric people use to grade the scorer “%(other)s”. Choose that scorer."
        ) % {"rubric": chosen.rubric, "other": other}
        raise Invalid("scorer_invalid", message, data={"fields": {"scorers": [message]}})
    return rubric_version_get(actor=actor, slug=chosen.rubric, number=chosen.number)


def scorers_make(
    *,
    tenant: Tenant,
    actor: Actor,
    specs: Sequence[Mapping[str, Any]],
    check: Callable[[], None] | None = None,
    attribution: Mapping[str, Any] | None = None,
    billing_account: BillingAccount | None = None,
    repeats: int = 1,
    salt: str = "",
    by_batch: ByBatch | None = None,
) -> tuple[list[tuple[Scorer, RubricVersion | None]], list[CachedAsk]]:
    """Return the scorers with the rubric each of them uses, and those who ask for them (they know what it cost).

    Args:
        specs: ``{"kind", "options"}``, as ``Experiment.scorers`` keeps them. Those that compare answers are left out.
        billing_account: see ``completion_run``.
        repeats: how often a model judges each answer. salt, by_batch: see ``CachedAsk``.

    Raises:
        Invalid: a kind or option is unknown. Missing: a rubric is gone.
    """
    asks: dict[tuple[str, int], CachedAsk] = {}

    def ask(model: str, time: int) -> CachedAsk:
        if (model, time) not in asks:
            # The first judgement is shared with every experiment that asks the same once.
            own = salt if time == 0 else f"{salt}#{time}"
            asks[model, time] = CachedAsk(
                tenant, actor, model, check, attribution, billing_account, salt=own, by_batch=by_batch
            )
        return asks[model, time]

    made: list[tuple[Scorer, RubricVersion | None]] = []
    for spec in specs:
        kind, options = str(spec.get("kind", "")), spec.get("options") or {}
        if kind not in JUDGES:
            made.append((rule_scorer(kind, options), None))
            continue
        if kind in COMPARING:
            continue
        chosen = judge_options(kind, options)
        # What began before judges of claims had rubrics keeps no number, and its scores name none.
        is_older = kind in CLAIMS and chosen.number is None
        version = None if is_older else judge_rubric(actor=actor, kind=kind, chosen=chosen)
        rubric = rubric_value(version) if kind == "rubric" and version is not None else None
        times = 1 if all(is_lexical(m) for m in chosen.models) else repeats
        juries = tuple(
            _jury([_judge(kind, rubric, m, ask, time) for m in chosen.models]) for time in range(times)
        )
        made.append((juries[0] if times == 1 else Repeated(juries), version))
    return made, list(asks.values())


def _judge(
    kind: str, rubric: Rubric | None, model: str, ask: Callable[[str, int], CachedAsk], time: int
) -> Scorer:
    """Return one judge, by a rubric or of claims."""
    if rubric is None:
        return RagJudge(kind, ByWords() if is_lexical(model) else ByModel(ask(model, time)))
    return LexicalRubric(rubric) if is_lexical(model) else RubricJudge(rubric, ask(model, time))


def _jury(judges: Sequence[Scorer]) -> Scorer:
    return judges[0] if len(judges) == 1 else Jury(tuple(judges))


def is_lexical(model: str) -> bool:
    """Return whether this judge counts words instead of asking a model."""
    return model in (LEXICAL, EXTRACTIVE)


def judge_models(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return who judges in an experiment or a rule, each once: models, or ``lexical``."""
    models = [
        str(model)
        for spec in specs
        if spec.get("kind") in JUDGES
        for model in (spec.get("options") or {}).get("models", ())
    ]
    return list(dict.fromkeys(models))


def judges_of_kin(specs: Sequence[Mapping[str, Any]], models: Iterable[str]) -> list[str]:
    """Return the judges that share a provider or a family with a model they judge: judges favour their own kind.

    Args:
        models: that answer, with their routing prefixes.
    """
    asked = {kin for model in models if not is_lexical(model) for kin in _kin(model)}
    judges = {model for model in judge_models(specs) if not is_lexical(model)}
    return sorted(judge for judge in judges if _kin(judge) & asked)


def _kin(model: str) -> set[str]:
    """Return a model's provider and the first word of its own name, which is its family's: claude, gpt, llama."""
    word = re.match(r"[a-z]+", model.rpartition("/")[2].lower())
    return {model.partition("/")[0], word.group() if word else ""} - {""}
