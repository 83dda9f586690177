"""Scorers by their name and options, as experiments keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from apps.evaluations.scorers.attack import Attacks
from apps.evaluations.scorers.rag import RAG
from apps.evaluations.scorers.retrieval import Citations, Retrieval
from apps.evaluations.scorers.text import (
    Codes,
    Exact,
    JsonSchema,
    Numeric,
    Regex,
    RougeL,
    RuleScorer,
    TokenF1,
)
from apps.evaluations.scorers.tools import ForbiddenTools, LoopEnds, ToolCalls
from basics.errors import Invalid
from basics.texts import gettext as _

RULES: dict[str, type[RuleScorer]] = {
    kind.kind: kind
    for kind in (
        Exact,
        TokenF1,
        RougeL,
        Numeric,
        Codes,
        Regex,
        JsonSchema,
        Retrieval,
        Citations,
        ToolCalls,
        ForbiddenTools,
        LoopEnds,
        Attacks,
    )
}
COMPARING = ("pairwise",)
"""Judges that compare the answers of two arms; see ``apps.evaluations.compare.pairs``."""
JUDGES = ("rubric", *RAG, *COMPARING)
KINDS = (*RULES, *JUDGES)


def rule_scorer(kind: str, options: Mapping[str, Any]) -> RuleScorer:
    """Return the rule scorer with these options.

    Raises:
        Invalid: ``scorer_unknown`` or ``scorer_invalid``, which names the option that is wrong.
    """
    if kind not in RULES:
        raise Invalid(
            "scorer_unknown",
            _("There is no scorer “%(kind)s”. Choose one of: %(kinds)s.")
            % {"kind": kind, "kinds": ", ".join(KINDS)},
            data={"fields": {"scorers": [_("Unknown scorer.")]}},
        )
    try:
        return RULES[kind].model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "options"
        message = _("Scorer “%(kind)s”, %(place)s: %(msg)s.") % {
            "kind": kind,
            "place": place,
            "msg": first["msg"],
        }
        raise Invalid("scorer_invalid", message, data={"fields": {"scorers": [message]}}) from error
