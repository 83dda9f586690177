"""The worked example: added once, guarded as every tool, its tools searching documents of their types alone."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Chunk, Collection, Document
from apps.conversations import services, tasks
from apps.conversations.tools import SCOPE, Scope
from apps.conversations.trade_tools import TRADE_BUNDLE, TRADE_TOOLS, hts_code
from apps.tools.selectors import guard_for
from apps.tools.services import grant_create
from basics.errors import Conflict, Denied
from runs.actors import actor_facts
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import collection, embedder, ingest, storage  # noqa: F401 - fixtures
from tests.conversations.test_reading_tools import finished, here
from toolloop.output import output_of
from toolloop.tools import ToolContext, ToolError

pytestmark = pytest.mark.django_db
TYPES = {
    "schedule.md": ("hts_schedule", "8539.50.00 Light-emitting diode (LED) lamps. General rate 2%."),
    "ustr.md": ("section301_tariff", "Heading 9903.88.03: 8539.50.00 of China, additional duty 25%."),
    "epa.md": ("agency_regulation", "EPA asks importers of LED lamps for a declaration of mercury."),
    "notes.md": ("", "Our own notes on 8539.50.00 lamps, additional duty and EPA declaration."),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def admin(cast: Cast) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("admin")}


@pytest.fixture
def lookup(cast: Cast, request: pytest.FixtureRequest, admin: dict[str, Any]) -> Any:
    """Return a function that calls a tool as a viewer, over one document of each type."""
    trade: Collection = request.getfixturevalue("collection")
    for name, (kind, text) in TYPES.items():
        ingest(cast, trade, name, text.encode())
        Document.objects.filter(name=name).update(document_type=kind)
    services.example_install(**admin, name="trade_compliance")
    actor = cast.actor("viewer")
    run = Run.objects.create(tenant=cast.tenant, user=cast.user("viewer"), request={"actor": actor_facts(actor)})  # fmt: skip
    guard = guard_for(actor=actor, scope={trade.pk: trade.name})
    tools = guard.toolset(TRADE_TOOLS, TRADE_BUNDLE)
    context = ToolContext({SCOPE: Scope(cast.tenant, None, run, here, guard)})

    def calling(name: str, **arguments: Any) -> set[str]:
        tool = tools.get(name)
        assert tool is not None
        told = json.loads(finished(tool.function(context, **arguments)).content)
        pks = [int(row["id"].removeprefix("c")) for row in told["results"]]
        return set(Chunk.objects.filter(pk__in=pks).values_list("document__name", flat=True))

    return calling


def test_codes_are_written_as_schedules_print_them() -> None:
    given = {
        "8539500010": "8539.50.00.10",
        "8539.50": "8539.50",
        "8539 50 00": "8539.50.00",
        "8539": "8539",
    }
    assert {code: hts_code(code) for code in given} == given
    for wrong in ("", "lamp", "853", "8539.5", "85395000101", "8539.50.00' OR 1=1"):
        with pytest.raises(ToolError, match="no tariff code"):
            hts_code(wrong)


def test_each_tool_looks_into_documents_of_its_types_alone(lookup: Any) -> None:
    assert lookup("lookup_hts_code", code="85395000") == {"schedule.md"}
    assert lookup("lookup_hts_code", code="", goods="LED lamps") == {"schedule.md"}
    assert lookup("check_tariffs", code="8539.50.00", country="China") == {"schedule.md", "ustr.md"}
    assert lookup("check_agency_requirements", goods="LED lamps", agency="EPA") == {"epa.md"}
    for name, arguments in (
        ("lookup_hts_code", {"code": ""}),
        ("check_agency_requirements", {"goods": " "}),
        ("check_tariffs", {"code": "8539.50.00", "collections": ["Elsewhere"]}),
    ):
        with pytest.raises(ToolError):
            lookup(name, **arguments)


def test_example_is_added_published_and_only_once(cast: Cast, admin: dict[str, Any]) -> None:
    guard = guard_for(actor=cast.actor("owner"), scope={})
    assert guard.offered(TRADE_TOOLS, TRADE_BUNDLE) == []
    with pytest.raises(Denied):
        services.example_install(
            tenant=cast.tenant, actor=cast.actor("member"), name="trade_compliance"
        )
    made = services.example_install(**admin, name="trade_compliance")
    assert made.published.mode == "planned"
    assert output_of(made.published.output_schema).wire.strict
    with pytest.raises(Conflict):
        services.example_install(**admin, name="trade_compliance")
    turn = services.conversation_ask(
        tenant=cast.tenant, actor=cast.actor("viewer"), text="Which duty?", client_id=uuid.uuid4(),
        assistant="trade-compliance",
    )  # fmt: skip
    prepared = tasks._prepare(turn.tenant_id, turn.pk, turn.run_id)
    assert prepared is not None
    # The toolkit's, besides what the mode brings itself.
    assert set(prepared.answering.toolset.names()) - {"plan"} == {
        "search_documents",
        *TRADE_TOOLS.names(),
    }


def test_a_denial_that_stands_already_is_kept(cast: Cast, admin: dict[str, Any]) -> None:
    grant_create(**admin, effect="deny", target_kind="group", target="trade")
    services.example_install(**admin, name="trade_compliance")
    assert guard_for(actor=cast.actor("owner"), scope={}).offered(TRADE_TOOLS, TRADE_BUNDLE) == []


def test_command_adds_it_and_says_so(cast: Cast) -> None:
    said = StringIO()
    call_command("example_install", "--tenant", cast.tenant.slug, stdout=said)
    assert "“Trade compliance” is ready" in said.getvalue()
    with pytest.raises(CommandError, match="already"):
        call_command("example_install", "--tenant", cast.tenant.slug)
