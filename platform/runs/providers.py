"""Which models a workspace can use, and the adapter for one: its own credentials first, then the operator's."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import structlog

from basics.errors import Conflict, Invalid
from tenancy.models import ProviderCredential, Tenant
from tenancy.selectors import credential_for
from toolloop.errors import ConfigurationError, ToolloopError
from toolloop.providers.base import Provider
from toolloop.providers.profiles import DEFAULT_MODELS
from toolloop.providers.registry import (
    ModelInfo,
    configured_models,
    environment_settings,
    list_remote_models,
    make_provider,
    model_info,
    parse_model,
)

if TYPE_CHECKING:
    import httpx2

log = structlog.get_logger(__name__)

EXTRACTIVE = "extractive"
EXTRACTIVE_LABEL = "Extractive, no language model"
REMOTE_TTL_S = 60.0
_LOCAL = frozenset({EXTRACTIVE, "scripted"})  # they run in this process and ask nobody
REMOTE_TIMEOUT_S = 1.5


@dataclass(slots=True)
class _Remote:
    """What a compatible server said it has, and when it was asked."""

    names: tuple[str, ...]
    asked_at: float


_remote: dict[str, _Remote] = {}
_remote_lock = threading.Lock()


def models_available(tenant: Tenant) -> list[ModelInfo]:
    """Return the models this workspace can choose from; ``extractive`` is always the last.

    Models of the operator's environment and of the workspace's own credentials, each once. A compatible server whose
    models nobody named is asked for them, at most once a minute.
    """
    found = {info.id: info for info in configured_models(os.environ)}
    extractive = found.pop(EXTRACTIVE)
    settings = environment_settings("compatible", os.environ)
    if settings is not None and not os.environ.get("GROUNDWORK_COMPATIBLE_MODELS", "").strip():
        for name in _remote_models(settings["base_url"], settings["api_key"]):
            info = model_info("compatible", name)
            found[info.id] = info
    for row in ProviderCredential.objects.filter(tenant=tenant, is_enabled=True).order_by(
        "provider"
    ):
        for name in _credential_models(tenant, row):
            info = model_info(row.provider, name)
            found.setdefault(info.id, info)
    return [*found.values(), replace(extractive, label=EXTRACTIVE_LABEL)]


def model_label(model: str) -> str:
    """Return how to show a model by its routing name."""
    try:
        info = model_info(*parse_model(model))
    except ConfigurationError:
        return model
    return EXTRACTIVE_LABEL if info.id == EXTRACTIVE else info.label


def is_extractive(model: str) -> bool:
    """Tell whether no language model writes the answer, so that it must be labelled."""
    return model.partition("/")[0] == EXTRACTIVE


def provider_for(tenant: Tenant, model: str) -> Provider:
    """Return an adapter for a model, with the workspace's credential or else the operator's.

    Raises:
        Invalid: ``model`` names none.
        Conflict: ``model_unavailable``, nobody has given a key for its provider; or the stored one cannot be read.
    """
    try:
        name, _ = parse_model(model)
        settings = dict(_settings(tenant, name))
        if name not in _LOCAL:
            settings["http_client"] = _http_client()
        return make_provider(name, **settings)
    except ConfigurationError as error:
        raise Invalid("unknown_model", error.message) from error


@cache
def _tls() -> ssl.SSLContext:
    """Return the TLS settings of every connection to a model: reading the authorities' certificates takes 30 to 50 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def _http_client() -> httpx2.AsyncClient:
    """Return a client for one run, which the adapter closes with it."""
    import httpx2

    return httpx2.AsyncClient(verify=_tls(), follow_redirects=True)


def providers_preload() -> None:
    """Import the adapters and SDKs of the operator's models now, so that the first answer does not wait for it.

    For processes that answer questions, once they are up: an SDK takes up to two seconds and 80 MB.
    """
    for name in {info.provider for info in configured_models(os.environ)} - _LOCAL:
        settings = environment_settings(name, os.environ)
        if settings is not None:
            make_provider(name, **{**settings, "http_client": _http_client()})


def _settings(tenant: Tenant, name: str) -> Mapping[str, Any]:
    if name == EXTRACTIVE:
        return {}
    credential = credential_for(tenant=tenant, provider=name)
    if credential is not None:
        own: dict[str, Any] = {"api_key": credential.secret.reveal()}
        if credential.base_url:
            own["base_url"] = credential.base_url
        return own
    settings = environment_settings(name, os.environ)
    if settings is None:
        raise Conflict(
            "model_unavailable",
            f"There is no key for {name} models. Add one under Settings, Models, or choose another model.",
        )
    return settings


def _credential_models(tenant: Tenant, row: ProviderCredential) -> tuple[str, ...]:
    if row.model_names:
        return tuple(row.model_names)
    if row.provider != "compatible":
        return tuple(DEFAULT_MODELS.get(row.provider, ()))
    credential = credential_for(tenant=tenant, provider=row.provider)
    if credential is None or not credential.base_url:
        return ()
    return _remote_models(credential.base_url, credential.secret.reveal())


def _remote_models(base_url: str, api_key: str) -> tuple[str, ...]:
    """Return what a compatible server offers; an unreachable one keeps its last answer and is asked again later."""
    now = time.monotonic()
    with _remote_lock:
        known = _remote.get(base_url)
        if known is not None and now - known.asked_at < REMOTE_TTL_S:
            return known.names
        # Whoever comes meanwhile gets the old answer instead of waiting too.
        _remote[base_url] = _Remote(known.names if known else (), now)
    try:
        names = tuple(_ask(base_url, api_key))
    except ToolloopError as error:
        log.warning("models_not_listed", base_url=base_url, error=str(error))
        return known.names if known else ()
    with _remote_lock:
        _remote[base_url] = _Remote(names, now)
    return names


def _ask(base_url: str, api_key: str) -> list[str]:
    """Ask from a thread of its own: the caller may run inside an event loop already."""
    answer: list[list[str]] = []
    problem: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(
                asyncio.run(list_remote_models(base_url, api_key, timeout_s=REMOTE_TIMEOUT_S))
            )
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            problem.append(error)

    thread = threading.Thread(target=work, name="list-models", daemon=True)
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return answer[0]
