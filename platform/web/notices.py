"""What people are told of budgets."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from budgets.selectors import budgets_named
from notices.sources import Thing, notice_source
from tenancy.actors import Actor
from tenancy.models import Tenant


@notice_source(
    "budget",
    group="budget",
    texts={
        # xgettext:no-python-format
        "warned": gettext_lazy("Budget 80 % spent"),
        "exceeded": gettext_lazy("Budget used up"),
    },
    good=(),
)
def budgets(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return budgets that the actor manages or that are the actor's, in words."""
    view = "web:settings-budgets" if actor.can("budget.manage") else "usage:page"
    url = reverse(view, args=[tenant.slug])
    return {pk: Thing(name, url) for pk, name in budgets_named(actor=actor, pks=pks).items()}
