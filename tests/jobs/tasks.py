"""Job kinds that only tests use. What a run did is appended to the file the test names."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from django.db import transaction

from basics.errors import Invalid
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job
from jobs.services import job_follow
from tenancy.actors import system_actor
from tenancy.inserting import rows_insert
from tenancy.models import Tenant


def _note(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def _ended(job: Job) -> None:
    if "path" in job.payload:
        _note(job.payload["path"], f"ended {job.status} {job.error_code}")


@job("tests.note", on_end=_ended)
def note(ctx: JobContext, path: str, **_: Any) -> None:
    _note(path, f"ran {ctx.attempt} {os.getpid()}")


@job("tests.refuse", on_end=_ended)
def refuse(ctx: JobContext, path: str) -> None:
    raise Invalid("bad_input", "This input cannot be used.")


@job("tests.refuse_unstorable", on_end=_ended)
def refuse_unstorable(ctx: JobContext, path: str) -> None:
    raise Invalid("bad_input", "No row: “a\x00b\udc89”.")


@job("tests.crash", max_attempts=2, on_end=_ended)
def crash(ctx: JobContext, path: str) -> None:
    _note(path, f"ran {ctx.attempt}")
    raise RuntimeError("a bug")


@job("tests.patient", max_attempts=1000)
def patient(ctx: JobContext, path: str) -> None:
    _note(path, f"ran {ctx.attempt}")


@job("tests.sleep", max_attempts=2, on_end=_ended)
def sleep(ctx: JobContext, path: str, seconds: int) -> None:
    _note(path, f"began {ctx.attempt} {os.getpid()}")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ctx.check()
        time.sleep(0.02)
    _note(path, f"done {ctx.attempt}")


@job("tests.stubborn")
def stubborn(ctx: JobContext, path: str) -> None:
    """Does not look whether it should stop; ends when the test makes a file."""
    _note(path, f"began {ctx.attempt} {os.getpid()}")
    while not Path(path).with_suffix(".go").exists():
        time.sleep(0.02)


@job("tests.wait", lane="loop", max_attempts=3, on_end=_ended)
async def wait(ctx: JobContext, path: str, milliseconds: int) -> None:
    _note(path, f"began {ctx.attempt} {os.getpid()}")
    await asyncio.sleep(milliseconds / 1000)
    _note(path, f"done {ctx.attempt} {os.getpid()}")


@job("tests.followed", lane="loop")
async def followed(ctx: JobContext, path: str, milliseconds: int) -> None:
    """End at once, with a ``tests.wait`` that follows."""

    def end() -> None:
        with transaction.atomic():
            following = job_follow(
                ctx,
                tenant=Tenant(pk=ctx.tenant_id),
                actor=system_actor(ctx.tenant_id, ctx.user_id),
                kind="tests.wait",
                payload={"path": path, "milliseconds": milliseconds},
            )
            rows_insert(following)
            ctx.complete()

    await ctx.in_db(end)


@job("tests.step", lane="loop")
async def step(ctx: JobContext, path: str) -> None:
    """One step that ends when the test makes a file, and one that must be another attempt's when the worker ends."""
    if not Path(path).stat().st_size:  # noqa: ASYNC240
        _note(path, f"began {ctx.attempt}")
        while not Path(path).with_suffix(".go").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        _note(path, f"done {ctx.attempt}")
        ctx.leave_at_step()
    _note(path, "second step")


@job("tests.slices", max_attempts=2, on_end=_ended)
def slices(ctx: JobContext, path: str) -> None:
    """Three steps, each of which is kept."""
    lines = Path(path).read_text().splitlines()
    done = sum(1 for line in lines if line.startswith(f"{ctx.job_id} "))
    for step in range(done + 1, 4):
        _note(path, f"{ctx.job_id} {step} {ctx.attempt}")
        if step < 3:
            ctx.give_way()
