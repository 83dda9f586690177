"""The batch API of a workspace's model: which models have one, and what a call costs there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from basics.errors import Invalid
from basics.texts import gettext as _
from runs.providers import TenantProvider, is_extractive, provider_for
from tenancy.models import Tenant
from toolloop.batches.base import BatchProvider
from toolloop.batches.registry import batches_of
from toolloop.errors import UnsupportedFeature
from toolloop.models import ModelInfo
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.profiles import Prices, Profile

TIER = "batch"


@dataclass(frozen=True, slots=True)
class Engine:
    """A model as it is asked in batches.

    Attributes:
        name: with its routing prefix.
        provider: the model as it is asked directly, of the same account.
        api: its batches; closing it closes ``provider``.
        profile: the workspace's facts about the model, with the prices of batches.
    """

    name: str
    provider: TenantProvider
    api: BatchProvider
    profile: Profile

    @property
    def info(self) -> ModelInfo:
        """Return the workspace's facts about the model."""
        return self.provider.info

    def asked_by(self, call: Provider) -> TenantProvider:
        """Return the model as it is asked through a call that answers by batch, at the prices of batches."""
        return TenantProvider(call, replace(self.info, profile=self.profile))

    def line(self, key: str, request: ModelRequest) -> str:
        """Return a request as a line of a batch; raises ProviderError for one that cannot be in any."""
        asked = replace(request, model=self.info.model, profile=self.info.profile)
        return self.api.line(key, asked).decode()


def engine_for(tenant: Tenant, model: str) -> Engine:
    """Return a model's batch API, by the workspace's credential or else the operator's; the caller closes ``api``.

    Raises:
        Invalid: the model has none; or see ``provider_for``.
        Conflict: nobody has given a key.
    """
    if is_extractive(model):
        raise Invalid(
            "no_batches",
            _(
                "Rules answer immediately and for free, so there is no batch price. Choose a language model, "
                "or run it now."
            ),
        )
    provider = provider_for(tenant, model)
    info = provider.info
    if isinstance(provider.adapter, PlannerExecutor):
        raise Invalid(
            "no_batches",
            _(
                "%(model)s calls tools in two steps, which a batch can't do. Choose another model, or run "
                "it now."
            )
            % {"model": info.label},
        )
    try:
        api = batches_of(provider.adapter)
    except UnsupportedFeature as error:
        message = _("%(model)s has no half price. %(reason)s Choose another model, or run it now.") % {
            "model": info.label,
            "reason": error.message,
        }
        raise Invalid("no_batches", message) from error
    return Engine(model, provider, api, batch_profile(info.profile))


def batches_require(tenant: Tenant, models: Iterable[str]) -> None:
    """Raise Invalid with a sentence for people unless each of the models has a batch API. Nothing is asked."""
    for model in sorted(set(models)):
        engine_for(tenant, model)


def batch_profile(profile: Profile) -> Profile:
    """Return the facts about a model with the prices of its batches in place of the plain ones.

    So everything that prices a call, before and after it, counts the batch price without being told.
    """
    factor = profile.tiers.factor(TIER)
    cheaper = tuple(_times(prices, factor) for prices in profile.prices)
    return replace(profile, prices=cheaper, tiers=replace(profile.tiers, batch=1.0))


def _times(prices: Prices, factor: float) -> Prices:
    changed = {
        name: value * factor
        for name in ("input", "output", "cached_read", "cache_write", "cache_write_long")
        if (value := getattr(prices, name)) is not None
    }
    return replace(prices, **changed)
