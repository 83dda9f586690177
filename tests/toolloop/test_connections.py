"""From names of models to answers over real sockets: keys, fallbacks, event loops, and what is said when one is missing."""

from __future__ import annotations

import asyncio

import pytest

from tests.toolloop.providers.test_lifecycle import Server, answering, running
from tests.toolloop.providers.wires import KEY, WIRES, Wire
from toolloop.client import Client
from toolloop.errors import ConfigurationError, ProviderUnavailable
from toolloop.generation import RunFailed
from toolloop.limits import Limits
from toolloop.messages import Turn
from toolloop.providers.scripted import ScriptedProvider, fails, says

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)


@every_wire
async def test_every_provider_answers_over_a_socket_with_a_key_given_or_from_the_environment(wire: Wire):
    suffix = "" if wire.name in {"anthropic", "google"} else "/v1"
    async with running(Server(answering(wire))) as server:
        url = f"http://127.0.0.1:{server.port}{suffix}"
        name = f"{wire.name}/{wire.request().model}"
        async with Client(name, api_key=KEY, base_url=url, env={}) as client:
            assert (await client.generate("Hi")).text == "onetwo"
            assert (await client.generate("Hi")).text == "onetwo"
        assert server.requests == 2
        assert server.connections == 1, "the connection is kept in async with"
        assert (await client.generate("Hi")).text == "onetwo"


def test_one_client_serves_several_event_loops_in_a_row():
    client = Client("m", provider=ScriptedProvider([says("one"), says("two")]))
    assert asyncio.run(client.generate("Hi")).text == "one"
    assert asyncio.run(client.generate("Hi")).text == "two"


async def test_next_model_answers_when_the_first_cannot_be_had():
    wire = next(wire for wire in WIRES if wire.name == "compatible")
    async with running(Server(answering(wire))) as server:
        client = Client(
            "script-1",
            provider=ScriptedProvider([fails(ProviderUnavailable("busy"))] * 2),
            fallback_models=[f"compatible/{wire.request().model}"],
            env={"GROUNDWORK_COMPATIBLE_BASE_URL": f"http://127.0.0.1:{server.port}/v1"},
        )
        made = await client.generate("Hi")
    assert made.text == "onetwo"
    assert [m.provider for m in made.messages if isinstance(m, Turn)] == ["compatible"]


@pytest.mark.parametrize(
    ("settings", "says_what"),
    [
        ({"model": "anthropic/claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ({"model": "compatible/llama"}, "GROUNDWORK_COMPATIBLE_BASE_URL"),
        ({"model": "nobody/knows"}, "nobody"),
    ],
)
async def test_configuration_error_says_what_to_do_when_a_model_cannot_be_used(settings, says_what):
    with pytest.raises(ConfigurationError, match=says_what):
        await Client(**settings, env={}).generate("Hi")


async def test_key_of_the_environment_is_not_sent_to_a_url_given_in_code():
    seen: list[bytes] = []

    async def serve(reader, writer):
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    env = {"GROUNDWORK_COMPATIBLE_API_KEY": "sk-secret", "OPENAI_API_KEY": "sk-secret"}
    client = Client("compatible/llama", base_url=f"{url}/v1", env=env, limits=Limits(max_retries=0))
    with pytest.raises(RunFailed):
        await client.generate("Hi")
    listener.close()
    assert seen
    assert b"sk-secret" not in seen[0]
