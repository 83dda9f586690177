"""Questions about the documents of the sample collections, each bound to the passage that answers it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from apps.collections.models import Chunk, Collection, Document
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from tenancy.actors import Actor

_FILE = Path(__file__).with_name("questions.json")


def sample_records(*, actor: Actor, collection: Collection) -> list[Record]:
    """Return a row for each question whose passage the collection has, in the order of the file."""
    documents = {
        document.name: document
        for document in Document.objects.visible_to(actor).filter(collection=collection)
    }
    found = []
    for asked in json.loads(_FILE.read_text(encoding="utf-8")):
        document = documents.get(asked["document"])
        passage = document and _passage_of(document, asked["quote"])
        if document and passage:
            source = RecordSource(
                document.name,
                passage.text,
                collection=collection.name,
                document_id=document.pk,
                chunk_id=passage.pk,
                start=passage.char_start,
                end=passage.char_end,
            )
            found.append(Record(question=asked["question"], answer=asked["answer"], sources=(source,)))
    return found


def _passage_of(document: Document, quote: str) -> Chunk | None:
    """Return the document's first passage with these words, whatever spaces and ends of lines are between them."""
    words = re.compile(r"\s+".join(re.escape(word) for word in quote.split()))
    passages = Chunk.objects.filter(tenant=document.tenant_id, document=document).order_by("char_start", "pk")
    return next((passage for passage in passages if words.search(passage.text)), None)
