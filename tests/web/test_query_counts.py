"""How many database queries each main page costs: the committed numbers, with few rows and with many.

A page that asks more or less than its number, or whose number grows with the rows, fails. After a change that is meant to cost
(or save) queries, set the number in query_counts.json in the same commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.conversations.assistants.options import VersionSpec
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create, connection_allow, invite_create, model_entry_set
from tests.factories import actor_of, make_member
from tests.permissions.world import Side, make_row
from tests.transactions import around_requests

BASELINE = Path(__file__).with_name("query_counts.json")
COUNTS: dict[str, int] = json.loads(BASELINE.read_text())
MANY = 12
COLLECTION_PAGES = {
    f"collections:{page}"
    for page in (
        "detail",
        "chunks",
        "search",
        "settings",
        "files",
        "file-history",
        "file-search",
        "file-structure",
        "file-rules",
        "imports",
        "check",
    )
}
ASKED = {"collections:file-search": {"q": "1"}}
DATASET_PAGES = {
    f"datasets:{page}"
    for page in ("detail", "generate", "review", "checks", "sources", "versions", "exports", "imports")
}
DATASET_LISTS = {
    f"api:{name}-list"
    for name in (
        "dataset-rows",
        "dataset-versions",
        "dataset-exports",
        "dataset-imports",
        "dataset-checks",
        "dataset-sources",
        "generations",
    )
}
# Of a dataset page with one more argument: the row it names, and which of its attributes.
DATASET_PARTS = {
    "datasets:row": ("datasets.DatasetRow", "pk"),
    "datasets:job": ("datasets.GenerationJob", "pk"),
    "datasets:export": ("datasets.DatasetExport", "pk"),
    "datasets:import": ("datasets.DatasetImport", "pk"),
    "datasets:version": ("datasets.DatasetVersion", "number"),
}
COLLECTION_LISTS = {"api:chunks-list", "api:chunks-reader"}


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def costs(django_db_setup: None, django_db_blocker: Any) -> dict[str, tuple[int, int]]:
    """What each page costs with few rows and with many, all in one workspace that is rolled back."""
    with django_db_blocker.unblock(), around_requests():
        side = Side()
        side.row("collections.Chunk", "owner")
        asked = {name: address(side, name) for name in COUNTS}
        measured = []
        for times in (1, MANY):
            populate(side, times)
            originals_place(side)
            measured.append({name: cost(side, name, *asked[name]) for name in COUNTS})
        transaction.set_rollback(True)
    few, many = measured
    return {name: (few[name], many[name]) for name in COUNTS}


def originals_place(side: Side) -> None:
    """Place the files of tools, as the commit does that never comes here."""
    from apps.collections.models import Document
    from blobs.services import place_from_rows

    with tenant_scope(side.tenant.pk):
        for key in Document.objects.filter(tenant=side.tenant).values_list("file", flat=True):
            place_from_rows(side.tenant.pk, key)


def populate(side: Side, times: int) -> None:
    """Add rows of everything that the pages list."""
    from apps.collections.files.services import file_write
    from apps.collections.models import Collection, Document
    from apps.conversations.assistants.services import assistant_create, version_publish
    from apps.conversations.models import Conversation
    from apps.datasets.rows.services import NewRow, rows_add
    from apps.datasets.versions.services import version_create
    from apps.evaluations.models import AnnotationQueue
    from budgets.models import Budget
    from runs.models import ChunkRead, ToolCall

    owner, tenant = side.user("owner"), side.tenant
    actor = actor_of(side.people["owner"])
    collection = side.row("collections.Collection", "owner")
    dataset = side.row("datasets.Dataset", "owner")
    for number in range(times):
        for label in (
            "datasets.DatasetExport",
            "datasets.DatasetImport",
            "datasets.DatasetCheck",
            "datasets.GenerationJob",
        ):
            make_row(apps.get_model(label), tenant, owner, dataset=dataset)
        make_row(apps.get_model("datasets.Dataset"), tenant, owner)
        judged = make_row(apps.get_model("conversations.Feedback"), tenant, owner, user=owner)
        for author, text in (("user", f"Why {number}?"), ("assistant", "Because.")):
            make_row(
                apps.get_model("conversations.Message"),
                tenant,
                owner,
                turn=judged.turn,
                author=author,
                text=text,
            )
        with tenant_scope(tenant.pk):
            rows = [
                NewRow(
                    Record(
                        f"Why {times}.{number}?",
                        "So.",
                        sources=(RecordSource(f"{times}.{number}.pdf", "So."),),
                    )
                )
            ]
            rows_add(tenant=tenant, actor=actor, dataset=dataset, rows=rows, source="test")
            version_create(tenant=tenant, actor=actor, dataset=dataset)
        model_entry_set(
            tenant=tenant, actor=actor, name=f"openai/{times}-{number}", prices=[{"input": 1, "output": 2}]
        )
        make_member(tenant, "viewer")
        make_row(Collection, tenant, owner)
        make_row(Document, tenant, owner, collection=collection, status="ready")
        with tenant_scope(tenant.pk):
            file_write(
                tenant=tenant,
                actor=actor,
                collection=collection,
                path=f"{times}/{number}.txt",
                content=f"{number}\n",
            )
        make_row(Budget, tenant, owner)
        with tenant_scope(tenant.pk):
            spec = VersionSpec(collections=[collection.pk])
            made = assistant_create(tenant=tenant, actor=actor, name=f"A{times}-{number}", spec=spec)
            version_publish(tenant=tenant, actor=actor, assistant=made, number=1)
        make_row(AnnotationQueue, tenant, owner)
        make_row(ToolCall, tenant, owner, user_id=owner.pk)
        # Of no run that there is: by a chance of numbers it would be withheld what a listed run has said.
        make_row(ChunkRead, tenant, owner, user_id=owner.pk, run_id=-1 - number)
        make_row(Conversation, tenant, owner, user=owner, model="extractive", title=f"T{number}")
        api_key_create(tenant=tenant, actor=actor, name="k", scopes=["search.run"])
        connection_allow(
            tenant=tenant,
            actor=actor,
            client_id="app",
            name="App",
            scopes=["tool.run"],
            redirect_uri="https://app.example/cb",
            challenge="c" * 43,
        )
        invite_create(
            tenant=tenant,
            actor=actor,
            email=f"i{number}.{tenant.pk}@example.org",
            role="viewer",
            link_for=str,
        )


def address(side: Side, name: str) -> tuple[str, dict[str, str]]:
    """Return a page's URL and the headers it is asked with; makes the rows it shows."""
    if name.startswith("api:"):
        pks = [side.row("collections.Collection", "owner").pk] if name in COLLECTION_LISTS else []
        if name in DATASET_LISTS:
            pks = [side.row("datasets.Dataset", "owner").pk]
        return reverse(name, args=pks), {"X-Tenant": side.tenant.slug}
    if name.startswith("admin:"):
        return reverse(name), {}
    args: list[Any] = [side.tenant.slug]
    if name in COLLECTION_PAGES:
        args.append(side.row("collections.Collection", "owner").pk)
    if name in DATASET_PAGES | set(DATASET_PARTS):
        args.append(side.row("datasets.Dataset", "owner").pk)
    if name in DATASET_PARTS:
        label, attribute = DATASET_PARTS[name]
        args.append(getattr(side.row(label, "owner"), attribute))
    if name == "collections:chunk":
        chunk = side.row("collections.Chunk", "owner")
        args += [chunk.collection_id, chunk.pk]
    if name in {"collections:document", "collections:document-about"}:
        document = side.row("collections.Document", "owner")
        args += [document.collection_id, document.pk]
    if name == "conversations:detail":
        args.append(side.row("conversations.Conversation", "owner").pk)
    return reverse(name, args=args), {}


def cost(side: Side, name: str, url: str, headers: dict[str, str]) -> int:
    """Return the queries of one GET by the owner, and undo what it wrote; -1 when it does not answer."""
    with around_requests():
        client = Client(raise_request_exception=False)
        client.force_login(side.user("owner"), "django.contrib.auth.backends.ModelBackend")
        with CaptureQueriesContext(connection) as queries:
            response = client.get(url, ASKED.get(name), headers=headers)
        transaction.set_rollback(True)
    return len(queries) if response.status_code == 200 else -1


@pytest.mark.parametrize("name", COUNTS)
def test_page_costs_its_number_of_queries_however_many_rows(name: str, costs: dict[str, tuple[int, int]]):
    few, many = costs[name]
    assert few >= 0, "the page does not answer"
    assert few == many, "the page asks once for each row"
    assert many == COUNTS[name], f"was {COUNTS[name]}, is {many}: see the top of this file"
