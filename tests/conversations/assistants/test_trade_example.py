"""The worked example: added once, guarded as every tool; its tools say what they found, and types order and hide nothing."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.documents.type_rules import document_describe, type_rules_set
from apps.collections.ingestion.codes import tariff_code
from apps.collections.models import Chunk, Collection, Document, DocumentTypeRules
from apps.conversations.answering import tasks
from apps.conversations.assistants import examples
from apps.conversations.display.cards import SEARCHES
from apps.conversations.models import AssistantVersion, Message
from apps.conversations.toolset.bundle import BUNDLE, SCOPE, TOOLSET, Scope
from apps.conversations.toolset.results import Searching
from apps.conversations.toolset.trade import TRADE_BUNDLE, TRADE_TOOLS, hts_code
from apps.conversations.turns import services as turns_services
from apps.tools.permissions.services import grant_create
from apps.tools.toolset.bundles import Bundle
from apps.tools.toolset.selectors import guard_for
from basics.errors import Conflict, Denied
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job
from runs.actors import actor_facts
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import collection, embedder, ingest, read_at_once, storage  # noqa: F401 - fixtures
from tests.conversations.toolset.test_reading import finished, here
from toolloop.output import output_of
from toolloop.tools import ToolContext, ToolError, Toolset

pytestmark = pytest.mark.django_db
TYPES = {
    "schedule.md": ("hts_schedule", "8539.50.00 Light-emitting diode (LED) lamps. General rate 2%."),
    "ustr.md": ("section301_tariff", "Heading 9903.88.03: 8539.50.00 of China, additional duty 25%."),
    "epa.md": ("agency_regulation", "EPA asks importers of LED lamps for a declaration of mercury."),
    "notes.md": ("", "Our own notes on 8539.50.00 lamps, additional duty and EPA declaration."),
}


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def admin(cast: Cast) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("admin")}


@pytest.fixture
def lookup(
    cast: Cast, request: pytest.FixtureRequest, admin: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return a function that calls a tool as a viewer, over one document of each type."""
    read_at_once(monkeypatch)
    trade: Collection = request.getfixturevalue("collection")
    for name, (kind, text) in TYPES.items():
        ingest(cast, trade, name, text.encode())
        Document.objects.filter(name=name).update(document_type=kind)
    examples.example_install(**admin, name="trade_compliance")
    return caller(cast, trade, TRADE_TOOLS, TRADE_BUNDLE)


def caller(
    cast: Cast, trade: Collection, toolset: Toolset, bundle: Bundle, searching: Searching | None = None
) -> Any:
    """Return a function that calls a tool as a viewer and returns what a model reads."""
    actor = cast.actor("viewer")
    run = Run.objects.create(
        tenant=cast.tenant, user=cast.user("viewer"), request={"actor": actor_facts(actor)}
    )
    guard = guard_for(actor=actor, scope={trade.pk: trade.name})
    tools = guard.toolset(toolset, bundle)
    scope = Scope(cast.tenant, None, run, here, guard, searching=searching or Searching())
    context = ToolContext({SCOPE: scope})

    def calling(name: str, **arguments: Any) -> Any:
        tool = tools.get(name)
        assert tool is not None
        return json.loads(finished(tool.function(context, **arguments)).content)

    return calling


def documents(told: Any) -> list[str]:
    """Return the documents of a tool's passages, each once, in their order."""
    pks = [int(row["id"].removeprefix("c")) for row in told["results"]]
    names = dict(Chunk.objects.filter(pk__in=pks).values_list("pk", "document__name"))
    return list(dict.fromkeys(names[pk] for pk in pks))


def test_codes_are_written_as_schedules_print_them() -> None:
    given = {
        "8539500010": "HTS 8539.50.0010",
        "8539.50.00.10": "HTS 8539.50.0010",
        "8539.50": "HTS 8539.50",
        "8539 50 00": "HTS 8539.50.00",
        "8539": "HTS 8539",
    }
    assert {code: hts_code(code) for code in given} == given
    for wrong in ("", "lamp", "853", "8539.5", "85395000101", "8539.50.00' OR 1=1"):
        with pytest.raises(ToolError, match="isn't a tariff code"):
            hts_code(wrong)


def test_documents_of_its_types_come_first_and_no_other_is_hidden(lookup: Any) -> None:
    told = lookup("lookup_hts_code", code="8539 50 00")
    assert list(told)[:2] == ["found", "note"]
    assert told["found"] == "exact"
    assert documents(told)[0] == "schedule.md"
    assert set(documents(told)) == {"schedule.md", "ustr.md", "notes.md"}
    assert told["results"][0]["type"] == "hts_schedule"
    told = lookup("lookup_hts_code", code="", goods="LED lamps")
    assert (told["found"], documents(told)[0]) == ("near", "schedule.md")
    told = lookup("check_tariffs", code="8539.50.00", country="China")
    assert set(documents(told)[:2]) == {"schedule.md", "ustr.md"}
    assert documents(told)[2] == "notes.md"
    told = lookup("check_agency_requirements", goods="LED lamps", agency="EPA")
    assert documents(told)[0] == "epa.md"
    assert "notes.md" in documents(told)
    for name, arguments in (
        ("lookup_hts_code", {"code": ""}),
        ("check_agency_requirements", {"goods": " "}),
        ("check_tariffs", {"code": "8539.50.00", "collections": ["Elsewhere"]}),
    ):
        with pytest.raises(ToolError):
            lookup(name, **arguments)


def test_code_that_is_nowhere_is_told_first_and_no_type_hides_one_that_is(lookup: Any) -> None:
    told = lookup("lookup_hts_code", code="1234.56.78")
    assert told["found"] == "none"
    assert told["note"].startswith("Not in these documents: “1234.56.78”")
    assert told["results"] == []
    told = lookup("lookup_hts_code", code="1234.56.78", goods="LED lamps")
    assert told["found"] == "none"
    assert told["results"]
    assert "something else" in told["note"]
    assert lookup("lookup_hts_code", code="8539500010")["found"] == "parent"
    assert lookup("lookup_hts_code", code="8539")["found"] == "near"
    assert lookup("check_tariffs", code="99031234", country="China")["found"] == "none"
    Document.objects.update(document_type="")
    for spelling in ("8539.50.00", "85395000", "８５３９－５０－００"):
        told = lookup("lookup_hts_code", code=spelling)
        assert told["found"] == "exact"
        assert set(documents(told)) == {"schedule.md", "ustr.md", "notes.md"}
    assert "No document here has the type “hts_schedule”" in told["note"]


# From chapter 99 of the Harmonized Tariff Schedule (2026, revision 6) and chapter 84's form; public domain.
CHAPTER = b"""# Subchapter II

9902.01.02 Mustard seed oil and its fractions, other than crude (provided for in subheading 1514.99.90): Free

9902.01.04 Artichokes, prepared or preserved by vinegar (provided for in subheading 2001.90.25): 7.2%

9902.01.10 Artichokes, prepared otherwise than by vinegar, not frozen (provided for in subheading 2005.99.80): 12.7%

9902.01.13 Gum containing nicotine and containing synthetic sweetening agents (provided for in subheading 2106.90.98): 5.8%

9902.01.12 Edible powder with conjugated linoleic acid (CAS Nos. 2540-56-9 and 2420-56-6): Free

# Valves

8481.80.3055 Ball valves of iron or steel: 5.6%

8481.80.3060 Butterfly valves of iron or steel: 5.9%
"""
PARTS = b"# Parts of medium- and heavy-duty vehicles at 25%\n\n" + b"\n".join(
    b"%d at 25%%" % code for code in (4009120020, 7007211110, 8409911040, 84133010, 840734)
)
QUESTIONS = (
    ("What is the general rate on 9902.01.04?", "7.2%"),
    ("We import mustard seed oil under 99020102. What do we pay?", "Free"),
    ("Rate of duty on 9902 01 10, please", "12.7%"),
    ("Is nicotine gum of 9902–01–13 free?", "5.8%"),
    ("８４８１．８０．３０５５ from Brazil?", "5.6%"),
    ("duty for 84 81 80 30 60", "5.9%"),
    ("Is 4009.12.0020 on the list of vehicle parts?", "25%"),
    ("And 8413-30-10?", "25%"),
    ("What is the rate on 2106.90.98?", "5.8%"),
    ("What is the rate on 3304.99.50?", "not in these documents"),
)


def answer(call: Any, question: str) -> str:
    """Answer as a model that reads tool results alone: it knows no schedule, and believes what "found" says."""
    told = call("search_documents", query=question)
    if told["found"] == "none":
        return "not in these documents"
    code = told["codes"][0]["code"]
    digits = tariff_code(code)
    assert digits is not None
    first: str = told["results"][0]["text"]
    lines = [line for line in first.splitlines() if digits.canonical in re.sub(r"\D", "", line)]
    rates: list[str] = re.findall(r"\d+(?:\.\d+)?%|Free", lines[0])
    return rates[-1]


def test_ten_questions_are_answered_right_from_tool_results_alone(
    cast: Cast, request: pytest.FixtureRequest, admin: dict[str, Any]
) -> None:
    trade: Collection = request.getfixturevalue("collection")
    examples.example_install(**admin, name="trade_compliance")
    ingest(cast, trade, "chapter 99.md", CHAPTER)
    ingest(cast, trade, "parts.txt", PARTS)
    call = caller(cast, trade, TOOLSET, BUNDLE)
    assert {q: answer(call, q) for q, _ in QUESTIONS} == dict(QUESTIONS)


def run_now(job: Job) -> None:
    """Do a job here, as a worker does."""
    claimed = runner.claim(job.tenant_id, job.pk)
    assert claimed is not None
    registry.get(claimed.kind).handler(JobContext(claimed), **claimed.payload)


def test_example_brings_types_for_what_is_there_and_what_comes(
    cast: Cast, request: pytest.FixtureRequest, admin: dict[str, Any]
) -> None:
    trade: Collection = request.getfixturevalue("collection")
    said = b"# Schedule\n\nHarmonized Tariff Schedule of the United States, annotated for statistical reporting purposes.\n"
    before = ingest(cast, trade, "before.md", said)
    by_hand = ingest(cast, trade, "by hand.md", said)
    document_describe(tenant=cast.tenant, actor=cast.actor("member"), document=by_hand, document_type="ours")
    assert before.document_type == ""
    examples.example_install(**admin, name="trade_compliance")
    assert ingest(cast, trade, "after.md", said).document_type == "hts_schedule"
    job = Job.objects.get(kind="collections.types_infer")
    run_now(job)
    before.refresh_from_db()
    by_hand.refresh_from_db()
    assert (before.document_type, by_hand.document_type) == ("hts_schedule", "ours")


def test_example_keeps_the_rules_that_a_workspace_has(cast: Cast, admin: dict[str, Any]) -> None:
    own = {"type": "hts_schedule", "threshold": 1, "signals": [{"field": "name", "pattern": "zolltarif"}]}
    type_rules_set(**admin, rules={"version": 1, "default": "other", "rules": [own]})
    examples.example_install(**admin, name="trade_compliance")
    rules = DocumentTypeRules.objects.get().rules
    assert rules["default"] == "other"
    assert [r for r in rules["rules"] if r["type"] == "hts_schedule"] == [own]
    assert {"section301_tariff", "cbp_guide"} <= {r["type"] for r in rules["rules"]}


def test_order_of_the_schema_is_kept_for_model_and_export(cast: Cast, admin: dict[str, Any]) -> None:
    made = examples.example_install(**admin, name="trade_compliance")
    version = AssistantVersion.objects.get(assistant=made)
    wanted = [
        "schema_version",
        "answer",
        "hts_codes",
        "agencies",
        "required_documents",
        "tariff_info",
        "risk_flags",
        "citations",
    ]
    assert list(version.output_schema["properties"]) == wanted
    wire = output_of(version.output_schema).wire.schema
    assert list(wire["properties"]) == wanted
    assert list(wire["properties"]["required_documents"]["items"]["properties"]) == [
        "name",
        "agency",
        "purpose",
    ]
    assert list(wire["properties"]["tariff_info"]["properties"]) == [
        "general_duty",
        "special_programs",
        "country_specific",
    ]
    asked = turns_services.conversation_ask(
        tenant=cast.tenant,
        actor=cast.actor("viewer"),
        text="Which duty?",
        client_id=uuid.uuid4(),
        assistant="trade-compliance",
    )
    data = {"zulu": 1, "a": {"second": [], "b": None}, "mm": "“§”"}
    stored = Message.objects.create(
        tenant=cast.tenant, turn_id=asked.pk, author="assistant", text="x", data=data
    )
    stored.refresh_from_db()
    assert json.dumps(stored.data) == json.dumps(data)


def test_each_tool_that_searches_counts_as_a_search() -> None:
    searching = {
        tool.name
        for tool in (*TOOLSET, *TRADE_TOOLS)
        if tool.name.startswith(("search_", "lookup_", "check_"))
    }
    assert searching == SEARCHES
    assert set(TRADE_TOOLS.names()) <= SEARCHES


def test_search_takes_type_and_number_and_names_the_filter_that_emptied_it(
    cast: Cast, request: pytest.FixtureRequest
) -> None:
    trade: Collection = request.getfixturevalue("collection")
    for name, (kind, text) in TYPES.items():
        ingest(cast, trade, name, text.encode())
        Document.objects.filter(name=name).update(document_type=kind)
    call = caller(cast, trade, TOOLSET, BUNDLE)
    told = call("search_documents", query="additional duty of lamps", document_type="agency_regulation")
    assert documents(told)[0] == "epa.md"
    assert len(documents(told)) == 4
    assert len(call("search_documents", query="lamps", limit=2)["results"]) == 2
    with pytest.raises(ToolError, match="1 to 30"):
        call("search_documents", query="lamps", limit=31)
    only = Searching(filters={"document_type": "no_such"})
    told = caller(cast, trade, TOOLSET, BUNDLE, only)("search_documents", query="lamps")
    assert told["results"] == []
    assert "left out 4 documents" in told["note"]
    assert "no_such" in told["note"]


def test_example_is_added_published_and_only_once(cast: Cast, admin: dict[str, Any]) -> None:
    guard = guard_for(actor=cast.actor("owner"), scope={})
    assert guard.offered(TRADE_TOOLS, TRADE_BUNDLE) == []
    with pytest.raises(Denied):
        examples.example_install(tenant=cast.tenant, actor=cast.actor("member"), name="trade_compliance")
    made = examples.example_install(**admin, name="trade_compliance")
    assert made.published.mode == "planned"
    assert output_of(made.published.output_schema).wire.strict
    with pytest.raises(Conflict):
        examples.example_install(**admin, name="trade_compliance")
    turn = turns_services.conversation_ask(
        tenant=cast.tenant,
        actor=cast.actor("viewer"),
        text="Which duty?",
        client_id=uuid.uuid4(),
        assistant="trade-compliance",
    )
    prepared = tasks._prepare(turn.tenant_id, turn.pk, turn.run_id)
    assert prepared is not None
    # The toolkit's, besides what the mode brings itself.
    assert set(prepared.answering.toolset.names()) - {"plan"} == {"search_documents", *TRADE_TOOLS.names()}


def test_a_denial_that_stands_already_is_kept(cast: Cast, admin: dict[str, Any]) -> None:
    grant_create(**admin, effect="deny", target_kind="group", target="trade")
    examples.example_install(**admin, name="trade_compliance")
    assert guard_for(actor=cast.actor("owner"), scope={}).offered(TRADE_TOOLS, TRADE_BUNDLE) == []


def test_command_adds_it_and_says_so(cast: Cast) -> None:
    said = StringIO()
    call_command("example_install", "--tenant", cast.tenant.slug, stdout=said)
    assert "“Trade compliance” is ready" in said.getvalue()
    with pytest.raises(CommandError, match="already"):
        call_command("example_install", "--tenant", cast.tenant.slug)
