"""``manage.py dataset_generate``: rows of question and answer from collections, into a dataset and a file."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from apps.collections.operator import collection_named, is_worker_alive, tenant_named
from apps.datasets import selectors
from apps.datasets.assembly import assemble
from apps.datasets.columns import record_of
from apps.datasets.generation.claiming import job_spend
from apps.datasets.models import JOB_ACTIVE, Dataset, GenerationJob, GenerationState
from apps.datasets.record import to_values
from apps.datasets.services import dataset_create
from apps.datasets.services.generation import DRIVE, generation_start, generation_stop
from basics.errors import DomainError, Missing
from jobs.context import LeaseLost
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor

POLL_S = 0.5


class Command(BaseCommand):
    help = "Generate a dataset from collections; the same rows as the portal makes with the same settings."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--collection", action="append", required=True, metavar="NAME", help="name or id; again for more")  # fmt: skip
        parser.add_argument("--out", required=True, metavar="FILE.jsonl", type=Path)
        parser.add_argument("--dataset", default="", metavar="SLUG", help="add to this one; without it, a new one")  # fmt: skip
        parser.add_argument("--name", default="", help="of a new dataset")
        parser.add_argument("--model", default="extractive", help="an id of the model list")
        parser.add_argument("--judge-model", default="", help="another model for filter and judge")
        parser.add_argument("--rows", type=int, default=50)
        parser.add_argument("--types", default="", metavar="factual=5,multi_hop=2", help="shares of types")  # fmt: skip
        parser.add_argument("--difficulty", default="", metavar="easy=4,hard=1")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--concurrency", type=int, default=8)
        parser.add_argument("--budget", default="", metavar="USD")
        parser.add_argument("--user", default="", metavar="EMAIL", help="who asks (default: the first owner)")  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            actor = _actor(tenant, options["user"])
            try:
                job = self._start(tenant, actor, options)
                self._wait(tenant, actor, job)
            except DomainError as error:
                raise CommandError(error.message) from error
            written = _written(actor, job, options["out"])
        self.stdout.write(f"{written} rows in {options['out']}, dataset “{job.dataset.slug}”.")
        for missing in job.shortfall:
            self.stdout.write(
                f"Missing: {missing['missing']} of {missing['wanted']} {missing['difficulty']} "
                f"{missing['type']}: {missing['why']}"
            )
        if job.state != GenerationState.COMPLETED:
            raise CommandError(f"The job is {job.state}: {job.reason}")

    def _start(self, tenant: Tenant, actor: Actor, options: dict[str, Any]) -> GenerationJob:
        collections = []
        for name in options["collection"]:
            collection = collection_named(tenant, name)
            if collection is None:
                raise CommandError(f"There is no collection “{name}” in {tenant.slug}.")
            collections.append(collection.pk)
        settings: dict[str, Any] = {
            "collections": collections,
            "rows": options["rows"],
            "seed": options["seed"],
            "concurrency": options["concurrency"],
            "judge_model": options["judge_model"],
        }
        for name in ("types", "difficulty"):
            if options[name]:
                settings[name] = _shares(options[name])
        return generation_start(
            tenant=tenant,
            actor=actor,
            dataset=_dataset(tenant, actor, options),
            model=options["model"],
            options=settings,
            budget_usd=options["budget"] or None,
        )

    def _wait(self, tenant: Tenant, actor: Actor, job: GenerationJob) -> None:
        """Do the work here while no worker is alive; else watch."""
        threads = [] if is_worker_alive() else _drivers(job)
        told = ""
        try:
            while job.state in JOB_ACTIVE:
                line = (
                    f"{job.kept} of {job.wanted} kept, {job.dropped} dropped, {job.failed} failed"
                )
                if line != told:
                    self.stderr.write(line)
                    told = line
                time.sleep(POLL_S)
                job.refresh_from_db()
        except KeyboardInterrupt:
            generation_stop(tenant=tenant, actor=actor, job=job)
            raise CommandError("Stopped; the rows made so far stay in the dataset.") from None
        finally:
            for thread in threads:
                thread.join(timeout=30)
        self.stderr.write(
            f"{job.kept} of {job.wanted} kept, {job.dropped} dropped, {job.failed} failed; "
            f"{job_spend(job):.4f} USD"
        )


def _drivers(job: GenerationJob) -> list[threading.Thread]:
    waiting = Job.objects.filter(kind=DRIVE, payload__job_id=job.pk, status=JobStatus.QUEUED)
    threads = [
        threading.Thread(target=_run_here, args=(job.tenant_id, pk), daemon=True)
        for pk in waiting.values_list("pk", flat=True)
    ]
    for thread in threads:
        thread.start()
    return threads


def _run_here(tenant_id: int, job_id: int) -> None:
    try:
        run_here(tenant_id, job_id)
    except LeaseLost:
        return  # a worker came up meanwhile and has it
    finally:
        connections.close_all()


def _dataset(tenant: Tenant, actor: Actor, options: dict[str, Any]) -> Dataset:
    if options["dataset"]:
        try:
            return selectors.dataset_get(actor=actor, slug=options["dataset"])
        except Missing as error:
            raise CommandError(
                f"There is no dataset “{options['dataset']}” in {tenant.slug}."
            ) from error
    name = options["name"] or f"{options['collection'][0]} questions"
    return dataset_create(tenant=tenant, actor=actor, name=name)


def _shares(text: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share or 1)
        except ValueError as error:
            raise CommandError(f"“{part}” is no share: write it like factual=5.") from error
    return shares


def _written(actor: Actor, job: GenerationJob, out: Path) -> int:
    """Write the job's rows, one JSON object a line, in the order of their quotas."""
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for row in selectors.job_rows(actor=actor, job=job):
            record = record_of(row)
            values = {**to_values(record), "text": assemble(record.steps, record.answer)}
            del values["id"]  # The row's number in this database; equal rows are equal lines.
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
            count += 1
    return count


def _actor(tenant: Tenant, email: str) -> Actor:
    rows = Membership.objects.filter(tenant=tenant, user__is_active=True).select_related("user")
    rows = rows.filter(user__email__iexact=email) if email else rows.filter(role="owner")
    membership = rows.order_by("pk").first()
    if membership is None:
        who = (
            f"“{email}” is no member of {tenant.slug}." if email else f"{tenant.slug} has no owner."
        )
        raise CommandError(f"{who} Name a member with --user.")
    return user_actor(membership)
