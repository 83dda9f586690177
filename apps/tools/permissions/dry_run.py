"""The dry run: what a member, a key or a role can see and do, and why; and a call tried without running it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from apps.collections.models import Collection, Document
from apps.tools.catalog.selectors import Listed, catalog_get, catalog_read
from apps.tools.models import ToolGrant
from apps.tools.permissions.subjects import subject_actor, subjects_read
from apps.tools.policy.engine import Decision
from apps.tools.policy.sentences import Names, grant_sentence
from apps.tools.toolset.direct_calls import offer_guard
from tenancy.actors import Actor
from tenancy.models import ApiKey
from toolloop.tools.validation import problems_find


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """A collection as one subject sees it.

    Attributes:
        documents: current ones that the subject can read.
        limited: current ones that are limited to others, so that neither search nor chat shows them to the subject;
            None unless the one who asks manages tools, since they are not there for anybody else.
    """

    id: int
    name: str
    documents: int
    limited: int | None


@dataclass(frozen=True, slots=True)
class Access:
    """What a subject can see and do at this moment.

    Attributes:
        subject: whom it is about.
        collections: those it can read, by name.
        tools: all tools of the workspace, with what becomes of the subject's calls.
        rules: the deciding grants in words, by id.
        keys: usable API keys that act for the same person.
    """

    subject: Actor
    collections: Sequence[CollectionAccess]
    tools: Sequence[Listed]
    rules: Mapping[int, str]
    keys: Sequence[ApiKey]


@dataclass(frozen=True, slots=True)
class Tried:
    """A call held against the policy without running it.

    Attributes:
        decision: what would become of it.
        problems: why the arguments do not fit the tool's schema; such a call never reaches the policy.
        rule: the deciding grant in words, "" where none decided.
    """

    tool: Listed
    decision: Decision
    problems: Sequence[str]
    rule: str


def access_explain(*, actor: Actor, subject: str = "") -> Access:
    """Return what a subject can see and do, and why; a constant number of queries.

    Args:
        actor: who asks.
        subject: ``role:…``, ``member:<user id>`` or ``api_key:<id>``; "" for oneself.

    Raises:
        Denied: about others without the right ``tool.manage``.
        Invalid, Missing: no such subject.
    """
    about = subject_actor(actor=actor, value=subject)
    tools = catalog_read(actor=about) if about.can("tool.run") else []
    rules = {t.decision.rule for t in tools if t.decision.rule is not None}
    return Access(about, _collections(actor, about), tools, rule_words(actor, rules), _keys(about))


def call_try(
    *,
    actor: Actor,
    tool: str,
    arguments: Mapping[str, Any],
    collections: Sequence[int] | None = None,
    subject: str = "",
) -> Tried:
    """Hold a call against the policy as it would be held when it ran; nothing runs and nobody is asked.

    Args:
        actor: who asks.
        tool: its name.
        collections: ids of the collections the call is about; None for all that the subject may read.
        subject: who would call, as in ``access_explain``.

    Raises:
        Denied: about others without ``tool.manage``, or the subject may run no tools at all.
        Invalid, Missing: no such subject, tool or collection.
    """
    about = subject_actor(actor=actor, value=subject)
    listed = catalog_get(actor=about, name=tool)
    guard = offer_guard(actor=about, collections=collections)
    problems = problems_find(dict(arguments), listed.tool.parameters)
    decision = guard.decision(listed.tool, listed.bundle, arguments)
    words = rule_words(actor, [decision.rule] if decision.rule is not None else [])
    return Tried(listed, decision, problems, words.get(decision.rule or 0, ""))


def rule_words(actor: Actor, ids: Iterable[int]) -> dict[int, str]:
    """Return grants of the workspace as sentences, by id; names of others only for those who manage tools."""
    rows = ToolGrant.objects.visible_to(actor).filter(pk__in=list(ids))
    grants = list(rows.select_related("toolkit", "collection"))
    names = subjects_read(actor=actor).names if actor.can("tool.manage") else Names()
    return {grant.pk: grant_sentence(grant, names) for grant in grants}


def _collections(actor: Actor, about: Actor) -> list[CollectionAccess]:
    if not about.can("collection.read"):
        return []
    current = Document.objects.current()
    seen = dict(_counted(current.visible_to(about)))
    # Past ``visible_to`` on purpose: their number and nothing else, for those who look after permissions.
    there = dict(_counted(current.filter(tenant_id=actor.tenant_id)))
    is_manager = actor.can("tool.manage")
    rows = Collection.objects.visible_to(about).order_by("name").values_list("pk", "name")
    return [
        CollectionAccess(
            pk, name, seen.get(pk, 0), there.get(pk, 0) - seen.get(pk, 0) if is_manager else None
        )
        for pk, name in rows
    ]


def _counted(rows: Any) -> Any:
    return rows.order_by().values_list("collection_id").annotate(Count("pk"))


def _keys(about: Actor) -> list[ApiKey]:
    """Return the usable keys that act for the subject's person, or the key itself."""
    rows = ApiKey.objects.visible_to(about).filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None
    )
    if about.api_key_id is not None:
        return list(rows.filter(pk=about.api_key_id))
    if about.user_id is None:
        return []
    return list(rows.filter(user_id=about.user_id).order_by("name", "pk"))
