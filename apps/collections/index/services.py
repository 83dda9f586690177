"""Vectors of texts that are nobody's documents, for programs that keep their own index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.collections.embedders.registry import parse_embedder
from apps.collections.index.billing import KIND, EmbeddingBill, billing_account_of
from apps.collections.index.embedding import default_setting, embedder_of_setting, setting_of
from apps.collections.models import Collection, EmbeddingSpace
from basics.errors import DomainError, Invalid
from runs.models import UsageRecord
from tenancy.actors import Actor
from tenancy.models import Tenant

if TYPE_CHECKING:
    from apps.collections.embedders.base import Vectors

MAX_TEXTS, MAX_CHARS = 2_048, 400_000
WAIT_S = 20.0
# The local model takes a processor for seconds; one request at a time leaves the others to pages.
_LOCAL = threading.BoundedSemaphore(1)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of texts.

    Attributes:
        setting: the embedder, as ``provider/model[@dims]``.
        vectors: L2-normalised float32, shape (texts, dims), in the order of the texts.
        tokens: as the model counts them; 0 where its provider does not say.
        truncated: texts of which the model saw only the beginning.
    """

    setting: str
    vectors: Vectors
    tokens: int
    truncated: int


def embedder_list(*, actor: Actor) -> list[str]:
    """Return the embedders a workspace has: that of new collections, then those of the collections the actor may read."""
    used = Collection.objects.visible_to(actor).values("space_id")
    spaces = EmbeddingSpace.objects.filter(pk__in=used).order_by("pk")
    return list(dict.fromkeys([default_setting(), *(setting_of(space) for space in spaces)]))


def texts_embed(
    *, tenant: Tenant, actor: Actor, model: str, texts: Sequence[str], dimensions: int | None = None
) -> Embedded:
    """Embed texts and record what it used. It blocks; call it outside of transactions.

    Args:
        model: one of ``embedder_list``; the provider and the dimensions may be left out.
        dimensions: of the vectors, where the model can shorten them; None for those of the workspace.

    Raises:
        Denied: the actor may not search.
        Invalid: the model cannot do these dimensions; too much text.
        EmbeddingError: the embedder could not do its work.
        BudgetExceeded: there is no money for it.
        DomainError: ``model_not_found``, not of the workspace, with status 404; ``embedder_busy`` with status 429.
    """
    actor.require("search.run")
    if not 0 < len(texts) <= MAX_TEXTS:
        raise _invalid("input", f"Send 1 to {MAX_TEXTS} texts.")
    if sum(map(len, texts)) > MAX_CHARS:
        raise _invalid("input", f"Send at most {MAX_CHARS} characters per request.")
    setting = _setting(embedder_list(actor=actor), model, dimensions)
    name = parse_embedder(setting)
    embedder = embedder_of_setting(setting, tenant=tenant)
    own = embedder.space.dims
    if dimensions not in (None, own):
        raise _invalid("dimensions", f"This model always has {own} dimensions.")
    bill = EmbeddingBill(embedder, tenant=tenant, billing_account=billing_account_of(actor), texts=texts)
    with _Turn() if bill.is_free else bill:
        vectors = embedder.embed_documents(texts)
    used = embedder.usage
    if bill.is_free:
        UsageRecord.objects.create(
            tenant=tenant,
            user_id=actor.user_id,
            kind=KIND,
            provider=name.provider,
            model=name.model[:120],
            input_tokens=used.tokens,
            cost_usd=0,
            attribution={"api_key_id": actor.api_key_id, "texts": used.texts},
        )
    return Embedded(setting, vectors, used.tokens, used.truncated)


class _Turn:
    """One after the other."""

    def __enter__(self) -> None:
        if not _LOCAL.acquire(timeout=WAIT_S):
            raise DomainError(
                "embedder_busy",
                "Other texts are being embedded; try again in a moment.",
                status=429,
                data={"retry_after": int(WAIT_S)},
            )

    def __exit__(self, *exc: object) -> None:
        _LOCAL.release()


def _setting(known: Sequence[str], model: str, dimensions: int | None) -> str:
    found = next((s for s in known if model in _names(s)), None)
    if found is None:
        raise DomainError(
            "model_not_found",
            f"The model “{model}” isn't an embedding model here; use {', '.join(known)}.",
            status=404,
            data={"fields": {"model": ["Not available."]}},
        )
    bare, _, own = found.partition("@")
    if dimensions is None or str(dimensions) == own:
        return found
    return found if bare.startswith("local/") else f"{bare}@{dimensions}"


def _names(setting: str) -> tuple[str, ...]:
    whole = setting.partition("@")[0]
    return setting, whole, whole.partition("/")[2]


def _invalid(field: str, problem: str) -> Invalid:
    return Invalid("invalid", f"{field}: {problem}", data={"fields": {field: [problem]}})
