from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.collections.documents.operator import collection_named, is_worker_alive
from apps.conversations.citations.markers import passages_of
from apps.conversations.display.marks import marks_of
from apps.conversations.display.terminal import PlainAnswer
from apps.conversations.models import Turn
from apps.conversations.transcript import selectors
from apps.conversations.turns import services
from basics.errors import DomainError
from jobs.context import LeaseLost
from jobs.runner import run_here
from runs.models import RunEvent, RunStatus
from runs.selectors import payload_list
from runs.transcript import FINISHED, TOOL_FINISHED, TOOL_STARTED, Transcript
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor

POLL_S = 0.1


class Command(BaseCommand):
    help = "Ask a collection a question. Prints the answer as it is written, then its sources."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--collection",
            action="append",
            default=[],
            metavar="NAME",
            help="name or id; again for more; without it, all of the workspace",
        )
        parser.add_argument("--model", default="", help="an id of the model list, e.g. extractive")
        parser.add_argument("--user", default="", metavar="EMAIL", help="who asks (default: the first owner)")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            actor = _actor(tenant, options["user"])
            collections = []
            for name in options["collection"]:
                collection = collection_named(tenant, name)
                if collection is None:
                    raise CommandError(f"There is no collection “{name}” in {tenant.slug}.")
                collections.append(collection.pk)
            try:
                turn = services.conversation_ask(
                    tenant=tenant,
                    actor=actor,
                    text=options["question"],
                    client_id=uuid.uuid4(),
                    collections=collections,
                    model=options["model"],
                )
            except DomainError as error:
                raise CommandError(error.message) from error
            is_quiet = options["json"]
            with _worker(turn):
                try:
                    for piece in _pieces(turn):
                        if not is_quiet:
                            self.stdout.write(piece, ending="")
                            self.stdout.flush()
                except KeyboardInterrupt:
                    services.turn_stop(tenant=tenant, actor=actor, turn=turn)
                    raise CommandError("Stopped.") from None
            stored = selectors.turn_get(actor=actor, conversation=turn.conversation, pk=turn.pk)
        self._end(stored, is_quiet)

    def _end(self, turn: Turn, is_json: bool) -> None:
        run = turn.run
        said = next((m for m in turn.messages.all() if m.author == "assistant"), None)
        answer, marks = "" if said is None else said.text, marks_of(said)
        sources = [
            {
                "number": c.number,
                "document": c.document_name,
                "collection": c.collection_name,
                "page": c.page,
                "quote": c.quote,
                "header": c.header,
                "chunk_id": c.chunk_ref,
            }
            for c in turn.citations.all()
        ]
        if is_json:
            facts = {
                "answer": answer,
                "marks": [mark.to_json() for mark in marks],
                "sources": sources,
                "status": run.status,
                "model": run.model,
                "run_id": run.pk,
                "conversation_id": turn.conversation_id,
                "removed_citations": turn.removed_markers,
                "error_code": run.error_code,
                "error_message": run.error_message,
                "usage": run.usage,
            }
            self.stdout.write(json.dumps(facts, ensure_ascii=False))
        else:
            self.stdout.write("\n")
            if marks:  # the text itself was printed as it came
                self.stdout.write("To check")
            for mark in marks:
                self.stdout.write(f"  {mark.text}\n    {mark.note}")
            if sources:
                self.stdout.write("Sources")
            for source in sources:
                page = f", page {source['page']}" if source["page"] else ""
                quote = " ".join(str(source["quote"]).split())
                self.stdout.write(f"[{source['number']}] {source['document']}{page}: “{quote}”")
        if run.status == RunStatus.FAILED:
            raise CommandError(run.error_message or "The answer could not be finished.")


class _worker:
    """Do the job here while no worker is alive; otherwise only watch."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if not is_worker_alive():
            job_id = self._turn.run.job_id
            self._thread = threading.Thread(
                target=_run_here, args=(self._turn.tenant_id, job_id), daemon=True
            )
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.join(timeout=10)


def _run_here(tenant_id: int, job_id: int) -> None:
    from django.db import connections

    try:
        run_here(tenant_id, job_id)
    except LeaseLost:
        return  # a worker came up meanwhile and has it
    finally:
        connections.close_all()


def _pieces(turn: Turn) -> Iterator[str]:
    """Yield what to print as the run goes on: text with its markers as numbers, never taken back."""
    run, transcript, plain = turn.run, Transcript(), PlainAnswer()
    passages = passages_of([])
    while transcript.finished is None:
        rows = list(
            RunEvent.objects.filter(run=run, seq__gt=transcript.seq)
            .order_by("seq")
            .values_list("seq", "kind", "data")
        )
        for seq, kind, data in rows:
            transcript.apply(seq, kind, data)
        kinds = {kind for _, kind, _ in rows}
        if kinds & {TOOL_STARTED, TOOL_FINISHED}:
            passages = passages_of(payload_list(run))
        yield plain.more(transcript.text, passages, is_complete=FINISHED in kinds)
        if not rows:
            time.sleep(POLL_S)


def _actor(tenant: Tenant, email: str) -> Actor:
    rows = Membership.objects.filter(tenant=tenant, user__is_active=True).select_related("user")
    rows = rows.filter(user__email__iexact=email) if email else rows.filter(role="owner")
    membership = rows.order_by("pk").first()
    if membership is None:
        who = f"“{email}” isn't a member of {tenant.slug}." if email else f"{tenant.slug} has no owner."
        raise CommandError(f"{who} Name a member with --user.")
    return user_actor(membership)
