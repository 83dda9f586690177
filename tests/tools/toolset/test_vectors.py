"""A model finds tools by meaning: vectors are made in the background, kept by content, and never asked of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace
from apps.collections.index.embedding import embedder_local
from apps.tools.catalog.services import entry_set
from apps.tools.connectors import plugin
from apps.tools.models import ToolVector
from apps.tools.toolset import vectors as tool_vectors
from apps.tools.toolset.model_calls import run_toolset
from apps.tools.toolset.selectors import guard_for
from apps.tools.toolset.vectors import JOB_KIND
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job
from runs.models import Run
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import WordEmbedder
from tests.tools.sources.support import granted, plugin_put, source_made
from toolloop.tools.meaning import FAILED

pytestmark = pytest.mark.django_db

PLUGIN = """
from toolloop.tools import Tool

def make(name, description):
    async def run(text=""):
        return text
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return Tool(name, description, schema, run, context_parameter="")

TOOLS = [make(f"tool{n}", f"Does thing {n}.") for n in range(50)]
TOOLS.append(make("refund", "Give money back for a payment."))
"""


class Meaning(WordEmbedder):
    """Knows that one who wants to be reimbursed wants money back; counts what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.documents: list[str] = []
        self.questions: list[str] = []
        self.problem: EmbeddingError | None = None

    def embed_documents(self, texts: Any, *, on_progress: Any = None) -> Any:
        self.documents += texts
        return super().embed_documents([t.replace("reimburse", "money back") for t in texts])

    def embed_query(self, text: str) -> Any:
        if self.problem is not None:
            raise self.problem
        self.questions.append(text)
        return super().embed_documents([text.replace("reimburse", "money back")])[0]


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    settings.PLUGIN_DIR = tmp_path
    plugin.plugins_forget()
    yield tmp_path
    plugin.plugins_forget()


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> Meaning:
    made = Meaning()
    for place in (
        "apps.tools.toolset.vectors.embedder_local",
        "apps.tools.toolset.tasks.embedder_local",
    ):
        monkeypatch.setattr(place, lambda *, tenant: made)
    return made


@pytest.fixture
def many(cast: Cast, folder: Path, embedder: Meaning) -> Tenant:
    plugin_put(folder, PLUGIN, "many")
    source_made(cast.tenant, name="many")
    granted(cast.tenant, "many")
    return cast.tenant


def toolset(cast: Cast) -> Any:
    run = Run.objects.create(tenant=cast.tenant, kind="x", model="m")
    return run_toolset(guard_for(actor=cast.actor("member"), scope={}), run)


async def found(tools: Any, intent: str) -> dict[str, Any]:
    tool = tools.get("find_tools")
    output = await tool.function(intent=intent)
    said: dict[str, Any] = json.loads(output.content)
    return said


def ask(tools: Any, intent: str) -> dict[str, Any]:
    return anyio.run(found, tools, intent)


def work() -> None:
    """Run the waiting job once, as a worker does."""
    (job,) = Job.objects.filter(kind=JOB_KIND, status="queued")
    claimed = runner.claim(job.tenant_id, job.pk)
    assert claimed is not None
    context = JobContext(claimed)
    registry.get(JOB_KIND).handler(context)
    runner._finish(context, claimed, None)


def names(said: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in said["tools"]]


def test_vectors_are_made_by_a_job_and_then_meaning_finds_the_tool(
    cast: Cast, many: Tenant, embedder: Meaning
) -> None:
    with tenant_scope(many.pk):
        Job.objects.filter(kind=JOB_KIND).delete()
        assert "many_refund" not in names(ask(toolset(cast), "reimburse somebody"))
        assert embedder.documents == []  # never in a request
        work()
        assert any("Give money back" in text for text in embedder.documents)
        assert names(ask(toolset(cast), "reimburse somebody"))[0] == "many_refund"
        assert embedder.questions == ["reimburse somebody"]
        assert not Job.objects.filter(kind=JOB_KIND, status="queued").exists()


def test_only_new_texts_are_embedded_and_unused_vectors_go(
    cast: Cast, many: Tenant, embedder: Meaning
) -> None:
    with tenant_scope(many.pk):
        toolset(cast)
        work()
        before, rows = len(embedder.documents), ToolVector.objects.count()
        entry_set(tenant=many, actor=cast.actor("owner"), name="many_tool3", description="Feeds penguins.")
        work()
        assert embedder.documents[before:] == ["many tool3: Feeds penguins.\nParameters: text"]
        assert ToolVector.objects.count() == rows
        assert names(ask(toolset(cast), "penguins"))[0] == "many_tool3"


def test_second_run_reads_no_vectors_again_and_one_run_needs_one_query(
    cast: Cast, many: Tenant, embedder: Meaning, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_scope(many.pk):
        toolset(cast)
        work()
        monkeypatch.setattr(tool_vectors, "_kept", type(tool_vectors._kept)())
        counts = []
        for _ in range(2):
            with CaptureQueriesContext(connection) as queries:
                toolset(cast)
            counts.append(sum("tools_toolvector" in q["sql"] for q in queries.captured_queries))
        assert counts == [1, 0]


def test_words_decide_and_the_model_is_told_when_the_embedder_fails(
    cast: Cast, many: Tenant, embedder: Meaning
) -> None:
    with tenant_scope(many.pk):
        toolset(cast)
        work()
        embedder.problem = EmbeddingError("embedder_misconfigured", "The model is gone.")
        said = ask(toolset(cast), "money back for a payment")
    assert names(said)[0] == "many_refund"
    assert said["note"] == FAILED


def test_vectors_of_another_workspace_or_another_embedder_are_not_used(
    cast: Cast, many: Tenant, embedder: Meaning
) -> None:
    with tenant_scope(many.pk):
        toolset(cast)
        work()
        digests = [bytes(d) for d in ToolVector.objects.values_list("digest", flat=True)]
        assert len(tool_vectors.vectors_known(many.pk, digests, length=384)) == len(digests)
        assert tool_vectors.vectors_known(cast.other_tenant.pk, digests, length=384) == {}
        other = Meaning()
        other.space = EmbeddingSpace("test", "other", 384, "test")
        text = embedder.documents[0]
        assert tool_vectors.text_digest(other, text) != tool_vectors.text_digest(embedder, text)


def test_remote_embedder_of_the_installation_is_never_asked(cast: Cast, settings: Any) -> None:
    settings.EMBEDDER = "openai/text-embedding-3-small"
    with tenant_scope(cast.tenant.pk):
        assert embedder_local(tenant=cast.tenant).space.provider == "local"
    settings.EMBEDDER = "local/nobody-installed-it"
    with tenant_scope(cast.tenant.pk):
        assert tool_vectors.tool_meaning(cast.tenant, []) is None
