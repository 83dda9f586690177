from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from tenancy.audit_chain import ChainReport, audit_chain_verify
from tenancy.models import Tenant
from tenancy.operator import tenant_named

Anchors = dict[int, dict[int, str]]  # by tenant id: a slug can change


class Command(BaseCommand):
    help = (
        "Verify the hash chain of the audit trail; exits with 1 if it is broken. With --anchors, "
        "compare with earlier exported heads and add today's; keep that file where the database's owner can't "
        "write."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="default: every workspace")
        parser.add_argument(
            "--anchors", type=Path, metavar="FILE", help="heads, one JSON object per line; created if missing"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object per workspace")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"]:
            tenants = tenants.filter(pk=tenant_named(options["tenant"], open_only=False).pk)
        anchors = _anchors_read(options["anchors"]) if options["anchors"] else {}
        broken = 0
        for tenant in tenants.iterator():
            known = anchors.get(tenant.pk, {})
            report = audit_chain_verify(tenant=tenant, anchors=known)
            if options["json"]:
                found = {
                    "tenant": tenant.slug,
                    "events": report.events,
                    "head": {"seq": report.head_seq, "hash": report.head_hash},
                    "problem_count": report.problem_count,
                    "problems": [
                        {"kind": p.kind, "seq": p.seq, "message": p.message} for p in report.problems
                    ],
                }
                self.stdout.write(json.dumps(found))
            else:
                state = "intact" if report.is_intact else f"BROKEN ({report.problem_count})"
                self.stdout.write(
                    f"{tenant.slug}: {report.events} events, {state}, head {report.head_seq}:{report.head_hash}"
                )
                for problem in report.problems:
                    self.stdout.write(f"  {problem.kind}: {problem.message}")
            broken += not report.is_intact
            if options["anchors"] and report.is_intact and report.head_seq not in {0, *known}:
                _anchor_write(options["anchors"], tenant, report)
        if broken:
            raise CommandError(
                f"The audit trail of {broken} workspace(s) has been altered. See above, and compare with a "
                f"backup."
            )


def _anchors_read(path: Path) -> Anchors:
    found: Anchors = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            entry = json.loads(line)
            found.setdefault(int(entry["tenant_id"]), {})[int(entry["seq"])] = str(entry["hash"])
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path}, line {number} isn't an anchor: {error!r}.") from error
    return found


def _lines(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        yield from (line for line in file if line.strip())


def _anchor_write(path: Path, tenant: Tenant, report: ChainReport) -> None:
    entry = {
        "tenant_id": tenant.pk,
        "tenant": tenant.slug,
        "seq": report.head_seq,
        "hash": report.head_hash,
        "at": timezone.now().isoformat(),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
