"""Reads of assistants: which there are, whom people can ask, what a version may search and call, what changed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.db.models import Max, Prefetch, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.conversations.assistants.options import OF_MODE, Options, VersionSpec, options_read
from apps.conversations.models import Assistant, AssistantCollection, AssistantHelper, AssistantVersion, Mode
from apps.tools.models import ToolkitMember
from apps.tools.toolset.model_calls import PROGRAM_TOOL
from apps.tools.toolset.selectors import collection_tools
from basics.errors import Missing
from tenancy.actors import Actor
from web import service_fields

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_KINDS = {" ": "same", "-": "removed", "+": "added"}
_VERSION = ("toolkit", "created_by")


def assistant_list(*, actor: Actor, archived: bool = False) -> QuerySet[Assistant]:
    """Return the workspace's assistants by name, with their published version and ``newest``, a version number."""
    actor.require("assistant.read")
    rows = Assistant.objects.visible_to(actor).filter(archived_at__isnull=not archived)
    rows = rows.select_related("published").order_by("name", "pk")
    return cast("QuerySet[Assistant]", rows.annotate(newest=Max("versions__number")))


def assistant_get(*, actor: Actor, pk: int) -> Assistant:
    """Return an assistant, archived or not. Raises Denied, Missing."""
    actor.require("assistant.read")
    found = Assistant.objects.visible_to(actor).select_related("published").filter(pk=pk).first()
    if found is None:
        raise Missing("assistant")
    return found


def assistant_shown(*, actor: Actor, pk: int) -> Assistant:
    """Return an assistant as ``assistant_list`` gives it. Raises Denied, Missing."""
    archived = assistant_get(actor=actor, pk=pk).archived_at is not None
    return assistant_list(actor=actor, archived=archived).get(pk=pk)


def assistant_names(actor: Actor, pks: Collection[int] | None) -> list[tuple[int, str]]:
    """Return (id, name) of assistants by name: of these, archived ones among them, or with None of all that are not."""
    rows = Assistant.objects.visible_to(actor)
    rows = rows.filter(archived_at=None) if pks is None else rows.filter(pk__in=pks)
    return list(rows.order_by("name", "pk").values_list("pk", "name"))


def assistant_choices(*, actor: Actor) -> QuerySet[Assistant]:
    """Return whom a conversation can be had with: published, not archived; by name, the published version with each."""
    actor.require("conversation.read")
    rows = Assistant.objects.visible_to(actor).filter(archived_at__isnull=True, published__isnull=False)
    return cast("QuerySet[Assistant]", rows.select_related("published").order_by("name", "pk"))


def assistant_models(*, actor: Actor) -> QuerySet[Assistant]:
    """Return ``assistant_choices`` for the list of models; none for a key that may not converse."""
    if not actor.can("conversation.read"):
        return Assistant.objects.none()
    return assistant_choices(actor=actor)


def slugs_taken(*, actor: Actor, slugs: Sequence[str]) -> frozenset[str]:
    """Return those of the slugs that assistants have, archived ones among them."""
    actor.require("assistant.read")
    rows = Assistant.objects.visible_to(actor).filter(slug__in=slugs)
    return frozenset(rows.values_list("slug", flat=True))


def assistant_named(*, actor: Actor, name: str) -> Assistant:
    """Return one of ``assistant_choices`` by its slug. Raises Missing."""
    found = assistant_choices(actor=actor).filter(slug=name).first()
    if found is None:
        raise Missing("assistant", "assistant_not_found")
    return found


def version_list(*, actor: Actor, assistant: Assistant) -> QuerySet[AssistantVersion]:
    """Return an assistant's versions, the newest first, with collections and helpers."""
    actor.require("assistant.read")
    rows = AssistantVersion.objects.visible_to(actor).filter(assistant=assistant)
    rows = rows.select_related(*_VERSION).prefetch_related(*_around(actor)).order_by("-number")
    return cast("QuerySet[AssistantVersion]", rows)


def version_get(*, actor: Actor, assistant: Assistant, number: int) -> AssistantVersion:
    """Return one version by its number. Raises Denied, Missing."""
    found = version_list(actor=actor, assistant=assistant).filter(number=number).first()
    if found is None:
        raise Missing("version")
    return found


def version_options(version: AssistantVersion) -> Options:
    """Return the options of a version's mode."""
    return options_read(version.mode, version.options)


def version_spec(version: AssistantVersion) -> VersionSpec:
    """Return what a version is made of, so that the next can be made from it."""
    return VersionSpec(
        mode=version.mode,
        model=version.model,
        prompt=version.prompt,
        collections=None if version.searches_all else [s.collection_id for s in version.scope.all()],
        toolkit=version.toolkit_id,
        has_toolkit=version.has_toolkit,
        output=version.output,
        output_name=version.output_name,
        output_schema=version.output_schema,
        options=version.options,
        starters=version.starters,
        helpers=[h.assistant_id for h in version.helpers.all()],
    )


def version_collections(version: AssistantVersion) -> frozenset[int] | None:
    """Return the ids of the collections that a version searches; None for all that the person may read."""
    if version.searches_all:
        return None
    rows = AssistantCollection.objects.filter(tenant_id=version.tenant_id, version=version)
    return frozenset(rows.values_list("collection_id", flat=True))


def version_tools(version: AssistantVersion, collections: Iterable[int]) -> frozenset[str] | None:
    """Return the names of the only tools that a version may use; None for all that the person can use.

    They are those of its toolkit, and of the toolkits that the collections bring along. A toolkit that was deleted, or
    none at all, leaves none. The mode "code" keeps the tool by which programs are run; what they call stays within.

    Args:
        collections: ids of those that are searched.
    """
    if not version.has_toolkit:
        return None
    members = ToolkitMember.objects.filter(tenant_id=version.tenant_id, toolkit_id=version.toolkit_id or 0)
    names = frozenset(members.values_list("tool_name", flat=True))
    if names:
        names |= collection_tools(tenant_id=version.tenant_id, collections=collections)
    return names | {PROGRAM_TOOL} if names and version.mode == Mode.CODE else names


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a longer text; ``kind`` is same, removed, added, or gap where lines are left out."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One thing in which two versions differ: in a few words each, or line by line."""

    label: str
    before: str = ""
    after: str = ""
    lines: tuple[ChangedLine, ...] = ()


def version_changes(before: AssistantVersion, after: AssistantVersion) -> list[VersionChange]:
    """Return in what two versions of ``version_list`` differ, in the order of the form."""
    old, new = version_told(before), version_told(after)
    changes = [
        VersionChange(label, old.get(label, ""), new.get(label, ""))
        for label in {**old, **new}
        if old.get(label, "") != new.get(label, "")
    ]
    for label, one, two in (
        (_("Instructions"), before.prompt, after.prompt),
        (_("Schema"), _json(before.output_schema), _json(after.output_schema)),
        (_("Starters"), "\n".join(before.starters), "\n".join(after.starters)),
    ):
        if one != two:
            changes.append(VersionChange(label, lines=_lines(one, two)))
    return changes


def version_told(version: AssistantVersion) -> dict[str, str]:
    """Return the short facts of a version of ``version_list`` in words, the options of its mode among them."""
    options = version_options(version)
    helpers = sorted(h.assistant.name for h in version.helpers.all())
    tools = _("all that the person can use")
    if version.has_toolkit:
        tools = version.toolkit.name if version.toolkit else _("none")
    return {
        _("Mode"): version.mode,
        _("Model"): version.model or _("the workspace's default"),
        _("Collections"): collections_told(version),
        _("Tools"): tools,
        _("Other assistants"): ", ".join(helpers) or _("none"),
        _("Answer"): version.output_name or version.output,
        **{
            str(label): _json(getattr(options, name))
            for name, label in OPTION_LABELS.items()
            if name in OF_MODE[version.mode]
        },
    }


def collections_told(version: AssistantVersion) -> str:
    """Return the names of a version's collections that whoever read it may see, or that it searches all or none."""
    if version.searches_all:
        return _("all, including future ones")
    return ", ".join(sorted(s.collection.name for s in version.scope.all())) or _("none")


OPTION_LABELS: Mapping[str, StrOrPromise] = {
    "top_k": gettext_lazy("Passages"),
    "neighbours": gettext_lazy("Passages around each"),
    "document_types": gettext_lazy("Document types"),
    "filters": gettext_lazy("Filters"),
    "max_steps": gettext_lazy("Maximum steps"),
    "max_replans": gettext_lazy("Maximum new plans"),
    "max_tool_calls": gettext_lazy("Maximum tool calls"),
    "memory_turns": gettext_lazy("Earlier questions shown"),
    "temperature": gettext_lazy("Temperature"),
    "effort": gettext_lazy("Effort"),
    **service_fields.LABELS,
}
"""What people call the options."""


def _around(actor: Actor) -> Iterable[Any]:
    scope = AssistantCollection.objects.visible_to(actor).select_related("collection")
    helpers = AssistantHelper.objects.visible_to(actor).select_related("assistant")
    return (
        Prefetch("scope", queryset=scope.order_by("pk")),
        Prefetch("helpers", queryset=helpers.order_by("pk")),
    )


def _lines(one: str, two: str) -> tuple[ChangedLine, ...]:
    """Return a line diff with three lines of surroundings; a gap stands between its stretches."""
    found: Sequence[str] = list(difflib.unified_diff(one.splitlines(), two.splitlines(), lineterm=""))[3:]
    return tuple(
        ChangedLine("gap", "") if line.startswith("@@") else ChangedLine(_KINDS[line[0]], line[1:])
        for line in found
    )


def _json(value: Any) -> str:
    if value is None or value in ("", (), {}):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, tuple):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict) else None)
