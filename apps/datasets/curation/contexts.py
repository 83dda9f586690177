"""What the pages of exports, imports and checks show, for the pages themselves and for their streams."""

from __future__ import annotations

from typing import Any

from django.utils.text import capfirst, get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.datasets.checks.coverage import coverage_shown
from apps.datasets.curation import selectors as curation_selectors
from apps.datasets.curation.dividing import is_kept
from apps.datasets.curation.finding_lines import findings_of
from apps.datasets.curation.forms import SplitsForm
from apps.datasets.curation.reviews import SETTLEMENTS
from apps.datasets.formats import FORMATS
from apps.datasets.models import DatasetCheck, DatasetExport, DatasetImport
from apps.datasets.rows import selectors
from tenancy.actors import Actor

_ACTS = {
    kind: [(act, gettext_lazy(SETTLEMENTS[act])) for act in acts]
    for kind, acts in {
        DatasetCheck.Kind.DUPLICATES.value: ("reject",),
        DatasetCheck.Kind.CONTAMINATION.value: ("train", "reject"),
        DatasetCheck.Kind.SECRETS.value: ("redact", "reject"),
        DatasetCheck.Kind.SPLITS.value: (),
        DatasetCheck.Kind.COVERAGE.value: (),
    }.items()
}


def section_context(*, actor: Actor, pk: int, tab: str) -> dict[str, Any]:
    """Return what every page of curation shows around its own part. Raises Missing."""
    dataset = selectors.dataset_get(actor=actor, pk=pk)
    return {"dataset": dataset, "tab": tab, "can_write": actor.can("dataset.write")}


def export_context(*, actor: Actor, pk: int, work_pk: int) -> dict[str, Any]:
    """Return the context of ``datasets/_export.html``. Raises Missing."""
    context = section_context(actor=actor, pk=pk, tab="exports")
    row = curation_selectors.work_get(
        actor=actor, model=DatasetExport, pk=work_pk, dataset=context["dataset"]
    )
    return {**context, "row": row, "format": FORMATS.get(row.format)}


def import_context(*, actor: Actor, pk: int, work_pk: int) -> dict[str, Any]:
    """Return the context of ``datasets/_import.html``. Raises Missing."""
    context = section_context(actor=actor, pk=pk, tab="imports")
    row = curation_selectors.work_get(
        actor=actor, model=DatasetImport, pk=work_pk, dataset=context["dataset"]
    )
    return {**context, "row": row, "format": FORMATS.get(row.format)}


def checks_context(*, actor: Actor, pk: int, form: SplitsForm | None = None) -> dict[str, Any]:
    """Return the context of ``datasets/_checks.html``. Raises Missing.

    Args:
        form: of the division into splits, as somebody has filled it in.
    """
    context = section_context(actor=actor, pk=pk, tab="checks")
    dataset = context["dataset"]
    found = curation_selectors.checks_latest(actor=actor, dataset=dataset)
    division = found.get(DatasetCheck.Kind.SPLITS.value)
    if division is not None and (division.is_active or division.options.get("is_trial")):
        division = curation_selectors.division_latest(actor=actor, dataset=dataset)
    return {
        **context,
        "form": form or SplitsForm(initial=_as_asked(found.get(DatasetCheck.Kind.SPLITS.value))),
        "checks": [
            (
                kind,
                row,
                findings_of(actor=actor, dataset=dataset, check=row) if row else None,
                _ACTS[kind.value],
            )
            for kind, row in ((k, found.get(k.value)) for k in DatasetCheck.Kind)
        ],
        "others": curation_selectors.others_named(actor=actor, dataset=dataset),
        "coverage": coverage_shown(found.get(DatasetCheck.Kind.COVERAGE.value)),
        "undoable": division if division and is_kept(division) else None,
        "is_active": any(row.is_active for row in found.values()),
        **_division_told(found.get(DatasetCheck.Kind.SPLITS.value)),
    }


def _division_told(division: DatasetCheck | None) -> dict[str, str]:
    """Return the lists of a division's sentences: documents in several splits, and splits without a row."""
    result = {} if division is None else division.result
    leaking = [f"{leak['document']} ({', '.join(leak['splits'])})" for leak in result.get("leaking", ())[:5]]
    return {
        "leaking_told": ", ".join(leaking),
        "empty_told": capfirst(get_text_list(list(result.get("empty", ())), _("and"))),
    }


def _as_asked(division: DatasetCheck | None) -> dict[str, int]:
    """Return shares and seed of the last division, so that a form goes on from there."""
    options = {} if division is None else division.options
    shares = {name: round(100 * share) for name, share in options.get("shares", {}).items()}
    return shares | {"seed": options.get("seed", 0)}
