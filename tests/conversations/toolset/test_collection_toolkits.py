"""A collection's toolkit comes along into conversations over it, and opens nothing that the grants close."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.tools.connectors import plugin
from apps.tools.models import CollectionToolkit, ToolGrant, Toolkit
from apps.tools.toolkits.services import collection_toolkit_set, toolkit_delete, toolkit_set
from basics.errors import Denied, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.assistants.test_assistants import asked, made, prepared
from tests.conversations.support import make_library
from tests.factories import make_collection
from tests.tools.sources.support import granted, many, plugin_put, source_made
from toolloop.tools.dynamic import DynamicToolset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def who(cast: Cast) -> Iterator[dict[str, Any]]:
    with tenant_scope(cast.tenant.pk):
        yield {"tenant": cast.tenant, "actor": cast.actor("member")}


@pytest.fixture
def admin(cast: Cast) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("admin")}


def kit_of(admin: dict[str, Any], collection: Collection, *tools: str, name: str = "Kit") -> Toolkit:
    kit = toolkit_set(**admin, name=name, tools=tools)
    collection_toolkit_set(**admin, collection=collection.pk, toolkit=kit.pk)
    return kit


def offered(who: dict[str, Any], *collections: Collection, **more: Any) -> set[str]:
    turn = asked(who, collections=[c.pk for c in collections], **more)
    return set(prepared(turn).answering.toolset.names())


def test_assistant_with_a_toolkit_is_offered_the_collections_too_and_deny_wins(
    cast: Cast, who: dict[str, Any], admin: dict[str, Any]
) -> None:
    here, there = make_library(cast, "Here").collection, make_library(cast, "There").collection
    own = toolkit_set(**admin, name="Own", tools=["search_documents"])
    made(who, toolkit=own.pk, has_toolkit=True)
    made(who, "Silent", has_toolkit=True)
    kit = kit_of(admin, here, "calculate", "date_info")
    assert offered(who, there, assistant="clerk") == {"search_documents"}
    both = {"search_documents", "calculate", "date_info"}
    assert offered(who, here, assistant="clerk") == both
    assert offered(who, here, there, assistant="clerk") == both
    assert offered(who, here, assistant="silent") == set()
    ToolGrant.objects.create(
        tenant=cast.tenant, effect="deny", target_kind="tool", target="calculate", collection=here
    )
    assert offered(who, here, assistant="clerk") == {"search_documents", "date_info"}
    assert "calculate" not in offered(who, here)
    toolkit_delete(**admin, pk=kit.pk)
    assert offered(who, here, assistant="clerk") == {"search_documents"}


def test_toolkit_grants_nothing(cast: Cast, who: dict[str, Any], admin: dict[str, Any]) -> None:
    here = make_library(cast, "Here").collection
    kit_of(admin, here, "calculate")
    ToolGrant.objects.all().delete()
    assert offered(who, here) == set()


def test_where_tools_are_many_those_of_the_collection_are_loaded_from_the_start(
    cast: Cast, who: dict[str, Any], admin: dict[str, Any], tmp_path: Path, settings: Any
) -> None:
    settings.PLUGIN_DIR = tmp_path
    plugin.plugins_forget()
    plugin_put(tmp_path, many(60, 5), "many")
    source_made(cast.tenant, name="many")
    granted(cast.tenant, "many")
    here, there = make_library(cast, "Here").collection, make_library(cast, "There").collection
    kit_of(admin, here, "many_tool5", "many_tool7", "gone")
    toolset = prepared(asked(who, collections=[here.pk])).answering.toolset
    assert isinstance(toolset, DynamicToolset)
    assert {"many_tool5", "many_tool7", "load_tools"} <= set(toolset.names())
    assert "many_tool6" not in toolset.names()
    assert not {"many_tool5", "many_tool7"} & offered(who, there)


def test_who_may_set_it_and_what_is_recorded(cast: Cast, admin: dict[str, Any]) -> None:
    here, theirs = make_collection(cast.tenant), make_collection(cast.other_tenant)
    first, second = (toolkit_set(**admin, name=name, tools=["calculate"]) for name in ("A", "B"))
    foreign = toolkit_set(tenant=cast.other_tenant, actor=cast.actor("outsider"), name="C", tools=[])
    change: Any = {"collection": here.pk, "toolkit": first.pk}
    with pytest.raises(Denied):
        collection_toolkit_set(tenant=cast.tenant, actor=cast.actor("member"), **change)
    with pytest.raises(Missing):
        collection_toolkit_set(**admin, collection=theirs.pk, toolkit=first.pk)
    with pytest.raises(Invalid):
        collection_toolkit_set(**admin, collection=here.pk, toolkit=foreign.pk)
    for kit in (first, first, second, None):
        collection_toolkit_set(**admin, collection=here.pk, toolkit=None if kit is None else kit.pk)
    with tenant_scope(cast.tenant.pk):
        events = AuditEvent.objects.filter(action="collection.toolkit_set").order_by("pk")
        assert [(e.data["before"], e.data["after"]) for e in events] == [(None, "A"), ("A", "B"), ("B", None)]
        assert not CollectionToolkit.objects.exists()


def test_it_is_set_on_the_page_over_rest_and_in_the_admin(cast: Cast, admin: dict[str, Any]) -> None:
    here = make_collection(cast.tenant)
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    page = reverse("tools:collection", args=[cast.tenant.slug, here.pk])
    assert "No toolkits yet" in client.get(page).content.decode()
    kit = toolkit_set(**admin, name="Sums", tools=["calculate"])
    assert client.post(page, {"toolkit": kit.pk}).status_code == 302
    assert "calculate" in client.get(page).content.decode()
    assert client.post(page, {"toolkit": kit.pk + 1}).status_code == 422
    rest = f"/api/v1/collections/{here.pk}/toolkit"
    assert client.get(rest).json() == {"toolkit": kit.pk, "name": "Sums"}
    with tenant_scope(cast.tenant.pk):
        row = CollectionToolkit.objects.get()
    listed = client.get(reverse("admin:tools_collectiontoolkit_changelist")).content.decode()
    assert "Sums" in listed
    again = {"collection": here.pk, "toolkit": kit.pk}
    refused = client.post(reverse("admin:tools_collectiontoolkit_add"), again).content.decode()
    assert "already has a toolkit" in refused
    gone = reverse("admin:tools_collectiontoolkit_delete", args=[row.pk])
    assert client.post(gone, {"post": "yes"}).status_code == 302
    assert client.get(rest).json() == {"toolkit": None, "name": ""}
    assert client.put(rest, {"toolkit": kit.pk}, "application/json").json()["name"] == "Sums"
    assert client.put(rest, {"toolkit": 10**9}, "application/json").status_code == 400
    assert (
        client.put("/api/v1/collections/0/toolkit", {"toolkit": None}, "application/json").status_code == 404
    )
