"""What a workspace states about models: more of them, other limits and prices, or that one is not to be used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext_lazy

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import ModelEntry, Tenant
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record
from tenancy.services.credentials import PROVIDERS

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# A test holds this against toolloop's catalog, which this room does not know.
CAPABILITIES: dict[str, StrOrPromise] = {
    "tools": gettext_lazy("Tools"),
    "structured_output": gettext_lazy("Structured output"),
    "reasoning": gettext_lazy("Reasoning"),
    "image_input": gettext_lazy("Images"),
    "pdf_input": gettext_lazy("PDF files"),
    "audio_input": gettext_lazy("Audio"),
    "file_input": gettext_lazy("Text and office files"),
    "cites_passages": gettext_lazy("Built-in citations"),
    "web_search": gettext_lazy("Web search"),
    "file_search": gettext_lazy("File search"),
    "web_fetch": gettext_lazy("Reading web pages"),
    "code_execution": gettext_lazy("Running code at the provider"),
    "deferred_tools": gettext_lazy("Deferred tools"),
}
MAX_ENTRIES = 500
MAX_TOKENS = 1_000_000_000
MAX_PRICE_USD = 100_000.0
MAX_TIERS = 8
_PRICE_KEYS = ("input", "output", "cached_read", "cache_write")


@transaction.atomic
def model_entry_set(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    label: str = "",
    is_enabled: bool = True,
    context_window: int | None = None,
    max_output_tokens: int | None = None,
    prices: Sequence[Mapping[str, Any]] | None = None,
    capabilities: Mapping[str, bool] | None = None,
) -> ModelEntry:
    """State facts about a model; what was stated about it before is replaced as a whole.

    Args:
        name: routing name in its one written form, with the provider's own prefix.
        is_enabled: False hides the model from the workspace, and runs with it are refused.
        context_window, max_output_tokens: tokens; None leaves what is known.
        prices: tiers as in ``ModelEntry.prices``; None leaves what is known, an empty list makes them unknown.
        capabilities: by name, whether the model has it; what is not named stays as known.

    Raises:
        Denied: the actor may not manage models.
        Invalid: a name, limit, price or capability that cannot be; the message says what is expected.
    """
    actor.require("credential.manage")
    name = _checked_name(name)
    facts = {
        "label": _checked_label(label),
        "is_enabled": bool(is_enabled),
        "context_window": _checked_tokens("context_window", context_window),
        "max_output_tokens": _checked_tokens("max_output_tokens", max_output_tokens),
        "prices": None if prices is None else _checked_prices(prices),
        "capabilities": _checked_capabilities(capabilities or {}),
    }
    with tenant_scope(tenant.pk):
        rows = ModelEntry.objects.filter(tenant=tenant)
        row = rows.select_for_update(of=("self",)).filter(name=name).first()
        is_new = row is None
        if is_new and rows.count() >= MAX_ENTRIES:
            raise _invalid(
                "name", _("There are already %(most)s models. Remove one first.") % {"most": MAX_ENTRIES}
            )
        row = row or ModelEntry(tenant=tenant, name=name)
        for key, value in facts.items():
            setattr(row, key, value)
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="model_entry.set",
            object=row,
            object_name=name,
            data={"is_new": is_new, **facts},
        )
    return row


@transaction.atomic
def model_entry_switch(*, tenant: Tenant, actor: Actor, name: str, is_enabled: bool) -> ModelEntry:
    """Hide a model from the workspace or offer it again; what else is stated about it stays.

    Raises:
        Denied, Invalid: as ``model_entry_set``.
    """
    actor.require("credential.manage")
    with tenant_scope(tenant.pk):
        rows = ModelEntry.objects.select_for_update(of=("self",))
        row = rows.filter(tenant=tenant, name=name.strip()).first() or ModelEntry()
    return model_entry_set(
        tenant=tenant,
        actor=actor,
        name=name,
        label=row.label,
        is_enabled=is_enabled,
        context_window=row.context_window,
        max_output_tokens=row.max_output_tokens,
        prices=row.prices,
        capabilities=row.capabilities,
    )


@transaction.atomic
def model_entry_delete(*, tenant: Tenant, actor: Actor, name: str) -> None:
    """Forget what was stated about a model: it is again what everybody knows about it, or gone.

    Raises:
        Denied, Missing: without the right; nothing was stated.
    """
    actor.require("credential.manage")
    with tenant_scope(tenant.pk):
        row = ModelEntry.objects.filter(tenant=tenant, name=name).first()
        if row is None:
            raise Missing("model")
        audit_record(tenant=tenant, actor=actor, action="model_entry.delete", object=row, object_name=name)
        row.delete()


def _checked_name(name: str) -> str:
    name = name.strip()
    provider, _slash, model = name.partition("/")
    is_odd = not name.isprintable() or any(char.isspace() for char in name) or len(name) > 120
    if provider not in PROVIDERS or not model or is_odd:
        raise _invalid(
            "name",
            _(
                "Write the model as <provider>/<model>, without spaces, at most 120 characters, with one of "
                "the providers %(providers)s."
            )
            % {"providers": ", ".join(PROVIDERS)},
        )
    return name


def _checked_label(label: str) -> str:
    label = label.strip()
    if len(label) > 80 or not label.isprintable():
        raise _invalid("label", _("A label has at most 80 characters and no line breaks."))
    return label


def _checked_tokens(field: str, value: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_TOKENS:
        raise _invalid(
            field,
            _("Enter a number of tokens from 1 to %(most)s, or leave it empty.")
            % {"most": number_told(MAX_TOKENS)},
        )
    return value


def _checked_prices(prices: Sequence[Mapping[str, Any]]) -> list[dict[str, float | int | None]]:
    if len(prices) > MAX_TIERS:
        raise _invalid("prices", _("Prices have at most %(most)s tiers.") % {"most": MAX_TIERS})
    tiers = []
    for tier in prices:
        if unknown := set(tier) - {*_PRICE_KEYS, "above_tokens"}:
            raise _invalid(
                "prices", _("Unknown in a price tier: %(names)s.") % {"names": ", ".join(sorted(unknown))}
            )
        above = tier.get("above_tokens", 0)
        if isinstance(above, bool) or not isinstance(above, int) or not 0 <= above <= MAX_TOKENS:
            raise _invalid("prices", _("A tier begins at a whole number of tokens."))
        found: dict[str, float | int | None] = {
            key: _checked_price(key, tier.get(key)) for key in _PRICE_KEYS
        }
        tiers.append(found | {"above_tokens": above})
    starts = [tier["above_tokens"] or 0 for tier in tiers]
    if starts and (starts[0] != 0 or starts != sorted(set(starts))):
        raise _invalid(
            "prices", _("The first price tier begins at 0 tokens, and each further one above the last.")
        )
    return tiers


def _checked_price(key: str, value: Any) -> float | None:
    if value is None and key in {"cached_read", "cache_write"}:
        return None
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    # A price below zero or NaN would switch off every limit on money.
    if (
        not is_number
        or not (isinstance(value, int) or math.isfinite(value))
        or not 0 <= value <= MAX_PRICE_USD
    ):
        raise _invalid(
            "prices",
            _("A price is USD per million tokens, from 0 to %(most)s.")
            % {"most": number_told(MAX_PRICE_USD)},
        )
    return float(value)


def _checked_capabilities(capabilities: Mapping[str, bool]) -> dict[str, bool]:
    for key, has in capabilities.items():
        if key not in CAPABILITIES or not isinstance(has, bool):
            raise _invalid(
                "capabilities",
                _("Capabilities must be true or false; known: %(known)s.")
                % {"known": ", ".join(CAPABILITIES)},
            )
    return dict(capabilities)


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": field})
