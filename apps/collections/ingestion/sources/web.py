"""Web pages by their addresses: fetched through the guard, bounded in size and time, never with cookies or credentials."""

from __future__ import annotations

import hashlib
import mimetypes
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx2

from apps.collections.ingestion.media_types import SUPPORTED_SUFFIXES
from apps.collections.ingestion.sources.base import (
    BLOCK,
    Budget,
    Entry,
    EntryFailure,
    Item,
    Problem,
    Reason,
    SourceLimits,
    safe_path,
    shown,
)
from basics.net_guard import GuardedTransport
from basics.net_policy import PUBLIC, AddressRefused, NetPolicy, Resolver, system_resolver, url_check
from basics.texts import gettext as _

MAX_REDIRECTS = 5
SECONDS = 60.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGENT = "Groundwork/1 (import of web pages)"
_REFUSED_TYPES = re.compile(r"^(image|audio|video|font)/|^application/(x-msdownload|wasm|x-sharedlib)\b")
_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/csv": ".csv",
    "application/x-subrip": ".srt",
}
GENERIC = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download"}
)
"""Types that servers send for files they know nothing about."""


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier fetch of the same address has told, to ask only for what is new.

    Attributes:
        path: the document's path, which it keeps.
        etag, modified: of the last answer.
    """

    path: str
    etag: str = ""
    modified: str = ""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The server says that the page is what it was."""

    url: str
    path: str


def url_path(url: str, media_type: str = "text/html") -> str:
    """Return the path of the document that a web page becomes: host, path, and an ending that fits the type.

    Where the server's type says nothing about a file (``GENERIC``), it is what its name says.
    """
    parts = urlsplit(url)
    tail = unquote(parts.path)
    if not tail or tail.endswith("/"):
        tail = f"{tail}index"
    pieces = [re.sub(r"[^\w.,=+@~ -]", "_", piece)[:120] for piece in tail.split("/")]
    pieces = [piece for piece in pieces if piece.strip(". ")]
    path = "/".join([(parts.hostname or "web").strip("."), *(pieces or ["index"])])[:700]
    named = PurePosixPath(path).suffix.lower() if media_type in GENERIC else ""
    if parts.query:
        path += f"-{hashlib.sha256(parts.query.encode()).hexdigest()[:8]}"
    if named in SUPPORTED_SUFFIXES:
        suffix = named
    elif media_type in GENERIC - {"text/plain"}:
        suffix = ""
    else:
        suffix = _SUFFIXES.get(media_type) or mimetypes.guess_extension(media_type) or ""
    if suffix and not path.lower().endswith((suffix, ".htm") if suffix == ".html" else suffix):
        path += suffix
    checked = safe_path(path)
    if isinstance(checked, Problem):
        return f"web/{hashlib.sha256(url.encode()).hexdigest()[:16]}{suffix}"
    return checked


def web_entries(
    urls: Sequence[str],
    *,
    limits: SourceLimits,
    policy: NetPolicy = PUBLIC,
    known: Callable[[str], Known | None] = lambda url: None,
    resolver: Resolver = system_resolver,
    seconds: float = SECONDS,
) -> Iterator[Item | Unchanged]:
    """Fetch pages one after the other.

    Args:
        urls: as people have given them.
        policy: where requests may go.
        known: what is known of an address from before.
        resolver: gives the addresses of names.
        seconds: for one page, redirects and all.
    """
    budget = Budget(limits)
    for url in dict.fromkeys(text.strip() for text in urls):
        budget.count()
        before = known(url)
        with GuardedTransport(policy, seconds=seconds, resolver=resolver) as transport:
            try:
                found = _fetch(transport, url, before, policy, budget)
            except AddressRefused as error:
                yield Problem(shown(url), Reason.ADDRESS, error.message)
                continue
            except EntryFailure as failure:
                yield Problem(shown(url), failure.reason, failure.message)
                continue
            except httpx2.TransportError as error:
                yield Problem(
                    shown(url),
                    Reason.FETCH,
                    _("It could not be fetched (%(error)s).") % {"error": shown(str(error))[:200]},
                )
                continue
            yield found


def _fetch(
    transport: GuardedTransport, url: str, before: Known | None, policy: NetPolicy, budget: Budget
) -> Entry | Unchanged:
    headers = {"User-Agent": _AGENT, "Accept": "text/html, */*;q=0.5", "Accept-Encoding": "identity"}
    if before is not None and before.etag:
        headers["If-None-Match"] = before.etag
    if before is not None and before.modified:
        headers["If-Modified-Since"] = before.modified
    here = url_check(url, policy)
    for _hop in range(MAX_REDIRECTS + 1):
        request = httpx2.Request("GET", here.copy_with(fragment=None), headers=headers)
        response = transport.handle_request(request)
        try:
            location = response.headers.get("location", "")
            if response.status_code in _REDIRECTS and location:
                here = _next(here, location, policy)
                continue
            if response.status_code == 304 and before is not None:
                return Unchanged(url, before.path)
            return _entry(response, url, str(here), before, budget)
        finally:
            response.close()
    raise EntryFailure(
        Reason.FETCH, _("It redirects more than %(max_redirects)s times.") % {"max_redirects": MAX_REDIRECTS}
    )


def _next(here: httpx2.URL, location: str, policy: NetPolicy) -> httpx2.URL:
    try:
        target = here.join(location)
    except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
        raise EntryFailure(Reason.FETCH, _("It redirects to something that isn't an address.")) from error
    if here.scheme == "https" and target.scheme == "http":
        raise EntryFailure(Reason.FETCH, _("It redirects from https to http, which is not followed."))
    return url_check(str(target), policy)


def _entry(response: httpx2.Response, url: str, final: str, before: Known | None, budget: Budget) -> Entry:
    if response.status_code != 200:
        raise EntryFailure(
            Reason.FETCH,
            _("The server answered with status %(status_code)s.") % {"status_code": response.status_code},
        )
    media_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if _REFUSED_TYPES.match(media_type):
        raise EntryFailure(
            Reason.UNSUPPORTED,
            _("The server sends %(media_type)s, which contains no text.") % {"media_type": shown(media_type)},
        )
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > budget.limits.max_file_bytes:
        budget.take(0, int(length))
    # Read whole before it is handed on: the connection closes with this call, and a page that breaks off is no page.
    body = b"".join(_decoded(response, budget))
    facts = {
        "url": url,
        "final_url": final,
        "media_type": media_type,
        "etag": response.headers.get("etag", "")[:200],
        "modified": response.headers.get("last-modified", "")[:100],
    }
    path = before.path if before is not None else url_path(url, media_type)
    return Entry(path, lambda: iter([body]), facts)


def _decoded(response: httpx2.Response, budget: Budget) -> Iterator[bytes]:
    """Yield the body, unpacked in small steps where the server packs it though it was asked not to."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    done = packed = 0
    if coding in ("", "identity"):
        for piece in response.stream:  # type: ignore[union-attr]
            done += len(piece)
            budget.take(len(piece), done)
            yield piece
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise EntryFailure(
            Reason.FETCH,
            _("The server compresses the page as “%(coding)s”, which was not requested.")
            % {"coding": shown(coding)[:40]},
        )
    unpacker = zlib.decompressobj(47 if coding != "deflate" else 15)
    for piece in response.stream:  # type: ignore[union-attr]
        packed += len(piece)
        while piece and not unpacker.eof:
            try:
                plain = unpacker.decompress(piece, BLOCK)
            except zlib.error as error:
                raise EntryFailure(Reason.DAMAGED, _("The page's compression is damaged.")) from error
            done += len(plain)
            budget.take(len(plain), done, packed)
            piece = unpacker.unconsumed_tail
            yield plain
    if not unpacker.eof:
        raise EntryFailure(Reason.DAMAGED, _("The page was cut off."))
