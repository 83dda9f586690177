"""The official OpenAI client against ``/responses`` and ``/embeddings`` of the running product."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from apps.conversations.rules.instructions import instructions_set
from runs.models import Run, RunStatus, UsageRecord
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.conversations.openai.site import (
    CLIENT_TOOL,
    CUT,
    FAILING,
    FILTERED,
    JSON,
    PLAIN,
    QUESTION,
    SCOPES,
    SCRIPTED,
    SLOW,
    WEATHER,
    Site,
    two_cities,
)
from tests.later import later
from tests.servers import wait_for

openai = later("openai")
pytestmark = pytest.mark.servers

TOOL: Any = {"type": "function", "strict": False, **WEATHER["function"]}
LOCAL = "local/all-MiniLM-L6-v2"


def test_official_client_does_all_it_does_elsewhere(site: Site) -> None:
    """One running product for all of it: starting it costs more than each part."""
    stream_builds_up_what_is_kept(site)
    workspace_answers_with_citations(site)
    conversation_goes_on_from_a_response(site)
    workspace_instructions_come_first(site)
    clients_tools_are_handed_back_and_their_results_taken(site)
    structured_answer_is_parsed(site)
    what_is_not_kept_cannot_be_named(site)
    other_key_learns_nothing(site)
    errors_are_errors(site)
    client_that_goes_away_stops_the_run(site)
    response_is_cancelled_and_forgotten(site)
    texts_are_embedded(site)


def stream_builds_up_what_is_kept(site: Site) -> None:
    kinds = []
    with site.client.responses.stream(model=PLAIN, input=QUESTION, metadata={"a": "b"}) as stream:
        deltas = []
        for event in stream:
            kinds.append(event.type)
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert "".join(deltas) == final.output_text
    assert len(final.output_text.split()) == 12
    assert final.usage is not None
    assert (final.usage.input_tokens, final.usage.output_tokens) == (100, 20)
    kept = site.client.responses.retrieve(final.id)
    assert kept.output_text == final.output_text
    assert (kept.status, kept.metadata, kept.id) == ("completed", {"a": "b"}, final.id)
    raw = site.client.responses.create(model=PLAIN, input=QUESTION, stream=True)
    numbers = [event.sequence_number for event in raw]
    assert numbers == list(range(len(numbers)))


def workspace_answers_with_citations(site: Site) -> None:
    whole = site.client.responses.create(model="assistant/workspace", input=QUESTION)
    (message,) = whole.output
    assert message.type == "message"
    (part,) = message.content
    assert part.type == "output_text"
    (annotation,) = part.annotations
    assert annotation.type == "file_citation"
    assert annotation.filename == "lamps.txt"
    (citation,) = (whole.model_extra or {})["groundwork"]["citations"]
    assert "four percent" in citation["quote"]
    assert str(citation["document"]) == annotation.file_id


def conversation_goes_on_from_a_response(site: Site) -> None:
    first = site.client.responses.create(
        model=PLAIN,
        instructions="Be short.",
        input=[{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "One?"}],
    )
    second = site.client.responses.create(model=PLAIN, input="Two?", previous_response_id=first.id)
    site.client.responses.create(model=PLAIN, input="Three?", previous_response_id=second.id)
    system, *said = site.fake.log[-1]["messages"]
    assert "Be kind." in system["content"]
    assert "Be short." not in system["content"], "instructions end with their response"
    texts = [m["content"] for m in said]
    assert texts == ["One?", first.output_text, "Two?", second.output_text, "Three?"]
    assert site.client.responses.retrieve(second.id).previous_response_id == first.id


def workspace_instructions_come_first(site: Site) -> None:
    """Whatever a model searches, and though the client has instructions of its own."""
    who: Any = {"tenant": site.cast.tenant, "actor": site.cast.actor("owner")}
    with tenant_scope(site.cast.tenant.pk):
        instructions_set(**who, text="Answer formally.")
    try:
        site.client.responses.create(model=PLAIN, instructions="Be short.", input=QUESTION)
        alone = site.fake.log[-1]["messages"][0]["content"]
        site.client.responses.create(model=PLAIN, input=QUESTION)
        bare = site.fake.log[-1]["messages"][0]["content"]
        everywhere: Any = {"groundwork": {"collections": "all"}}
        site.client.responses.create(
            model=PLAIN, instructions="Be short.", input=QUESTION, extra_body=everywhere
        )
        searching = site.fake.log[-1]["messages"][0]["content"]
    finally:
        with tenant_scope(site.cast.tenant.pk):
            instructions_set(**who, text="")
    assert alone.startswith("Instructions of the workspace")
    assert alone.endswith("Answer formally.\n\nBe short.")
    assert bare.endswith("Answer formally.")
    assert searching.count("Answer formally.") == 1
    assert searching.startswith("Instructions of the workspace")


def clients_tools_are_handed_back_and_their_results_taken(site: Site) -> None:
    site.fake.replies["fake-scripted"] = two_cities
    with site.client.responses.stream(model=SCRIPTED, input=QUESTION, tools=[TOOL]) as stream:
        first = stream.get_final_response()
    calls = [item for item in first.output if item.type == "function_call"]
    assert len(calls) == len(first.output)
    assert [json.loads(c.arguments)["query"] for c in calls] == ["Lyon", "Graz"]
    results: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": sky}
        for call, sky in zip(calls, ("sunny", "wet"), strict=True)
    ]
    go_on: dict[str, Any] = {"model": SCRIPTED, "tools": [TOOL], "previous_response_id": first.id}
    with pytest.raises(openai.BadRequestError, match="function_call_output"):
        site.client.responses.create(**go_on, input="And?")
    second = site.client.responses.create(**go_on, input=results)
    assert second.output_text == "It is sunny and wet."
    assert second.id != first.id
    run = {(r.model_extra or {})["groundwork"]["run"] for r in (first, second)}
    assert len(run) == 1, "the same run went on"
    assert second.usage is not None
    assert second.usage.input_tokens == 100, "of this response, not of the run"
    # Both halves are kept, each as it was told.
    kept = site.client.responses.retrieve(first.id)
    assert [i.call_id for i in kept.output if i.type == "function_call"] == [c.call_id for c in calls]
    assert kept.status == "completed"
    last = site.client.responses.retrieve(second.id)
    assert (last.output_text, last.previous_response_id) == (second.output_text, first.id)
    # Results that come again, or with a question behind them, are answered anew, from the history.
    again = site.client.responses.create(**go_on, input=results)
    assert again.output_text == second.output_text
    site.client.responses.create(model=PLAIN, previous_response_id=second.id, input="And?")
    roles = [m["role"] for m in site.fake.log[-1]["messages"] if m["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    # A client that keeps everything itself sends the items back.
    alone = site.client.responses.create(model=CLIENT_TOOL, input=QUESTION, tools=[TOOL], store=False)
    (call,) = alone.output
    assert call.type == "function_call"
    history: list[Any] = [
        {"role": "user", "content": QUESTION},
        call.to_dict(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."},
    ]
    done = site.client.responses.create(model=CLIENT_TOOL, input=history, tools=[TOOL], store=False)
    assert len(done.output_text.split()) == 6


def structured_answer_is_parsed(site: Site) -> None:
    class Duty(BaseModel):
        percent: int

    replies = iter(["This is no JSON.", '{"percent": 4}', '{"percent": 5}'])
    site.fake.replies["fake-json"] = lambda body: next(replies)
    whole = site.client.responses.parse(model=JSON, input=QUESTION, text_format=Duty)
    assert whole.output_parsed == Duty(percent=4)
    with site.client.responses.stream(model=JSON, input=QUESTION, text_format=Duty) as stream:
        assert stream.get_final_response().output_parsed == Duty(percent=5)


def what_is_not_kept_cannot_be_named(site: Site) -> None:
    for_once = site.client.responses.create(model=PLAIN, input=QUESTION, store=False)
    with pytest.raises(openai.NotFoundError):
        site.client.responses.retrieve(for_once.id)
    chat = site.client.chat.completions.create(model=PLAIN, messages=[{"role": "user", "content": "?"}])
    for named in (for_once.id, f"resp_g{chat.id.removeprefix('chatcmpl-')}_0", "resp_1", "x"):
        with pytest.raises(openai.NotFoundError):
            site.client.responses.create(model=PLAIN, input="?", previous_response_id=named)


def other_key_learns_nothing(site: Site) -> None:
    """What was said rests on the rights of the key that asked: neither another workspace nor another key goes on with it."""
    first = site.client.responses.create(model=CLIENT_TOOL, input=QUESTION, tools=[TOOL])
    (call,) = first.output
    assert call.type == "function_call"
    cast = site.cast
    for tenant, who in ((cast.other_tenant, "outsider"), (cast.tenant, "owner")):
        with tenant_scope(tenant.pk):
            _, key = api_key_create(tenant=tenant, actor=cast.actor(who), name="x", scopes=SCOPES)
        other = openai.OpenAI(base_url=site.base_url, api_key=key, max_retries=0)
        with pytest.raises(openai.NotFoundError):
            other.responses.retrieve(first.id)
        with pytest.raises(openai.NotFoundError):
            other.responses.create(model=PLAIN, input="?", previous_response_id=first.id)
        history: list[Any] = [
            {"role": "user", "content": QUESTION},
            call.to_dict(),
            {"type": "function_call_output", "call_id": call.call_id, "output": "Stolen."},
        ]
        other.responses.create(model=PLAIN, input=history)
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.get(pk=(first.model_extra or {})["groundwork"]["run"])
    assert run.status == RunStatus.PARKED


def errors_are_errors(site: Site) -> None:
    create = site.client.responses.create
    with pytest.raises(openai.NotFoundError) as unknown:
        create(model="gpt-none", input="?")
    assert unknown.value.code == "model_not_found"
    odd: list[tuple[dict[str, Any], str]] = [
        ({"input": [{"type": "item_reference", "id": "x"}]}, r"input\[0\].type"),
        ({"input": [{"role": "wizard", "content": "x"}]}, r"input\[0\].role"),
        (
            {
                "input": [
                    {
                        "role": "user",
                        "content": [{"type": "input_image", "image_url": "http://169.254.169.254/"}],
                    }
                ]
            },
            "not fetched",
        ),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "t answer a call"),
        ({"input": []}, "input: Send 1 to"),
        ({"input": "?", "tools": [{"type": "web_search", "name": "x"}]}, r"tools\[0\].type: "),
        ({"input": "?", "background": True}, "background"),
        (
            {"input": "?", "tools": [{"type": "function", "name": "x", "parameters": {"properties": 5}}]},
            r"tools\[0\].parameters",
        ),
        (
            {"input": "?", "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 5}}}},
            "text.format",
        ),
    ]
    for body, word in odd:
        with pytest.raises(openai.BadRequestError, match=word):
            create(model=PLAIN, **body)
    with pytest.raises(openai.APIStatusError):
        create(model=FAILING, input="?")
    for model, reason in ((CUT, "max_output_tokens"), (FILTERED, "content_filter")):
        ended = create(model=model, input="?")
        assert (ended.status, ended.incomplete_details.reason) == ("incomplete", reason)  # type: ignore[union-attr]
    last = list(create(model=FAILING, input="?", stream=True))[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None


def client_that_goes_away_stops_the_run(site: Site) -> None:
    stream = site.client.responses.create(model=SLOW, input=QUESTION, stream=True)
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    stream.close()
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.order_by("pk").last()
        assert run is not None
        wait_for(lambda: Run.objects.get(pk=run.pk).status == RunStatus.STOPPED, "the stop")
    wait_for(lambda: site.fake.log[-1]["closed_early"], "the provider's stream to be closed")
    assert site.client.responses.retrieve(f"resp_g{run.pk}_0").status == "cancelled"


def response_is_cancelled_and_forgotten(site: Site) -> None:
    responses = site.client.responses
    stream = responses.create(model=SLOW, input=QUESTION, stream=True)
    for event in stream:
        if event.type == "response.created":
            going = event.response.id
        if event.type == "response.output_text.delta":
            break
    ended = responses.cancel(going)
    assert (ended.id, ended.status) == (going, "cancelled")
    assert ended.output_text
    assert list(stream)[-1].type == "response.incomplete"
    assert responses.cancel(going).output_text == ended.output_text, "what has ended stays as it is"
    # What it answered, in pages.
    site.fake.replies["fake-scripted"] = two_cities
    asked: list[Any] = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    first = responses.create(model=SCRIPTED, input=asked, tools=[TOOL])
    calls = [item for item in first.output if item.type == "function_call"]
    results: list[Any] = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "wet"} for call in calls
    ]
    second = responses.create(model=SCRIPTED, tools=[TOOL], previous_response_id=first.id, input=results)
    items = list(responses.input_items.list(second.id, limit=2, order="asc"))
    kinds = ["message", "message", *["function_call"] * 2, *["function_call_output"] * 2]
    assert [item.type for item in items] == kinds
    newest = responses.input_items.list(first.id)
    assert [item.type for item in newest.data] == ["message", "message"]
    assert newest.data[0].to_dict()["content"] == [{"type": "input_text", "text": QUESTION}]
    with pytest.raises(openai.BadRequestError, match="after"):
        responses.input_items.list(first.id, after="item_99")
    # Forgotten: it cannot be named, the one after it can, and what waits for its calls is stopped.
    waiting = responses.create(model=SCRIPTED, input=QUESTION, tools=[TOOL])
    with tenant_scope(site.cast.other_tenant.pk):
        _, key = api_key_create(
            tenant=site.cast.other_tenant, actor=site.cast.actor("outsider"), name="y", scopes=SCOPES
        )
    outsider = openai.OpenAI(base_url=site.base_url, api_key=key, max_retries=0).responses
    for refused in (outsider.delete, outsider.cancel, outsider.input_items.list):
        with pytest.raises(openai.NotFoundError):
            refused(waiting.id)
    for gone in (first.id, waiting.id):
        responses.delete(gone)
        for ask in (responses.retrieve, responses.delete, responses.cancel, responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                ask(gone)
        with pytest.raises(openai.NotFoundError):
            responses.create(model=PLAIN, input="?", previous_response_id=gone)
    assert responses.retrieve(second.id).output_text == second.output_text
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.get(pk=(waiting.model_extra or {})["groundwork"]["run"])
    assert run.status == RunStatus.STOPPED


def texts_are_embedded(site: Site) -> None:
    create = site.client.embeddings.create
    with tenant_scope(site.cast.tenant.pk):
        earlier = list(UsageRecord.objects.filter(kind="embedding").values_list("pk", flat=True))
    texts = ["The duty on lamps.", "A tariff for lights.", "A recipe for soup."]
    packed = create(model=LOCAL, input=texts)  # the client asks for base64 by itself
    plain = create(model="all-MiniLM-L6-v2", input=texts, encoding_format="float", dimensions=384)
    rows = np.array([row.embedding for row in packed.data])
    assert rows.shape == (3, 384)
    assert np.allclose(rows, [row.embedding for row in plain.data], atol=1e-6)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert packed.usage.prompt_tokens == plain.usage.prompt_tokens > 12
    one = create(model=LOCAL, input=texts[0])
    assert np.allclose(one.data[0].embedding, rows[0], atol=1e-6)
    assert one.usage.prompt_tokens < packed.usage.prompt_tokens
    odd: list[tuple[dict[str, Any], str]] = [
        ({"input": [[1, 2, 3]]}, "tokens"),
        ({"input": ""}, "input"),
        ({"input": ["x"] * 2_049}, "2048"),
        ({"input": ["x" * 200_001] * 2}, "400000"),
        ({"dimensions": 100}, "384"),
    ]
    for body, word in odd:
        with pytest.raises(openai.BadRequestError, match=word):
            create(**{"model": LOCAL, "input": "x", **body})
    for model in ("none", "openai/text-embedding-3-small"):
        with pytest.raises(openai.NotFoundError, match=LOCAL) as unknown:
            create(model=model, input="x")
        assert unknown.value.code == "model_not_found"
    with tenant_scope(site.cast.tenant.pk):
        used = UsageRecord.objects.filter(kind="embedding").exclude(pk__in=earlier)
        assert sum(used.values_list("input_tokens", flat=True)) == (
            2 * packed.usage.prompt_tokens + one.usage.prompt_tokens
        )
