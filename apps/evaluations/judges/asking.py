"""Ask a judge's model: from the cache where the same was asked before, else directly or by batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from apps.evaluations.models import ScoreCache
from apps.evaluations.scorers.judges import JudgeAnswer
from basics.texts import gettext as _
from batches.asking import completion_batched
from batches.engines import engine_for
from batches.lines import line_find
from budgets.ledger import EXCEEDED, BillingAccount
from runs.services import Completion, CompletionFailed, completion_prepare, completion_run
from tenancy.actors import Actor
from tenancy.models import Tenant

PURPOSE = "judge"
_UNREAD = ("invalid_output", "no_answer")
"""What a judge wrote in spite of repairs, or did not: it would again, and the score is unscored."""


@dataclass(frozen=True, slots=True)
class ByBatch:
    """Whose batches a judge's questions go with.

    Attributes:
        owner: of the lines. The same question of two askers is one line.
        asker: whom an answer's cost is counted for, where they were the first to ask: a trial; 0 for a check of judges.
    """

    owner: str
    asker: int = 0


@dataclass(slots=True)
class CachedAsk:
    """See ``scorers.judges.Ask``. It blocks, and must be called outside of transactions.

    Attributes:
        spent_usd: what the requests of this object cost, as far as prices are known.
        attribution: facts for the bill.
        billing_account: see ``completion_run``.
        salt: tells apart what is asked anew on purpose; "" shares what anybody has asked.
        by_batch: asks by batch; None directly.
        asked, cached: requests, and those of them that had been answered before.
    """

    tenant: Tenant
    actor: Actor
    model: str
    check: Callable[[], None] | None = None
    attribution: Mapping[str, Any] | None = None
    billing_account: BillingAccount | None = None
    salt: str = ""
    by_batch: ByBatch | None = None
    spent_usd: float = 0.0
    asked: int = 0
    cached: int = 0
    _mine: set[str] = field(default_factory=set)

    def __call__(self, *, system: str, prompt: str, form: Mapping[str, Any]) -> JudgeAnswer:
        """Ask, or read what was answered.

        Raises:
            CompletionFailed: what may pass by itself, and want of money.
            AnswersAwaited: it comes with a batch.
        """
        self.asked += 1
        key = _key(self.model, system, prompt, form, self.salt)
        # By batch an experiment's own line counts before the cache, so that a trial that is scored again counts the same.
        line = f"j{key[:32]}"
        mine = None if self.by_batch is None else self._is_mine(line)
        if mine is None:
            rows = ScoreCache.objects.filter(tenant=self.tenant, key=key)
            known = rows.values_list("value").first()
            if known is not None:
                self.cached += 1
                return JudgeAnswer(known[0])
        asked: dict[str, Any] = {
            "tenant": self.tenant,
            "actor": self.actor,
            "model": self.model,
            "system": system,
            "prompt": prompt,
            "output": form,
            "purpose": PURPOSE,
            "attribution": self.attribution,
            "check": self.check,
            "billing_account": self.billing_account,
        }
        try:
            got = completion_run(**asked) if self.by_batch is None else self._batched(line, asked)
        except CompletionFailed as error:
            may_pass = error.is_retryable and error.code not in _UNREAD
            if may_pass or error.code == EXCEEDED:
                raise
            return JudgeAnswer(
                None, _("The judge's grades could not be read: %(error)s") % {"error": error.message}
            )
        if mine is False:
            self.cached += 1
        else:
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
        return JudgeAnswer(got.value)

    def _is_mine(self, line: str) -> bool | None:
        """Tell whether a line's answer is counted for this asker, once; None where nobody has asked."""
        assert self.by_batch is not None  # noqa: S101 - asked by the caller
        found = line_find(self.tenant.pk, self.by_batch.owner, f"{line}-0")
        if found is None:
            return None
        is_first = line not in self._mine
        self._mine.add(line)
        return is_first and found.attribution.get("asker") == self.by_batch.asker

    def _batched(self, line: str, asked: dict[str, Any]) -> Completion:
        assert self.by_batch is not None  # noqa: S101 - asked by the caller
        owner, asker = self.by_batch.owner, self.by_batch.asker
        attribution = {**(self.attribution or {}), "asker": asker}
        engine = engine_for(self.tenant, self.model)
        question = completion_prepare(**{**asked, "attribution": attribution}, provider=engine.provider)
        return completion_batched(question, engine=engine, owner=owner, key=line)


def _key(model: str, system: str, prompt: str, form: Mapping[str, Any], salt: str) -> str:
    asked = [model, system, form, prompt, *([salt] if salt else [])]
    parts = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(parts.encode()).hexdigest()
