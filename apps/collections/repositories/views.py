"""Pages about a collection's repositories: state and commits, differences, who wrote what, and a commit."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from apps.collections.display import selectors
from apps.collections.display.page_parts import clean
from apps.collections.files import text_rows as file_rows
from apps.collections.files.tree_views import number_of
from apps.collections.files.views import files_context
from apps.collections.models import Collection
from apps.collections.repositories import selectors as repositories
from apps.collections.repositories import services
from basics.errors import Denied, DomainError
from basics.line_ends import line_ends
from basics.texts import told
from web.requests import TenantRequest, allowed

COMMITS_PER_PAGE = 30
PATHS_SHOWN = 200


@require_GET
@allowed("collection.read")
def git(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what differs from the last commit of a collection's repository, and its commits."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    context = _context(request, collection)
    skip = number_of(request, "skip")
    ref, path = clean(request.GET.get("ref", "")) or "HEAD", clean(request.GET.get("path", ""))
    context |= {"ref": ref, "path": path, "skip": skip}
    return _page(request, collection, context, status=200)


def _page(
    request: TenantRequest, collection: Collection, context: dict[str, Any], *, status: int
) -> HttpResponse:
    ref, path, skip, chosen = (context[name] for name in ("ref", "path", "skip", "chosen"))
    try:
        commits = repositories.git_log(
            actor=request.actor,
            collection=collection,
            ref=ref,
            path=path,
            skip=skip,
            limit=COMMITS_PER_PAGE + 1,
            repository=chosen,
        )
        context["commits"] = [_dated(one) for one in commits[:COMMITS_PER_PAGE]]
        if len(commits) > COMMITS_PER_PAGE:
            more = {"ref": ref, "path": path, "skip": skip + COMMITS_PER_PAGE, "repository": chosen}
            context["more"] = urlencode(more)
        if not skip and not path:
            state = repositories.git_status(actor=request.actor, collection=collection, repository=chosen)
            total = len(state["changed"]) + len(state["untracked"])
            context |= {"state": state, "total": total, "unlisted": max(0, total - PATHS_SHOWN)}
            state["changed"] = state["changed"][:PATHS_SHOWN]
            state["untracked"] = state["untracked"][: PATHS_SHOWN - len(state["changed"])]
    except DomainError as error:
        return _refused(request, "collections/git.html", context, error)
    return render(request, "collections/git.html", context, status=status)


def _context(request: TenantRequest, collection: Collection) -> dict[str, Any]:
    found = repositories.repository_list(actor=request.actor, collection=collection)
    chosen = clean(request.GET.get("repository", "")) or clean(request.POST.get("repository", ""))
    if not chosen and len(found) > 1 and not request.GET.get("path"):
        chosen = found[0].folder
    return files_context(request, collection) | {"repositories": found, "chosen": chosen}


def _dated(commit: dict[str, Any]) -> dict[str, Any]:
    return {
        **commit,
        "when": parse_datetime(commit["at"]) if commit["at"] else None,
        "name": commit["author"].partition(" <")[0],
    }


@require_GET
@allowed("collection.read")
def git_diff(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what changed from one commit to another, or to the files as they are now."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    old, new = clean(request.GET.get("old", "")) or "HEAD", clean(request.GET.get("new", ""))
    path = clean(request.GET.get("path", ""))
    context = _context(request, collection) | {"old": old, "new": new, "path": path}
    try:
        found = repositories.git_diff(
            actor=request.actor,
            collection=collection,
            old=old,
            new=new,
            path=path,
            repository=context["chosen"],
        )
    except DomainError as error:
        return _refused(request, "collections/git_diff.html", context, error)
    context["changes"] = [(one, _coloured(one.text)) for one in found]
    return render(request, "collections/git_diff.html", context)


@require_GET
@allowed("collection.read")
def git_blame(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show beside each line of a file the commit that brought it."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    ref, path = clean(request.GET.get("ref", "")) or "HEAD", clean(request.GET.get("path", ""))
    context = _context(request, collection) | {"ref": ref, "path": path}
    try:
        found = repositories.git_blame(
            actor=request.actor, collection=collection, path=path, ref=ref, repository=context["chosen"]
        )
    except DomainError as error:
        return _refused(request, "collections/git_blame.html", context, error)
    context["runs"] = [
        {
            **_dated(run),
            "last": run["line"] + run["lines"] - 1,
            "rows": list(
                enumerate(found["text"][run["line"] - 1 : run["line"] - 1 + run["lines"]], run["line"])
            ),
        }
        for run in found["runs"]
    ]
    return render(request, "collections/git_blame.html", context)


@require_POST
@allowed("document.write")
def git_commit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Commit what changed; what is refused is said on the page, with the message kept."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    chosen, message = clean(request.POST.get("repository", "")), line_ends(request.POST.get("message", ""))
    try:
        made = services.git_commit(
            tenant=request.tenant,
            actor=request.actor,
            collection=collection,
            message=message,
            branch=clean(request.POST.get("branch", "")).strip(),
            repository=chosen,
        )
    except DomainError as error:
        if isinstance(error, Denied):
            raise
        context = _context(request, collection) | {"ref": "HEAD", "path": "", "skip": 0}
        context |= {"said": message, "why_not": told(error.message)}
        return _page(request, collection, context, status=error.status)
    count = len(made.paths)
    messages.success(
        request,
        ngettext(
            "Committed %(count)s file on %(branch)s as %(commit)s.",
            "Committed %(count)s files on %(branch)s as %(commit)s.",
            count,
        )
        % {"count": count, "branch": made.branch, "commit": made.commit[:8]},
    )
    address = reverse("collections:git", args=[tenant_slug, pk])
    return redirect(f"{address}?{urlencode({'repository': chosen})}" if chosen else address)


def _coloured(diff: str) -> str:
    """Return a unified diff as HTML, without the two lines that name the file."""
    body = diff.split("\n", 2)[2] if diff.startswith("---") else diff
    return file_rows.highlighted(f"{body}\n", "changes.diff") if body else ""


def _refused(
    request: TenantRequest, template: str, context: dict[str, Any], error: DomainError
) -> HttpResponse:
    """Say on the page why there is nothing: no repository, a damaged one, a commit that does not exist."""
    if isinstance(error, Denied):
        raise error
    return render(request, template, context | {"refused": told(error.message)})
