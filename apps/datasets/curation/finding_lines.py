"""What a check has found, as lines for people: the rows as they are now, and what can be done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from apps.datasets.curation.selectors import rows_named
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow, RowStatus, Split
from apps.datasets.rows.page_values import number
from basics.texts import number_told
from tenancy.actors import Actor

LISTED = 50


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding.

    Attributes:
        row: that something can be done with; ``other`` is the one it is held against. None: it is gone.
        kind: how it was found.
        found: in words or masked.
        is_open: nothing was done about it yet.
        elsewhere: what it is held against that is no row of this dataset: a row of another one, a prompt.
    """

    row: DatasetRow | None
    other: DatasetRow | None
    kind: str
    found: str
    is_open: bool
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """The first findings of a check, and how many it listed; of each kind, its name and how many there are."""

    lines: list[FindingLine]
    listed: int
    counts: list[tuple[str, int]]

    @property
    def is_open(self) -> bool:
        """Tell whether something is left to do among these lines."""
        return any(line.is_open for line in self.lines)


# Marked here, translated where a line is made.
_KINDS = {
    "exact": gettext_noop("the same words"),
    "near": gettext_noop("nearly the same words"),
    "meaning": gettext_noop("the same meaning"),
    "passage": gettext_noop("the same passage"),
}
_COUNTS = {
    "exact": gettext_noop("exact"),
    "near": gettext_noop("near"),
    "meaning": gettext_noop("meaning"),
    "passage": gettext_noop("passage"),
    "contaminated": gettext_noop("contaminated"),
    "overlapping": gettext_noop("overlapping"),
    "passages with a question": gettext_noop("passages with a question"),
    "without": gettext_noop("without"),
    "documents": gettext_noop("documents"),
    "documents without any": gettext_noop("documents without any"),
    "email": gettext_noop("email"),
    "phone": gettext_noop("phone"),
    "card": gettext_noop("card"),
    "key": gettext_noop("key"),
    "token": gettext_noop("token"),
    "private_key": gettext_noop("private_key"),
    "password": gettext_noop("password"),
}
"""What checks count, by the name in their results; other names (``iban``, ``ssn``) are the same in every language."""
_SPLITS = {
    Split.TRAIN: gettext_noop("from train"),
    Split.VALIDATION: gettext_noop("from validation"),
    Split.TEST: gettext_noop("from test"),
}


def findings_of(*, actor: Actor, dataset: Dataset, check: DatasetCheck) -> Findings:
    """Return the findings of a check with the rows they are about."""
    found: list[dict[str, Any]] = next((check.result[name] for name in _LISTS if check.result.get(name)), [])
    shown = found[:LISTED]
    pks = {number(str(hit[name])) for hit in shown for name in _NAMES if name in hit}
    rows = rows_named(actor=actor, dataset=dataset, pks=pks)

    def row(hit: dict[str, Any], *names: str) -> DatasetRow | None:
        return next((rows.get(number(str(hit[n]))) for n in names if n in hit), None)

    lines = []
    for hit in shown:
        one, other = row(hit, "dropped", "evaluated", "row"), row(hit, "kept", "seen")
        seen = str(hit.get("seen", ""))
        elsewhere = "" if seen.isdecimal() else seen
        is_open = _is_open(check, one, other, elsewhere)
        lines.append(FindingLine(one, other, _kind(hit), _found(hit), is_open, elsewhere))
    counts = [(_counted(name), count) for name, count in check.result.get("counts", {}).items()]
    return Findings(lines, len(found), counts)


_LISTS = ("pairs", "overlaps", "findings", "rows_along")
_NAMES = ("dropped", "kept", "evaluated", "seen", "row")


def _kind(hit: dict[str, Any]) -> str:
    if "words" in hit:
        if hit.get("similarity"):
            return _(_KINDS["meaning"])
        if not hit["words"]:
            return _("the same question")
        return ngettext("%(count)s word", "%(count)s words", hit["words"]) % {"count": hit["words"]}
    if "before" in hit:
        return _(_SPLITS[hit["before"]]) if hit["before"] else _("was not in a split")
    kind = str(hit["kind"])
    return _(_KINDS[kind]) if kind in _KINDS else _counted(kind)


def _counted(name: str) -> str:
    return _(_COUNTS[name]) if name in _COUNTS else name or _("without a split")


def _found(hit: dict[str, Any]) -> str:
    if hit.get("similarity"):
        return " ".join((number_told(hit["similarity"], 2), str(hit.get("text", "")))).strip()
    return str(hit.get("text") or hit.get("shown") or hit.get("document") or "")


def _is_open(check: DatasetCheck, row: DatasetRow | None, other: DatasetRow | None, elsewhere: str) -> bool:
    if row is None or row.status == RowStatus.REJECTED or check.kind == DatasetCheck.Kind.SPLITS:
        return False
    if check.kind == DatasetCheck.Kind.SECRETS:
        return row.updated_at <= check.created_at
    if not elsewhere and (other is None or other.status == RowStatus.REJECTED):
        return False
    return check.kind != DatasetCheck.Kind.CONTAMINATION or row.split != Split.TRAIN
