"""The page of a row and of its review: what was said before the question, and where the row comes from."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.models import DatasetRow
from apps.datasets.records.parts import ToolCall, TraceMessage
from apps.datasets.records.record import Record
from apps.datasets.rows import dataset_services
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.services import NewRow
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.markup import flat

pytestmark = pytest.mark.django_db


def test_a_row_shows_its_conversation_and_where_it_comes_from(cast: Cast) -> None:
    talk = (
        TraceMessage("system", "Be exact."),
        TraceMessage("user", "What is the duty on <cars>?"),
        TraceMessage("assistant", "", (ToolCall("c1", "search_documentation", {"query": "cars"}),)),
        TraceMessage("tool", "8703: 10 percent", (), "c1"),
        TraceMessage("assistant", "Ten percent."),
        TraceMessage("user", "And for trucks?"),
        TraceMessage("assistant", "Twenty."),
    )
    said = Record("And for trucks?", "Twenty.", messages=talk)
    assert [m.content for m in said.earlier] == ["What is the duty on <cars>?", "Ten percent."]
    assert Record("Why?", "So.").earlier == ()
    lineages: list[dict[str, Any]] = [
        {"generation": 7, "item": 9},
        {"import": 3, "row": 12},
        {"conversation": 5, "turn": 1, "feedback": "bad"},
        {"experiment": 4, "arm": 1},
        {},
    ]
    rows = [NewRow(said, lineage=lineages[0])]
    rows += [NewRow(Record(f"Question {n}?", "a"), lineage=l) for n, l in enumerate(lineages[1:])]  # noqa: E741
    with tenant_scope(cast.tenant.pk):
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
        dataset = dataset_services.dataset_create(**who, name="Duties")
        pks = rows_services.rows_add(**who, dataset=dataset, rows=rows, source="test").created
        assert DatasetRow.objects.get(pk=pks[0]).lineage == lineages[0]
    client = Client()
    client.force_login(cast.user("member"))
    pages = [
        client.get(reverse("datasets:row", args=[cast.tenant.slug, dataset.pk, pk])).content.decode()
        for pk in pks
    ]
    for page, words in zip(
        pages, ("?item=9#trace", "Row 12 of", "From a chat, and judged bad", "Failed in"), strict=False
    ):
        assert words in flat(page)
    review = client.get(reverse("datasets:review", args=[cast.tenant.slug, dataset.pk]))
    for page in (pages[0], review.content.decode()):
        assert "What is the duty on &lt;cars&gt;?" in page
        assert page.index("Ten percent.") < page.index("Twenty.")
        assert "8703: 10 percent" not in page
    assert "Said before" not in pages[1]
