"""The client against the running platform."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from groundwork_client import Forbidden, Groundwork, Invalid, NotFound, RateLimited, Unauthorized

from tenancy.models import RateLimit
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.api.conftest import Api, serving
from tests.cast import Cast, make_cast
from tests.shared_database import shared_database

pytestmark = pytest.mark.servers


transactional_db = shared_database("module")


@pytest.fixture(scope="module")
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture(scope="module")
def api(cast: Cast, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(cast, tmp_path_factory.mktemp("servers")) as api:
        yield api


def test_work_of_a_day_goes_through(api: Api, tmp_path: Path) -> None:
    with Groundwork(api.url, api.key) as gw:
        made = gw.collections_create({"name": "By client"}, idempotency_key="once")
        assert gw.collections_create({"name": "By client"}, idempotency_key="once") == made
        assert [c["name"] for c in gw.collections_list_all(page_size=1)].count("By client") == 1
        (tmp_path / "pumps.txt").write_text("Pumps of heading 8413 pay nothing. " * 9)
        document = gw.documents_upload(made["id"], {"file": tmp_path / "pumps.txt"})
        gw.documents_upload(made["id"], {"file": ("more.txt", b"More about pumps. " * 9)})
        assert {d["name"] for d in gw.documents_list_all(made["id"])} == {"pumps.txt", "more.txt"}
        assert gw.documents_get(document["id"])["name"] == "pumps.txt"
        assert gw.search({"query": "the duty on lamps", "k": 3})["hits"]
        called = gw.tools_execute(
            {
                "tool_calls": [
                    {"id": "a", "function": {"name": "calculate", "arguments": '{"expression": "6*7"}'}}
                ]
            }
        )
        assert "42" in called["messages"][0]["content"]
        events = list(gw.runs_events(api.ids[""]["runs"]))
        assert events[-1].kind == "finished"
        later = list(gw.runs_events(api.ids[""]["runs"], after=events[-2].id))
        assert [e.id for e in later] == [events[-1].id]
        gw.collections_delete(made["id"])
        with pytest.raises(NotFound) as gone:
            gw.collections_get(made["id"])
        assert gone.value.code == "not_found"
        assert gone.value.request_id


def test_refusals_are_exceptions(api: Api, cast: Cast) -> None:
    with pytest.raises(Unauthorized, match="unknown, revoked or expired"):
        Groundwork(api.url, "gw_nonsense").collections_list()
    _, few = api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="few", scopes=["search.run"])
    with Groundwork(api.url, few) as gw, pytest.raises(Forbidden):
        gw.collections_list()
    with Groundwork(api.url, api.key) as gw, pytest.raises(Invalid) as invalid:
        gw.collections_create({"name": ""})
    assert invalid.value.details["fields"]["name"]


def test_rate_limit_is_waited_for_or_raised(api: Api, cast: Cast) -> None:
    _, slow = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="slow", scopes=["collection.read"]
    )
    with tenant_scope(cast.tenant.pk):
        RateLimit.objects.create(tenant=cast.tenant, kind="key", per_minute=60, burst=1)
    with Groundwork(api.url, slow) as gw:
        for _ in range(3):
            assert gw.collections_list()["results"]
    with Groundwork(api.url, slow, retries=0) as gw, pytest.raises(RateLimited) as limited:
        [gw.collections_list() for _ in range(3)]
    assert limited.value.retry_after_s > 0
