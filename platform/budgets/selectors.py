"""What a workspace has budgeted, and how much of it is spent and held."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from budgets.assistants import assistant_names
from budgets.ledger import budget_named, way_out
from budgets.models import Budget, BudgetHold, BudgetRules, BudgetSpend
from budgets.money import dollars
from budgets.periods import period_start
from budgets.warnings import is_late
from tenancy.actors import Actor
from tenancy.models import ApiKey, User

_EACH = {
    "tenant": gettext_lazy("The whole workspace"),
    "member": gettext_lazy("Each member"),
    "key": gettext_lazy("Each API key"),
    "assistant": gettext_lazy("Each assistant"),
}


@dataclass(frozen=True, slots=True)
class BudgetShown:
    """One budget as it stands now.

    Attributes:
        whose: in words.
        spent_usd, held_usd: of the one who spent most, where it is that of each.
        by: who that is; "" where the budget is about one only.
        starts_at: of the present period; None before anything was spent in it.
    """

    row: Budget
    whose: str
    spent_usd: Decimal
    held_usd: Decimal
    by: str
    starts_at: datetime.datetime | None

    @property
    def percent(self) -> int:
        """Return the spent share, 0 to 100."""
        if not self.row.amount_usd:
            return 100
        return min(100, int(self.spent_usd * 100 / self.row.amount_usd))

    @property
    def state(self) -> str:
        """Return ``ok``, ``warned`` once so much is spent that people are told, or ``exceeded``."""
        if self.spent_usd >= self.row.amount_usd:
            return "exceeded"
        return "warned" if is_late(self.spent_usd, self.row.amount_usd) else "ok"

    @property
    def left_usd(self) -> Decimal:
        """Return what is not spent."""
        return max(Decimal(0), self.row.amount_usd - self.spent_usd)

    @property
    def amount(self) -> str:
        """Return the amount as people write it."""
        return dollars(self.row.amount_usd)

    @property
    def spent(self) -> str:
        """Return what is spent as people write it."""
        return dollars(self.spent_usd)

    @property
    def held(self) -> str:
        """Return what is held as people write it."""
        return dollars(self.held_usd)


def budget_list(*, actor: Actor, kind: str = "") -> list[BudgetShown]:
    """Return the budgets with what is spent, in a constant number of queries; those of jobs only when asked for.

    Raises:
        Denied: without the right ``audit.read``.
    """
    _read_require(actor)
    rows = Budget.objects.visible_to(actor)
    rows = rows.filter(kind=kind) if kind else rows.exclude(kind="job")
    return _shown(actor, list(rows.order_by("-kind", "subject_id", "period", "pk")))


def budget_get(*, actor: Actor, pk: int) -> BudgetShown | None:
    """Return one budget, None when it is not there. Raises Denied."""
    _read_require(actor)
    found = _shown(actor, list(Budget.objects.visible_to(actor).filter(pk=pk)))
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class BudgetNotice:
    """A budget of which 80 % or more is spent, in words for those whom it stops."""

    text: str
    is_over: bool


def budget_notices(*, actor: Actor, assistant_id: int | None = None) -> list[BudgetNotice]:
    """Return what to say about the budgets that the actor's questions count in, from 80 % on, those first that stop them; one query.

    The workspace's is told to all of its members: it stops each of them, and the refusal names it.

    Args:
        assistant_id: who answers, to tell of that assistant's budget as well.
    """
    mine = Q(budget__kind="tenant") | Q(budget__kind="member", subject_id=actor.user_id)
    if assistant_id is not None:
        mine |= Q(budget__kind="assistant", subject_id=assistant_id)
    now = timezone.now()
    present = Q(budget__period="total")
    for period in ("day", "month"):
        present |= Q(budget__period=period, starts_at=period_start(period, now))
    rows = BudgetSpend.objects.visible_to(actor).filter(mine, present).select_related("budget")
    # One that names somebody goes before that of each, as in the ledger.
    counted = {
        (row.budget.kind, row.budget.period): row
        for row in rows.order_by(F("budget__subject_id").asc(nulls_first=True), "pk")
    }
    notices = []
    for row in sorted(counted.values(), key=lambda row: row.pk):
        budget = row.budget
        if not is_late(row.spent_usd, budget.amount_usd):
            continue
        named = budget_named(budget.kind, budget.amount_usd, budget.period, row.starts_at)
        is_over = row.spent_usd >= budget.amount_usd
        if is_over:
            text = _("%(budget)s is used up.") % {"budget": named}
            text = " ".join([text, *way_out(budget.kind, budget.period, row.starts_at)])
        else:
            text = _("%(budget)s is %(percent)s spent.") % {
                "budget": named,
                "percent": f"{int(row.spent_usd * 100 / budget.amount_usd)}\u00a0%",
            }
        notices.append(BudgetNotice(text, is_over))
    return sorted(notices, key=lambda notice: not notice.is_over)


def budgets_named(*, actor: Actor, pks: Collection[int]) -> dict[int, str]:
    """Return in a phrase which budgets these are, of those that the actor manages or that are the actor's own."""
    mine = Q(kind="member", subject_id=actor.user_id) | Q(kind="member", subject_id=None)
    keys = ApiKey.objects.visible_to(actor).filter(user_id=actor.user_id or 0)
    mine |= Q(kind="key", subject_id=None) | Q(kind="key", subject_id__in=keys.values("pk"))
    rows = Budget.objects.visible_to(actor).filter(pk__in=pks).exclude(kind="job")
    if not actor.can("budget.manage"):
        rows = rows.filter(mine)
    found = list(rows)
    names = _names(actor, found, {})
    return {row.pk: _phrase(row, names, actor) for row in found}


def _phrase(row: Budget, names: Mapping[tuple[str, int], str], actor: Actor) -> str:
    if row.kind == "member" and row.subject_id in (None, actor.user_id):
        return budget_named(row.kind, row.amount_usd, row.period, None)
    whose = str(_EACH[row.kind]) if row.subject_id is None else names[row.kind, row.subject_id]
    facts = {"whose": whose, "amount": dollars(row.amount_usd), "period": row.get_period_display()}
    return _("%(whose)s: %(amount)s %(period)s") % facts


def refuses_unpriced(*, actor: Actor) -> bool:
    """Tell whether models without a known price are refused while a budget applies."""
    rules = BudgetRules.objects.visible_to(actor)
    return bool(rules.values_list("refuses_unpriced", flat=True).first())


def _read_require(actor: Actor) -> None:
    if not actor.can("budget.manage"):  # Who may set them may read them.
        actor.require("audit.read")


def _shown(actor: Actor, rows: list[Budget]) -> list[BudgetShown]:
    now = timezone.now()
    top: dict[int, BudgetSpend] = {}
    for spend in BudgetSpend.objects.visible_to(actor).filter(budget__in=rows).order_by("spent_usd"):
        top_of = next(row for row in rows if row.pk == spend.budget_id)
        if spend.starts_at == (period_start(top_of.period, now) or spend.starts_at):
            top[spend.budget_id] = spend
    held: dict[int, Decimal] = {}
    for hold in BudgetHold.objects.visible_to(actor).filter(expires_at__gt=now) if top else ():
        for pk in hold.spends:
            held[pk] = held.get(pk, Decimal(0)) + hold.amount_usd
    names = _names(actor, rows, top)
    shown = []
    for row in rows:
        now_spent = top.get(row.pk)
        is_each = row.kind != "tenant" and row.subject_id is None
        shown.append(
            BudgetShown(
                row,
                str(_EACH[row.kind]) if row.subject_id is None else names[row.kind, row.subject_id],
                Decimal(0) if now_spent is None else now_spent.spent_usd,
                Decimal(0) if now_spent is None else held.get(now_spent.pk, Decimal(0)),
                names[row.kind, now_spent.subject_id] if is_each and now_spent is not None else "",
                None if now_spent is None else now_spent.starts_at,
            )
        )
    return shown


def _names(actor: Actor, rows: list[Budget], top: dict[int, BudgetSpend]) -> dict[tuple[str, int], str]:
    """Return in words whom budgets are about."""
    wanted = {(row.kind, pk) for row in rows if row.kind != "tenant" for pk in _subjects(row, top)}
    people = {pk for kind, pk in wanted if kind == "member"}
    keys = {pk for kind, pk in wanted if kind == "key"}
    members = User.objects.filter(pk__in=people, memberships__tenant_id=actor.tenant_id)
    person = {user.pk: str(user) for user in members} if people else {}
    named = (
        dict(ApiKey.objects.visible_to(actor).filter(pk__in=keys).values_list("pk", "name")) if keys else {}
    )
    asked = {pk for kind, pk in wanted if kind == "assistant"}
    answering = dict(assistant_names(actor, asked)) if asked else {}
    found = {}
    for kind, pk in wanted:
        if kind == "member":
            found[kind, pk] = person.get(pk) or _("A former member")
        elif kind == "key":
            found[kind, pk] = _("The key “%(name)s”") % {"name": named.get(pk, pk)}
        elif kind == "assistant":
            found[kind, pk] = _("The assistant “%(name)s”") % {"name": answering.get(pk, pk)}
        else:
            found[kind, pk] = f"{kind.capitalize()} {pk}"
    return found


def _subjects(row: Budget, top: dict[int, BudgetSpend]) -> list[int]:
    spend = top.get(row.pk)
    return [pk for pk in (row.subject_id, spend and spend.subject_id) if pk]
