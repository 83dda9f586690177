"""The OCR settings of a workspace: whether scans are read, in which languages, on what budget, and what was used of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.db.models import Case, F, Value, When
from django.utils import timezone

from apps.collections.ingestion.ocr.tesseract import tesseract_languages
from apps.collections.models import Recognition
from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MOST_SECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RecognitionState:
    """What holds now.

    Attributes:
        languages: Tesseract's codes joined with +, "" for the models that come along.
        budget: processor seconds of this month.
        used: of them, so far.
        own_budget: the number that the workspace has set, None if the server's counts.
    """

    is_on: bool
    languages: str
    budget: int
    used: float
    own_budget: int | None

    @property
    def problem(self) -> str:
        """Say why no page can be read now, "" where nothing is in the way."""
        if settings.OCR_CPU_SECONDS == 0:
            return _("Text recognition (OCR) is switched off on this server.")
        if not self.is_on:
            return _("Text recognition (OCR) is switched off in this workspace.")
        if self.used >= self.budget:
            return _(
                "The workspace has used up this month's budget for text recognition (OCR) (%(seconds)s seconds of "
                "processor time)."
            ) % {"seconds": intcomma(self.budget)}
        missing = sorted(set(filter(None, self.languages.split("+"))) - tesseract_languages())
        if missing:
            return _(
                "Text recognition (OCR) is set to %(languages)s, which Tesseract on this server does not have."
            ) % {"languages": ", ".join(missing)}
        return ""


def recognition_state(tenant_id: int) -> RecognitionState:
    """Return what text recognition may do; the caller is in the tenant's scope."""
    row = Recognition.objects.filter(tenant_id=tenant_id).first()
    budget = settings.OCR_CPU_SECONDS
    if row is None:
        return RecognitionState(True, "", budget, 0.0, None)
    own = row.cpu_seconds
    used = row.used_seconds if row.used_month == _month() else 0.0
    return RecognitionState(row.is_on, row.languages, budget if own is None else own, used, own)


def recognition_count(tenant_id: int, seconds: float) -> None:
    """Add what a page has cost, in the current transaction."""
    month = _month()
    row, _created = Recognition.objects.get_or_create(tenant_id=tenant_id)
    Recognition.objects.filter(pk=row.pk).update(
        used_seconds=Case(When(used_month=month, then=F("used_seconds") + seconds), default=Value(seconds)),
        used_month=month,
    )


def recognition_set(
    *, tenant: Tenant, actor: Actor, is_on: bool, languages: str, cpu_seconds: int | None
) -> None:
    """Change a workspace's rules for reading scans; they count for pages that are read from now on.

    Args:
        languages: Tesseract's codes joined with + (``deu+fra``), "" for the models that come along.
        cpu_seconds: processor seconds a month, None for the server's number.

    Raises:
        Invalid: ``recognition_invalid`` with the fields in ``data``.
    """
    actor.require("collection.delete")
    fields: dict[str, list[str]] = {}
    codes = [code.strip() for code in languages.replace(",", "+").split("+") if code.strip()]
    known = tesseract_languages()
    if not known and codes:
        fields["languages"] = [
            _("Other languages need Tesseract, which is not installed on this server. Leave it empty.")
        ]
    elif missing := sorted(set(codes) - known):
        fields["languages"] = [
            _("Tesseract on this server does not have: %(missing)s. It has %(known)s.")
            % {"missing": ", ".join(missing)[:200], "known": ", ".join(sorted(known)[:40])}
        ]
    if cpu_seconds is not None and not 0 <= cpu_seconds <= MOST_SECONDS:
        fields["cpu_seconds"] = [
            _("Enter a number from 0 to %(most_seconds)s.") % {"most_seconds": intcomma(MOST_SECONDS)}
        ]
    if fields:
        raise Invalid(
            "recognition_invalid", _("Some values are not right; see details."), data={"fields": fields}
        )
    values: dict[str, Any] = {
        "is_on": is_on,
        "languages": "+".join(dict.fromkeys(codes)),
        "cpu_seconds": cpu_seconds,
    }
    with transaction.atomic():
        row, _created = Recognition.objects.update_or_create(
            tenant=tenant, defaults=values | {"updated_by_id": actor.user_id}
        )
        audit_record(tenant=tenant, actor=actor, action="recognition.set", object=row, data=values)


def _month() -> date:
    return timezone.now().date().replace(day=1)
