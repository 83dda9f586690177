"""Which reranker a search uses: what its collections have chosen, as far as it is there."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.utils.translation import gettext_lazy

from apps.collections.models import Collection, RerankerChoice
from apps.collections.search.rerank.base import Reranker
from apps.collections.search.rerank.model import ModelReranker
from apps.collections.search.rerank.onnx import reranker_configured
from basics.errors import Conflict, DomainError
from basics.texts import gettext as _
from budgets.ledger import BillingAccount
from runs.providers import is_extractive, provider_for
from tenancy.actors import Actor
from tenancy.models import Tenant

NO_CROSS_ENCODER = gettext_lazy(
    "This server has no cross-encoder. Its operator can set one in GROUNDWORK_RERANKER; "
    "until then, choose another reranker."
)


def reranker_of(
    tenant: Tenant, actor: Actor, scope: Sequence[Collection], billing_account: BillingAccount
) -> Reranker | None:
    """Return the reranker that all collections of a search agree on, None for none.

    Args:
        billing_account: on whose account it asks a model.

    Raises:
        Conflict: ``reranker_unavailable``: they differ, or the server does not have the one they chose.
    """
    found = [
        _reranker(tenant, actor, kind, model, billing_account)
        for kind, model in dict.fromkeys((c.reranker, c.reranker_model) for c in scope)
    ]
    if any(one != found[0] for one in found):
        raise Conflict(
            "reranker_unavailable",
            _("the collections searched use different rerankers. Search them one by one."),
        )
    return found[0] if found else None


def reranker_problems(tenant: Tenant, reranker: str, model: str) -> dict[str, list[str]]:
    """Return what is wrong with a collection's choice, by field; empty when it can be used now."""
    if reranker not in RerankerChoice.values:
        return {"reranker": [_("Choose one of %(values)s.") % {"values": ", ".join(RerankerChoice.values)}]}
    if len(model) > 120 or not model.isprintable():
        return {"reranker_model": [_("A model's name has at most 120 characters.")]}
    if reranker == RerankerChoice.CROSS_ENCODER and not settings.RERANKER:
        return {"reranker": [str(NO_CROSS_ENCODER)]}
    if reranker == RerankerChoice.MODEL:
        if not model or is_extractive(model):
            return {"reranker_model": [_("Enter the language model that grades passages.")]}
        try:
            provider_for(tenant, model)
        except DomainError as error:
            return {"reranker_model": [error.message]}
    return {}


def _reranker(
    tenant: Tenant, actor: Actor, kind: str, model: str, billing_account: BillingAccount
) -> Reranker | None:
    if kind == RerankerChoice.NONE:
        return None
    if kind == RerankerChoice.MODEL:
        return ModelReranker(tenant, actor, model, billing_account=billing_account)
    found = reranker_configured()
    if found is None and kind == RerankerChoice.CROSS_ENCODER:
        raise Conflict("reranker_unavailable", str(NO_CROSS_ENCODER))
    return found


__all__ = ["NO_CROSS_ENCODER", "reranker_of", "reranker_problems"]
