"""Facts stated about a model reach the wire, whatever its name stands for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

import pytest

from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import WIRES, Recorder, Wire, play
from toolloop.errors import ProviderUnavailable
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.fallback import FallbackProvider
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import Turn, UserMessage
from toolloop.models import ModelCatalog, ModelOverride
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import Prices, Profile, profile_for
from toolloop.tokens import Usage
from toolloop.tools import Toolset


class Recording:
    """Keeps the requests it gets; ``fails`` before it answers."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails, self.asked = name, fails, list[ModelRequest]()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ProviderEvent]:
        self.asked.append(request)
        if self.fails:
            raise ProviderUnavailable("away")
        usage = Usage(input_total=1_000_000, requests=1)
        yield TurnFinished(Turn(self.name, request.model, text="done", usage=usage))

    async def aclose(self) -> None:
        return


OWN = ModelCatalog(
    [ModelOverride("gpt-6-luna", prices=(Prices(3.0, 4.0),), capabilities={"image_input": False})]
).profile("gpt-6-luna")


async def run(provider: Recording | FallbackProvider, profile: Profile | None) -> float | None:
    cost = None
    async for event in run_loop(
        LoopInput(
            model="gpt-6-luna",
            system="",
            history=[UserMessage("hi")],
            toolset=Toolset([]),
            limits=Limits(max_retries=0),
        ),
        LoopServices(provider=provider, profile=profile),
    ):
        cost = getattr(event, "data", {}).get("cost_usd", cost)
    return cost


@pytest.mark.parametrize(("profile", "cost"), [(OWN, 3.0), (None, 0.2)])
async def test_adapter_and_costs_follow_the_facts_given_to_the_loop(
    profile: Profile | None, cost: float
) -> None:
    provider = Recording("openai")
    assert await run(provider, profile) == pytest.approx(cost)
    assert [request.profile for request in provider.asked] == [profile]


async def test_facts_of_the_first_model_are_not_taken_for_its_fallback() -> None:
    first, second = Recording("openai", fails=True), Recording("anthropic")
    await run(FallbackProvider([(first, "gpt-6-luna"), (second, "claude-x")]), OWN)
    assert [request.profile for request in first.asked] == [OWN]
    assert [request.profile for request in second.asked] == [None]


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("accepted", ["always", "never"])
async def test_adapter_sends_what_the_request_says_the_model_accepts(
    wire: Wire, accepted: Literal["always", "never"]
) -> None:
    recorder = Recorder(wire.encode(Script("done")))
    profile = replace(profile_for(wire.name, wire.model), temperature=accepted, thinking="none")
    request = wire.request(options={"temperature": 0.5}, profile=profile)
    await play(wire.provider(recorder), request)
    assert ('"temperature"' in json.dumps(recorder.body)) is (accepted == "always")
