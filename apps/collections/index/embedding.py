"""Which embedder makes the vectors of a space: the bridge between the rows and ``apps.collections.embedders``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from apps.collections.embedders import base
from apps.collections.embedders.folder import FolderModel
from apps.collections.embedders.registry import (
    BUILT_IN,
    DEFAULT_EMBEDDER,
    languages_of,
    make_embedder,
    parse_embedder,
)
from apps.collections.embedders.sentence_options import options_stored
from apps.collections.models import EmbeddingSpace, InstalledEmbedder
from basics.texts import gettext as _
from tenancy.model_servers import model_client_blocking
from tenancy.models import Tenant
from tenancy.selectors import credential_for

if TYPE_CHECKING:
    import httpx2

_LOCAL = (DEFAULT_EMBEDDER, f"{DEFAULT_EMBEDDER}:fp32")
_USUAL = (
    "openai/text-embedding-3-small@512",
    "openai/text-embedding-3-large@1024",
    "google/gemini-embedding-001@768",
)
_REMOTE = {
    "openai": (("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    "google": (("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL"),
}


def embedder_choices() -> list[str]:
    """Return usual settings to choose from, installed ones among them; any other of the same form may be written."""
    names = InstalledEmbedder.objects.order_by("name").values_list("name", flat=True)
    return [*_LOCAL, *(f"local/{name}" for name in names), *_USUAL]


def installed_model(setting: str) -> FolderModel | None:
    """Return the installed model of a setting, None for one that is built in, remote or not there.

    Raises:
        EmbeddingError: the setting names no embedder.
    """
    name = parse_embedder(setting)
    if name.provider != "local" or name.model in BUILT_IN:
        return None
    row = InstalledEmbedder.objects.filter(name=name.model).first()
    if row is None:
        return None
    return FolderModel(row.name, Path(row.folder), options_stored(row.options), row.dimensions, row.digests)


def default_setting() -> str:
    """Return the embedder that new collections get, as ``provider/model[@dims]``."""
    return DEFAULT_EMBEDDER if settings.EMBEDDER in ("", "minilm") else str(settings.EMBEDDER)


def space_default(*, tenant: Tenant) -> EmbeddingSpace:
    """Return the row of the space that new collections get, made at its first use.

    Raises:
        EmbeddingError: the setting names no embedder, or its provider has no key.
    """
    return space_for(default_setting(), tenant=tenant)


def space_for(setting: str, *, tenant: Tenant) -> EmbeddingSpace:
    """Return the row of the space of an embedder, made at its first use.

    Args:
        setting: ``provider/model[@dims]``.

    Raises:
        EmbeddingError: the setting names no embedder, or its provider has no key.
    """
    space = _make(setting, tenant).space
    row, _ = EmbeddingSpace.objects.get_or_create(
        provider=space.provider, model=space.model, dimensions=space.dims, fingerprint=space.precision
    )
    return row


def embedder_for(space: EmbeddingSpace, *, tenant: Tenant) -> base.Embedder:
    """Return an embedder whose vectors may be compared with those of a space.

    Args:
        tenant: whose own provider key is used; without one, the operator's from the environment.

    Raises:
        EmbeddingError: ``embedder_misconfigured`` without a key, or when this version makes other vectors.
        Conflict: the tenant's stored key cannot be read any more.
    """
    embedder = _make(setting_of(space), tenant)
    if space.fingerprint not in (embedder.space.precision, *embedder.space.alike):
        raise base.EmbeddingError(
            "embedder_misconfigured",
            _(
                "The vectors of %(space)s were made by another version of the embedder (%(fingerprint)s; "
                "here is %(precision)s). Move the collection to the embedder that is here, in its "
                "settings."
            )
            % {"space": space, "fingerprint": space.fingerprint, "precision": embedder.space.precision},
        )
    return embedder


def setting_of(space: EmbeddingSpace) -> str:
    """Return the ``provider/model[@dims]`` whose vectors a space holds."""
    setting = f"{space.provider}/{space.model}"
    if space.provider == "local":
        is_exact = setting == DEFAULT_EMBEDDER and space.fingerprint.startswith("fp32")
        return setting + (":fp32" if is_exact else "")
    return f"{setting}@{space.dimensions}"


def languages_known(space: EmbeddingSpace) -> tuple[str, ...] | None:
    """Return the languages that the model of a space has learnt, by their English names; None for all that there are."""
    return languages_of(space.provider, space.model)


def embedder_local(*, tenant: Tenant) -> base.Embedder:
    """Return an embedder on this server, shared by the process: that of new collections, else the built-in one.

    Raises:
        EmbeddingError: the operator's setting names a local one that is not installed.
    """
    setting = default_setting()
    return _make(setting if setting.startswith("local/") else DEFAULT_EMBEDDER, tenant)


def embedder_of_setting(setting: str, *, tenant: Tenant) -> base.Embedder:
    """Return the embedder of a setting, which counts what this caller gives it.

    Raises:
        EmbeddingError: the setting names no embedder, or its provider has no key.
        Conflict: the tenant's stored key cannot be read any more.
    """
    return _make(setting, tenant, counts_apart=True)


def _make(setting: str, tenant: Tenant, *, counts_apart: bool = False) -> base.Embedder:
    provider = setting.partition("/")[0]
    api_key, base_url = "", ""
    http_client: httpx2.Client | None = None
    if provider in _REMOTE:
        names, url_name = _REMOTE[provider]
        own = credential_for(tenant=tenant, provider=provider)
        if own is not None:
            api_key, base_url = own.secret.reveal(), own.base_url
            http_client = model_client_blocking() if base_url else None
        else:
            api_key = next((os.environ[name] for name in names if os.environ.get(name)), "")
            base_url = os.environ.get(url_name, "")
    return make_embedder(
        setting,
        data_dir=Path(settings.DATA_DIR),
        api_key=api_key,
        base_url=base_url or None,
        http_client=http_client,
        counts_apart=counts_apart,
        folder=installed_model(setting),
    )
