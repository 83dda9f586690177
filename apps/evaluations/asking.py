"""Ask a judge's model: from the cache where the same was asked before, else through the one service that asks models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.evaluations.models import ScoreCache
from apps.evaluations.scorers.judges import Answer
from budgets.ledger import EXCEEDED, Payer
from runs.services import CompletionFailed, completion_run
from tenancy.actors import Actor
from tenancy.models import Tenant

PURPOSE = "judge"
_UNREAD = ("invalid_output", "no_answer")
"""What a judge wrote in spite of repairs, or did not: it would again, and the score is unscored."""


@dataclass(slots=True)
class CachedAsk:
    """See ``scorers.judges.Ask``. It blocks, and must be called outside of transactions.

    Attributes:
        spent_usd: what the requests of this object cost, as far as prices are known.
        attribution: facts for the bill.
        payer: see ``completion_run``.
        salt: tells apart what is asked anew on purpose; "" shares what anybody has asked.
        asked, cached: requests, and those of them that had been answered before.
    """

    tenant: Tenant
    actor: Actor
    model: str
    check: Callable[[], None] | None = None
    attribution: Mapping[str, Any] | None = None
    payer: Payer | None = None
    salt: str = ""
    spent_usd: float = 0.0
    asked: int = 0
    cached: int = 0

    def __call__(self, *, system: str, prompt: str, form: Mapping[str, Any]) -> Answer:
        """Ask, or read what was answered. Raises CompletionFailed for what may pass by itself, and for want of money."""
        self.asked += 1
        key = _key(self.model, system, prompt, form, self.salt)
        known = ScoreCache.objects.filter(tenant=self.tenant, key=key).values_list("value").first()
        if known is not None:
            self.cached += 1
            return Answer(known[0])
        try:
            got = completion_run(
                tenant=self.tenant,
                actor=self.actor,
                model=self.model,
                system=system,
                prompt=prompt,
                output=form,
                purpose=PURPOSE,
                attribution=self.attribution,
                check=self.check,
                payer=self.payer,
            )
        except CompletionFailed as error:
            may_pass = error.is_retryable and error.code not in _UNREAD
            if may_pass or error.code == EXCEEDED:
                raise
            return Answer(None, f"The judge gave no grades that could be read: {error.message}")
        self.spent_usd += got.cost_usd or 0.0
        with transaction.atomic():
            # Two workers may have asked at once; one answer is kept.
            ScoreCache.objects.bulk_create(
                [
                    ScoreCache(
                        tenant=self.tenant,
                        key=key,
                        model=self.model,
                        value=got.value,
                        cost_usd=None if got.cost_usd is None else f"{got.cost_usd:.8f}",
                    )
                ],
                ignore_conflicts=True,
            )
        return Answer(got.value)


def _key(model: str, system: str, prompt: str, form: Mapping[str, Any], salt: str) -> str:
    asked = [model, system, form, prompt, *([salt] if salt else [])]
    parts = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(parts.encode()).hexdigest()
