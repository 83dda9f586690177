"""Writes of rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.text import slugify
from pydantic import Field, TypeAdapter, ValidationError

from apps.datasets.records.rubric import LEVELS, SIX, Criterion
from apps.datasets.records.rubric import Rubric as RubricValue
from apps.evaluations.judges.claim_rubrics import CLAIMS, kind_of
from apps.evaluations.models import Rubric, RubricVersion
from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

_BUILT_IN: Mapping[str, tuple[str, RubricValue]] = {
    SIX.slug: ("Six scores", SIX),
    **{one.slug: (kind.replace("_", " ").capitalize(), one) for kind, one in CLAIMS.items()},
}
"""Slug -> name and first version."""
_CRITERIA: TypeAdapter[list[Criterion]] = TypeAdapter(
    Annotated[list[Criterion], Field(min_length=1, max_length=20)]
)


def rubric_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    criteria: Sequence[Mapping[str, Any]],
    slug: str = "",
    note: str = "",
) -> RubricVersion:
    """Create a rubric with its first version.

    Args:
        criteria: see ``apps.datasets.records.rubric.Criterion``, as JSON values.

    Raises:
        Invalid: no name, or a criterion is incomplete. Conflict: ``slug_taken``.
    """
    actor.require("evaluation.write")
    name = " ".join(name.split())
    slug = slugify(slug or name)[:40]
    if not name or not slug or len(name) > 120:
        raise Invalid(
            "rubric_invalid",
            _("Give the rubric a name of at most 120 characters, with letters."),
            data={"fields": {"name": [_("Enter a name.")]}},
        )
    checked = criteria_checked(criteria)
    try:
        with transaction.atomic():
            rubric = Rubric.objects.create(tenant=tenant, slug=slug, name=name)
            return _version(tenant, actor, rubric, 1, checked, note)
    except IntegrityError as error:
        raise Conflict(
            "slug_taken", _("A rubric “%(slug)s” already exists. Choose another name.") % {"slug": slug}
        ) from error


def rubric_version_create(
    *, tenant: Tenant, actor: Actor, rubric: Rubric, criteria: Sequence[Mapping[str, Any]], note: str = ""
) -> RubricVersion:
    """Change a rubric by making its next version; scores of the older ones stay theirs.

    Raises:
        Invalid: a criterion is incomplete, or it is not the one that a judge of claims scores.
    """
    actor.require("evaluation.write")
    checked = criteria_checked(criteria)
    kind = kind_of(rubric.slug)
    if kind is not None and [one["name"] for one in checked] != [kind]:
        raise _refused(
            _(
                "The judge of this rubric scores only “%(kind)s”. Keep that one criterion and change its "
                "wording."
            )
            % {"kind": kind}
        )
    with transaction.atomic():
        row: Rubric = Rubric.objects.visible_to(actor).select_for_update().get(pk=rubric.pk)
        last = row.versions.aggregate(n=Max("number"))["n"] or 0
        return _version(tenant, actor, row, last + 1, checked, note)


def rubric_seed(*, tenant: Tenant, actor: Actor) -> RubricVersion:
    """Return the six-score rubric of a workspace, after ``rubrics_seed``."""
    rubrics_seed(tenant=tenant, actor=actor)
    rows = RubricVersion.objects.visible_to(actor).filter(rubric__slug=SIX.slug)
    return rows.select_related("rubric").order_by("-number")[0]


def rubrics_seed(*, tenant: Tenant, actor: Actor) -> None:
    """Make the first versions of the built-in rubrics that a workspace has not yet, in one query where it has all."""
    known = Rubric.objects.visible_to(actor).filter(slug__in=_BUILT_IN)
    missing = set(_BUILT_IN).difference(known.values_list("slug", flat=True))
    for slug in sorted(missing):
        name, value = _BUILT_IN[slug]
        with transaction.atomic():
            rubric, is_new = Rubric.objects.get_or_create(tenant=tenant, slug=slug, defaults={"name": name})
            if is_new:  # else somebody was first, and has committed it whole
                criteria = [asdict(criterion) for criterion in value.criteria]
                _version(tenant, actor, rubric, 1, criteria, "Built in.")


def criteria_checked(criteria: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return criteria as they are kept. Raises Invalid, which names what is missing."""
    try:
        made = _CRITERIA.validate_python(list(criteria))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _refused(
            _("Criterion %(place)s: %(msg)s.") % {"place": place, "msg": first["msg"]}
            if place
            else f"{first['msg']}."
        ) from error
    names = [one.name for one in made]
    if len(set(names)) != len(names):
        raise _refused(_("A criterion appears twice. Rename or remove one."))
    for one in made:
        if not one.name.isidentifier() or len(one.name) > 60:
            raise _refused(
                _("“%(name)s” isn't a valid score name. Use letters, digits and _.") % {"name": one.name}
            )
        if not one.question.strip() or not all(anchor.strip() for anchor in one.anchors):
            raise _refused(
                _("Criterion %(name)s needs a question and a text for each of its %(levels)s levels.")
                % {"name": one.name, "levels": LEVELS}
            )
        if not 0 <= one.weight <= 100 or (one.minimum is not None and not 1 <= one.minimum <= LEVELS):
            raise _refused(
                _("Criterion %(name)s: weight 0 to 100, minimum 1 to %(levels)s.")
                % {"name": one.name, "levels": LEVELS}
            )
    return [asdict(one) for one in made]


def _version(
    tenant: Tenant, actor: Actor, rubric: Rubric, number: int, criteria: list[dict[str, Any]], note: str
) -> RubricVersion:
    version: RubricVersion = RubricVersion.objects.create(
        tenant=tenant,
        rubric=rubric,
        number=number,
        criteria=criteria,
        note=note.strip()[:200],
        created_by_id=actor.user_id,
    )
    audit_record(tenant=tenant, actor=actor, action="rubric.version", object=rubric, data={"number": number})
    return version


def _refused(message: str) -> Invalid:
    return Invalid("rubric_invalid", message, data={"fields": {"criteria": [message]}})
