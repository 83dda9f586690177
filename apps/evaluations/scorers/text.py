"""Scorers that compare an answer with the reference by fixed rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from apps.collections.ingestion.identifiers import identifier_list
from apps.datasets.records.parts import EMPTY_ANSWERS
from apps.datasets.records.record import Record
from apps.evaluations.scorers import metrics
from apps.evaluations.scorers.base import NO_ANSWER, NO_REFERENCE, ScoreValue, TargetResult, unscored
from basics.patterns import pattern_compile
from basics.texts import gettext as _
from basics.texts import gettext_noop, number_told
from toolloop.errors import ConfigurationError
from toolloop.mcp.schemas import SchemaRefused, schema_check
from toolloop.output import output_of

_PATTERN_SECONDS = 1.0
_TOO_SLOW = gettext_noop("The pattern takes too long on this answer. Simplify it.")


class RuleScorer(BaseModel):
    """A scorer by fixed rules; its fields are its options."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str]
    version: ClassVar[int] = 1
    is_judge: ClassVar[bool] = False

    @property
    def author(self) -> str:
        """Return its name and version."""
        return f"{self.kind}@{self.version}"

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score an answer; see ``Scorer``."""
        if not outcome.text.strip():
            # Where silence is right, judges of behaviour decide. Here an answer that is missing is simply wrong.
            return [ScoreValue(self.kind, 0.0, reason=outcome.error or NO_ANSWER)]
        return [self._score(row, outcome)]

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        raise NotImplementedError


class ReferenceScorer(RuleScorer):
    """A rule that needs a reference answer; without one a row stays unscored."""

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score an answer; see ``Scorer``."""
        if not row.answer.strip() or row.expected in EMPTY_ANSWERS:
            return [unscored(self.kind, NO_REFERENCE)]
        return super().score(row, outcome)


class Exact(ReferenceScorer):
    """Whether the answer is the reference, but for case, punctuation, articles and spaces unless ``strict``."""

    kind: ClassVar[str] = "exact"
    strict: bool = False

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        if self.strict:
            same = outcome.text.strip() == row.answer.strip()
        else:
            same = metrics.normalise(outcome.text) == metrics.normalise(row.answer)
        return ScoreValue(self.kind, float(same))


class TokenF1(ReferenceScorer):
    """SQuAD's F1 over words."""

    kind: ClassVar[str] = "token_f1"

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        return ScoreValue(self.kind, metrics.token_f1(outcome.text, row.answer))


class RougeL(ReferenceScorer):
    """ROUGE-L: the longest common subsequence of words, as F1."""

    kind: ClassVar[str] = "rouge_l"

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        return ScoreValue(self.kind, metrics.rouge_l(outcome.text, row.answer))


class Numeric(ReferenceScorer):
    """The share of the reference's numbers that the answer has, within a tolerance."""

    kind: ClassVar[str] = "numeric"
    absolute: float = Field(1e-9, ge=0, description="Allowed difference.")
    relative: float = Field(0.0, ge=0, lt=1, description="Allowed share of the number.")

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        wanted, found = metrics.numbers(row.answer), metrics.numbers(outcome.text)
        if not wanted:
            return unscored(self.kind, _("The reference has no number."))
        missing = [w for w in wanted if not any(self._near(w, f) for f in found)]
        told = ", ".join(number_told(m, None) for m in missing)
        reason = _("Missing: %(numbers)s.") % {"numbers": told} if missing else ""
        return ScoreValue(self.kind, 1 - len(missing) / len(wanted), reason=reason)

    def _near(self, wanted: float, found: float) -> bool:
        return abs(wanted - found) <= max(self.absolute, self.relative * abs(wanted))


def _compiled(pattern: str) -> str:
    try:
        pattern_compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


class Regex(RuleScorer):
    """Whether a pattern is found in the answer; ``is_forbidden`` turns it round."""

    kind: ClassVar[str] = "regex"
    pattern: Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_compiled)]
    is_forbidden: bool = False

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        try:
            found = regex.search(self.pattern, outcome.text, timeout=_PATTERN_SECONDS)
        except TimeoutError:
            return unscored(self.kind, _TOO_SLOW)
        evidence = found.group()[:200] if found else ""
        return ScoreValue(self.kind, float(bool(found) != self.is_forbidden), evidence=evidence)


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        schema_check(schema)
        output_of(schema)
    except (SchemaRefused, ConfigurationError) as error:
        raise ValueError(str(error)) from error
    return schema


class JsonSchema(RuleScorer):
    """Whether the answer is JSON that fits a schema."""

    kind: ClassVar[str] = "json_schema"
    form: Annotated[dict[str, Any], AfterValidator(_schema)]

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        problem = output_of(self.form).parse(outcome.raw or outcome.text)[1]
        return ScoreValue(self.kind, float(not problem), reason=problem[:500])


class Codes(ReferenceScorer):
    """F1 of the sets of codes (tariff headings, part numbers) in answer and reference.

    With ``pattern``, codes are what it finds; otherwise what search recognises as identifiers. Dots and spaces inside of
    a code do not count: 8714.91 is 871491.
    """

    kind: ClassVar[str] = "codes"
    pattern: Annotated[str, Field(max_length=1_000), AfterValidator(_compiled)] = ""

    def _score(self, row: Record, outcome: TargetResult) -> ScoreValue:
        try:
            wanted, found = self._codes(row.answer), self._codes(outcome.text)
        except TimeoutError:
            return unscored(self.kind, _TOO_SLOW)
        if not wanted:
            return unscored(self.kind, _("The reference has no code."))
        details: Mapping[str, Any] = {"missing": sorted(wanted - found), "extra": sorted(found - wanted)}
        return ScoreValue(self.kind, metrics.f1(found, wanted), details=details)

    def _codes(self, text: str) -> set[str]:
        if self.pattern:
            matches = regex.finditer(self.pattern, text, timeout=_PATTERN_SECONDS)
            found = [match.group() for match in matches]
        else:
            found = identifier_list(text)
        return {code.replace(".", "").replace(" ", "").lower() for code in found}
