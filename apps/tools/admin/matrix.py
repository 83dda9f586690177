"""The page of permissions as a matrix: tools by callers, each cell with its effect and the rule that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from apps.collections.models import Collection
from apps.tools.catalog.selectors import catalog_bundles
from apps.tools.models import ToolEntry
from apps.tools.permissions.cells import cell_set
from apps.tools.permissions.matrix import permission_matrix
from apps.tools.permissions.subjects import Subjects, subject_columns, subject_parse
from apps.tools.policy.engine import ToolFacts
from apps.tools.policy.sentences import grant_sentence
from apps.tools.toolset.selectors import grant_list
from basics.errors import DomainError, Invalid
from tenancy.actors import Actor
from tenancy.admin_scope import admin_actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

if TYPE_CHECKING:
    from apps.tools.admin.base import ServiceAdmin

ROWS_PER_PAGE = 60
MAX_CELLS = 500
_SHOWN = ("subject", "collection", "group", "q", "page", "tenant", "row", "column")


def matrix_page(page: ServiceAdmin, request: HttpRequest, tenant: Tenant, subjects: Subjects) -> HttpResponse:
    """Return the page; POST sets the effect of the chosen rows for the chosen columns."""
    actor = admin_actor(request, tenant.pk)
    shown = {key: request.GET.get(key, "").strip()[:200] for key in _SHOWN}
    address = f"{reverse('admin:tools_matrix')}?{urlencode({k: v for k, v in shown.items() if v and k not in ('row', 'column')})}"
    with tenant_scope(tenant.pk):
        try:
            if request.method == "POST":
                _set(page, request, tenant, actor, shown)
                return HttpResponseRedirect(address)
            context = _context(actor, shown, subjects)
        except DomainError as error:
            page.message_user(request, error.message, messages.ERROR)
            back = (
                address if request.method == "POST" else f"{reverse('admin:tools_matrix')}?tenant={tenant.pk}"
            )
            return HttpResponseRedirect(back)
    return page.own_page(
        request,
        "admin/tools/matrix.html",
        "Permissions",
        workspace=tenant,
        shown=shown,
        subjects=subjects,
        address=address,
        **context,
    )


def _set(
    page: ServiceAdmin, request: HttpRequest, tenant: Tenant, actor: Actor, shown: dict[str, str]
) -> None:
    rows, columns = request.POST.getlist("row"), request.POST.getlist("column")
    effect = request.POST.get("effect", "")
    if effect not in ("allow", "ask", "deny", "clear"):
        raise Invalid("invalid", "Choose an effect for the cells.")
    if not rows or not columns:
        raise Invalid("invalid", "Choose at least one tool or group, and at least one column.")
    if len(rows) * len(columns) > MAX_CELLS:
        raise Invalid("invalid", f"Set at most {MAX_CELLS} cells at once.")
    facts, groups = _catalog(actor)
    known = {*(f"tool|{tool.name}" for tool in facts), *(f"group|{name}" for name in groups)}
    if unknown := [row for row in rows if row not in known]:
        raise Invalid("invalid", f"There is no “{unknown[0][:80]}” in the catalog. Reload the page.")
    changed = 0
    with transaction.atomic():
        for row in rows:
            kind, _, target = row.partition("|")
            for column in columns:
                subject_kind, subject = subject_parse(column)
                done = cell_set(
                    tenant=tenant,
                    actor=actor,
                    target_kind=kind,
                    target=target,
                    subject_kind=subject_kind,
                    subject=subject,
                    collection=_id(shown["collection"]),
                    effect="" if effect == "clear" else effect,
                )
                changed += bool(done.added or done.removed)
    cells = len(rows) * len(columns)
    page.message_user(
        request, f"{changed} of {cells} cell{'s' if cells > 1 else ''} changed.", messages.SUCCESS
    )


def _catalog(actor: Actor) -> tuple[list[ToolFacts], dict[str, list[ToolFacts]]]:
    """Return the tools of a workspace, and those of each group with the groups below it."""
    facts = [b.facts(t) for b in catalog_bundles(actor=actor) for t in b.tools()]
    groups: dict[str, list[ToolFacts]] = {}
    for tool in facts:
        group = tool.group
        while group:
            groups.setdefault(group, []).append(tool)
            group = group.rpartition(".")[0]
    return facts, groups


def _context(actor: Actor, shown: dict[str, str], subjects: Subjects) -> dict[str, Any]:
    facts, groups = _catalog(actor)
    word, within = shown["q"].casefold(), shown["group"]
    found = [t for t in groups.get(within, facts) if word in t.name.casefold()]
    pages = Paginator(sorted(found, key=lambda t: (t.group, t.name)), ROWS_PER_PAGE)
    listed = pages.get_page(shown["page"])
    collection = _id(shown["collection"])
    chosen = {within: groups[within]} if within in groups else dict(sorted(groups.items()))
    matrix = permission_matrix(
        actor=actor,
        groups={} if word or listed.number > 1 else chosen,
        tools=list(listed.object_list),
        columns=subject_columns(actor=actor, value=shown["subject"], subjects=subjects),
        collection=collection,
    )
    off = set(ToolEntry.objects.visible_to(actor).filter(is_enabled=False).values_list("name", flat=True))
    columns = [(c, f"{c.kind}:{c.subject}") for c in matrix.columns]
    rows = [
        {
            "row": row,
            "at": f"{row.kind}|{row.target}",
            "facts": row.tools[0],
            "is_off": row.kind == "tool" and row.target in off,
            "cells": [
                {
                    "cell": cell,
                    "column": value,
                    "label": column.label,
                    "says": grant_sentence(cell.rule, subjects.names) if cell.rule else "",
                }
                for cell, (column, value) in zip(row.cells, columns, strict=True)
            ],
        }
        for row in matrix.rows
    ]
    collections = Collection.objects.visible_to(actor).order_by("name").values_list("pk", "name")
    return {
        "rows": rows,
        "columns": columns,
        "groups": sorted(groups),
        "collections": list(collections),
        "page_obj": listed,
        "total": len(found),
        "open": _open(actor, rows, shown, subjects),
    }


def _open(
    actor: Actor, rows: list[dict[str, Any]], shown: dict[str, str], subjects: Subjects
) -> dict[str, Any] | None:
    """Return the cell that is open to be edited, with every rule that is about exactly its row."""
    row = next((r for r in rows if r["at"] == shown["row"]), None)
    cell = next((c for c in row["cells"] if c["column"] == shown["column"]), None) if row else None
    if row is None or cell is None:
        return None
    about = grant_list(actor=actor).filter(target_kind=row["row"].kind, target=row["row"].target)
    rules = [(rule, grant_sentence(rule, subjects.names)) for rule in about[:50]]
    return {**cell, "row": row["row"], "at": row["at"], "rules": rules}


def _id(value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise Invalid("invalid", "Identify the collection by its id.")
    return int(value)
