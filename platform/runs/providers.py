"""Which models a workspace can use, and the adapter for one: its own credentials first, then the operator's."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import structlog
from django.utils.translation import gettext_lazy

from basics.errors import Conflict, Invalid
from basics.metrics import MODEL_SECONDS, bounded
from basics.texts import gettext as _
from runs import remote_models
from runs.remote_models import Server
from tenancy.models import ModelEntry, ProviderCredential, Tenant
from tenancy.selectors import credential_open, credentials_and_entries
from toolloop.errors import ConfigurationError, UnsupportedFeature
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.models import (
    DEFAULT_ENDPOINT,
    LOCAL_PROVIDERS,
    ModelCatalog,
    ModelInfo,
    ModelOverride,
    Route,
    get_model_info,
    parse_model,
)
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.profiles import DEFAULT_MODELS, Prices, Profile
from toolloop.providers.registry import (
    PROVIDERS,
    configured_models,
    environment_settings,
    make_provider,
    shared_settings,
)
from toolloop.service import Service
from toolloop.usage import CACHED

if TYPE_CHECKING:
    import httpx2

log = structlog.get_logger(__name__)

EXTRACTIVE = "extractive"
EXTRACTIVE_LABEL = gettext_lazy("Extractive, no language model")


class TenantProvider:
    """An adapter for one model of a workspace, which asks for that model by the facts the workspace's catalog states.

    Attributes:
        name: the adapter's provider.
        adapter: asks it.
        info: the model; the loop needs ``info.model`` and ``info.profile``.
    """

    def __init__(self, adapter: Provider, info: ModelInfo) -> None:
        self.adapter, self.info = adapter, info
        self.name = adapter.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``. How it ended is counted for ``/metrics``."""
        asked = request
        if (request.model, request.profile) != (self.info.model, self.info.profile):  # not by ``loop_model``
            asked = replace(request, model=self.info.model, profile=self.info.profile)
        began, outcome = time.perf_counter(), ""
        try:
            async with aclosing(
                cast(AsyncGenerator[ProviderEvent, None], self.adapter.stream(asked))
            ) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        outcome = "error" if event.turn.stop == "error" else "ok"
                        if event.turn.stop_detail == CACHED:
                            outcome = CACHED
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            outcome = outcome or "stopped"
            raise
        finally:
            if outcome != CACHED:
                seconds = time.perf_counter() - began
                MODEL_SECONDS.observe(bounded(self.name, PROVIDERS), outcome or "error", seconds=seconds)

    async def aclose(self) -> None:
        """Close the adapter."""
        await self.adapter.aclose()


def provider_wrapped(provider: Provider, wrap: Callable[[Provider], Provider]) -> Provider:
    """Put another provider around the adapter of a model; the workspace's facts about the model stay outside of it."""
    if isinstance(provider, TenantProvider):
        return TenantProvider(wrap(provider.adapter), provider.info)
    return wrap(provider)


def loop_model(provider: Provider, model: str) -> tuple[str, Profile | None]:
    """Return what the loop is to be told about a model: its bare name, and its facts where the workspace states them.

    Args:
        provider: who will be asked.
        model: routing name, for a provider that was not made by ``provider_for``.
    """
    if isinstance(provider, TenantProvider):
        return provider.info.model, provider.info.profile
    return parse_model(model)[1], None


def catalog_for(tenant: Tenant) -> ModelCatalog:
    """Return what a workspace knows about models: the built-in facts, its own over them, and its endpoints."""
    return _catalog(tenant, *credentials_and_entries(tenant=tenant))


def models_available(tenant: Tenant) -> list[ModelInfo]:
    """Return the models this workspace can choose from; ``extractive`` is always the last.

    Models of the operator's environment, of the workspace's own credentials and those it has added, each once and
    without what it hides. Compatible servers whose models nobody named are asked for them, at most once a minute. One
    query.
    """
    return models_and_catalog(tenant)[0]


def models_and_catalog(tenant: Tenant) -> tuple[list[ModelInfo], ModelCatalog]:
    """Return what ``models_available`` and ``catalog_for`` do, by the same query."""
    rows, entries = credentials_and_entries(tenant=tenant)
    catalog = _catalog(tenant, rows, entries)
    own = {(row.provider, row.endpoint): row for row in rows if row.is_enabled}
    offered = {info.id: info for info in configured_models(os.environ, catalog)}
    extractive = offered.pop(EXTRACTIVE)
    if ("compatible", "") in own:  # Their server is the workspace's now.
        offered = {k: info for k, info in offered.items() if info.provider != "compatible"}
    for name in _offered_names(tenant, own):
        try:
            info = catalog.get_model_info(name)
        except ConfigurationError as error:
            log.warning("model_name_unusable", tenant=tenant.pk, name=name, error=error.message)
            continue
        offered.setdefault(info.id, info)
    for entry in entries:
        if (added := _added(catalog, entry, own)) is not None:
            offered.setdefault(added.id, added)
    found = [info for info in offered.values() if not catalog.is_hidden(info.id)]
    return [*found, replace(extractive, label=str(EXTRACTIVE_LABEL))], catalog


def model_label(model: str) -> str:
    """Return how to show a model by its routing name."""
    try:
        info = get_model_info(model)
    except ConfigurationError:
        return model
    return str(EXTRACTIVE_LABEL) if info.id == EXTRACTIVE else info.label


def model_is_free(tenant: Tenant, model: str) -> bool:
    """Tell whether a model is known to cost this workspace nothing."""
    try:
        profile = catalog_for(tenant).get_model_info(model).profile
    except ConfigurationError:
        return False
    return bool(profile.prices) and all(t.input == t.output == 0 for t in profile.prices)


def service_problem(tenant: Tenant, model: str, options: Mapping[str, Any]) -> str:
    """Say in a sentence what of ``toolloop.service``'s options a workspace's model does not have, "" for nothing."""
    try:
        asked = Service.of(options)
        return "" if asked == Service() else asked.problem(catalog_for(tenant).profile(model), model)
    except (UnsupportedFeature, ConfigurationError) as error:
        return error.message


def is_extractive(model: str) -> bool:
    """Tell whether no language model writes the answer, so that it must be labelled."""
    return model.partition("/")[0] == EXTRACTIVE


def provider_for(tenant: Tenant, model: str) -> TenantProvider:
    """Return an adapter for a model, with the workspace's credential or else the operator's.

    It asks by the workspace's facts about the model; one that the workspace states to have no tools is asked through
    the planner and executor.

    Raises:
        Invalid: ``model`` names none.
        Conflict: ``model_unavailable``, nobody has given a key for its provider, or the workspace has switched it off;
            or the stored key cannot be read.
    """
    rows, entries = credentials_and_entries(tenant=tenant)
    catalog = _catalog(tenant, rows, entries)
    try:
        info = catalog.get_model_info(model)
        if catalog.is_hidden(info.id):
            raise Conflict(
                "model_unavailable",
                _("The model %(model)s is switched off in this workspace. Choose another one.")
                % {"model": info.label},
            )
        settings = dict(_settings(rows, catalog.route(info.id)))
        adapter = make_provider(info.provider, **settings)
    except ConfigurationError as error:
        raise Invalid("unknown_model", error.message) from error
    if not info.profile.tools and info.is_language_model:
        adapter = PlannerExecutor(adapter)
    return TenantProvider(adapter, info)


@cache
def _tls() -> ssl.SSLContext:
    """Return the TLS settings of every connection to a model: reading the authorities' certificates takes 30 to 50 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def _guarded_client() -> httpx2.AsyncClient:
    """Return a client for a server that a workspace has named."""
    from tenancy.model_servers import model_client

    return model_client(verify=_tls())


def _http_client() -> httpx2.AsyncClient:
    """Return a client for a server of the operator's or a provider's own, which the adapter closes with its run."""
    from basics.http_async import http_client

    # A dataset's driver has a hundred calls under way: each connection that is closed between two costs another. All runs of
    # a process share the limit, which no number of them may reach.
    return http_client(verify=_tls(), connections=4000, keepalive=100)


def providers_preload() -> None:
    """Import the adapters and SDKs of the operator's models now, so that the first answer does not wait for it.

    For processes that answer questions, once they are up: an SDK takes up to two seconds and 80 MB.
    """
    for name in {info.provider for info in configured_models(os.environ)} - LOCAL_PROVIDERS:
        settings = environment_settings(name, os.environ)
        if settings is not None:
            make_provider(name, **{**settings, "http_client": _http_client()})


def _settings(rows: list[ProviderCredential], route: Route) -> Mapping[str, Any]:
    """Return the arguments of ``make_provider`` for a route."""
    if route.provider in LOCAL_PROVIDERS:
        return {}
    row = next((r for r in rows if (r.provider, r.endpoint) == (route.provider, route.endpoint)), None)
    if row is not None and row.is_enabled:
        own: dict[str, Any] = {
            "api_key": credential_open(row).secret.reveal(),
            **shared_settings(route.provider, os.environ),
        }
        if row.base_url:
            own |= {"base_url": row.base_url, "http_client": _guarded_client()}
            return own
        return own | {"http_client": _http_client()}
    settings = None if route.endpoint else environment_settings(route.provider, os.environ)
    if settings is None:
        message = (
            _(
                "There is no key for the endpoint %(name)s. Add one under Settings, Models, or choose another model."
            )
            if route.endpoint
            else _(
                "There is no key for %(name)s models. Add one under Settings, Models, or choose another model."
            )
        )
        raise Conflict("model_unavailable", message % {"name": route.endpoint or route.provider})
    return {**settings, "http_client": _http_client()}


def _catalog(tenant: Tenant, rows: list[ProviderCredential], entries: list[ModelEntry]) -> ModelCatalog:
    endpoints = {row.endpoint for row in rows if row.endpoint}  # Disabled ones keep their names.
    overrides = []
    for entry in entries:
        try:
            override = _override(entry)
            ModelCatalog([override], endpoints=endpoints)
        except (ConfigurationError, TypeError, AttributeError) as error:
            # Written past the service, or before a rule changed: the built-in facts hold.
            log.warning("model_entry_unusable", tenant=tenant.pk, entry=entry.pk, error=str(error))
            continue
        overrides.append(override)
    return ModelCatalog(overrides, endpoints=endpoints)


def _override(entry: ModelEntry) -> ModelOverride:
    prices = None if entry.prices is None else tuple(Prices(**tier) for tier in entry.prices)
    return ModelOverride(
        name=entry.name,
        label=entry.label,
        is_hidden=not entry.is_enabled,
        context_window=entry.context_window,
        max_output_tokens=entry.max_output_tokens,
        prices=prices,
        capabilities=entry.capabilities,
    )


def _offered_names(tenant: Tenant, own: Mapping[tuple[str, str], ProviderCredential]) -> list[str]:
    """Return routing names of what the workspace's credentials, and servers that were asked, offer."""
    names: list[str] = []
    ask: list[Server] = []
    settings = None if ("compatible", "") in own else environment_settings("compatible", os.environ)
    if settings is not None and not os.environ.get("GROUNDWORK_COMPATIBLE_MODELS", "").strip():
        ask.append(Server(0, _prefix("compatible", ""), settings["base_url"], settings["api_key"]))
    for (provider, endpoint), row in own.items():
        prefix = _prefix(provider, endpoint)
        if row.model_names or provider != "compatible":
            models = row.model_names or DEFAULT_MODELS.get(provider, ())
            names += [f"{prefix}/{model}" for model in models]
        elif row.base_url:
            key = credential_open(row).secret.reveal()
            ask.append(Server(tenant.pk, prefix, row.base_url, key))
    return names + remote_models.names(ask)


def _prefix(provider: str, endpoint: str) -> str:
    """Return what stands before a bare model name, so that the name cannot be taken for an endpoint's."""
    return f"{provider}/{endpoint or DEFAULT_ENDPOINT}" if provider == "compatible" else provider


def _added(
    catalog: ModelCatalog, entry: ModelEntry, own: Mapping[tuple[str, str], ProviderCredential]
) -> ModelInfo | None:
    """Return the model of an entry, None when nobody has given a key for it."""
    try:
        info = catalog.get_model_info(entry.name)
    except ConfigurationError:
        return None  # ``_catalog`` has logged it.
    if (info.provider, info.endpoint) in own:
        return info
    if info.endpoint or environment_settings(info.provider, os.environ) is None:
        return None
    return info
