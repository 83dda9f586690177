"""What makes the portal a program that is installed: its manifest, and the worker with the page for when there is no network.

The worker keeps that page and its files in the browser, and nothing else: no page of a workspace is ever stored there. Its
text holds a hash of what it keeps, so a browser that finds another text fetches all of it again and drops the old.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils.translation import override
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from tenancy.portal_languages import ENGLISH, languages_offered
from web.bundles import bundle, bundle_url

NAME: Final = "Groundwork"
_LIGHT: Final = "#f7f5f2"
"""Of the page's background; the manifest knows one colour."""
_ACCENT: Final = "#006468"
_DAY_S: Final = 86_400
_FILES: Final = ("favicon.svg", "js/theme.js")
"""What the offline page shows outside of its bundles: the mark, and the theme that the person chose in this browser."""


@require_safe
@cache_control(public=True, max_age=_DAY_S)
def manifest(request: HttpRequest) -> HttpResponse:
    """Return the manifest: what an installed portal is called, looks like and opens with."""
    icons = [{"src": static("favicon.svg"), "type": "image/svg+xml", "sizes": "any", "purpose": "any"}]
    for name, size, purpose in (
        ("app-192", 192, "any"),
        ("app-512", 512, "any"),
        ("maskable-192", 192, "maskable"),
        ("maskable-512", 512, "maskable"),
    ):
        icons.append(
            {
                "src": static(f"icons/{name}.png"),
                "type": "image/png",
                "sizes": f"{size}x{size}",
                "purpose": purpose,
            }
        )
    facts = {
        "id": "/",
        "name": NAME,
        "short_name": NAME,
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": _LIGHT,
        "theme_color": _ACCENT,
        "icons": icons,
    }
    return JsonResponse(facts, content_type="application/manifest+json")


@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """Return the worker that keeps the offline page in the language of ``?l=``."""
    language = _language(request)
    page = f"{reverse('web:offline')}?l={language}"
    files = [bundle_url("offline.css"), bundle_url("offline.js"), *(static(name) for name in _FILES)]
    told = {"page": page, "files": files, "icon": static("icons/app-192.png")}
    source = bundle("worker.js").body.decode()
    content = "\n".join([json.dumps(told), source, _page(language), *map(_text, _FILES)])
    told["cache"] = f"offline-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    body = f"const KEPT = {json.dumps(told)};\n{source}"
    return HttpResponse(body, "text/javascript; charset=utf-8", headers={"Cache-Control": "no-cache"})


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Return the page that a browser shows while it can't reach the server; it is of no workspace and of nobody."""
    return HttpResponse(_page(_language(request)), headers={"Cache-Control": "no-cache"})


def _language(request: HttpRequest) -> str:
    asked = request.GET.get("l", "")
    return asked if asked in languages_offered() else ENGLISH


def _page(language: str) -> str:
    with override(language):
        return render_to_string("web/offline.html")


def _text(name: str) -> str:
    found = finders.find(name)
    if found is None:
        raise FileNotFoundError(name)
    return Path(found).read_text(encoding="utf-8")
