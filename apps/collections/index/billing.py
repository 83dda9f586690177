"""Pay for embeddings: money is held in the workspace's budgets before a request, and what it used is recorded after."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from apps.collections.embedders.base import Embedder, EmbeddingUsage
from budgets.ledger import BillingAccount
from runs.services import usage_record
from tenancy.actors import Actor
from tenancy.models import Tenant

KIND = "embedding"
PRICES = {
    "openai/text-embedding-3-small": 0.02,
    "openai/text-embedding-3-large": 0.13,
    "openai/text-embedding-ada-002": 0.10,
    "google/gemini-embedding-001": 0.15,
}
"""USD per million tokens, the providers' list prices of November 2026."""
_CHARS_PER_TOKEN = 3
_SECONDS = 600  # Of one batch with all its retries, rather too long.


def billing_account_of(actor: Actor) -> BillingAccount:
    """Return on whose account an actor's embeddings go."""
    return BillingAccount(actor.tenant_id, actor.user_id, actor.api_key_id)


class EmbeddingBill:
    """What texts cost that are about to be embedded: a context manager around the request.

    Making it reserves; leaving it records what the embedder has used meanwhile, also when it failed. Both write: use it
    in the thread that has the database, outside of transactions.

    Args:
        embedder: who embeds them; a local one costs nothing and writes nothing.
        billing_account: on whose account.
        texts: what will be embedded.

    Raises:
        BudgetExceeded: there is no money for them.
    """

    def __init__(
        self, embedder: Embedder, *, tenant: Tenant, billing_account: BillingAccount, texts: Sequence[str]
    ) -> None:
        space = embedder.space
        self._embedder, self._before = embedder, embedder.usage
        self._estimate = sum(len(text) // _CHARS_PER_TOKEN + 1 for text in texts)
        self._record = None
        if space.provider != "local" and texts:
            self._record = usage_record(
                tenant=tenant,
                billing_account=billing_account,
                kind=KIND,
                provider=space.provider,
                model=space.model,
                input_price=PRICES.get(f"{space.provider}/{space.model}"),
                input_tokens=self._estimate,
                seconds=_SECONDS,
            )

    @property
    def is_free(self) -> bool:
        """Tell whether nothing is paid, held or recorded."""
        return self._record is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._record is None:
            return
        used, before = self._embedder.usage, self._before
        if used.requests == before.requests:
            self._record(0)
        else:
            self._record(used.tokens - before.tokens or self._estimate_of(used))

    def _estimate_of(self, used: EmbeddingUsage) -> int:
        """Return the tokens where the service does not tell them: of all texts, or of none that came back."""
        return self._estimate if used.texts > self._before.texts else 0
