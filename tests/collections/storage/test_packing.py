"""Rows packed for COPY BINARY are what the adapters would have sent; sums over postings choose what they should."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection, transaction
from pgvector import HalfVector, SparseVector

from apps.collections.index.postings import Contents, _edge, postings_add
from apps.collections.index.term_weights import weights_pack
from apps.collections.ingestion.lexical import MAX_TERMS, SPARSE_DIMS, term_id, tf_weights
from apps.collections.storage import packing
from apps.collections.storage.bulk import packed_copy


@pytest.mark.django_db
def test_every_type_arrives_as_it_was_packed() -> None:
    columns = {
        "a": "int8",
        "b": "int4",
        "c": "text",
        "d": "jsonb",
        "e": "text[]",
        "f": "bytea",
        "g": "sparsevec",
    }
    weights = packing.sparsevec(np.array([3, 700], ">i4").tobytes(), np.array([0.5, 2], ">f4").tobytes())
    rows = [
        packing.row_start(7)
        + packing.int8(-5)
        + packing.int4(None)
        + packing.text("é\n\t\\N")
        + packing.jsonb('{"k": [1, "ü"]}')
        + packing.text_array(["id:a b", "ß"])
        + packing.raw(b"\x00\xff")
        + weights,
        packing.row_start(7)
        + packing.int8(2**62)
        + packing.int4(7)
        + packing.text("")
        + packing.jsonb("[]")
        + packing.text_array([])
        + packing.raw(b"")
        + packing.sparsevec(b"", b""),
    ]
    with connection.cursor() as cursor, transaction.atomic():
        fields = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        cursor.execute(f"CREATE TEMPORARY TABLE packed_target ({fields}) ON COMMIT DROP")
        assert packed_copy("packed_target", columns, rows) == 2
        cursor.execute("SELECT a, b, c, d::text, e, f, g::text FROM packed_target ORDER BY a")
        first, second = cursor.fetchall()
    assert first[:5] == (-5, None, "é\n\t\\N", '{"k": [1, "ü"]}', ["id:a b", "ß"])
    assert (bytes(first[5]), first[6]) == (b"\x00\xff", f"{{4:0.5,701:2}}/{SPARSE_DIMS}")
    assert second[:5] == (2**62, 7, "", "[]", [])
    assert (bytes(second[5]), second[6]) == (b"", f"{{}}/{SPARSE_DIMS}")


def test_vectors_are_packed_as_their_type_packs_them() -> None:
    vectors = np.array([[0.5, -1.25, 1e-3], [3.0, 0.0, 65504.0]], np.float32)
    packed = packing.halfvec_rows([9, [1, 2]], vectors)
    expected = b"".join(
        packing.row_start(3) + packing.int8(9) + packing.int8(n) + packing.raw(HalfVector(v).to_binary())
        for n, v in enumerate(vectors, 1)
    )
    assert packed == expected


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e9])
@pytest.mark.filterwarnings("ignore:overflow")
def test_vector_is_refused_when_a_half_cannot_hold_it(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        packing.halfvec_rows([1], np.array([[0.1, bad]], np.float32))


@pytest.mark.parametrize("average", [0.0, 12.5])
def test_weights_are_those_of_the_formula(average: float) -> None:
    chunks = [["a", "b", "a", "=8539.50"], [], ["c"] * 9 + [f"w{n}" for n in range(MAX_TERMS + 50)]]
    weighed = weights_pack(chunks, average)
    for terms, packed in zip(chunks, weighed.packed, strict=True):
        indices, values = packing.sparsevec_read(packed[4:])
        found = dict(zip(indices.tolist(), values.tolist(), strict=True))
        assert list(found) == sorted(found)
        expected = tf_weights(terms, average)
        assert len(found) == len(expected) <= MAX_TERMS
        common = {term_id(term) for term in ("a", "b", "c")} & set(expected)
        assert {key: found[key] for key in common} == pytest.approx(
            {key: expected[key] for key in common}, rel=1e-5
        )
        assert sorted(found.values()) == pytest.approx(sorted(expected.values()), rel=1e-5)
        sparse = SparseVector(found, SPARSE_DIMS)
        assert packed[4:] == sparse.to_binary()
    assert len(weighed.terms) == sum(len(set(terms)) for terms in chunks[:2]) + MAX_TERMS


def posting(weight: float, places: list[int], weights: list[float]) -> tuple[float, bytes, bytes]:
    return weight, np.array(places, np.uint32).tobytes(), np.array(weights, np.float32).tobytes()


CONTENTS = Contents(np.arange(100, 110, dtype=np.int64), np.array([1, 1, 1, 1, 1, 2, 2, 2, 2, 2]))


def test_postings_add_up_and_the_smaller_id_wins_a_draw() -> None:
    rare, common = posting(3, [4], [1]), posting(1, [0, 2, 4, 6, 8], [1, 1, 1, 1, 1])
    assert sorted(postings_add(CONTENTS, [rare, common], limit=3)) == [100, 102, 104]
    assert sorted(postings_add(CONTENTS, [rare, common], limit=50)) == [100, 102, 104, 106, 108]
    assert postings_add(CONTENTS, [], limit=3) == []


def test_postings_propose_only_what_may_be_found() -> None:
    common = posting(1, list(range(10)), [1] * 10)
    allowed = np.array([2], np.int64)
    found = postings_add(CONTENTS, [common], limit=2, documents=allowed, disabled=np.array([105]))
    assert sorted(found) == [106, 107]
    assert postings_add(CONTENTS, [common], limit=2, documents=np.array([], np.int64)) == []


@pytest.mark.parametrize(
    "sums",
    [
        np.arange(5_000),
        np.arange(5_000) % 7,
        np.zeros(500),
        np.where(
            np.arange(5_000) % 16, np.arange(5_000), 9_999
        ),  # what is looked at first is higher than the rest
        np.where(np.arange(5_000) % 16, np.arange(5_000), 0),  # and lower
        np.array([3, 1, 2]),
    ],
    ids=["rising", "drawn", "none", "misled_up", "misled_down", "few"],
)
@pytest.mark.parametrize("limit", [1, 2, 100, 499])
def test_edge_is_the_smallest_of_the_largest(sums: np.ndarray, limit: int) -> None:
    if limit < len(sums):
        assert _edge(sums.astype(np.float32), limit) == np.sort(sums)[-limit]
