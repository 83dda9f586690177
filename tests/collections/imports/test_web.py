"""Web pages become documents of a real server's answers, and are fetched again only for what has changed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_socket import socket_allow_hosts

from apps.collections.imports import services
from apps.collections.ingestion.sources.web import url_path
from apps.collections.models import Collection, Document, Import
from tenancy.scope import tenant_scope
from tests.basics.test_net_guard import serving
from tests.cast import Cast
from tests.collections.imports.support import ingest_all, run, start

pytestmark = pytest.mark.django_db
HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = b"<html><body><h1>Lamps</h1><p>LED lamps are dutiable at two percent.</p></body></html>"
OTHER = PAGE.replace(b"two", b"three")


@pytest.fixture(autouse=True)
def scope(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One address stands for the web; the one beside it must never be called, though the test could."""
    socket_allow_hosts(["127.0.0.1", "127.0.0.2", "::1", "localhost"], allow_unix_socket=True)
    settings.FETCH_NETWORKS = ["127.0.0.1/32"]
    names = {"docs.test": ["127.0.0.1"], "inside.test": ["127.0.0.2"]}
    monkeypatch.setattr(
        "apps.collections.imports.sources.resolver", lambda host, port: names.get(host, [host])
    )
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def web() -> Iterator[Any]:
    with serving("127.0.0.1") as server:
        yield server


def address(web: Any, path: str = "/lamps") -> str:
    return f"http://docs.test:{web.port}{path}"


def bring(cast: Cast, collection: Collection, *urls: str) -> Import:
    return run(start(cast, collection, "url", urls=urls))


def refused(cast: Cast, collection: Collection, url: str) -> dict[str, Any]:
    """Fetch a page of which nothing may stay; returns its problem."""
    row = bring(cast, collection, url)
    assert row.status == "completed"
    assert not Document.objects.exists()
    (problem,) = row.problems
    return dict(problem)


def refetch(cast: Cast, document: Document) -> Import:
    return run(services.document_refetch(tenant=cast.tenant, actor=cast.actor("member"), document=document))


def test_page_becomes_a_document(cast: Cast, collection: Collection, web: Any) -> None:
    web.answer = (200, {**HTML, "ETag": '"one"'}, PAGE)
    row = bring(cast, collection, address(web))
    (document,) = ingest_all(collection)
    assert (row.entries["created"], row.problems, document.status) == (1, [], "ready")
    assert (document.path, document.source) == ("docs.test/lamps.html", "url")
    assert document.source_url == address(web)
    assert document.metadata["web"]["etag"] == '"one"'
    assert "dutiable at two percent" in document.pages.get().text
    assert not {"cookie", "authorization", "referer"} & set(web.headers[0])


def test_nothing_changes_when_the_server_says_not_modified(
    cast: Cast, collection: Collection, web: Any
) -> None:
    web.answer = (200, {**HTML, "ETag": '"one"', "Last-Modified": "Mon, 05 Jan 2026 00:00:00 GMT"}, PAGE)
    bring(cast, collection, address(web))
    (document,) = ingest_all(collection)
    before = Document.objects.filter(pk=document.pk).values().get()
    web.answer = (304, {}, b"")

    row = refetch(cast, document)

    assert (row.status, row.entries["unchanged"], row.problems) == ("completed", 1, [])
    assert web.headers[-1]["if-none-match"] == '"one"'
    assert web.headers[-1]["if-modified-since"] == "Mon, 05 Jan 2026 00:00:00 GMT"
    assert Document.objects.filter(collection=collection).values().get() == before


def test_same_bytes_stay_one_version_and_changed_ones_become_the_second(
    cast: Cast, collection: Collection, web: Any
) -> None:
    web.answer = (200, HTML, PAGE)
    bring(cast, collection, address(web))
    (document,) = ingest_all(collection)
    assert refetch(cast, document).entries["unchanged"] == 1
    assert Document.objects.count() == 1

    web.answer = (200, HTML, OTHER)
    assert refetch(cast, document).entries["updated"] == 1
    first, second = ingest_all(collection)
    assert (first.version, second.version, second.status) == (1, 2, "ready")
    assert first.path == second.path
    assert first.live_to is not None
    assert second.live_to is None
    assert "three percent" in second.pages.get().text


def test_packed_page_is_read_and_a_bomb_is_cut(cast: Cast, collection: Collection, web: Any) -> None:
    packed = {**HTML, "Content-Encoding": "gzip"}
    web.answer = (200, packed, gzip.compress(bytes(45_000_000)))
    assert refused(cast, collection, address(web))["reason"] == "bomb"
    web.answer = (200, packed, gzip.compress(PAGE)[:-20])
    assert refused(cast, collection, address(web))["reason"] == "damaged"
    web.answer = (200, packed, gzip.compress(PAGE))
    assert bring(cast, collection, address(web)).entries["created"] == 1


@pytest.mark.parametrize("host", ["127.0.0.2", "inside.test"])
def test_redirect_to_a_blocked_address_is_not_followed(
    cast: Cast, collection: Collection, web: Any, host: str
) -> None:
    with serving("127.0.0.2") as inside:
        web.answer = (302, {"Location": f"http://{host}:{inside.port}/secret"}, b"")
        problem = refused(cast, collection, address(web))
        assert problem["reason"] == "address_refused"
        assert "GROUNDWORK_FETCH_NETWORKS" in problem["message"] or "Port" in problem["message"]
        assert inside.hits == []
    assert web.hits == ["/lamps"]


def test_redirect_to_an_allowed_address_is_followed(cast: Cast, collection: Collection, web: Any) -> None:
    def answer(handler: Any) -> tuple[int, dict[str, str], bytes]:
        return (200, HTML, PAGE) if handler.path == "/there" else (301, {"Location": "/there"}, b"")

    web.answer = answer
    bring(cast, collection, address(web))
    facts = Document.objects.get().metadata["web"]
    assert (facts["url"], facts["final_url"]) == (address(web), address(web, "/there"))


@pytest.mark.parametrize("is_told", [True, False])
def test_page_larger_than_allowed_is_refused(
    cast: Cast, collection: Collection, web: Any, settings: Any, is_told: bool
) -> None:
    settings.MAX_UPLOAD_BYTES = 1000

    def untold(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        handler.wfile.write(b"<p>" + b"x" * 1001)

    web.answer = (200, HTML, b"<p>" + b"x" * 1001) if is_told else untold
    assert refused(cast, collection, address(web))["reason"] == "too_large"


def test_what_holds_no_text_is_refused_by_its_type(cast: Cast, collection: Collection, web: Any) -> None:
    web.answer = (200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\n")
    problem = refused(cast, collection, address(web))
    assert problem["reason"] == "unsupported_type"
    assert "image/png" in problem["message"]


def test_one_page_that_fails_does_not_stop_the_next(cast: Cast, collection: Collection, web: Any) -> None:
    def answer(handler: Any) -> tuple[int, dict[str, str], bytes]:
        return (200, HTML, PAGE) if handler.path == "/good" else (503, HTML, b"later")

    web.answer = answer
    row = bring(cast, collection, address(web, "/bad"), address(web, "/good"))
    assert (row.entries["found"], row.entries["created"], row.entries["problems"]) == (2, 1, 1)
    assert "status 503" in row.problems[0]["message"]


def test_name_says_what_a_file_is_where_the_server_does_not_know(
    cast: Cast, collection: Collection, web: Any
) -> None:
    files = {
        ("/readme.md", "text/plain"): ("docs.test/readme.md", "text/markdown"),
        ("/rates.csv", "text/plain; charset=utf-8"): ("docs.test/rates.csv", "text/csv"),
        ("/tool.py", "application/octet-stream"): ("docs.test/tool.py", "text/x-python"),
        ("/notes", "text/plain"): ("docs.test/notes.txt", "text/plain"),
        ("/odd.zzz", "text/plain"): ("docs.test/odd.zzz.txt", "text/plain"),
        ("/page.md", "text/html"): ("docs.test/page.md.html", "text/html"),
    }
    types = dict([*files])

    def answer(handler: Any) -> tuple[int, dict[str, str], bytes]:
        kind = types[handler.path]
        return 200, {"Content-Type": kind}, PAGE if "html" in kind else b"# Rates\n\nLamps,2\nTubes,3\n"

    web.answer = answer
    bring(cast, collection, *(address(web, path) for path, _ in files))
    ingest_all(collection)
    found = {row.path: row.media_type for row in Document.objects.all()}
    assert found == dict(files.values())
    assert url_path("http://docs.test/rates.csv?year=1", "text/plain").endswith(".csv")
    assert url_path("http://docs.test/page?id=1", "text/plain").endswith(".txt")
