"""The call log as a file: written while it is read, so that its length costs no memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from basics.formulas import FORMULA_STARTS
from runs.call_log import CallBatch, CallChoice, call_facts, call_log, calls_batched
from runs.models import ToolCall
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.lagging import may_lag_read
from tenancy.models import Tenant
from tenancy.scope import scope_same
from tenancy.services import audit_record

FORMS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
COLUMNS = tuple(call_facts(ToolCall()))


def calls_export(*, tenant: Tenant, actor: Actor, choice: CallChoice, form: str) -> StreamingHttpResponse:
    """Return the calls of a choice as a file to download, and record that somebody took them.

    Args:
        form: ``csv`` or ``jsonl``.

    Raises:
        Denied: without the right ``run.read``.
    """
    rows = call_log(actor=actor, choice=choice)
    with transaction.atomic():
        audit_record(
            tenant=tenant,
            actor=actor,
            action="call.export",
            object=tenant,
            data={"form": form, "filters": choice.to_query()},
        )
    return calls_file(
        rows,
        reader=lambda _: actor,
        read=partial(may_lag_read, actor),
        form=form,
        name=f"tool-calls-{tenant.slug}",
    )


def _at_once(read: Callable[[], CallBatch]) -> CallBatch:
    return read()


def calls_file(
    rows: QuerySet[ToolCall],
    *,
    reader: Callable[[int], Actor],
    form: str,
    name: str,
    read: Callable[[Callable[[], CallBatch]], CallBatch] = _at_once,
) -> StreamingHttpResponse:
    """Return calls as a file to download, read in the scope of this moment while it is sent.

    Args:
        rows: the newest first.
        reader: gives who reads it in a workspace; what they may not see of documents is left out.
        form: ``csv`` or ``jsonl``.
        name: of the file, without its ending.
        read: calls the function that reads a batch, perhaps on a replica.
    """
    batches, scope = calls_batched(rows, reader, read), scope_same()

    def some() -> str | None:
        with scope():
            batch = next(batches, None)
        return None if batch is None else lines_of(batch, form)

    async def body() -> AsyncIterator[bytes]:
        if form == "csv":
            yield _csv([COLUMNS]).encode()
        while (text := await in_db(some)) is not None:
            yield text.encode()

    response = StreamingHttpResponse(body(), content_type=FORMS[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    response["Cache-Control"] = "private, no-store"
    return response


def lines_of(batch: Iterable[Mapping[str, Any]], form: str) -> str:
    """Return some calls as lines of a file."""
    if form == "csv":
        return _csv([_cell(facts[name]) for name in COLUMNS] for facts in batch)
    return "".join(json.dumps(facts, ensure_ascii=False, default=_text) + "\n" for facts in batch)


def _csv(rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    """Return a value as a cell. Text that a spreadsheet would run as a formula is quoted: models write arguments."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else _text(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
