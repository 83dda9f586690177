"""The same generation by command and by REST; and whether a row has all that it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import Client

from apps.datasets.formats import Card, format_get
from apps.datasets.generation.settings import SCORES
from apps.datasets.models import GenerationJob
from apps.datasets.records.assembly import parse
from apps.datasets.records.columns import record_of
from apps.datasets.records.parts import Step
from apps.datasets.records.record import FIELDS
from apps.datasets.rows import selectors
from apps.datasets.rows.dataset_services import dataset_create
from tenancy.services import api_key_create
from tests.cast import Cast

SCOPES = ("dataset.read", "dataset.write", "search.run", "tool.run", "collection.read")


def by_command(cast: Cast, collection: str, out: Path, *options: str) -> list[dict[str, Any]]:
    """Return the rows that the command writes."""
    call_command(
        "dataset_generate",
        tenant=cast.tenant.slug,
        collection=[collection],
        out=out,
        user=cast.user("owner").email,
        **_named(options),
    )
    return [json.loads(line) for line in out.read_text().splitlines()]


def _named(options: tuple[str, ...]) -> dict[str, Any]:
    named: dict[str, Any] = dict(option.split("=", 1) for option in options)
    return {name: int(value) if value.isdecimal() else value for name, value in named.items()}


def start_by_rest(cast: Cast, settings: dict[str, Any], model: str = "extractive") -> GenerationJob:
    """Start the same by REST, in a dataset of its own; returns its job. The caller is in the tenant's scope."""
    actor = cast.actor("owner")
    dataset = dataset_create(tenant=cast.tenant, actor=actor, name="By REST")
    _, key = api_key_create(tenant=cast.tenant, actor=actor, name="generation", scopes=SCOPES)
    answer = Client().post(
        f"/api/v1/datasets/{dataset.pk}/generations",
        json.dumps({"model": model, "settings": settings}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 202, answer.content
    return GenerationJob.objects.select_related("dataset").get(pk=answer.json()["id"])


def exported(cast: Cast, job: GenerationJob) -> list[dict[str, Any]]:
    """Return the rows of a job as the portal's export to JSON Lines has them, without their numbers."""

    def records() -> Any:
        return (record_of(row) for row in selectors.job_rows(actor=cast.actor("owner"), job=job))

    written = b"".join(format_get("jsonl").write(records, Card("x")))
    return [{**json.loads(line), "id": ""} for line in written.splitlines()]


def _step_told(step: dict[str, Any]) -> Step:
    """Return what the assembled text says of a step."""
    return Step(**{name: step[name] for name in step if name not in ("cost_usd", "sources")})


def problems_of(row: dict[str, Any], texts: dict[int, str]) -> list[str]:
    """Return what is missing or wrong in a row of the file.

    Args:
        texts: of the chunks, by id.
    """
    wrong = [f"no field {name}" for name in (*FIELDS, "text") if name not in row]
    wrong += [
        f"empty {name}"
        for name in ("question", "type", "difficulty", "rationale", "language", "messages", "tools")
        if not row.get(name)
    ]
    if not row["steps"]:
        wrong.append("no reasoning steps")
    for number, step in enumerate(row["steps"], 1):
        if set(step) - {"cost_usd", "sources"} != {"step", "thought", "action", "input", "observation"}:
            wrong.append(f"step {number} has the parts {sorted(step)}")
        is_told = step["thought"] or (step["action"] and row["meta"]["made_by"] != "rules")
        if not is_told or (step["action"] and not (step["input"] and step["observation"])):
            wrong.append(f"step {number} is empty: {step}"[:200])
    scores = {score["name"]: score for score in row["scores"]}
    if set(scores) != set(SCORES):
        wrong.append(f"scores {sorted(scores)}")
    for score in scores.values():
        if not (0 <= score["value"] <= 1 and 1 <= score["level"] <= 5 and score["author"]):
            wrong.append(f"score {score}")
    needs_answer = row["expected"] in ("answer", "cite_all")
    if not row["answer"] or (needs_answer and not row["sources"]):
        wrong.append("no answer, or none with a source")
    for source in row["sources"]:
        text = texts.get(source["chunk_id"] or 0, "")
        if source["quote"] not in text or source["end"] - source["start"] != len(source["quote"]):
            wrong.append(f"the quote is not what stands in its chunk: {source['quote'][:80]!r}")
    brought = {n for step in row["steps"] for n in step.get("sources", ())}
    if needs_answer and not brought <= set(range(1, len(row["sources"]) + 1)):
        wrong.append(f"the steps name the sources {sorted(brought)}")
    if needs_answer and not brought:
        wrong.append("no step says which source it has brought")
    if "chunks_used" not in row["meta"] or row["meta"].get("quality") is None:
        wrong.append("no chunks_used or quality")
    steps, answer = parse(row["text"])
    if answer != row["answer"] or steps != tuple(map(_step_told, row["steps"])):
        wrong.append("the text does not say what the steps and the answer say")
    return wrong
