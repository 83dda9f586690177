"""/help/: the guide for users, for anyone who is signed in."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from web.guide.pages import INDEX, guide_names, guide_page, guide_picture, picture_names
from web.requests import UserRequest, signed_in

_YEAR_S = 31_536_000


@require_GET
@signed_in
def guide(request: UserRequest, name: str = INDEX) -> HttpResponse:
    """Show a page of the guide; 404 for one that isn't there."""
    if name not in guide_names():
        raise Http404
    return render(request, "web/guide.html", {"page": guide_page(name), "is_index": name == INDEX})


@require_GET
@signed_in
def picture(request: UserRequest, name: str) -> HttpResponse:
    """Send a picture of the guide, which a browser keeps until it changes; 404 for one that isn't there."""
    if name not in picture_names():
        raise Http404
    found = guide_picture(name)
    is_current = request.GET.get("v") == found.digest
    kept = f"private, max-age={_YEAR_S}, immutable" if is_current else "private, no-cache"
    return HttpResponse(found.body, found.media_type, headers={"Cache-Control": kept})
