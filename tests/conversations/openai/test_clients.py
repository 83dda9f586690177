"""The official OpenAI client against the running product: plain, streamed, tools here and there, errors, going away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

from apps.collections.services import collection_create, document_upload
from jobs.models import ACTIVE, Job
from runs.models import Run, RunStatus, ToolCall
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast, make_cast
from tests.fake_provider import FakeProvider, running
from tests.servers import Stack, wait_for

pytestmark = pytest.mark.servers

PLAIN = "compatible/fake-words12"
SLOW = "compatible/fake-words400-gap50"
SEARCHING = "compatible/fake-search1-words12"
CLIENT_TOOL = "compatible/fake-search1-use_weather-words6"
JSON = "compatible/fake-json"
FAILING = "compatible/fake-fail400"
MODELS = (PLAIN, SLOW, SEARCHING, CLIENT_TOOL, JSON, FAILING)
ASK: list[Any] = [{"role": "user", "content": "What is the duty on lamps?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}


@dataclass(frozen=True)
class Site:
    cast: Cast
    client: openai.OpenAI
    fake: FakeProvider
    url: str


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[Site]:
    cast = make_cast()
    with running() as (model_url, fake):
        stack = Stack(
            tmp_path,
            GROUNDWORK_COMPATIBLE_BASE_URL=model_url,
            GROUNDWORK_COMPATIBLE_MODELS=",".join(m.removeprefix("compatible/") for m in MODELS),
            GROUNDWORK_DEFAULT_MODEL=SEARCHING,
        )
        try:
            stack.start_web()
            stack.start_worker()
            who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
            text = "The duty on lamps of heading 8539.50.00 is four percent. " * 20
            with tenant_scope(cast.tenant.pk):
                trade = collection_create(**who, name="Trade")
                document_upload(**who, collection=trade, name="lamps.txt", chunks=[text.encode()])
                _, key = api_key_create(
                    **who, name="tests",
                    scopes=["conversation.write", "conversation.read", "tool.run", "search.run", "collection.read", "model.read", "run.read"],
                )  # fmt: skip
                waiting = Job.objects.filter(status__in=ACTIVE)
                wait_for(lambda: not waiting.exists(), 60, "the document")
            client = openai.OpenAI(base_url=f"{stack.url}/api/v1", api_key=key, max_retries=0)
            yield Site(cast, client, fake, stack.url)
        finally:
            stack.stop()
            for log in tmp_path.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")  # noqa: T201


def test_official_client_does_all_it_does_elsewhere(site: Site) -> None:
    """One running product for all of it: starting it costs more than each part."""
    models_are_listed(site)
    plain_and_streamed_say_the_same(site)
    workspace_answers_with_citations(site)
    clients_tool_is_handed_back_and_its_result_taken(site)
    structured_answer_fits_its_schema(site)
    errors_are_errors(site)
    client_that_goes_away_stops_the_run(site)
    stranger_learns_nothing(site)


def models_are_listed(site: Site) -> None:
    ids = [model.id for model in site.client.models.list()]
    assert ids[0] == "assistant/workspace"
    assert set(MODELS) <= set(ids)


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
    again = site.client.chat.completions.create(
        model=CLIENT_TOOL, messages=history, tools=[WEATHER]
    )
    assert again.id != first.id
    assert again.choices[0].finish_reason == "stop"


def structured_answer_fits_its_schema(site: Site) -> None:
    replies = iter(["This is no JSON.", '{"percent": 4}'])
    site.fake.replies["fake-json"] = lambda body: next(replies)
    schema: Any = {"type": "object", "properties": {"percent": {"type": "integer"}}, "required": ["percent"]}  # fmt: skip
    form: Any = {"type": "json_schema", "json_schema": {"name": "duty", "schema": schema}}
    whole = site.client.chat.completions.create(model=JSON, messages=ASK, response_format=form)
    text = whole.choices[0].message.content or ""
    assert json.loads(text[text.index("{") :]) == {"percent": 4}


def errors_are_errors(site: Site) -> None:
    with pytest.raises(openai.BadRequestError) as unknown:
        site.client.chat.completions.create(model="gpt-none", messages=ASK)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\]"):
        site.client.chat.completions.create(model=PLAIN, messages=[{"role": "x", "content": "y"}])  # type: ignore[list-item, misc]
    with pytest.raises(openai.APIStatusError):
        site.client.chat.completions.create(model=FAILING, messages=ASK)
    with pytest.raises(openai.APIError):
        list(site.client.chat.completions.create(model=FAILING, messages=ASK, stream=True))
    stranger = openai.OpenAI(base_url=f"{site.url}/api/v1", api_key="gw_nobody", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def client_that_goes_away_stops_the_run(site: Site) -> None:
    stream = site.client.chat.completions.create(model=SLOW, messages=ASK, stream=True)
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            break
    stream.close()
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.order_by("pk").last()
        assert run is not None
        wait_for(lambda: Run.objects.get(pk=run.pk).status == RunStatus.STOPPED, 20, "the stop")
    wait_for(lambda: site.fake.log[-1]["closed_early"], 10, "the provider's stream to be closed")


def stranger_learns_nothing(site: Site) -> None:
    """A waiting call of one workspace cannot be answered from another, which only gets an answer of its own."""
    first = site.client.chat.completions.create(model=CLIENT_TOOL, messages=ASK, tools=[WEATHER])
    calls = first.choices[0].message.tool_calls
    assert calls is not None
    with tenant_scope(site.cast.other_tenant.pk):
        _, key = api_key_create(
            tenant=site.cast.other_tenant, actor=site.cast.actor("outsider"), name="x",
            scopes=["conversation.write", "model.read", "tool.run"],
        )  # fmt: skip
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
