"""A Chroma folder becomes documents whose chunks, links and (when they fit) vectors are the ones that came."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.collections.models import Chunk, ChunkLink, Collection, Document, Embedding, Import
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import DIMS, WordEmbedder
from tests.collections.imports.chroma_folder import make_chroma
from tests.collections.imports.support import ingest_all, reasons, run, start

pytestmark = [pytest.mark.django_db, pytest.mark.servers]
TEXTS = {
    "a0": "LED lamps of heading 8539.50.00\n  are dutiable at two percent.",
    "a1": "  Lamps from Brazil pay nothing.\n\n\nAsk for proof of origin.  ",
    "b0": "Pumps for liquids stand in heading 8413.70.20.",
}


def chunks(dimensions: int = DIMS) -> list[dict[str, Any]]:
    """Return the chunks of two source files; the first two are linked by id and by place."""
    facts: dict[str, dict[str, Any]] = {
        "a0": {
            "source_file": "guide/lamps.md",
            "chunk_index": 0,
            "headers": ["Duties", "Lamps"],
            "is_draft": True,
            "summary_points": [{"point": "Lamps pay two percent."}],
            "links": [{"chunk_id": "a1", "relation": "exception", "common_topic": "lamps"}],
        },
        "a1": {
            "source_file": "guide/lamps.md",
            "chunk_index": 1,
            "chunk_type": "function",
            "related": {"near": [{"chunk_id": "b0", "relation": "see", "common_topic": "duty"}]},
        },
        "b0": {"source_file": "guide/pumps.md", "chunk_index": 0, "score": 0.5},
    }
    made = np.random.default_rng(7).normal(size=(3, dimensions))
    return [
        {"id": key, "text": TEXTS[key], "metadata": facts[key], "vector": vector}
        for key, vector in zip(("a1", "a0", "b0"), made, strict=True)
    ]


@pytest.fixture(autouse=True)
def scope(cast: Cast, settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.IMPORT_PATHS = [str(tmp_path)]
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def embedded(embedder: WordEmbedder) -> list[str]:
    """The texts that the embedder was given."""
    given: list[str] = []

    def note(texts: Sequence[str]) -> None:
        given.extend(texts)

    embedder.on_texts = note
    return given


def bring(cast: Cast, collection: Collection, folder: Path, **options: Any) -> tuple[Import, list[Document]]:
    row = run(start(cast, collection, "chroma", path=str(folder), **options))
    return row, ingest_all(collection)


def vector_of(chunk: Chunk) -> Any:
    return np.asarray(Embedding.objects.get(chunk_id=chunk.pk).vector)


def test_source_files_become_documents_with_their_chunks_links_and_points(
    cast: Cast, collection: Collection, tmp_path: Path, embedded: list[str]
) -> None:
    row, documents = bring(cast, collection, make_chroma(tmp_path / "store", chunks()))

    assert (row.status, row.entries["created"], row.problems) == ("completed", 2, [])
    assert [(d.path, d.status) for d in documents] == [
        ("store/guide/lamps.md", "ready"),
        ("store/guide/pumps.md", "ready"),
    ]
    lamps, pumps = documents
    first, second = Chunk.objects.filter(document=lamps).order_by("index")
    (only,) = Chunk.objects.filter(document=pumps)
    assert [first.text, second.text, only.text] == list(TEXTS.values())
    assert list(first.headings) == ["Duties", "Lamps"]
    came = first.metadata["imported"]
    assert (came["id"], came["is_draft"], came["chunk_index"]) == ("a0", True, 0)
    assert came["links"][0]["relation"] == "exception"
    assert only.metadata["imported"]["score"] == 0.5
    assert [chunk.kind for chunk in (first, second, only)] == ["doc", "function", "doc"]
    assert [chunk.metadata["source_index"] for chunk in (first, second, only)] == [0, 1, 0]
    assert (first.key_points, first.points_by) == (["Lamps pay two percent."], "model")
    links = ChunkLink.objects.filter(made_by="model")
    assert {(link.chunk_id, link.target_id) for link in links} == {
        (first.pk, second.pk),
        (second.pk, first.pk),
    }
    assert links.get(chunk=first).relation == "exception"
    assert links.get(chunk=first).common_topic == "lamps"
    assert any("1 links lead to no other chunk" in str(text) for text in lamps.warnings)
    assert len(embedded) == 3


def test_vectors_are_taken_over_when_they_are_of_the_collections_model(
    cast: Cast, collection: Collection, tmp_path: Path, embedded: list[str]
) -> None:
    came = chunks()
    folder = make_chroma(tmp_path / "store", came)
    row, documents = bring(cast, collection, folder, vectors_model=collection.space.model)

    assert (row.status, {d.status for d in documents}) == ("completed", {"ready"})
    assert embedded == []
    by_id = {chunk["id"]: chunk["vector"] for chunk in came}
    stored = list(Chunk.objects.filter(collection=collection))
    assert len(stored) == 3
    for chunk in stored:
        expected = by_id[chunk.metadata["imported"]["id"]]
        expected = expected / np.linalg.norm(expected)
        assert np.allclose(vector_of(chunk), expected, atol=1e-3)


def test_vectors_are_taken_from_the_index_file_and_the_queue(
    cast: Cast, collection: Collection, tmp_path: Path, embedded: list[str]
) -> None:
    came = chunks()
    folder = make_chroma(tmp_path / "store", came, indexed=2)
    row, _ = bring(cast, collection, folder, vectors_model=collection.space.model)
    assert (row.status, embedded) == ("completed", [])
    by_id = {chunk["id"]: chunk["vector"] for chunk in came}
    stored = list(Chunk.objects.filter(collection=collection))
    assert len(stored) == 3
    for chunk in stored:
        expected = by_id[chunk.metadata["imported"]["id"]]
        assert np.allclose(vector_of(chunk), expected / np.linalg.norm(expected), atol=1e-3)


class _Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/groundwork-was-here",)


def _spoil_pickle(index: Path) -> None:
    (index / "index_metadata.pickle").write_bytes(pickle.dumps(_Evil()))


def _spoil_header(index: Path) -> None:
    (index / "header.bin").write_bytes(struct.pack("<i6Qi", 1, 0, 9, 9, 2**60, 2**59, 0, 0))


def _spoil_count(index: Path) -> None:
    raw = bytearray((index / "header.bin").read_bytes())
    raw[20:28] = struct.pack("<Q", 2**40)
    (index / "header.bin").write_bytes(bytes(raw))


def _cut(index: Path) -> None:
    (index / "header.bin").write_bytes(b"\x01")


def _link(index: Path) -> None:
    (index / "data_level0.bin").rename(index.parent / "elsewhere")
    (index / "data_level0.bin").symlink_to(index.parent / "elsewhere")


@pytest.mark.parametrize("spoil", [_spoil_pickle, _spoil_header, _spoil_count, _cut, _link])
def test_damaged_or_hostile_index_file_is_refused_by_name(
    cast: Cast, collection: Collection, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    folder = make_chroma(tmp_path / "store", chunks(), indexed=2)
    spoil(folder / "segment-vector")
    row = run(start(cast, collection, "chroma", path=str(folder), vectors_model=collection.space.model))
    assert (row.status, row.error_code) == ("failed", "chroma_damaged")
    assert not Path("/tmp/groundwork-was-here").exists()
    row, documents = bring(cast, collection, folder)
    assert (row.status, {d.status for d in documents}) == ("completed", {"ready"})


def test_chunks_are_embedded_anew_when_the_vectors_have_another_length(
    cast: Cast, collection: Collection, embedder: WordEmbedder, tmp_path: Path, embedded: list[str]
) -> None:
    folder = make_chroma(tmp_path / "store", chunks(dimensions=3))
    _, documents = bring(cast, collection, folder, vectors_model=collection.space.model)

    assert {d.status for d in documents} == {"ready"}
    assert len(embedded) == 3
    for chunk in Chunk.objects.filter(collection=collection):
        assert vector_of(chunk).shape == (DIMS,)


def test_vectors_of_another_model_are_refused_by_name(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    folder = make_chroma(tmp_path / "store", chunks())
    row, documents = bring(cast, collection, folder, vectors_model="another")
    assert (row.status, row.error_code) == ("failed", "vectors_of_another_model")
    assert documents == []


def test_second_import_changes_nothing_and_a_chunk_without_text_is_listed(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    came = [
        *chunks(),
        {"id": "c0", "text": " ", "metadata": {"source_file": "c.md"}, "vector": np.ones(DIMS)},
    ]
    folder = make_chroma(tmp_path / "store", came)
    row, _ = bring(cast, collection, folder)
    assert reasons(row) == {"c.md": "no_text"}
    row, documents = bring(cast, collection, folder)
    assert (row.entries["created"], row.entries["unchanged"]) == (0, 2)
    assert len(documents) == 2
