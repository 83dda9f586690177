"""Pages of a collection's files: browse, read, edit, and the history with its differences."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.display import selectors
from apps.collections.display.page_parts import section
from apps.collections.files import history as file_history
from apps.collections.files import selectors as file_selectors
from apps.collections.files import services
from apps.collections.files import text_rows as file_rows
from apps.collections.files import undo as files_undo
from apps.collections.models import Collection, FileBatch
from apps.collections.tree import repository_facts
from apps.collections.tree.rules import FileRules
from apps.collections.tree.text import file_text
from basics.errors import DomainError, Missing
from web.requests import TenantRequest, allowed

ENTRIES_PER_PAGE = 200
CHANGES_PER_PAGE = 25
LINES_PER_PAGE = 1000
MAX_EDITED = 500_000


def files_context(request: TenantRequest, collection: Collection) -> dict[str, Any]:
    """Return what every page of a collection's files shows."""
    rules = FileRules.of(collection.file_rules)
    return section(request, collection, "files") | {
        "can_change": request.actor.can("document.write") and not rules.read_only,
        "rules": rules,
    }


def crumbs_of(path: str) -> list[dict[str, str]]:
    """Return the folders on the way to a path, each with its own path."""
    parts = path.split("/") if path else []
    return [{"name": name, "path": "/".join(parts[: depth + 1])} for depth, name in enumerate(parts)]


def _number(request: TenantRequest, name: str) -> int:
    value = request.GET.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 1


@require_GET
@allowed("collection.read")
def files(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a folder."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    page = max(1, _number(request, "page"))
    listing = file_selectors.file_list(
        actor=request.actor,
        collection=collection,
        folder=request.GET.get("folder", ""),
        offset=(page - 1) * ENTRIES_PER_PAGE,
        limit=ENTRIES_PER_PAGE,
    )
    context = files_context(request, collection) | {
        "listing": listing,
        "crumbs": crumbs_of(listing.folder),
        "page_obj": Paginator(range(listing.total), ENTRIES_PER_PAGE).get_page(page),
        "query": urlencode({"folder": listing.folder}) if listing.folder else "",
    }
    return render(request, "collections/files.html", context)


@require_GET
@allowed("collection.read")
def file(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a file with line numbers."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    page = max(1, _number(request, "page"))
    start = (page - 1) * LINES_PER_PAGE + 1
    shown = file_selectors.file_read(
        actor=request.actor,
        collection=collection,
        path=request.GET.get("path", ""),
        start=start,
        end=start + LINES_PER_PAGE - 1,
    )
    context = files_context(request, collection) | {
        "file": shown,
        "crumbs": crumbs_of(shown.path),
        "code": file_rows.highlighted("\n".join(shown.lines), shown.path),
        "numbers": "\n".join(str(shown.start + index) for index in range(len(shown.lines))),
        "page_obj": Paginator(range(shown.total_lines), LINES_PER_PAGE).get_page(page),
        "query": urlencode({"path": shown.path}),
        "has_git": repository_facts.has_repository(actor=request.actor, collection=collection),
    }
    return render(request, "collections/file.html", context)


@require_http_methods(["GET", "POST"])
@allowed("document.write")
def edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Edit a file, or write a new one when no path is given."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    if request.method == "POST":
        return _save(request, tenant_slug, collection)
    path = request.GET.get("path", "")
    values = {"path": request.GET.get("folder", ""), "content": "", "expected": "", "is_new": True}
    if values["path"]:
        values["path"] = f"{str(values['path']).rstrip('/')}/"
    if path:
        stored, content = file_selectors.file_content(actor=request.actor, collection=collection, path=path)
        text = file_text(content)
        if text is None or stored.size > MAX_EDITED:
            messages.error(request, _("Only text of up to 500 kB can be edited here."))
            return _to_file(tenant_slug, collection, path)
        values = {"path": path, "content": text.text, "expected": stored.sha256, "is_new": False}
    return _form(request, collection, values)


def _form(
    request: TenantRequest, collection: Collection, values: dict[str, Any], error: str = ""
) -> HttpResponse:
    context = files_context(request, collection) | {"values": values, "error": error}
    return render(request, "collections/file_edit.html", context, status=422 if error else 200)


def _save(request: TenantRequest, tenant_slug: str, collection: Collection) -> HttpResponse:
    values: dict[str, Any] = {
        name: request.POST.get(name, "") for name in ("path", "content", "expected", "note")
    }
    values["is_new"] = not values["expected"]
    try:
        batch = services.file_write(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            path=values["path"],
            content=values["content"],
            expected=values["expected"],
            note=values["note"],
        )
    except DomainError as error:
        return _form(request, collection, values, error.message)
    messages.success(
        request, _("Saved. Search is updated in a moment.") if batch else _("Nothing has changed.")
    )
    return _to_file(tenant_slug, collection, values["path"])


def _to_file(tenant_slug: str, collection: Collection, path: str) -> HttpResponse:
    address = reverse("collections:file", args=[tenant_slug, collection.pk])
    return redirect(f"{address}?{urlencode({'path': path})}")


@require_POST
@allowed("document.write")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a file."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    path = request.POST.get("path", "")
    try:
        services.file_delete(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            path=path,
            expected=request.POST.get("expected") or None,
        )
    except Missing:
        raise
    except DomainError as error:
        messages.error(request, error.message)
        return _to_file(tenant_slug, collection, path)
    messages.success(
        request, _("“%(path)s” is deleted. You can restore it from the history.") % {"path": path}
    )
    return redirect("collections:file-history", tenant_slug, pk)


@require_GET
@allowed("collection.read")
def history(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the changes of all files, or of one."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    path = request.GET.get("path", "").replace("\0", "")
    rows = file_history.batch_list(actor=request.actor, collection=collection, path=path)
    page = Paginator(rows, CHANGES_PER_PAGE).get_page(request.GET.get("page"))
    batches: list[Any] = list(page.object_list)
    shown = file_history.revision_list(actor=request.actor, collection=collection, batches=batches)
    for batch in batches:
        batch.shown = [row for row in shown if row.batch_id == batch.pk]
        batch.hidden_count = batch.file_count - len(batch.shown)
        batch.is_turn = batch.action in (FileBatch.Action.UNDO, FileBatch.Action.REDO)
    context = files_context(request, collection) | {
        "batches": batches,
        "page_obj": page,
        "path": path,
        "query": urlencode({"path": path}) if path else "",
    }
    return render(request, "collections/file_history.html", context)


@require_GET
@allowed("collection.read")
def revision(request: TenantRequest, tenant_slug: str, pk: int, revision: int) -> HttpResponse:
    """Show what one revision changed, side by side."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    row = file_history.revision_get(actor=request.actor, collection=collection, pk=revision)
    before, after = file_history.blob_text(row.before), file_history.blob_text(row.after)
    context = files_context(request, collection) | {
        "revision": row,
        "batch": row.batch,
        "diff": file_rows.diff_rows(before, after) if before and after else None,
    }
    return render(request, "collections/file_revision.html", context)


@require_POST
@allowed("document.write")
def undo(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Take a change back."""
    return _turn(request, tenant_slug, pk, files_undo.batch_undo, _("The change was undone."))


@require_POST
@allowed("document.write")
def redo(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Make a change again."""
    return _turn(request, tenant_slug, pk, files_undo.batch_redo, _("The change was redone."))


def _turn(request: TenantRequest, tenant_slug: str, pk: int, service: Any, said: str) -> HttpResponse:
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    wanted, batch = request.POST.get("change", ""), None
    if wanted:
        if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 19):
            raise Missing("change")
        batch = file_history.batch_get(actor=request.actor, collection=collection, pk=int(wanted))
    return _done(
        request,
        tenant_slug,
        pk,
        said,
        lambda: service(tenant=request.tenant, actor=request.actor, collection=collection, batch=batch),
    )


@require_POST
@allowed("document.write")
def restore(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Give a file the content it had after a revision."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    wanted = request.POST.get("revision", "")
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 19):
        raise Missing("revision")
    row = file_history.revision_get(actor=request.actor, collection=collection, pk=int(wanted))
    return _done(
        request,
        tenant_slug,
        pk,
        _("“%(path)s” is restored.") % {"path": row.path},
        lambda: files_undo.revision_restore(
            tenant=request.tenant, actor=request.actor, collection=collection, revision=row
        ),
    )


def _done(request: TenantRequest, tenant_slug: str, pk: int, said: str, act: Any) -> HttpResponse:
    try:
        act()
    except Missing:
        raise
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect("collections:file-history", tenant_slug, pk)
