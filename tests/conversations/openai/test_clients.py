"""The official OpenAI client against the running product: plain, streamed, tools here and there, errors, going away."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from django.test import Client
from pydantic import BaseModel

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from apps.collections.models import Chunk
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_publish
from apps.conversations.models import Assistant, AssistantVersion
from apps.tools.permissions.services import grant_create, grant_delete
from jobs.models import ACTIVE, Job
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run, RunStatus, ToolCall, UsageRecord
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.conversations.openai.site import (
    ASK,
    BUSY,
    CLIENT_TOOL,
    CUT,
    FAILING,
    FILTERED,
    JSON,
    MODELS,
    PLAIN,
    QUESTION,
    SCRIPTED,
    SLOW,
    TIERED,
    WEATHER,
    Site,
    poor_key,
    two_cities,
)
from tests.later import later
from tests.servers import wait_for
from toolloop.deferred import Decision

MADE_UP = "Lamps of copper were never exempt from inspection"
openai = later("openai")
pytestmark = pytest.mark.servers


def test_official_client_does_all_it_does_elsewhere(site: Site) -> None:
    """One running product for all of it: starting it costs more than each part."""
    models_are_listed(site)
    plain_and_streamed_say_the_same(site)
    workspace_answers_with_citations(site)
    generated_answers_are_cited_alike_at_every_door(site)
    clients_tool_is_handed_back_and_its_result_taken(site)
    parallel_calls_are_handed_back_together(site)
    tools_of_both_sides_are_called_at_once(site)
    named_tool_comes_first_and_then_all_are_there(site)
    assistant_takes_the_clients_tools(site)
    ends_are_told_as_they_were(site)
    events_are_told_to_who_wants_them(site)
    structured_answer_fits_its_schema(site)
    settings_reach_the_model(site)
    tier_is_told_as_it_was_used(site)
    errors_are_errors(site)
    no_money_is_said_once(site)
    client_that_goes_away_stops_the_run(site)
    client_that_waits_no_longer_stops_the_run(site)
    client_that_never_waited_spends_nothing(site)
    stranger_learns_nothing(site)
    approval_that_waits_is_a_text(site)


def approval_that_waits_is_a_text(site: Site) -> None:
    """To a client that knows nothing of approvals: what waits, where to decide, and where the answer will be."""
    who: dict[str, Any] = {"tenant": site.cast.tenant, "actor": site.cast.actor("owner")}
    with tenant_scope(site.cast.tenant.pk):
        rule = grant_create(**who, effect="ask", target_kind="tool", target="search_documents")
    own: Any = {"model": "assistant/workspace", "messages": ASK}
    whole = site.client.chat.completions.create(**own)
    text = whole.choices[0].message.content or ""
    assert "search_documents needs your approval" in text
    assert f"{site.url}/t/{site.cast.tenant.slug}/tools/approvals/" in text
    streamed = site.client.chat.completions.create(**own, stream=True)
    said = "".join(c.choices[0].delta.content or "" for c in streamed if c.choices)
    assert said.split("api/v1/runs/")[0] == text.split("api/v1/runs/")[0]
    kept = site.client.responses.create(model="assistant/workspace", input=QUESTION)
    assert "search_documents needs your approval" in kept.output_text
    stream = site.client.responses.create(model="assistant/workspace", input=QUESTION, stream=True)
    deltas = [e.delta for e in stream if e.type == "response.output_text.delta"]
    assert "search_documents needs your approval" in "".join(deltas)
    rest = httpx2.Client(headers={"Authorization": f"Bearer {site.key}"})
    where = text.split("read it at ")[1].removesuffix(".]")
    with tenant_scope(site.cast.tenant.pk):
        extension: Any = kept.model_extra
        for run_id in (int(where.rpartition("/")[2]), extension["groundwork"]["run"]):
            waiting = PendingDecision.objects.get(run_id=run_id)
            call_decide(**who, run=waiting.run, decision_id=waiting.pk, decision=Decision("approve"))
            wait_for(lambda pk=run_id: Run.objects.get(pk=pk).status == RunStatus.COMPLETED, "the answer")  # type: ignore[misc]
        grant_delete(**who, pk=rule.pk)
    assert rest.get(where).json()["status"] == "completed"
    after = site.client.responses.retrieve(kept.id)
    assert after.status == "completed"
    assert "approval" not in after.output_text


def models_are_listed(site: Site) -> None:
    ids = [model.id for model in site.client.models.list()]
    assert ids[0] == "assistant/workspace"
    assert set(MODELS) <= set(ids)
    assert site.client.models.retrieve("assistant/workspace").owned_by == "compatible"
    assert site.client.models.retrieve(PLAIN).id == PLAIN
    with pytest.raises(openai.NotFoundError):
        site.client.models.retrieve("gpt-none")


def plain_and_streamed_say_the_same(site: Site) -> None:
    whole = site.client.chat.completions.create(model=PLAIN, messages=ASK)
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (100, 20)
    stream = site.client.chat.completions.create(
        model=PLAIN, messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said.strip() == (whole.choices[0].message.content or "").strip()
    assert len(said.split()) == 12
    assert chunks[-1].usage is not None
    assert not any(c.usage for c in chunks[:-1])
    assert chunks[-1].usage.total_tokens == 120
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert not site.fake.log[-1].get("tools")


def workspace_answers_with_citations(site: Site) -> None:
    whole = site.client.chat.completions.create(model="assistant/workspace", messages=ASK)
    text = whole.choices[0].message.content or ""
    extension: Any = whole.model_extra
    (citation,) = extension["groundwork"]["citations"]
    assert text.rstrip().endswith("[1].")
    assert citation["document_name"] == "lamps.txt"
    assert "four percent" in citation["quote"]
    with tenant_scope(site.cast.tenant.pk):
        call = ToolCall.objects.get(run_id=extension["groundwork"]["run"])
    assert (call.name, call.status) == ("search_documents", "succeeded")


def generated_answers_are_cited_alike_at_every_door(site: Site) -> None:
    """Random answers, with markers of what was found, of what is elsewhere and of nothing: each leads to one passage."""
    who: dict[str, Any] = {"tenant": site.cast.tenant, "actor": site.cast.actor("owner")}
    with tenant_scope(site.cast.tenant.pk):
        searched, other = (collection_create(**who, name=name) for name in ("Lots", "Elsewhere"))
        for number in range(1, 5):
            said = f"Passage {number} says that rate {number} holds for lot {number}.".encode()
            document_upload(**who, collection=searched, name=f"{number}.txt", chunks=[said])
        document_upload(**who, collection=other, name="x.txt", chunks=[b"Rate 9 holds for lot 9."])
        waiting = Job.objects.filter(status__in=ACTIVE)
        wait_for(lambda: not waiting.exists(), "the documents")
        known = list(Chunk.objects.filter(collection=searched).values_list("pk", flat=True))
        hidden = Chunk.objects.get(collection=other).pk
    answers = [random_answer(Random(seed), [*known, hidden, 10**9]) for seed in range(12)]

    def reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
        if body["messages"][-1]["role"] != "tool":
            return [{"name": "search_documents", "arguments": {"query": "rate lot"}}]
        asked = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
        return answers[int(asked.split()[-1])]

    site.fake.replies[SCRIPTED.removeprefix("compatible/")] = reply
    rest = httpx2.Client(base_url=site.base_url, headers={"Authorization": f"Bearer {site.key}"})
    page = Client()
    page.force_login(site.cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    asked = [
        ask_both(site, rest, searched.pk, f"What is the rate? {number}") for number in range(len(answers))
    ]
    removed = marked = 0
    for text, (conversation, turn, told) in zip(answers, asked, strict=True):
        wanted = [int(n) for n in re.findall(r"c(\d+)(?=[,\]])", text)]
        place = f"/conversations/{conversation}"
        wait_for(partial(is_completed, rest, f"{place}/turns/{turn}"), "the answer")
        row = rest.get(f"{place}/turns/{turn}").json()
        chunk_of = {c["number"]: c["chunk_id"] for c in row["citations"]}
        # Unsupported and foreign ones are removed and counted; all others lead somewhere.
        assert sorted(chunk_of.values()) == sorted({n for n in wanted if n in known}), text
        assert row["removed_citations"] == sum(n not in known for n in wanted)
        assert not re.search(r"\[c\d", row["answer"])
        cited = [int(n) for n in re.findall(r"\[(\d+)\]", row["answer"])]
        assert set(cited) == set(chunk_of)
        # OpenAI's form.
        assert {c["number"]: c["chunk"] for c in told["citations"]} == chunk_of
        assert told["removed_citations"] == row["removed_citations"]
        marks = [(mark["text"], mark["reason"]) for mark in row["marks"]]
        assert [(mark["text"], mark["reason"]) for mark in told["marks"]] == marks
        marked += len(marks)
        # Export.
        exported = rest.get(f"{place}/export", params={"form": "json"}).json()["conversation"]
        assert exported["turns"][0]["marks"] == row["marks"]
        assert {c["number"]: c["chunk_id"] for c in exported["turns"][0]["citations"]} == chunk_of
        # The page, and after a reload; each marker opens its passage.
        address = f"/t/{site.cast.tenant.slug}/chat/{conversation}/"
        shown = [
            [
                int(n)
                for n in re.findall(rf'data-cite="{row["run_id"]}-(\d+)"', page.get(address).content.decode())
            ]
            for _ in range(2)
        ]
        assert shown == [cited, cited]
        for number, chunk in chunk_of.items():
            opened = page.get(f"{address}sources/{row['run_id']}-{number}/")
            assert opened.context["chunk"].pk == chunk
        removed += row["removed_citations"]
    assert removed > 5, "the batch holds what must be removed"
    assert marked > 2, "the batch holds what no passage says"
    marks_come_with_streams(site, searched.pk, reply)


def marks_come_with_streams(site: Site, collection: int, searching: Any) -> None:
    """The official client keeps them beside the text, after it, in both of its streams."""

    def reply(body: dict[str, Any]) -> Any:
        found = searching(body) if body["messages"][-1]["role"] != "tool" else ""
        ids = re.findall(r'"id": ?"(c\d+)"', str(body["messages"][-1]["content"]))
        return found or f"Rate 1 holds for lot 1 [{ids[0]}]. {MADE_UP}."

    site.fake.replies[SCRIPTED.removeprefix("compatible/")] = reply
    where: dict[str, Any] = {"extra_body": {"groundwork": {"collections": [collection]}}}
    *_, last = site.client.chat.completions.create(model=SCRIPTED, messages=ASK, stream=True, **where)
    assert last.choices[0].finish_reason == "stop"
    with site.client.responses.stream(model=SCRIPTED, input=ASK[0]["content"], **where) as stream:
        final = stream.get_final_response()
    for told in (last, final):
        (mark,) = (told.model_extra or {})["groundwork"]["marks"]
        assert (mark["text"], mark["reason"]) == (f"{MADE_UP}.", "unsupported")
    assert final.output_text[mark["start"] : mark["end"]] == mark["text"]


def is_completed(rest: httpx2.Client, path: str) -> bool:
    return bool(rest.get(path).json()["status"] == "completed")


def random_answer(random: Random, ids: list[int]) -> str:
    """Return sentences with markers of one and of several passages, in prose, lists, quotes and emphasis."""
    parts = []
    for _ in range(random.randint(2, 7)):
        marks = "".join(
            f"[{', '.join(f'c{n}' for n in random.sample(ids, random.randint(1, 3)))}]"
            for _ in range(random.randint(0, 2))
        )
        words = random.choice(["The rate holds", "**Lot 3** is free", "See rate 2", "No duty", MADE_UP])
        start = random.choice(["", "- ", "> ", "1. "])
        parts.append(f"{start}{words} {marks}.")
    return "\n\n".join(parts)


def ask_both(site: Site, rest: httpx2.Client, collection: int, text: str) -> tuple[int, int, dict[str, Any]]:
    """Ask in a conversation and as OpenAI's clients do; return the conversation, its turn and what the client was told."""
    made = rest.post("/conversations", json={"model": SCRIPTED, "collections": [collection]})
    turn = rest.post(f"/conversations/{made.json()['id']}/turns", json={"text": text})
    whole = site.client.chat.completions.create(
        model=SCRIPTED,
        messages=[{"role": "user", "content": text}],
        extra_body={"groundwork": {"collections": [collection]}},
    )
    extension: Any = whole.model_extra
    return made.json()["id"], turn.json()["id"], extension["groundwork"]


def clients_tool_is_handed_back_and_its_result_taken(site: Site) -> None:
    first = site.client.chat.completions.create(model=CLIENT_TOOL, messages=ASK, tools=[WEATHER])
    assert first.choices[0].finish_reason == "tool_calls"
    message = first.choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"query": ASK[0]["content"]}
    asked = len(site.fake.log)
    history = [
        *ASK,
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "Rain all day."},
    ]
    stream = site.client.chat.completions.create(
        model=CLIENT_TOOL, messages=history, tools=[WEATHER], stream=True
    )
    chunks = list(stream)
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert len(said.split()) == 6
    assert chunks[0].id == first.id, "the same run went on"
    results = [m for m in site.fake.log[asked]["messages"] if m["role"] == "tool"]
    assert [r["content"] for r in results] == ["Rain all day."]
    # Sent again (a client that lost the answer), it is answered anew from the history.
    again = site.client.chat.completions.create(model=CLIENT_TOOL, messages=history, tools=[WEATHER])
    assert again.id != first.id
    assert again.choices[0].finish_reason == "stop"


def parallel_calls_are_handed_back_together(site: Site) -> None:
    site.fake.replies["fake-scripted"] = two_cities
    with site.client.chat.completions.stream(model=SCRIPTED, messages=ASK, tools=[WEATHER]) as s:
        message = s.get_final_completion().choices[0].message
    calls = message.tool_calls or []
    assert [json.loads(c.function.arguments) for c in calls] == [{"query": "Lyon"}, {"query": "Graz"}]
    said: Any = message.model_dump(exclude_none=True, exclude={"parsed", "content"})
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": sky}
        for call, sky in zip(calls, ("sunny", "wet"), strict=True)
    ]
    with pytest.raises(openai.ConflictError):  # half of the results
        site.client.chat.completions.create(
            model=SCRIPTED, messages=[*ASK, said, results[0]], tools=[WEATHER]
        )
    history: list[Any] = [*ASK, said, *reversed(results)]
    whole = site.client.chat.completions.create(model=SCRIPTED, messages=history, tools=[WEATHER])
    assert whole.choices[0].message.content == "It is sunny and wet."


def both_sides(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Search here and ask the client for the weather in one turn, then say what came back."""
    results = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if not results:
        return [
            {"name": "search_documents", "arguments": {"query": "duty on lamps"}},
            {"name": "weather", "arguments": {"query": "Graz"}},
        ]
    chunk = re.search(r"c\d+", results[0])
    return f"Four percent [{chunk and chunk[0]}], and it is {results[1]}."


def tools_of_both_sides_are_called_at_once(site: Site) -> None:
    """In one turn: ours runs here, the client's is handed back alone, and the answer rests on both."""
    site.fake.replies["fake-scripted"] = both_sides
    own: Any = {"model": SCRIPTED, "extra_body": {"groundwork": {"collections": "all"}}}
    # As clients write a tool that they say nothing about.
    bare: Any = {"type": "function", "function": {"name": "weather"}}
    first = site.client.chat.completions.create(**own, messages=ASK, tools=[bare])
    (call,) = first.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "weather"
    said: Any = first.choices[0].message.model_dump(exclude_none=True)
    history = [*ASK, said, {"role": "tool", "tool_call_id": call.id, "content": "wet"}]
    whole = site.client.chat.completions.create(**own, messages=history, tools=[bare])
    assert whole.id == first.id, "the same run went on"
    assert whole.choices[0].message.content == "Four percent [1], and it is wet."
    (citation,) = (whole.model_extra or {})["groundwork"]["citations"]
    assert citation["document_name"] == "lamps.txt"


def named_tool_comes_first_and_then_all_are_there(site: Site) -> None:
    site.fake.replies["fake-scripted"] = two_cities
    other: Any = {
        "type": "function",
        "function": {"name": "clock", "strict": None, "parameters": {"type": "object", "properties": {}}},
    }
    own: Any = {
        "model": SCRIPTED,
        "tools": [WEATHER, other],
        "extra_body": {"groundwork": {"collections": "all"}},
    }
    named: Any = {"type": "function", "function": {"name": "weather"}}
    first = site.client.chat.completions.create(**own, messages=ASK, tool_choice=named)
    assert site.fake.log[-1]["tools"] == ["weather"], "neither another one nor ours"
    said: Any = first.choices[0].message.model_dump(exclude_none=True)
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call["id"], "content": "wet"} for call in said["tool_calls"]
    ]
    whole = site.client.chat.completions.create(**own, messages=[*ASK, said, *results])
    assert whole.id == first.id
    assert {"weather", "clock", "search_documents"} <= set(site.fake.log[-1]["tools"])
    # A request that wants another call at once, or something else of the answer, begins anew.
    parked = site.client.chat.completions.create(**own, messages=ASK).choices[0].message
    said = parked.model_dump(exclude_none=True)
    results = [{**r, "tool_call_id": c["id"]} for r, c in zip(results, said["tool_calls"], strict=True)]
    anew = site.client.chat.completions.create(**own, messages=[*ASK, said, *results], tool_choice="required")
    assert anew.id != whole.id
    assert anew.choices[0].message.content == "It is wet and wet."


def assistant_takes_the_clients_tools(site: Site) -> None:
    who: dict[str, Any] = {"tenant": site.cast.tenant, "actor": site.cast.actor("owner")}
    with tenant_scope(site.cast.tenant.pk):
        for name, mode in (("Clerk", "tools"), ("Planner", "planned")):
            row = assistant_create(**who, name=name, spec=VersionSpec(mode=mode, model="extractive"))
            version_publish(**who, assistant=row, number=1)
        clerk = Assistant.objects.get(slug="clerk")
        # Written past the check of models: this process does not know those of the running one.
        AssistantVersion.objects.filter(assistant=clerk).update(model=SCRIPTED)
    site.fake.replies["fake-scripted"] = both_sides
    first = site.client.chat.completions.create(model="assistant/clerk", messages=ASK, tools=[WEATHER])
    (call,) = first.choices[0].message.tool_calls or []
    said: Any = first.choices[0].message.model_dump(exclude_none=True)
    history = [*ASK, said, {"role": "tool", "tool_call_id": call.id, "content": "wet"}]
    whole = site.client.chat.completions.create(model="assistant/clerk", messages=history, tools=[WEATHER])
    assert whole.choices[0].message.content == "Four percent [1], and it is wet."
    with pytest.raises(openai.BadRequestError, match="can't use your tools"):
        site.client.chat.completions.create(model="assistant/planner", messages=ASK, tools=[WEATHER])


def ends_are_told_as_they_were(site: Site) -> None:
    for model, reason in ((CUT, "length"), (FILTERED, "content_filter")):
        whole = site.client.chat.completions.create(model=model, messages=ASK)
        assert whole.choices[0].finish_reason == reason
        stream = site.client.chat.completions.create(model=model, messages=ASK, stream=True)
        assert [c.choices[0].finish_reason for c in stream if c.choices][-1] == reason


def events_are_told_to_who_wants_them(site: Site) -> None:
    def told(**more: Any) -> list[str]:
        stream = site.client.chat.completions.create(
            model="assistant/workspace", messages=ASK, stream=True, extra_body=more
        )
        extras = [(chunk.model_extra or {}).get("groundwork", {}) for chunk in stream]
        return [event["kind"] for extra in extras for event in extra.get("events", ())]

    kinds = told(groundwork={"events": True})
    assert kinds.index("tool_started") < kinds.index("tool_finished")
    assert not {"text", "finished"} & set(kinds)
    assert told() == []


def structured_answer_fits_its_schema(site: Site) -> None:
    class Duty(BaseModel):
        percent: int

    def corrected(body: dict[str, Any]) -> str:
        return '{"percent": 4}' if "This is no JSON." in str(body["messages"]) else "This is no JSON."

    for is_streamed in (False, True):
        site.fake.replies["fake-json"] = corrected
        if is_streamed:
            with site.client.chat.completions.stream(model=JSON, messages=ASK, response_format=Duty) as s:
                whole = s.get_final_completion()
        else:
            whole = site.client.chat.completions.parse(model=JSON, messages=ASK, response_format=Duty)
        assert whole.choices[0].message.parsed == Duty(percent=4)


def settings_reach_the_model(site: Site) -> None:
    bodies: list[dict[str, Any]] = []

    def told(body: dict[str, Any]) -> str:
        bodies.append(body)
        return "Yes."

    site.fake.replies["fake-scripted"] = told
    given: dict[str, Any] = {"temperature": 0.5, "top_p": 0.5, "parallel_tool_calls": False}
    more: dict[str, Any] = {"seed": 7, "stop": ["END", "."]}
    site.client.chat.completions.create(
        model=SCRIPTED, messages=ASK, tools=[WEATHER], max_completion_tokens=50, **given, **more
    )
    tools: list[Any] = [{**WEATHER["function"], "type": "function", "strict": False}]
    site.client.responses.create(model=SCRIPTED, input="Is it?", tools=tools, max_output_tokens=50, **given)
    sent = [{name: body.get(name) for name in (*given, *more, "max_tokens")} for body in bodies]
    assert sent == [
        {**given, **more, "max_tokens": 50},
        {**given, "seed": None, "stop": None, "max_tokens": 50},
    ]
    create = site.client.chat.completions.create
    for model in ("extractive", "assistant/planner"):
        with pytest.raises(openai.BadRequestError, match="stop") as refused:
            create(model=model, messages=ASK, stop="END")
        assert refused.value.param == "stop"
    with pytest.raises(openai.BadRequestError, match="logprobs"):
        create(model=PLAIN, messages=ASK, logprobs=True)


def tier_is_told_as_it_was_used(site: Site) -> None:
    """https://platform.openai.com/docs/api-reference/chat/object: the answer's may be another than the request's."""
    chat, responses = site.client.chat.completions, site.client.responses
    assert chat.create(model=TIERED, messages=ASK, service_tier="default").service_tier == "flex"
    chunks = list(
        chat.create(model=TIERED, messages=ASK, stream=True, stream_options={"include_usage": True})
    )
    assert [chunk.service_tier for chunk in chunks][-2:] == ["flex", "flex"]
    kept = responses.create(model=TIERED, input="Is it?", service_tier="auto")
    assert kept.service_tier == responses.retrieve(kept.id).service_tier == "flex"
    assert chat.create(model=PLAIN, messages=ASK, service_tier="auto").service_tier is None
    assert responses.create(model=PLAIN, input="Is it?").service_tier == "auto"
    with tenant_scope(site.cast.tenant.pk):
        billed = UsageRecord.objects.filter(model=TIERED.partition("/")[2])
        assert set(billed.values_list("service_tier", flat=True)) == {"flex"}
    asked = len(site.fake.log)
    for ask in (
        lambda tier: chat.create(model=PLAIN, messages=ASK, service_tier=tier),
        lambda tier: responses.create(model=PLAIN, input="Is it?", service_tier=tier),
    ):
        with pytest.raises(openai.BadRequestError, match="no service tier") as lacking:
            ask("flex")
        assert (lacking.value.code, lacking.value.param) == ("unsupported_parameter", "service_tier")
        with pytest.raises(openai.BadRequestError) as unknown:
            ask("cheap")
        assert unknown.value.param == "service_tier"
    assert len(site.fake.log) == asked


def errors_are_errors(site: Site) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        site.client.chat.completions.create(model="gpt-none", messages=ASK)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert unknown.value.type == "invalid_request_error"
    assert unknown.value.request_id == unknown.value.response.json()["request_id"]
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\]"):
        site.client.chat.completions.create(model=PLAIN, messages=[{"role": "x", "content": "y"}])  # type: ignore[list-item, misc]
    with pytest.raises(openai.APIStatusError) as failed:
        site.client.chat.completions.create(model=FAILING, messages=ASK)
    assert failed.value.request_id == failed.value.response.json()["request_id"]
    with pytest.raises(openai.APIError):
        list(site.client.chat.completions.create(model=FAILING, messages=ASK, stream=True))
    with pytest.raises(openai.RateLimitError) as busy:
        site.client.with_options(max_retries=0).chat.completions.create(model=BUSY, messages=ASK)
    assert (busy.value.code, busy.value.type) == ("rate_limit_exceeded", "rate_limit_error")
    stranger = openai.OpenAI(base_url=f"{site.url}/api/v1", api_key="gw_nobody", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def no_money_is_said_once(site: Site) -> None:
    """Clients repeat a 429 by themselves; this one they are told not to."""
    asked: list[str] = []

    def note(request: Any) -> None:
        asked.append(request.url.path)

    watched = openai.DefaultHttpxClient(event_hooks={"request": [note]})
    base_url, key = f"{site.url}/api/v1", poor_key(site)
    poor = openai.OpenAI(base_url=base_url, api_key=key, max_retries=3, http_client=watched)
    refused: list[Callable[[], Any]] = [
        lambda: poor.chat.completions.create(model=PLAIN, messages=ASK),
        lambda: poor.chat.completions.create(model=PLAIN, messages=ASK, stream=True),
        lambda: poor.responses.create(model=PLAIN, input="Why?"),
    ]
    for ask in refused:
        with pytest.raises(openai.RateLimitError, match="budget of \\$0") as told:
            ask()
        assert (told.value.code, told.value.type) == ("budget_exceeded", "insufficient_quota")
    assert len(asked) == len(refused)


def client_that_goes_away_stops_the_run(site: Site) -> None:
    stream = site.client.chat.completions.create(model=SLOW, messages=ASK, stream=True)
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            break
    stream.close()
    last_run_is_stopped(site)


def client_that_waits_no_longer_stops_the_run(site: Site) -> None:
    """Unstreamed requests of both kinds: their clients leave while the model speaks."""
    impatient = site.client.with_options(timeout=httpx2.Timeout(30, read=2))
    asks: list[Callable[[], Any]] = [
        lambda: impatient.chat.completions.create(model=SLOW, messages=ASK),
        lambda: impatient.responses.create(model=SLOW, input="Why?"),
    ]
    for ask in asks:
        with pytest.raises(openai.APITimeoutError):
            ask()
        last_run_is_stopped(site)


def client_that_never_waited_spends_nothing(site: Site) -> None:
    """Clients that leave with the last byte of their request, before there is anything to cancel."""
    body = json.dumps({"model": SLOW, "messages": ASK}).encode()
    address = urlsplit(site.url)
    for _ in range(5):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(
                f"POST /api/v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
                f"Authorization: Bearer {site.key}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
    # What comes after them on the same server is answered, and nothing of theirs goes on.
    assert site.client.models.list().data
    with tenant_scope(site.cast.tenant.pk):
        active = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
        wait_for(lambda: not active.exists(), "the stops")
        assert not Run.objects.filter(model=SLOW, status=RunStatus.COMPLETED).exists()


def last_run_is_stopped(site: Site) -> None:
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.order_by("pk").last()
        assert run is not None
        wait_for(lambda: Run.objects.get(pk=run.pk).status == RunStatus.STOPPED, "the stop")
    wait_for(lambda: site.fake.log[-1]["closed_early"], "the provider's stream to be closed")


def stranger_learns_nothing(site: Site) -> None:
    """A waiting call of one workspace cannot be answered from another, which only gets an answer of its own."""
    first = site.client.chat.completions.create(model=CLIENT_TOOL, messages=ASK, tools=[WEATHER])
    calls = first.choices[0].message.tool_calls
    assert calls is not None
    with tenant_scope(site.cast.other_tenant.pk):
        _, key = api_key_create(
            tenant=site.cast.other_tenant,
            actor=site.cast.actor("outsider"),
            name="x",
            scopes=["conversation.write", "model.read", "tool.run"],
        )
    outsider = openai.OpenAI(base_url=f"{site.url}/api/v1", api_key=key, max_retries=0)
    history: list[Any] = [
        *ASK,
        first.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": calls[0].id, "content": "Stolen."},
    ]
    own = outsider.chat.completions.create(model=PLAIN, messages=history)
    assert own.id != first.id
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.get(pk=int(first.id.removeprefix("chatcmpl-")))
    assert run.status == RunStatus.PARKED
