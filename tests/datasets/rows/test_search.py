"""Rows are found by words, page by page, in the actor's own workspace alone, with the index that is there for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.datasets.models import Dataset, DatasetRow
from apps.datasets.records.parts import RecordSource, RowType, Split
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import search as row_search
from apps.datasets.rows import selectors as s
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.rows.services import NewRow
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast

pytestmark = pytest.mark.django_db
HOSTILE = (
    "'",
    "a' | 'b",
    "\\",
    "a\\'b:*",
    "!(&|<->",
    ":*",
    "x" * 5000,
    "e'; DROP TABLE x; --",
    "\x00",
    "%s %I",
)


def fill(cast: Cast, count: int = 12) -> Dataset:
    """Return a dataset with so many rows; call inside the tenant's scope."""
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    dataset = dataset_services.dataset_create(**who, name="Duties")
    rows = [
        NewRow(
            Record(
                f"What is the duty of heading 8703.{n:02}?",
                f"Trucks pay {n} percent; supplier's note.",
                type=RowType.FACTUAL if n % 2 else RowType.HOW_TO,
                split=Split.TEST if n == 3 else "",
                tags=("odd",) if n % 2 else (),
                sources=(RecordSource(f"tariff-{n % 3}.pdf", f"Note {n}."),),
            ),
            "approved" if n < 4 else "review",
        )
        for n in range(count)
    ]
    rows_services.rows_add(**who, dataset=dataset, rows=rows, source="test")
    return dataset


def found(cast: Cast, dataset: Dataset, **only: str) -> list[str]:
    """Return the last words of the questions that fit, by the list and by the page alike."""
    actor, narrow = cast.actor("viewer"), RowFilter(**only)
    listed = list(s.row_list(actor=actor, dataset=dataset, only=narrow))
    page = s.row_page(actor=actor, dataset=dataset, only=narrow)
    assert page.rows == listed
    assert s.row_count(actor=actor, dataset=dataset, only=narrow) == len(listed)
    return [row.question.split()[-1] for row in listed]


def test_rows_are_found_by_words_codes_and_every_filter(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset = fill(cast)
        assert found(cast, dataset, text="8703.04") == ["8703.04?"]
        assert len(found(cast, dataset, text="DUTY heading 8703")) == 12
        assert len(found(cast, dataset, text="truck supplier's")) == 12
        assert found(cast, dataset, text="uck") == []
        assert found(cast, dataset, text="duty", status="approved", type="factual") == [
            "8703.01?",
            "8703.03?",
        ]
        assert found(cast, dataset, text="duty", split="test") == ["8703.03?"]
        assert found(cast, dataset, source="tariff-2.pdf", tag="odd") == ["8703.05?", "8703.11?"]
        assert found(cast, dataset, text="tariff-2.pdf", status="approved") == ["8703.02?"]
        assert len(found(cast, dataset, text="tariff")) == 12
        assert found(cast, dataset, tag="odd", status="approved") == ["8703.01?", "8703.03?"]
        row = DatasetRow.objects.get(question__contains="8703.05")
        rows_services.row_update(
            tenant=cast.tenant, actor=cast.actor("member"), row=row, changes={"answer": "Lamps."}
        )
        assert found(cast, dataset, text="lamps") == ["8703.05?"]
        for words in HOSTILE:
            assert set(found(cast, dataset, text=words)) <= set(found(cast, dataset))
            assert found(cast, dataset, source=words.strip("\x00") or "-") == []
            assert found(cast, dataset, text="duty", status=words) == []


def test_pages_go_forth_and_back_over_every_row_once(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset, actor = fill(cast), cast.actor("viewer")
        for only in (RowFilter(), RowFilter(text="duty")):
            every = [row.pk for row in s.row_list(actor=actor, dataset=dataset, only=only)]
            seen: list[int] = []
            page = s.row_page(actor=actor, dataset=dataset, only=only, most=5)
            assert not page.has_before
            while True:
                seen += [row.pk for row in page.rows]
                if not page.has_after:
                    break
                page = s.row_page(actor=actor, dataset=dataset, only=only, after=seen[-1], most=5)
                assert page.has_before
            assert seen == every
            back = s.row_page(actor=actor, dataset=dataset, only=only, before=every[7], most=5)
            assert [row.pk for row in back.rows] == every[2:7]
            assert (back.has_before, back.has_after) == (True, True)
            back = s.row_page(actor=actor, dataset=dataset, only=only, before=every[5], most=5)
            assert not back.has_before


def test_the_function_looks_into_no_other_workspace(cast: Cast) -> None:
    other = make_cast()
    with tenant_scope(other.tenant.pk):
        foreign = fill(other)
        asked: dict[str, Any] = {
            "text": "duty",
            "equal": {},
            "source": "",
            "tag": "",
            "past": None,
            "is_back": False,
            "most": 50,
        }
        assert len(row_search.found_ids(foreign.pk, **asked)) == 12
    with tenant_scope(cast.tenant.pk):
        assert row_search.found_ids(foreign.pk, **asked) == []
        assert (
            row_search.found_ids(foreign.pk, **{**asked, "equal": {"tenant_id": str(other.tenant.pk)}}) == []
        )


def test_words_are_read_from_their_index(cast: Cast) -> None:
    """The function asks for the column that the index is of, or every search reads the whole table."""
    assert " AND words @@ " in row_search.SQL
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute("EXPLAIN SELECT id FROM datasets_datasetrow WHERE words @@ 'duty'::tsquery")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "dataset_row_words" in plan


def test_a_list_by_words_is_read_a_page_at_a_time(cast: Cast) -> None:
    """The cursor of REST goes through the function: what a page costs does not grow with the rows that fit."""
    with tenant_scope(cast.tenant.pk):
        dataset = fill(cast)
        every = [row.pk for row in s.row_list(actor=cast.actor("viewer"), dataset=dataset)]
    client = Client()
    client.force_login(cast.user("viewer"))
    url = f"/api/v1/datasets/{dataset.pk}/rows?text=duty&page_size=5"
    seen: list[list[int]] = []
    while url:
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(url, headers={"X-Tenant": cast.tenant.slug})
        assert not [
            q["sql"] for q in queries if "datasets_rows_found" in q["sql"] and "::integer" in q["sql"]
        ]
        seen.append([row["id"] for row in answer.json()["results"]])
        url = answer.json()["next"]
    assert [pk for page in seen for pk in page] == every[::-1]
    back = client.get(answer.json()["previous"], headers={"X-Tenant": cast.tenant.slug}).json()
    assert [row["id"] for row in back["results"]] == seen[-2]
