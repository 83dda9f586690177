"""What the stages of a driver share, and the items it carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from apps.datasets.generation.committing import Committer, ItemChange, Write
from apps.datasets.generation.corpus import CorpusPassage, passages_read
from apps.datasets.generation.settings import Settings
from apps.datasets.models import Dataset, GenerationItem, GenerationJob, ItemState
from apps.datasets.records.record import Record
from basics.gathering import Crowd, Gathered
from basics.texts import gettext_noop
from batches.engines import Engine
from budgets.ledger import BillingAccount, ReservationRequest, Reserved
from runs.models import Run
from runs.reservations import reserve_each_and_tell
from runs.services import AnsweredRun
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.messages import Turn
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile
from toolloop.tools import Toolset

NO_MONEY = gettext_noop("The budget is used up. Raise it and resume, or stop.")


@dataclass(frozen=True, slots=True)
class Model:
    """A model behind its gate.

    Attributes:
        name: with its routing prefix; ``bare`` is what the loop wants.
        by_rules: no language model: the stages use rules.
        engine: asks it by batch; None asks it directly. ``profile`` then has the prices of batches.
    """

    name: str
    bare: str
    provider: Provider
    profile: Profile | None
    by_rules: bool
    engine: Engine | None = None


@dataclass(slots=True)
class Item:
    """One item while this driver has it.

    Attributes:
        deaths: workers that died in a row while it got no further.
        paid: calls of earlier attempts, by stage and attempt: each turn with the results that led to it.
        retry_reason: why it is given back to be tried again later.
        is_short: the budget had less left for it than a row may cost.
        owed: a paid call that is committed with what follows from it, or before the next call is made.
        is_away: its next call is with a batch.
    """

    pk: int
    slot: int
    round: int
    type: str
    difficulty: str
    chunks: tuple[int, ...]
    state: str
    data: dict[str, Any]
    repairs: int
    failures: int
    reserved_usd: Decimal
    spent_usd: Decimal
    deaths: int = 0
    paid: dict[tuple[str, int], list[tuple[Turn, list[dict[str, Any]]]]] = field(default_factory=dict)
    retry_reason: str = ""
    is_short: bool = False
    owed: Write | None = None
    is_away: bool = False

    @classmethod
    def of(cls, row: GenerationItem) -> Item:
        """Return the item of a row, without its paid calls."""
        return cls(
            row.pk,
            row.slot,
            row.round,
            row.type,
            row.difficulty,
            tuple(row.chunks),
            row.state,
            dict(row.data),
            row.repairs,
            row.failures,
            row.reserved_usd,
            row.spent_usd,
            row.deaths,
        )

    def changed(self, **more: Any) -> ItemChange:
        """Return the item as it is, changed by ``more``: what a write of it says."""
        return ItemChange(
            **{
                "state": str(self.state),
                "data": self.data,
                "spent_usd": self.spent_usd,
                "repairs": self.repairs,
                "failures": self.failures,
                **more,
            }
        )


@dataclass(slots=True)
class Work:
    """What a driver works with.

    Attributes:
        run: not stored; tells tools on whose behalf they are called.
        context: ``ToolContext.data`` of the tools.
        halting: why no further call may begin, "" while all is well; what is under way is finished and kept.
        driver: the name by which items are this driver's.
        crowd: the items it carries.
        passages: reads passages by their ids, in their order; those that are gone by now, or closed, are missing.
        reserve: holds money for a call.
        advanced: told, in the transaction that keeps what items have come to, that the job got on.
        away: ids of the items whose next call is with a batch, wanted or sent.
    """

    job: GenerationJob
    dataset: Dataset
    tenant: Tenant
    actor: Actor
    settings: Settings
    model: Model
    judge: Model
    names: Mapping[int, str]
    toolset: Toolset
    context: Mapping[str, Any]
    run: Run
    driver: str
    in_db: Callable[..., Awaitable[Any]]
    blocking: Callable[[Callable[[], Any]], Awaitable[Any]]
    advanced: Callable[[], None]
    halting: str = ""
    away: set[int] = field(default_factory=set)
    crowd: Crowd = field(init=False)
    committer: Committer = field(init=False)
    passages: Gathered[Sequence[int], list[CorpusPassage]] = field(init=False)
    reserve: Gathered[ReservationRequest, Reserved] = field(init=False)

    def __post_init__(self) -> None:
        self.crowd = Crowd(self.settings.concurrency)
        self.committer = Committer(
            tenant=self.tenant,
            actor=self.actor,
            dataset=self.dataset,
            job=self.job,
            driver=self.driver,
            in_db=self.in_db,
            crowd=self.crowd,
            advanced=self.advanced,
        )
        self.passages = Gathered(self._passages_read, self.crowd)
        self.reserve = Gathered(self._reserved, self.crowd)

    @property
    def is_batched(self) -> bool:
        """Tell whether models are asked by batch."""
        return self.settings.is_batched

    @property
    def billing_account(self) -> BillingAccount:
        """Return on whose account the calls go."""
        return BillingAccount(self.actor.tenant_id, self.actor.user_id, self.actor.api_key_id)

    async def _passages_read(self, groups: Sequence[Sequence[int]]) -> list[list[CorpusPassage]]:
        ids = list(dict.fromkeys(pk for group in groups for pk in group))
        rows = await self.in_db(passages_read, self.actor, ids, self.names)
        found = {passage.chunk_id: passage for passage in rows}
        return [[found[pk] for pk in group if pk in found] for group in groups]

    async def _reserved(self, asked: Sequence[ReservationRequest]) -> list[Reserved]:
        found: list[Reserved] = await self.in_db(reserve_each_and_tell, self.billing_account, asked)
        return found


@dataclass(frozen=True, slots=True)
class Next:
    """What comes after a stage.

    Attributes:
        data: what the stage has found.
        record: of a row that is kept.
    """

    state: str
    data: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    repairs: int | None = None
    record: Record | None = None
    run: AnsweredRun | None = None


def dropped(reason: str, **data: Any) -> Next:
    """Return the end of an item that comes to nothing."""
    return Next(ItemState.DROPPED, data, reason)


class Released(Exception):
    """The item goes back as it is: the job pauses, stops, or somebody else has it."""


class Away(Released):
    """The item's next call goes with a batch; it is taken up again when the answer is there."""


class Halted(Released):
    """No item of this job can go on: a wrong key, no money. ``reason`` is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Failed(Exception):
    """This item came to nothing.

    Attributes:
        reason: for people.
        is_retryable: another attempt may succeed.
    """

    def __init__(self, reason: str, *, is_retryable: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.is_retryable = reason, is_retryable
