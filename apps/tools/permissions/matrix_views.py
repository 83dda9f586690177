"""The permission matrix: see what becomes of everybody's calls, change a cell by one click, take the change back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core import signing
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_GET, require_POST

from apps.collections.models import Collection
from apps.tools.catalog.selectors import Choice, Listed, catalog_narrow, catalog_read
from apps.tools.permissions.cells import cell_set
from apps.tools.permissions.matrix import MatrixRow, permission_matrix
from apps.tools.permissions.services import GrantsChange, grants_change
from apps.tools.permissions.subjects import subject_columns, subjects_read
from apps.tools.policy.engine import ToolFacts
from apps.tools.policy.sentences import grant_sentence
from basics.errors import Invalid
from basics.texts import gettext as _
from web.requests import TenantRequest, allowed

ROWS_PER_PAGE = 25
ALL_AT_ONCE = 40  # Tools that are listed without a group having been opened.
_UNDO_SECONDS = 3600
_SHOWN = ("q", "group", "subject", "collection", "page")


@require_GET
@allowed("tool.manage")
def permissions(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the matrix, narrowed as the address says; the matrix alone for htmx."""
    name = "tools/_matrix.html" if request.htmx else "tools/permissions.html"
    return render(request, name, _context(request, _shown(request.GET)))


@require_POST
@allowed("tool.manage")
def permission_set(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Change one cell; answers htmx with the matrix and a way back."""
    shown = _shown(request.POST)
    parts = request.POST.get("cell", "").split("|")
    if len(parts) != 5:
        raise Invalid("invalid", _("Choose allow, ask or deny in one cell of the matrix."))
    target_kind, target, subject_kind, subject, effect = parts
    change = cell_set(
        tenant=request.tenant,
        actor=request.actor,
        target_kind=target_kind,
        target=target,
        subject_kind=subject_kind,
        subject=subject,
        collection=_id(shown["collection"]),
        effect=effect,
    )
    undo = undo_token(request, change)
    if request.htmx:
        context = _context(request, shown)
        cell = _cell_of(context["matrix"], target_kind, target, subject_kind, subject)
        context |= {"undo": undo, "changed": cell, "stated": effect, "target": target}
        return render(request, "tools/_matrix.html", context)
    told = {
        "allow": _("%(target)s: allow."),
        "ask": _("%(target)s: ask."),
        "deny": _("%(target)s: deny."),
        "": _("%(target)s: left to the other rules."),
    }
    messages.success(request, told[effect] % {"target": target})
    return redirect(_address(tenant_slug, shown))


@require_POST
@allowed("tool.manage")
def permission_undo(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Take a change of grants back, as the token that came with it says."""
    salt = _salt(request)
    try:
        change = signing.loads(request.POST.get("undo", ""), salt=salt, max_age=_UNDO_SECONDS)
    except signing.BadSignature as error:
        raise Invalid(
            "undo_gone", _("This change can no longer be undone. Edit the rules instead.")
        ) from error
    grants_change(
        tenant=request.tenant,
        actor=request.actor,
        remove=change["remove"],
        add=[terms | {"expires_at": parse_datetime(terms["expires_at"] or "")} for terms in change["add"]],
    )
    shown = _shown(request.POST)
    if request.htmx:
        return render(request, "tools/_matrix.html", _context(request, shown) | {"is_undone": True})
    messages.success(request, _("The change has been undone."))
    if request.POST.get("back") == "grants":
        return redirect("tools:grants", tenant_slug)
    return redirect(_address(tenant_slug, shown))


def undo_token(request: TenantRequest, change: GrantsChange) -> str:
    """Return what takes a change back within an hour, for a form of this workspace; "" when nothing changed."""
    if not change.removed and not change.added:
        return ""
    add = [
        terms | {"expires_at": terms["expires_at"] and terms["expires_at"].isoformat()}
        for terms in change.removed
    ]
    remove = [row.pk for row in change.added]
    return signing.dumps({"remove": remove, "add": add}, salt=_salt(request), compress=True)


def _salt(request: TenantRequest) -> str:
    return f"tools.undo:{request.tenant.pk}"


def _shown(values: Any) -> dict[str, str]:
    return {key: str(values.get(key, "")).replace("\0", "").strip()[:120] for key in _SHOWN}


def _address(tenant_slug: str, shown: dict[str, str]) -> str:
    query = urlencode({k: v for k, v in shown.items() if v})
    return reverse("tools:permissions", args=[tenant_slug]) + (f"?{query}" if query else "")


def _id(value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise Invalid("invalid", _("Identify the collection by its id."))
    return int(value)


def _context(request: TenantRequest, shown: dict[str, str]) -> dict[str, Any]:
    actor = request.actor
    listed = catalog_read(actor=actor)
    groups: dict[str, list[ToolFacts]] = {}
    for tool in listed:
        facts, group = tool.facts, tool.group
        while group:
            groups.setdefault(group, []).append(facts)
            group = group.rpartition(".")[0]
    chosen = _rows(listed, shown)
    page = Paginator(chosen, ROWS_PER_PAGE if len(listed) > ALL_AT_ONCE else ALL_AT_ONCE).get_page(
        shown["page"]
    )
    subjects = subjects_read(actor=actor)
    matrix = permission_matrix(
        actor=actor,
        groups={} if shown["q"] else dict(sorted(groups.items())),
        tools=[tool.facts for tool in page.object_list],
        columns=subject_columns(actor=actor, value=shown["subject"], subjects=subjects),
        collection=_id(shown["collection"]),
    )
    titles = {tool.name: tool for tool in page.object_list}
    rows = [
        {
            "row": row,
            "tool": titles.get(row.target) if row.kind == "tool" else None,
            "depth": row.target.count("."),
            "is_inner": row.kind == "tool" and "." in row.tools[0].group,
            "cells": [
                {
                    "cell": cell,
                    "at": f"{row.kind}|{row.target}|{cell.column.kind}|{cell.column.subject}|",
                    "rule": grant_sentence(cell.rule, subjects.names) if cell.rule else "",
                }
                for cell in row.cells
            ],
        }
        for row in sorted(matrix.rows, key=_place)
    ]
    return {
        "tab": "permissions",
        "part": "matrix",
        "matrix": matrix,
        "rows": rows,
        "subjects": subjects,
        "collections": list(Collection.objects.visible_to(actor).order_by("name").values_list("pk", "name")),
        "shown": shown,
        "kept": urlencode({k: shown[k] for k in ("subject", "collection") if shown[k]}),
        "page_obj": page,
        "query": urlencode({k: v for k, v in shown.items() if v and k != "page"}),
        "is_folded": len(listed) > ALL_AT_ONCE,
    }


def _rows(listed: list[Listed], shown: dict[str, str]) -> list[Listed]:
    """Return the tools that get rows: those found, those of the open group, or all of a small catalog."""
    if shown["q"]:
        return catalog_narrow(listed, Choice(q=shown["q"]))
    if group := shown["group"]:
        return [t for t in listed if t.group == group or t.group.startswith(f"{group}.")]
    return listed if len(listed) <= ALL_AT_ONCE else []


def _place(row: MatrixRow) -> tuple[list[str], str]:
    """Return where a row stands: a group before its tools, these before the groups below it."""
    if row.kind == "group":
        return row.target.split("."), ""
    return row.tools[0].group.split("."), row.target


def _cell_of(matrix: Any, kind: str, target: str, subject_kind: str, subject: str) -> Any:
    at = next(
        (i for i, c in enumerate(matrix.columns) if (c.kind, c.subject) == (subject_kind, subject)), None
    )
    row = next((r for r in matrix.rows if (r.kind, r.target) == (kind, target)), None)
    return None if row is None or at is None else row.cells[at]
