"""Static files and bundles: whole answers, kept by browsers until they change, compressed, and none of them forgotten."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, Client, RequestFactory

from web.bundles import BUNDLES, bundle, bundle_url
from web.compression import PagesCompressed

ROOT = Path(__file__).resolve().parents[2]
ICON = "/static/favicon.svg"


async def test_static_file_is_answered_without_a_warning_when_the_server_is_asynchronous() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = await AsyncClient().get(ICON)
    assert got.status_code == 200
    assert not got.streaming
    assert got.content == (ROOT / "static/favicon.svg").read_bytes()


def test_static_file_keeps_what_browsers_rely_on() -> None:
    client, whole = Client(), (ROOT / "static/favicon.svg").read_bytes()
    got = client.get(ICON)
    assert got["Content-Type"] == "image/svg+xml"
    assert got["Content-Length"] == str(len(whole))
    for tag in (got["ETag"], f"W/{got['ETag']}"):  # as it is when the answer was compressed on its way
        assert client.get(ICON, headers={"If-None-Match": tag}).status_code == 304
    part = client.get(ICON, headers={"Range": "bytes=2-5"})
    assert (part.status_code, part.content) == (206, whole[2:6])
    assert client.head(ICON).content == b""
    assert client.post(ICON).status_code == 405


@pytest.mark.parametrize("name", BUNDLES)
def test_bundle_is_kept_until_it_changes_and_compressed_for_whoever_reads_that(name: str) -> None:
    client, made = Client(), bundle(name)
    plain = client.get(bundle_url(name))
    assert plain.content == made.body
    assert plain["Content-Type"] == made.content_type
    assert "immutable" in plain["Cache-Control"]
    zipped = client.get(bundle_url(name), headers={"Accept-Encoding": "br, gzip"})
    assert zipped["Content-Encoding"] == "gzip"
    assert zipped["Content-Length"] == str(len(zipped.content))
    assert gzip.decompress(zipped.content) == made.body
    for got in (plain, zipped):
        assert got["Vary"] == "Accept-Encoding"
    other = client.get(bundle_url(name).replace(made.digest, "0" * 12))
    assert (other.content, other["Cache-Control"]) == (made.body, "no-cache")
    assert client.head(bundle_url(name)).content == b""


@pytest.mark.parametrize(
    "path", ["bundles/none.css", "bundles/", "bundles/page.js.map", "bundles/../css/app.css"]
)
def test_nothing_else_is_a_bundle(path: str, db: Any) -> None:
    assert Client().get(f"/static/{path}").status_code == 404


def test_bundles_name_fonts_by_the_addresses_that_pages_use() -> None:
    text = bundle("page.css").body.decode()
    assert "url(/static/fonts/inter" in text
    assert "../" not in re.sub(r'url\("data:[^"]*"\)', "", text)


def test_every_style_and_script_is_in_a_bundle_or_named_by_a_template() -> None:
    joined = {path for paths in BUNDLES.values() for path in paths}
    named = "".join(path.read_text() for path in (ROOT / "templates").rglob("*.html"))
    for folder in ("css", "js"):
        for file in (ROOT / "static" / folder).iterdir():
            path = f"{folder}/{file.name}"
            assert path in joined or f"'{path}'" in named, path


def test_page_is_compressed_and_a_stream_is_not() -> None:
    request = RequestFactory().get("/", headers={"Accept-Encoding": "gzip"})

    def answered(response: HttpResponseBase) -> Any:
        return PagesCompressed(lambda _: response)(request)

    page = answered(HttpResponse("<p>word</p>" * 100))
    assert page["Content-Encoding"] == "gzip"
    assert gzip.decompress(page.content) == b"<p>word</p>" * 100
    stream = answered(StreamingHttpResponse([b"a" * 999], content_type="text/html"))
    assert "Content-Encoding" not in stream
    data = answered(HttpResponse("1" * 999, content_type="application/json"))
    assert "Content-Encoding" not in data
    part = answered(HttpResponse("1" * 999, content_type="text/html", status=206))
    assert "Content-Encoding" not in part
