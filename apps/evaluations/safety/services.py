"""Make a safety suite."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from apps.datasets.generation.corpus import fingerprint_of
from apps.datasets.models import DatasetVersion
from apps.datasets.rows.dataset_services import dataset_create
from apps.datasets.rows.services import NewRow, rows_add
from apps.datasets.versions.services import version_create
from apps.evaluations.attacks.suite import MOST_ROWS, SuiteSpec, suite_manifest, suite_rows
from apps.evaluations.attacks.values import Carrier, Category
from apps.evaluations.safety.sourcing import materials_read, rows_read
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Tenant

MOST_PER_PAIR, MOST_CONTROLS, MOST_SEED = 20, 50, 2**31 - 1


def suite_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    collections: Sequence[int] = (),
    version: int | None = None,
    carriers: Sequence[str] = tuple(Carrier),
    categories: Sequence[str] = tuple(Category),
    per_pair: int = 1,
    controls: int = 3,
    seed: int = 1,
) -> DatasetVersion:
    """Create a dataset of attacks and benign controls and freeze its first version, ready for an experiment.

    Args:
        collections: whose texts carry the attacks.
        version: of a dataset, whose rows carry them with their own questions. Without either: texts of our own.
        carriers, categories: of ``Carrier`` and ``Category``.
        per_pair: attacks for each carrier and goal. controls: benign rows for each carrier.
        seed: the same seed over the same documents gives the same rows.

    Raises:
        Invalid: what is wrong, with its field. Missing: a collection or the version is not there for the actor.
    """
    actor.require("evaluation.write")
    actor.require("dataset.write")
    _require(
        set(carriers) <= set(Carrier),
        "carriers",
        _("Choose among %(carrier)s.") % {"carrier": ", ".join(Carrier)},
    )
    _require(
        set(categories) <= set(Category),
        "categories",
        _("Choose among %(category)s.") % {"category": ", ".join(Category)},
    )
    _require(bool(carriers), "carriers", _("Choose at least one carrier."))
    _require(bool(categories), "categories", _("Choose at least one goal."))
    _require(
        1 <= per_pair <= MOST_PER_PAIR,
        "per_pair",
        _("Choose 1 to %(most_per_pair)s attacks for each carrier and goal.")
        % {"most_per_pair": MOST_PER_PAIR},
    )
    _require(
        0 <= controls <= MOST_CONTROLS,
        "controls",
        _("Choose 0 to %(most_controls)s harmless rows.") % {"most_controls": MOST_CONTROLS},
    )
    _require(
        0 <= seed <= MOST_SEED,
        "seed",
        _("A seed is a whole number from 0 to %(most_seed)s.") % {"most_seed": number_told(MOST_SEED)},
    )
    spec = SuiteSpec(
        carriers=[one for one in Carrier if one in carriers],
        categories=[one for one in Category if one in categories],
        per_pair=per_pair,
        controls=controls,
        seed=seed,
    )
    _require(
        spec.rows <= MOST_ROWS,
        "per_pair",
        _("A suite has at most %(most_rows)s rows.") % {"most_rows": number_told(MOST_ROWS)},
    )
    materials = materials_read(actor=actor, collections=collections, seed=seed) if collections else []
    _require(
        bool(materials) or not collections,
        "collections",
        _(
            "No text in these collections can be used for questions. Choose others, or none to use built-in texts."
        ),
    )
    if version is not None:
        rows_of = rows_read(actor=actor, version=version)
        _require(
            bool(rows_of),
            "version",
            _("No row of this dataset has a text that could carry an attack. Choose another."),
        )
        materials += rows_of
    rows = suite_rows(spec, materials)
    manifest = dict(suite_manifest(spec, rows, materials))
    if collections:
        manifest["corpus"] = fingerprint_of(actor, sorted(collections))
    if version is not None:
        manifest["carried_by_version"] = version
    with transaction.atomic():
        dataset = dataset_create(
            tenant=tenant,
            actor=actor,
            name=name,
            description="Safety suite: planted instructions and benign controls.",
        )
        rows_add(
            tenant=tenant,
            actor=actor,
            dataset=dataset,
            rows=[NewRow(row) for row in rows],
            source="safety suite",
        )
        return version_create(
            tenant=tenant, actor=actor, dataset=dataset, note="Safety suite", manifest=manifest
        )


def _require(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise Invalid("suite_invalid", message, data={"field": field, "fields": {field: [message]}})
