"""Pages about a collection's files as a whole: search in them, their structure, and the rules for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from apps.collections.display import selectors
from apps.collections.display.page_parts import section
from apps.collections.files import search as file_search
from apps.collections.files import selectors as file_selectors
from apps.collections.files import services
from apps.collections.files.forms import FileRulesForm
from apps.collections.files.views import crumbs_of, files_context
from apps.collections.models import Collection
from apps.collections.tree.rules import FileRules
from basics.errors import Invalid
from web.requests import TenantRequest, allowed

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

DEPTH = 4
ENTRIES_PER_FOLDER = 100
KINDS: tuple[tuple[file_search.Kind, str | _StrPromise], ...] = (
    ("text", pgettext_lazy("kind of search", "Text")),
    ("regex", gettext_lazy("Regular expression")),
    ("name", gettext_lazy("File names")),
)


@require_GET
@allowed("collection.read")
def search(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the lines, or the files, that match a query."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    kind = next((one for one, _label in KINDS if one == request.GET.get("kind")), KINDS[0][0])
    asked = {n: request.GET.get(n, "").replace("\0", "") for n in ("q", "folder", "names")}
    asked["kind"] = kind
    context: dict[str, Any] = {"asked": asked, "kinds": KINDS}
    status = 200
    if asked["q"]:
        try:
            found = file_search.search_files(
                actor=request.actor,
                collection=collection,
                query=asked["q"],
                kind=kind,
                folder=asked["folder"],
                names=asked["names"],
                offset=number_of(request, "offset"),
            )
        except Invalid as error:
            status, context["refused"] = error.status, error.message
        else:
            more = {**asked, "offset": found.next_offset}
            context |= {"found": found, "groups": _by_path(found.matches)}
            context["more"] = urlencode(more) if found.next_offset is not None else ""
    context |= files_context(request, collection)
    return render(request, "collections/files_search.html", context, status=status)


def _by_path(matches: list[file_search.FileMatch]) -> list[tuple[str, list[file_search.FileMatch]]]:
    groups: dict[str, list[file_search.FileMatch]] = {}
    for match in matches:
        groups.setdefault(match.path, []).append(match)
    return list(groups.items())


@require_GET
@allowed("collection.read")
def structure(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the tree of folders and files with sizes and languages."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    folder = request.GET.get("folder", "")
    root = file_selectors.project_structure(
        actor=request.actor, collection=collection, folder=folder, depth=DEPTH, most=ENTRIES_PER_FOLDER
    )
    _folders_first(root)
    languages = sorted(root.languages.items(), key=lambda entry: (-entry[1], entry[0]))
    context = files_context(request, collection) | {
        "root": root,
        "base": f"{folder.strip('/')}/" if folder.strip("/") else "",
        "languages": languages,
        "crumbs": crumbs_of(folder.strip("/")),
    }
    return render(request, "collections/files_structure.html", context)


def _folders_first(node: file_selectors.TreeNode) -> None:
    node.children.sort(key=lambda child: (not child.is_folder, child.name.casefold()))
    for child in node.children:
        _folders_first(child)


@require_http_methods(["GET", "POST"])
@allowed("collection.write")
def rules(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show and change which files people and models may see and write in a collection, and how much."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    form = _rules_form(request, collection)
    if request.method == "POST" and form.is_valid():
        try:
            services.file_rules_update(
                tenant=request.tenant, actor=request.actor, collection=collection, rules=form.rules
            )
        except Invalid as error:
            form.refuse(error)
        else:
            messages.success(request, _("File rules saved. They apply from now on."))
            return redirect("collections:file-rules", tenant_slug, pk)
    context = section(request, collection, "settings") | {"form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "collections/file_rules.html", context, status=status)


def _rules_form(request: TenantRequest, collection: Collection) -> FileRulesForm:
    if request.method == "POST":
        return FileRulesForm(request.POST)
    return FileRulesForm.of(FileRules.of(collection.file_rules))


def number_of(request: TenantRequest, name: str) -> int:
    """Return a whole number of the query, 0 for anything else."""
    value = request.GET.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 6 else 0
