"""``manage.py dataset_generate``: rows of question and answer from collections, into a dataset and a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone

from apps.collections.documents.operator import collection_named, is_worker_alive
from apps.datasets.formats import Card, format_get
from apps.datasets.generation.claiming import job_spend
from apps.datasets.generation.services import DRIVE, generation_pause, generation_resume, generation_start
from apps.datasets.generation.settings import settings_checked
from apps.datasets.models import JOB_ACTIVE, Dataset, GenerationJob, GenerationState
from apps.datasets.records.columns import record_of
from apps.datasets.records.record import Record
from apps.datasets.rows import selectors
from apps.datasets.rows.dataset_services import dataset_create, slug_of
from basics.errors import DomainError, Missing
from batches.delivery import Delivery
from jobs.context import LeaseLost
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from jobs.sweeper import sweep
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor

POLL_S = 0.5
TOLD_EVERY_S = 2.0


class Command(BaseCommand):
    help = (
        "Generate a dataset from collections; gives the same rows as the portal and the API with the same "
        "settings. Works "
        "with the running worker, or does the work itself when none is alive. Exit code 0: done, or paused "
        "after the requested probe; 1: anything else. Continue a paused job with --resume. Running again "
        "with the same settings continues an interrupted job or writes the rows of a finished one; nothing "
        "is generated twice."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--collection", action="append", metavar="NAME", help="name or id; repeat for more")
        what.add_argument(
            "--resume",
            type=int,
            metavar="JOB",
            help="continue a paused or interrupted job, or write a finished job's rows",
        )
        parser.add_argument("--out", required=True, metavar="FILE.jsonl", type=Path)
        parser.add_argument(
            "--dataset", default="", metavar="SLUG", help="add rows to this dataset; default: a new one"
        )
        parser.add_argument("--name", default="", help="name of a new dataset")
        parser.add_argument(
            "--model", default="extractive", help="an id from the model list; extractive needs no key"
        )
        parser.add_argument("--judge-model", default="", help="another model for filtering and judging")
        parser.add_argument(
            "--service-tier",
            default="",
            metavar="flex",
            help="standard, flex or priority, for providers that have it",
        )
        parser.add_argument(
            "--delivery",
            default=Delivery.NOW.value,
            choices=Delivery.values,
            help="batch: at half the price, within a day for each turn of a model",
        )
        parser.add_argument("--rows", type=int, default=50)
        parser.add_argument(
            "--types", default="", metavar="factual=5,multi_hop=2", help="share of each question type"
        )
        parser.add_argument("--difficulty", default="", metavar="easy=4,hard=1")
        parser.add_argument(
            "--language",
            default="",
            help="language of the rows, such as de; default: the documents' language",
        )
        parser.add_argument(
            "--persona", action="append", default=[], help="who asks; repeat for more, used in turn"
        )
        parser.add_argument("--style", action="append", default=[], help="how they write; repeat for more")
        parser.add_argument(
            "--max-turns", type=int, default=3, help="maximum turns for rows of type multi_turn"
        )
        parser.add_argument(
            "--script",
            action="append",
            default=[],
            help="what their user says after the first question; repeat for more",
        )
        parser.add_argument("--seed", type=int, default=0, help="the same seed chooses the same passages")
        parser.add_argument("--concurrency", type=int, default=8)
        parser.add_argument(
            "--budget", default="", metavar="USD", help="never exceeded; with --resume, the new budget"
        )
        parser.add_argument(
            "--probe",
            type=int,
            default=0,
            metavar="N",
            help="pause after N candidates with a cost estimate",
        )
        parser.add_argument("--user", default="", metavar="EMAIL", help="who asks (default: the first owner)")

    def handle(self, *args: Any, **options: Any) -> None:
        out: Path = options["out"]
        if out.is_dir() or not out.parent.is_dir():
            raise CommandError(f"{out} cannot be written: name a file in a folder that exists.")
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            actor = _actor(tenant, options["user"])
            try:
                job = self._begun(tenant, actor, options)
                self._wait(tenant, actor, job)
                written = _written(actor, job, out)
            except DomainError as error:
                raise CommandError(_told(error)) from error
        self.stdout.write(f"{written} rows in {out}, dataset “{job.dataset.slug}”.")
        for missing in job.shortfall:
            self.stdout.write(
                f"Missing: {missing['missing']} of {missing['wanted']} {missing['difficulty']} "
                f"{missing['type']}: {missing['why']}"
            )
        if job.state == GenerationState.COMPLETED:
            return
        goes_on = f"manage.py dataset_generate --tenant {tenant.slug} --resume {job.pk} --out {out}"
        if job.estimate and options["probe"]:
            found = job.estimate
            self.stdout.write(
                f"Estimate for all {job.wanted} rows: {found['middle']:.4f} USD, between {found['low']:.4f} and "
                f"{found['high']:.4f} (95 %), from {found['items']} candidates of which {found['kept']} were kept."
            )
            self.stdout.write(f"Continue: {goes_on}")
            return
        more = f" Continue: {goes_on}" if job.state == GenerationState.PAUSED else ""
        raise CommandError(f"The job is {job.get_state_display().lower()}: {job.reason}{more}")

    def _begun(self, tenant: Tenant, actor: Actor, options: dict[str, Any]) -> GenerationJob:
        budget = options["budget"] or None
        if options["resume"]:
            job = selectors.job_get(actor=actor, pk=options["resume"])
            if job.state not in (GenerationState.PAUSED, GenerationState.FAILED):
                return job  # It runs, or a command that was killed left it so; or only its rows are wanted again.
            return generation_resume(tenant=tenant, actor=actor, job=job, budget_usd=budget)
        settings: dict[str, Any] = {
            "collections": _collections(tenant, options["collection"]),
            "rows": options["rows"],
            "seed": options["seed"],
            "concurrency": options["concurrency"],
            "judge_model": options["judge_model"],
            "language": options["language"],
            "service_tier": options["service_tier"],
            "delivery": options["delivery"],
            "personas": options["persona"],
            "styles": options["style"],
            "max_turns": options["max_turns"],
            "script": options["script"],
        }
        for name in ("types", "difficulty"):
            if options[name]:
                settings[name] = _shares(options[name])
        dataset = _dataset(tenant, actor, options)
        if not options["dataset"] and (before := _before(tenant, actor, dataset, options, settings)):
            if before.state == GenerationState.COMPLETED:
                self.stderr.write(
                    f"Job {before.pk} has already made these rows, so they are only written again. For more rows, add them with --dataset {dataset.slug}, or give a new dataset its name with --name."
                )
            return before
        return generation_start(
            tenant=tenant,
            actor=actor,
            dataset=dataset,
            model=options["model"],
            options=settings,
            budget_usd=budget,
            probe=options["probe"],
        )

    def _wait(self, tenant: Tenant, actor: Actor, job: GenerationJob) -> None:
        """Do the work here while no worker is alive; else watch."""
        works_here = not is_worker_alive()
        threads: list[threading.Thread] = []
        told, told_at = "", 0.0
        try:
            while job.state in JOB_ACTIVE:
                # What another command began and was killed over comes back to the queue when its lease is over.
                if works_here and not any(thread.is_alive() for thread in threads):
                    sweep()
                    threads = _drivers(job)
                line = _line(job)
                if line != told and time.monotonic() - told_at >= TOLD_EVERY_S:
                    self.stderr.write(line)
                    told, told_at = line, time.monotonic()
                time.sleep(POLL_S)
                job.refresh_from_db()
        except KeyboardInterrupt:
            generation_pause(tenant=tenant, actor=actor, job=job)
            self.stderr.write("Pausing: work in progress is finished and kept.")
            job.refresh_from_db()
        finally:
            for thread in threads:
                thread.join(timeout=60)
        job.refresh_from_db()
        self.stderr.write(_line(job))


def _line(job: GenerationJob) -> str:
    limit = f" of {job.budget_usd:.2f}" if job.budget_usd is not None else ""
    return (
        f"{job.kept} of {job.wanted} kept, {job.dropped} dropped, {job.failed} failed; "
        f"{job_spend(job):.4f}{limit} USD"
    )


def _told(error: DomainError) -> str:
    """Return an error with every field that is wrong."""
    fields = (error.data or {}).get("fields") or {}
    lines = [f"{name}: {' '.join(problems)}" for name, problems in fields.items()]
    return "\n".join(lines) if len(lines) > 1 else error.message


def _drivers(job: GenerationJob) -> list[threading.Thread]:
    waiting = Job.objects.filter(
        kind=DRIVE, payload__job_id=job.pk, status=JobStatus.QUEUED, run_after__lte=timezone.now()
    )
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
        return  # A worker came up meanwhile and has it, or it is not yet time for another attempt.
    finally:
        connections.close_all()


def _collections(tenant: Tenant, names: list[str]) -> list[int]:
    found = []
    for name in names:
        collection = collection_named(tenant, name)
        if collection is None:
            raise CommandError(f"There is no collection “{name}” in {tenant.slug}.")
        found.append(collection.pk)
    return found


def _dataset(tenant: Tenant, actor: Actor, options: dict[str, Any]) -> Dataset:
    if options["dataset"]:
        try:
            return selectors.dataset_get(actor=actor, slug=options["dataset"])
        except Missing as error:
            raise CommandError(f"There is no dataset “{options['dataset']}” in {tenant.slug}.") from error
    name = options["name"] or f"{options['collection'][0]} questions"
    try:
        return selectors.dataset_get(actor=actor, slug=slug_of(name))
    except Missing:
        return dataset_create(tenant=tenant, actor=actor, name=name)


def _before(
    tenant: Tenant, actor: Actor, dataset: Dataset, options: dict[str, Any], settings: dict[str, Any]
) -> GenerationJob | None:
    """Return the job that the same command has begun before, None where the dataset has nothing in it yet.

    Raises:
        CommandError: the dataset was made otherwise, or its job waits for somebody; which choices there are.
    """
    job = selectors.job_list(actor=actor, dataset=dataset).first()
    if job is None and not selectors.row_list(actor=actor, dataset=dataset).exists():
        return None
    add = f"add rows to it with --dataset {dataset.slug}, or create another one with --name"
    if job is None or not _is_same(job, options["model"], settings):
        raise CommandError(f"The dataset “{dataset.slug}” already exists with other settings: {add}.")
    if job.state in (*JOB_ACTIVE, GenerationState.COMPLETED):
        return job
    again = f"manage.py dataset_generate --tenant {tenant.slug} --resume {job.pk} --out {options['out']}"
    more = f"Continue: {again}\nOr {add}." if job.state != GenerationState.STOPPED else f"You can {add}."
    raise CommandError(
        f"Job {job.pk} of the dataset “{dataset.slug}” is {job.get_state_display().lower()}: {job.reason}\n{more}"
    )


def _is_same(job: GenerationJob, model: str, settings: dict[str, Any]) -> bool:
    """Tell whether a job was begun with these settings; what the model made of them does not count."""
    asked = settings_checked(settings).to_json()
    return job.model == model and {**job.options, "rounds": None} == {**asked, "rounds": None}


def _shares(text: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share or 1)
        except ValueError as error:
            raise CommandError(f"“{part}” isn't a share. Write it like factual=5.") from error
    return shares


def _written(actor: Actor, job: GenerationJob, out: Path) -> int:
    """Write the job's rows as an export to JSON Lines has them, in the order of their quotas.

    The file appears when it is whole.
    """
    count = 0
    partial = out.with_name(f"{out.name}.part")

    def records() -> Iterator[Record]:
        for row in selectors.job_rows(actor=actor, job=job):
            yield record_of(row)

    with partial.open("wb") as file:
        for line in format_get("jsonl").write(records, Card(job.dataset.name)):
            file.write(line)
            count += 1
    partial.replace(out)
    return count


def _actor(tenant: Tenant, email: str) -> Actor:
    rows = Membership.objects.filter(tenant=tenant, user__is_active=True).select_related("user")
    rows = rows.filter(user__email__iexact=email) if email else rows.filter(role="owner")
    membership = rows.order_by("pk").first()
    if membership is None:
        who = f"“{email}” isn't a member of {tenant.slug}." if email else f"{tenant.slug} has no owner."
        raise CommandError(f"{who} Name a member with --user.")
    return user_actor(membership)
