"""Make collections and documents of a known size."""

from __future__ import annotations

import itertools
import random
from io import BytesIO

from reportlab.lib.pagesizes import letter
from reportlab.pdfgen.canvas import Canvas

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from apps.collections.models import Collection, Document
from tenancy.scope import tenant_scope
from tests.cast import Cast

_numbers = itertools.count(1)
_TEXT = """duty entry notice origin tariff heading importer customs quota rate claim proof value goods
article chapter subheading statistical reporting exemption drawback bond warehouse transit"""
_WORDS = _TEXT.split()


def make_text_pdf(*, pages: int, chars_per_page: int, seed: int = 0) -> bytes:
    """Return a PDF of prose; two calls never give the same bytes, the same seed gives the same text."""
    random_words = random.Random(seed)
    target = BytesIO()
    canvas = Canvas(target, pagesize=letter)
    canvas.setTitle(f"Notice {next(_numbers)}")
    for page in range(1, pages + 1):
        left, y = chars_per_page, 750.0
        canvas.setFont("Helvetica", 7)
        while left > 0:
            line = f"{page}.{int(y)} " + " ".join(random_words.choices(_WORDS, k=11)) + "."
            canvas.drawString(40, y, line)
            left -= len(line)
            y -= 9
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def make_collection(cast: Cast, *, chunk_size: int = 200) -> Collection:
    """Return a collection with the product's own embedder."""
    with tenant_scope(cast.tenant.pk):
        return collection_create(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            name=f"Collection {next(_numbers)}",
            chunk_size=chunk_size,
            chunk_overlap=0,
        )


def upload(cast: Cast, collection: Collection, name: str, data: bytes) -> Document:
    """Upload as a member does; the worker starts at the commit."""
    with tenant_scope(cast.tenant.pk):
        return document_upload(
            tenant=cast.tenant, actor=cast.actor("member"), collection=collection, name=name, chunks=[data]
        ).document
