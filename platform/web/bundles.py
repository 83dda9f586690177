"""Joins the styles and scripts of pages into few files, compressed once a process: a first page is a dozen requests at most.

The files in ``static/`` stay as they are written, and no build step makes others of them. A bundle is served by
``static_files`` under a name with a hash of its content, so that a browser keeps it until it changes.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.translation import get_language

from tenancy.portal_languages import ENGLISH, languages_offered

FOLDER = "bundles/"
BUNDLES: Mapping[str, Sequence[str]] = {
    "page.css": [
        f"css/{name}.css"
        for name in (
            *("app", "pages", "collections", "tools", "assistants"),
            *(
                "answers",
                "composer",
                "figures",
                "usage",
                "evaluations",
                "datasets",
                "projects",
                "pygments",
                "help",
                "notices",
                "languages",
            ),
        )
    ],
    "core.js": ["vendor/htmx/htmx.min.js", "vendor/htmx/hx-sse.min.js"],
    "page.js": ["js/words.js", "js/shell.js", "js/stream.js", "js/notices.js"],
    "chat.js": [
        "js/citations.js",
        "js/chat.js",
        "js/answers.js",
        "js/attach.js",
        "js/mentions.js",
    ],
    "voice.js": ["js/voice.js"],  # fetched by the first who speaks or listens
    # The offline page, which a browser keeps (web.views.web_app).
    "offline.css": ["css/offline.css"],
    "offline.js": ["js/offline.js"],
    "worker.js": ["js/worker.js"],  # served with what it keeps, at the root
    "passkeys.js": ["js/words.js", "js/passkeys.js"],  # for pages before a sign-in, which have no page.js
}
WORDS = "js/words.js"
"""What a bundle begins with that has a language: in front of it are the translations of what scripts say."""
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_COMMENT, _INDENT = re.compile(r"/\*.*?\*/", re.DOTALL), re.compile(r"\n\s+")
_REMARK = re.compile(r"^\s*//.*\n", re.MULTILINE)
"""A line of a script that is a comment and nothing else; none stands in a text of several lines."""
_ADDRESS = re.compile(r"url\(\.\./([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Several files as one.

    Attributes:
        content_type: with its charset.
        body, zipped: the same content, plain and in gzip.
        digest: the hash in its name.
    """

    content_type: str
    body: bytes
    zipped: bytes
    digest: str


@cache
def bundle(name: str, language: str = ENGLISH) -> Bundle:
    """Return a bundle by its name in ``BUNDLES``; KeyError for any other.

    Args:
        name: with its ending.
        language: one that is offered (``tenancy.portal_languages``), of a bundle with words; English of any other.
    """
    kind = f".{name.rpartition('.')[2]}"
    parts = [_source(path) for path in BUNDLES[name]]
    if kind == ".css":
        joined = "\n".join(_styles(part) for part in parts)
    elif name == "core.js":
        joined = "\n".join(parts)
    else:  # each module has names of its own
        joined = _words(language) + "\n".join(f"{{\n{_REMARK.sub('', part)}\n}}" for part in parts)
    body = joined.encode()
    zipped = gzip.compress(body, 9, mtime=0)
    return Bundle(f"{_TYPES[kind]}; charset=utf-8", body, zipped, hashlib.sha256(body).hexdigest()[:12])


def bundle_url(name: str) -> str:
    """Return the address of a bundle, in the language of the page where it has one."""
    stem, _, kind = name.partition(".")
    language = (get_language() or ENGLISH) if BUNDLES[name][0] == WORDS else ENGLISH
    if language not in languages_offered() or language == ENGLISH:
        return f"{settings.STATIC_URL}{FOLDER}{stem}.{bundle(name).digest}.{kind}"
    return f"{settings.STATIC_URL}{FOLDER}{stem}-{language}.{bundle(name, language).digest}.{kind}"


def bundle_find(path: str) -> tuple[Bundle, bool] | None:
    """Return the bundle at a path and whether it has just this content; None where there is no such bundle.

    While servers of two versions run, a page of one may ask the other for a bundle: it gets the other's.

    Args:
        path: of a request, beginning with ``STATIC_URL``.
    """
    name, _, rest = path.removeprefix(f"{settings.STATIC_URL}{FOLDER}").partition(".")
    digest, _, kind = rest.partition(".")
    stem, _, language = name.partition("-")
    paths = BUNDLES.get(f"{stem}.{kind}")
    if paths is None or (language and (paths[0] != WORDS or language not in languages_offered())):
        return None
    found = bundle(f"{stem}.{kind}", language or ENGLISH)
    return found, found.digest == digest


def _words(language: str) -> str:
    """Return the translations for scripts, as config/catalogs.py has compiled them; "" for English."""
    for folder in settings.LOCALE_PATHS if language != ENGLISH else ():
        path = Path(folder) / language / "LC_MESSAGES" / "djangojs.js"
        if path.is_file():
            return path.read_text(encoding="utf-8") + "\n"
    return ""


def _source(path: str) -> str:
    found = finders.find(path)
    if found is None:
        raise FileNotFoundError(path)
    return Path(found).read_text(encoding="utf-8")


def _styles(text: str) -> str:
    """Leave out comments and indents, and name files by the addresses that pages use."""
    text = _INDENT.sub("\n", _COMMENT.sub("", text))
    return _ADDRESS.sub(lambda match: f"url({static(match[1])})", text)
