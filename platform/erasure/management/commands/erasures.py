from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from basics.errors import DomainError
from erasure.ledger import ledger_read
from erasure.models import Erasure
from erasure.scrubbing import disk_scrub, superuser_known
from erasure.services import (
    erasure_carry_out,
    ledger_apply,
    person_erase_request,
    person_erase_undo,
    workspace_erase_request,
    workspace_erase_undo,
)
from tenancy.actors import system_actor
from tenancy.operator import person_named, tenant_named


class Command(BaseCommand):
    help = "Erase a workspace or a person, with a report; see docs/erasure.md."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, what in (("workspace", "ADDRESS"), ("person", "EMAIL")):
            one = actions.add_parser(name, help=f"ask for a {name} to be erased")
            one.add_argument("subject", metavar=what)
            one.add_argument("--confirm", default="", metavar=what, help="the same once more")
            one.add_argument("--now", action="store_true", help="at once, without days to undo it")
            one.add_argument("--undo", action="store_true", help="take it back")
        actions.add_parser("list", help="list erasures, the newest first")
        report = actions.add_parser("report", help="print the report of one as JSON")
        report.add_argument("number", type=int)
        actions.add_parser("apply", help="erase again what the ledger names and an older backup brought back")
        scrub = actions.add_parser(
            "scrub", help="rewrite the database's files, so that deleted rows aren't in them any more"
        )
        scrub.add_argument(
            "--superuser",
            default="",
            metavar="URL",
            help="address of the database for its superuser, who can also clear the server's log; the embedded "
            "server's is known",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except DomainError as error:
            raise CommandError(error.message) from error

    def _workspace(self, options: dict[str, Any]) -> None:
        tenant = tenant_named(options["subject"], open_only=False)
        actor = system_actor(tenant.pk)
        if options["undo"]:
            workspace_erase_undo(tenant=tenant, actor=actor)
            self.stdout.write("The workspace stays.")
            return
        now = options["now"]
        self._asked(
            workspace_erase_request(tenant=tenant, actor=actor, confirm=options["confirm"], now=now), now
        )

    def _person(self, options: dict[str, Any]) -> None:
        person = person_named(options["subject"])
        if options["undo"]:
            person_erase_undo(person=person, by=None)
            self.stdout.write("The account stays.")
            return
        now = options["now"]
        self._asked(person_erase_request(person=person, by=None, confirm=options["confirm"], now=now), now)

    def _asked(self, made: Erasure, now: bool) -> None:
        if not now:
            self.stdout.write(f"Erasure {made.pk} is due at {made.due_at.isoformat()}. Undo it with --undo.")
            return
        if not erasure_carry_out(made.pk):
            made.refresh_from_db()
            raise CommandError(
                f"Erasure {made.pk} isn't done, and is tried again by the worker. {made.detail}"
            )
        self._report({"number": made.pk})

    def _list(self, options: dict[str, Any]) -> None:
        for row in Erasure.objects.order_by("-pk")[:200]:
            told = f"{row.pk}  {row.kind} {row.subject}  {row.state}  {row.requested_at.isoformat()}"
            self.stdout.write(f"{told}  {row.detail}".rstrip())

    def _report(self, options: dict[str, Any]) -> None:
        row = Erasure.objects.filter(pk=options["number"]).first()
        if row is None:
            raise CommandError("There is no such erasure.")
        found = {
            "number": row.pk,
            "kind": row.kind,
            "subject": row.subject,
            "state": row.state,
            "requested_at": row.requested_at.isoformat(),
            "ended_at": row.ended_at.isoformat() if row.ended_at else None,
            "lines": row.report,
        }
        self.stdout.write(json.dumps(found, indent=2))

    def _apply(self, options: dict[str, Any]) -> None:
        began = timezone.now()
        again = ledger_apply(ledger_read([settings.BACKUP_URL] if settings.BACKUP_URL else []))
        self.stdout.write(f"Erased again: {again}. ({(timezone.now() - began).seconds} s)")

    def _scrub(self, options: dict[str, Any]) -> None:
        superuser = options["superuser"] or superuser_known()
        told = f"{disk_scrub(superuser)} tables rewritten"
        self.stdout.write(
            f"{told}, and the log of changes." if superuser else f"{told}; not the log of changes."
        )
