from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from basics.errors import DomainError
from exports.files import Export, export_verify, person_export, workspace_export
from exports.imports import workspace_import
from exports.moves import REASONS, staying
from tenancy.operator import person_named, tenant_named


class Command(BaseCommand):
    help = (
        "Write a workspace or a person's data to one signed file, verify or import one; see docs/exports.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, what in (("workspace", "ADDRESS"), ("person", "EMAIL")):
            one = actions.add_parser(name, help=f"write a {name}'s data to one signed file")
            one.add_argument("subject", metavar=what)
            one.add_argument("file", type=Path)
        verify = actions.add_parser("verify", help="tell whether such a file is what was signed")
        brought = actions.add_parser("import", help="make a workspace from such a file, with new numbers")
        for one in (verify, brought):
            one.add_argument("file", type=Path)
            one.add_argument("--key", default="", help="public key of another installation that signed it")
        brought.add_argument("--slug", default="", metavar="ADDRESS", help="instead of the one it had")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except DomainError as error:
            raise CommandError(error.message) from error

    def _workspace(self, options: dict[str, Any]) -> None:
        self._tell(workspace_export(tenant_named(options["subject"], open_only=False), options["file"]))

    def _person(self, options: dict[str, Any]) -> None:
        self._tell(person_export(person_named(options["subject"]), options["file"]))

    def _verify(self, options: dict[str, Any]) -> None:
        self._tell(export_verify(options["file"], key=options["key"]))

    def _import(self, options: dict[str, Any]) -> None:
        made = workspace_import(options["file"], key=options["key"], slug=options["slug"])
        for address in made.removed:
            self.stdout.write(f"removed what a killed import had left of “{address}”")
        told = f"workspace {made.tenant.pk} “{made.tenant.slug}”: {made.rows:,} rows, {made.files:,} files"
        self.stdout.write(f"{told}. Search finds passages as the worker indexes them.")
        for email in made.people_made:
            self.stdout.write(f"new account without a password: {email}")
        for label, count in sorted({**made.stayed, **made.left}.items()):
            why = REASONS[staying().get(label, "secret")]
            self.stdout.write(f"stays in the file: {label}, {count:,} rows ({why})")
        self.stdout.write("stays in the file: sign-in rules of the workspace (they name its company sign-in)")

    def _tell(self, made: Export) -> None:
        files = sum(1 for part in made.parts if not part.rows)
        told = f"{made.kind} {made.subject}: {made.rows:,} rows, {files:,} files, written {made.made_at}"
        self.stdout.write(f"{told}, signed by {made.key}")
