"""Embedders by setting: one string names provider, model and dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from apps.collections.embedders.base import Embedder, EmbeddingError
from apps.collections.embedders.folder import NAME, FolderEmbedder, FolderModel
from basics.texts import gettext as _

if TYPE_CHECKING:
    import httpx2

    from apps.collections.embedders.minilm import MiniLmEmbedder
    from apps.collections.embedders.sentence import OnnxEmbedder

DEFAULT_EMBEDDER = "local/all-MiniLM-L6-v2"

_DEFAULT_DIMS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "gemini-embedding-001": 768,
}
BUILT_IN = ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2:fp32")
_FOLDERS_KEPT = 4  # each holds a model in memory
_folders: dict[tuple[Path, str], FolderEmbedder] = {}
_folders_lock = Lock()
_EXAMPLES = (
    "Use local/all-MiniLM-L6-v2, openai/text-embedding-3-small@512 or google/gemini-embedding-001@768."
)


@dataclass(frozen=True, slots=True)
class EmbedderName:
    """A parsed setting.

    Attributes:
        provider: ``local``, ``openai`` or ``google``.
        model: bare model name; for ``local`` one of ``BUILT_IN``, or the name of an installed one.
        dims: 0 for local models, whose vectors have one length.
    """

    provider: str
    model: str
    dims: int


@lru_cache(maxsize=64)
def parse_embedder(setting: str) -> EmbedderName:
    """Parse ``provider/model[@dims]``.

    Raises:
        EmbeddingError: ``embedder_misconfigured``.
    """
    provider, _, rest = setting.strip().partition("/")
    model, _, dims_text = rest.partition("@")
    if provider == "local":
        if dims_text or (model not in BUILT_IN and not NAME.fullmatch(model)):
            raise _misconfigured(setting, "that isn't the name of a local model")
        return EmbedderName(provider, model, 0)
    if provider not in ("openai", "google") or not model:
        raise _misconfigured(setting, "the provider is unknown or the model is missing")
    if not dims_text:
        known = _DEFAULT_DIMS.get(model)
        if known is None:
            raise _misconfigured(setting, "this model needs its dimensions, as in model@1024")
        return EmbedderName(provider, model, known)
    if not dims_text.isdecimal() or not 1 <= int(dims_text) <= 4000:
        raise _misconfigured(setting, "the dimensions must be a number from 1 to 4000")
    return EmbedderName(provider, model, int(dims_text))


def make_embedder(
    setting: str = DEFAULT_EMBEDDER,
    *,
    data_dir: Path,
    api_key: str = "",
    base_url: str | None = None,
    http_client: httpx2.Client | None = None,
    counts_apart: bool = False,
    folder: FolderModel | None = None,
) -> Embedder:
    """Give the embedder of a setting.

    A local one is one per process, so that its model is loaded once; remote ones are made anew and belong to the
    tenant whose key they hold.

    Args:
        setting: ``provider/model[@dims]``.
        data_dir: where local model files are kept.
        api_key: for remote providers.
        base_url: another address of a remote provider.
        http_client: what a remote one connects with; the SDK's own when None.
        folder: the installed model of a local setting that is not built in, None where none has the name.
        counts_apart: its ``usage`` counts this caller's texts alone, as that of remote ones always does.

    Raises:
        EmbeddingError: ``embedder_misconfigured``.
    """
    name = parse_embedder(setting)
    if name.provider == "local":
        shared: OnnxEmbedder
        if name.model in BUILT_IN:
            shared = _local(data_dir, name.model)
        elif folder is not None:
            shared = _installed(folder)
        else:
            raise _misconfigured(
                setting, "no such model is installed here; the operator adds one with manage.py embedder_add"
            )
        return shared.counting_apart() if counts_apart else shared
    if name.provider == "openai":
        from apps.collections.embedders.openai import OpenAiEmbedder

        return OpenAiEmbedder(
            api_key=api_key, model=name.model, dims=name.dims, base_url=base_url, http_client=http_client
        )
    from apps.collections.embedders.google import GoogleEmbedder

    return GoogleEmbedder(
        api_key=api_key, model=name.model, dims=name.dims, base_url=base_url, http_client=http_client
    )


def languages_of(provider: str, model: str) -> tuple[str, ...] | None:
    """Return the languages that a model has learnt, by their English names; None for all, as the providers' have."""
    return ("English",) if provider == "local" and model.startswith("all-MiniLM-L6") else None


@lru_cache(maxsize=4)
def _local(data_dir: Path, model: str) -> MiniLmEmbedder:
    from apps.collections.embedders.minilm import MiniLmEmbedder

    # Made absolute here, once: each search asks for its embedder, and the file system answers part by part of the path.
    return MiniLmEmbedder(data_dir.resolve(), precision="fp32" if model.endswith(":fp32") else "int8")


def _installed(model: FolderModel) -> FolderEmbedder:
    key = (model.path, model.fingerprint)
    with _folders_lock:
        found = _folders.pop(key, None) or FolderEmbedder(model)
        _folders[key] = found  # the last used come last
        while len(_folders) > _FOLDERS_KEPT:
            del _folders[next(iter(_folders))]
    return found


def _misconfigured(setting: str, why: str) -> EmbeddingError:
    return EmbeddingError(
        "embedder_misconfigured",
        _("The embedder %(setting)s is not known: %(why)s. %(examples)s")
        % {"setting": repr(setting), "why": why, "examples": _EXAMPLES},
    )
