"""OpenAI's JavaScript client, a LangChain agent and Open WebUI's requests against the running product."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from runs.models import Run, RunStatus
from tenancy.scope import tenant_scope
from tests.conversations.openai.site import PLAIN, QUESTION, SCRIPTED, Site, poor_key, two_cities
from tests.later import later
from tests.servers import wait_for

pytestmark = pytest.mark.servers
agents, tools, langchain_openai = (
    later("langchain.agents"),
    later("langchain_core.tools"),
    later("langchain_openai"),
)

HERE = Path(__file__).parent
ARCHIVE = HERE / "vendor" / "openai-6.49.0-esm.tar.gz"
SHA256 = "125f7f27ee38c8b248448bc79f92130d079b20c2b46290aaba5c3ea6e1b26299"
SKY = {"Lyon": "sunny", "Graz": "wet"}
# The head of a PNG of one pixel.
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_other_clients_do_what_they_do_elsewhere(site: Site, tmp_path: Path) -> None:
    """One running product for all of it: starting it costs more than each part."""
    site.fake.replies["fake-scripted"] = two_cities
    site.fake.replies["fake-json"] = lambda body: '{"percent": 4}'
    open_webui_chats(site)
    langchain_agent_makes_its_round_trip(site)
    langchain_embeds(site)
    javascript_client_does_all(site, tmp_path)


def javascript_client_does_all(site: Site, folder: Path) -> None:
    node = shutil.which("node")
    if node is None:
        assert os.environ.get("GROUNDWORK_REQUIRE_BROWSER") != "1", "install Node 20 or newer"
        pytest.skip("Node is not installed")
    assert hashlib.sha256(ARCHIVE.read_bytes()).hexdigest() == SHA256
    shutil.unpack_archive(ARCHIVE, folder)
    done = subprocess.run(
        [node, str(HERE / "client.mjs")],
        env={
            "PATH": os.environ["PATH"],
            "CLIENT": str(folder / "openai"),
            "BASE_URL": site.base_url,
            "API_KEY": site.key,
            "POOR_KEY": poor_key(site),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 11
    with tenant_scope(site.cast.tenant.pk):
        run = Run.objects.order_by("pk").last()
        assert run is not None
        wait_for(lambda: Run.objects.get(pk=run.pk).status == RunStatus.STOPPED, "the stop")


def langchain_agent_makes_its_round_trip(site: Site) -> None:
    """Over both APIs, with tools that LangChain runs; on /responses it sends ids of items back and keeps history itself."""
    from langchain_core.tools import tool

    @tool
    def weather(query: str) -> str:
        """Tell the weather of a city."""
        return SKY[query]

    for over_responses in (False, True):
        model = langchain_openai.ChatOpenAI(
            model=SCRIPTED,
            base_url=site.base_url,
            api_key=SecretStr(site.key),
            max_retries=0,
            use_responses_api=over_responses,
        )
        agent = agents.create_agent(model, [weather])
        asked: Any = {"messages": [("user", QUESTION)]}
        messages = agent.invoke(asked)["messages"]
        assert [m.type for m in messages] == ["human", "ai", "tool", "tool", "ai"]
        assert messages[-1].text == "It is sunny and wet."
        assert messages[1].usage_metadata["total_tokens"] == 120
        # A second question, with all of it as the history.
        messages = agent.invoke({"messages": [*messages, ("user", "And?")]})["messages"]
        assert messages[-1].text == "It is sunny and wet."
        pieces = [
            chunk.text
            for chunk in langchain_openai.ChatOpenAI(
                model=PLAIN,
                base_url=site.base_url,
                api_key=SecretStr(site.key),
                use_responses_api=over_responses,
            ).stream(QUESTION)
        ]
        assert len("".join(pieces).split()) == 12


def langchain_embeds(site: Site) -> None:
    made = langchain_openai.OpenAIEmbeddings(
        model="local/all-MiniLM-L6-v2",
        base_url=site.base_url,
        api_key=SecretStr(site.key),
        check_embedding_ctx_length=False,
    ).embed_documents(["lamp", "soup"])
    assert [len(row) for row in made] == [384, 384]


def open_webui_chats(site: Site) -> None:
    """As its backend sends them: its own headers, parameters set or null, past answers with empty parts, a title at last."""
    headers = {
        "Authorization": f"Bearer {site.key}",
        "X-OpenWebUI-User-Name": "Ada",
        "X-OpenWebUI-User-Email": "ada@example.org",
        "X-OpenWebUI-Chat-Id": "0b6e",
    }
    with httpx2.Client(base_url=site.base_url, headers=headers, timeout=60) as web:
        ids = [model["id"] for model in web.get("/models").json()["data"]]
        assert "assistant/workspace" in ids
        picture = {"type": "image_url", "image_url": {"url": PIXEL}}
        body: dict[str, Any] = {
            "stream": True,
            "model": "assistant/workspace",
            "messages": [
                {"role": "system", "content": "User Context:\nAnswer in English."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": ""},
                {"role": "assistant", "content": "Hello. How can I help?"},
                {"role": "user", "content": QUESTION},
            ],
            "stream_options": {"include_usage": True},
            "temperature": 0.7,
            "top_p": 0.9,
            "max_tokens": 500,
            "seed": 1,
            "stop": ["###"],
            "frequency_penalty": 0,
            "presence_penalty": None,
            "logit_bias": {},
            "reasoning_effort": "medium",
        }
        with web.stream("POST", "/chat/completions", json=body) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
        assert lines[-1] == "[DONE]"
        chunks = [json.loads(line) for line in lines[:-1]]
        said = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
        assert said.rstrip().endswith("[1].")
        assert chunks[-1]["usage"]["total_tokens"] > 0
        ended = next(c for c in chunks if c["choices"] and c["choices"][0]["finish_reason"])
        assert ended["groundwork"]["citations"][0]["document_name"] == "lamps.txt"
        looked = {"role": "user", "content": [{"type": "text", "text": "What?"}, picture]}
        blind = web.post("/chat/completions", json={"model": PLAIN, "messages": [looked]})
        assert "takes no images" in blind.json()["error"]["message"]
        title = {"model": PLAIN, "messages": [{"role": "user", "content": "### Task:\nA title."}]}
        whole = web.post("/chat/completions", json={**title, "stream": False, "max_completion_tokens": 1000})
        assert whole.status_code == 200, whole.text
        assert whole.json()["choices"][0]["message"]["content"]
        unknown = web.post("/chat/completions", json={**body, "model": "gone"})
        assert unknown.json()["error"]["message"]
