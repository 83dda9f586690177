"""Which models a client can name and what it knows about them: endpoints of one's own, own prices, a provider's tool search."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.helpers import add
from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.test_lifecycle import Server, answering, running
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, OPENAI, Recorder, Wire
from toolloop.client import Client
from toolloop.errors import ConfigurationError, ProviderUnavailable
from toolloop.messages import Turn
from toolloop.models import ModelCatalog, ModelOverride
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import Prices
from toolloop.providers.scripted import ScriptedProvider, fails, says
from toolloop.response_cache import MemoryCache
from toolloop.tokens import Usage
from toolloop.tools import tool
from toolloop.tools.meta_tools import META_TOOLS


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/v1"


async def test_named_endpoints_are_asked_each_at_its_own_url() -> None:
    async with running(Server(answering(COMPATIBLE))) as lab, running(Server(answering(COMPATIBLE))) as desk:
        endpoints: dict[str, dict[str, Any]] = {
            "lab": {"base_url": url(lab)},
            "desk": {"base_url": url(desk), "strict": True},
        }
        for name, counts in (("compatible/lab/org/model", (1, 0)), ("compatible/desk/model", (1, 1))):
            made = await Client(name, endpoints=endpoints, env={}).generate("Hi")
            assert made.text == "onetwo"
            assert (lab.requests, desk.requests) == counts
            (turn,) = [m for m in made.messages if isinstance(m, Turn)]
            assert turn.model == name.split("/", 2)[2]


async def test_default_endpoint_of_the_environment_stays_beside_named_ones() -> None:
    async with running(Server(answering(COMPATIBLE))) as server:
        client = Client(
            "compatible/org/model",
            endpoints={"lab": {"base_url": "http://127.0.0.1:9/v1"}},
            env={"GROUNDWORK_COMPATIBLE_BASE_URL": url(server)},
        )
        assert (await client.generate("Hi")).text == "onetwo"


async def test_endpoint_stands_in_as_a_fallback() -> None:
    async with running(Server(answering(COMPATIBLE))) as server:
        client = Client(
            "m",
            provider=ScriptedProvider([fails(ProviderUnavailable("busy"))]),
            fallback_models=["compatible/lab/model"],
            endpoints={"lab": {"base_url": url(server), "api_key": "k"}},
            env={},
        )
        assert (await client.generate("Hi")).text == "onetwo"


async def test_answers_of_two_endpoints_are_cached_apart() -> None:
    cache = MemoryCache()
    async with running(Server(answering(COMPATIBLE))) as lab, running(Server(answering(COMPATIBLE))) as desk:
        endpoints = {"lab": {"base_url": url(lab)}, "desk": {"base_url": url(desk)}}
        for name in ("lab", "desk", "lab"):
            client = Client(f"compatible/{name}/model", endpoints=endpoints, cache=cache, env={})
            assert (await client.generate("Hi")).text == "onetwo"
        assert (lab.requests, desk.requests) == (1, 1)


@pytest.mark.parametrize(
    ("settings", "says_what"),
    [
        ({"endpoints": {"openai": {"base_url": "http://x/v1"}}}, "t a valid endpoint name"),
        ({"endpoints": {"lab": {"api_key": "k"}}}, "needs a base_url"),
        ({"endpoints": {"lab": {"base_url": "http://x"}}, "models": ModelCatalog()}, "t know the endpoints"),
    ],
)
def test_endpoints_that_cannot_work_are_refused_at_once(settings: dict[str, Any], says_what: str) -> None:
    with pytest.raises(ConfigurationError, match=says_what):
        Client("compatible/lab/model", **settings)


@pytest.mark.parametrize(
    ("settings", "says_what"),
    [
        ({"endpoints": {"lab": {"base_url": "http://x/v1"}}, "api_key": "k"}, "t pass them again"),
        ({"models": ModelCatalog(endpoints=["lab"])}, "no settings here"),
        ({"endpoints": {"lab": {"base_url": "http://x/v1", "strickt": True}}}, "invalid setting"),
    ],
)
async def test_configuration_error_says_what_to_do_when_an_endpoint_cannot_be_used(
    settings: dict[str, Any], says_what: str
) -> None:
    with pytest.raises(ConfigurationError, match=says_what):
        await Client("compatible/lab/model", env={}, **settings).generate("Hi")


async def test_own_prices_hold_for_the_model_and_its_fallback() -> None:
    models = ModelCatalog(
        [
            ModelOverride("compatible/lab/small", prices=(Prices(0.0, 50.0),)),
            ModelOverride("compatible/lab/large", prices=(Prices(0.0, 70.0),)),
        ],
        endpoints=["lab"],
    )
    async with running(Server(answering(COMPATIBLE))) as server:
        endpoints = {"lab": {"base_url": url(server)}}
        client = Client("compatible/lab/small", endpoints=endpoints, models=models, env={})
        made = await client.generate("Hi")
        assert made.cost_usd == pytest.approx(made.usage.output_total * 50 / 1e6)
        client = Client(
            "m",
            provider=ScriptedProvider([fails(ProviderUnavailable("busy"))]),
            fallback_models=["compatible/lab/large"],
            endpoints=endpoints,
            models=models,
            env={},
        )
        made = await client.generate("Hi")
        assert made.usage.output_total > 0
        assert made.cost_usd == pytest.approx(made.usage.output_total * 70 / 1e6)


# --- tool search of the provider's own -------------------------------------------------------------------------------


@tool
def stock_level(sku: str) -> str:
    """Look up how many pieces of an article are in stock.

    Args:
        sku: article number.
    """
    return f"12 of {sku}"


def dynamic(wire: Wire, model: str, *bodies: bytes, **settings: Any) -> tuple[Client, Recorder]:
    recorder = Recorder(*bodies)
    settings = {"dynamic_tools": True, "core_tools": [add], **settings}
    return Client(model, provider=wire.provider(recorder), tools=[stock_level], **settings), recorder


def declared(recorder: Recorder, number: int = 0) -> dict[str, bool]:
    tools = json.loads(recorder.requests[number].content)["tools"]
    return {
        t.get("name") or t.get("function", {}).get("name") or t["type"]: bool(t.get("defer_loading"))
        for t in tools
    }


async def test_dynamic_tools_use_the_providers_tool_search_when_the_model_has_it() -> None:
    for wire, model, search in (
        (OPENAI, "gpt-6", "tool_search"),
        (ANTHROPIC, ANTHROPIC.model, "tool_search_tool_bm25"),
    ):
        found = wire.encode(Script(calls=[Call("call_a", "stock_level", '{"sku": "A-17"}')]))
        client, recorder = dynamic(wire, model, found, wire.encode(Script(text=["12"])))
        made = await client.generate("How many?")
        assert declared(recorder) == {"add": False, "stock_level": True, search: False}
        assert made.tools["stock_level"]["calls"] == 1
        assert "12 of A-17" in recorder.requests[1].content.decode()


async def test_dynamic_tools_use_our_search_when_the_model_has_none() -> None:
    client, recorder = dynamic(COMPATIBLE, "llama3", COMPATIBLE.encode(Script(text=["Hi"])))
    await client.generate("Hi")
    assert declared(recorder) == dict.fromkeys(["add", *META_TOOLS], False)


async def test_cheap_model_chooses_when_one_is_named_whatever_the_provider_has() -> None:
    client, recorder = dynamic(
        ANTHROPIC, ANTHROPIC.model, ANTHROPIC.encode(Script(text=["Hi"])), dynamic_tools="cheap"
    )
    await client.generate("Hi")
    assert declared(recorder) == dict.fromkeys(["add", *META_TOOLS], False)


async def test_tools_outside_use_tools_are_not_deferred_either() -> None:
    client, recorder = dynamic(ANTHROPIC, ANTHROPIC.model, ANTHROPIC.encode(Script(text=["Hi"])))
    await client.generate("Hi", use_tools=["add"])
    assert "stock_level" not in declared(recorder)


async def test_facts_of_the_client_reach_a_planned_intent() -> None:
    seen: list[ModelRequest] = []
    provider = ScriptedProvider([says("ok", usage=Usage(1_000_000, 0, 0, 0, 0, 1))])
    costs: list[float | None] = []
    profile = ModelCatalog([ModelOverride("gpt-6", prices=(Prices(9.0, 1.0),))]).profile("gpt-6")
    client = Client("m", provider=provider, profile=profile, on_usage=lambda e: costs.append(e.cost_usd))
    await client.generate_intent("Hi")
    seen += provider.requests
    assert seen[0].profile == profile
    assert costs == [pytest.approx(9.0)]
