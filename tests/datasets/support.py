"""A library that everybody may see, jobs on it, and drivers played by the test."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections
from django.utils import timezone

from apps.collections.models import Collection, Document
from apps.datasets.generation import tasks
from apps.datasets.generation.services import DRIVE, generation_start
from apps.datasets.generation.settings import SCORES
from apps.datasets.models import Dataset, GenerationJob
from apps.datasets.rows.dataset_services import dataset_create
from jobs.models import ACTIVE, Job, JobStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from tests.runs.support import take

TEXTS = (
    "The customs duty on passenger cars of heading 8703 is 2.5 percent of their value at import. Trucks of heading 8704 "
    "are charged 25 percent under the same chapter. Importers keep proof of origin for five years after the entry.",
    "The notice period for suppliers is 30 days and begins on the first of the month that follows. The duty on trucks is "
    "named again in each notice so that suppliers may compare the rates. A notice must name the office that sent it.",
    "The archive in Lisbon is open from Monday to Thursday between nine and noon. Quotes are kept there for seven years. "
    "The fee for a certified copy is 12 euros per page, and the archive requires a written request for each copy.",
    "The audit committee includes five members who are elected for three years. The committee meets in March and in "
    "September. Its report is public and provides the figures of each chapter of the tariff, duties on cars included.",
)


def make_open_library(cast: Cast, name: str = "Tariff", texts: tuple[str, ...] = TEXTS) -> Library:
    """Return a collection with one live document of these passages."""
    library = make_library(cast, name, f"{name}.pdf", texts)
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=library.document.pk).update(live_from=timezone.now())
    return library


def start(
    cast: Cast,
    collection: Collection,
    *,
    name: str = "Questions",
    model: str = "extractive",
    role: str = "member",
    budget: str | None = None,
    probe: int = 0,
    dataset: Dataset | None = None,
    **options: Any,
) -> GenerationJob:
    """Start a job; the caller is in the tenant's scope."""
    actor = cast.actor(role)
    dataset = dataset or dataset_create(tenant=cast.tenant, actor=actor, name=name)
    return generation_start(
        tenant=cast.tenant,
        actor=actor,
        dataset=dataset,
        model=model,
        options={"collections": [collection.pk], **options},
        budget_usd=budget,
        probe=probe,
    )


def drive(job: GenerationJob, worker: str = "here") -> GenerationJob:
    """Let a worker of this process carry a job until its driver ends; returns the fresh row."""
    # One that still says it runs is of a worker that has died; its lease is taken to be over.
    waiting = Job.objects.filter(kind=DRIVE, payload__job_id=job.pk, status__in=ACTIVE).first()
    assert waiting is not None, "no driver waits"
    with ThreadPoolExecutor(4) as executor:
        ctx = take(waiting, worker, executor)

        async def work() -> None:
            await tasks.generate(ctx, **waiting.payload)

        try:
            asyncio.run(work())
        finally:
            for _ in range(4):
                executor.submit(connections.close_all).result()
    Job.objects.filter(pk=waiting.pk).update(status=JobStatus.SUCCEEDED)
    job.refresh_from_db()
    return job


class FakeModel:
    """Answers every stage of generation over the wire; counts what it was asked.

    Attributes:
        asked: the messages of each request that was answered, as JSON.
        refusals: how many of the next requests are refused for their rate.
        level: what the judge gives.
        is_enough: whether a part of the passages answers a question.
        better: other wordings that the filter asks for, one a question.
        answer: the last turn of an answer; "" cites what was found.
        says: what the user of a conversation says after the first question; then they are done.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusals = 0
        self.level = 5
        self.is_enough = False
        self.better: list[str] = []
        self.answer = ""
        self.says: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str | int | list[dict[str, Any]]:
        if self.refusals > 0:
            self.refusals -= 1
            return 429
        self.asked.append(json.dumps(body["messages"], sort_keys=True))
        system, last = body["messages"][0]["content"], body["messages"][-1]
        asked = _text_of(last["content"])
        if asked.startswith("[This run has met its limit"):  # what is asked stands before it
            asked = _text_of(body["messages"][-2]["content"])
        passage = re.search(r"<passage [^\n]*>\n(.*?)\n</passage>", asked, re.DOTALL)
        if system.startswith("You write questions"):
            assert passage is not None
            passages = re.findall(r"<passage [^\n]*>\n(.*?)\n</passage>", asked, re.DOTALL)
            quotes = [text[:80] for text in passages]
            return json.dumps(
                {
                    "question": f"What is said by: {quotes[0][:50]}?",
                    "rationale": "It matters.",
                    "quotes": quotes,
                }
            )
        if system.startswith("You play a person"):
            said = self.says.pop(0) if self.says else ""
            return json.dumps({"message": said, "is_done": not said})
        if system.startswith("You select questions"):
            if self.better:
                return json.dumps({"keep": False, "reason": "Vague.", "better": self.better.pop(0)})
            return json.dumps({"keep": True, "reason": "", "better": ""})
        if system.startswith("You are given a question and a part"):
            return json.dumps({"is_answerable": self.is_enough, "answer": "It is said."})
        if system.startswith("You answer a question"):
            if last["role"] == "tool":
                if self.answer:
                    return self.answer
                found = re.search(r"c\d+", asked)
                return f"It is said [{found[0] if found else 'c0'}]."
            return [{"name": "search_documentation", "arguments": {"query": "duty"}}]
        if system.startswith("You write the final answer"):
            found = re.search(r"id=(c\d+)", asked)
            return json.dumps({"answer": "It is said.", "chunks_used": [found[1] if found else "c0"]})
        if system.startswith("You judge an answer"):
            level = {"level": self.level, "evidence": "It is said."}
            return json.dumps(dict.fromkeys(SCORES, level))
        return json.dumps({"answer": "It is said better."})


def _text_of(content: Any) -> str:
    """Return the text of a message, which some models get in parts."""
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
