from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backups.models import BackupResult
from backups.places import place_url
from backups.restoring import backup_restore
from backups.results import backup_problem, recorded
from backups.retention import backup_prune
from backups.scratch import SCRATCH_BUSY, ScratchBusy
from backups.services import backup_create, backup_list
from backups.verifying import backup_verify
from basics.errors import DomainError
from basics.sizes import gigabytes


class Command(BaseCommand):
    help = "Backups of the whole installation: create, list, verify, restore and prune. See docs/backups.md."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        where = "folder, or s3://bucket/prefix?endpoint=https://host; GROUNDWORK_BACKUP_URL when left out"
        create = steps.add_parser("create", help="Write a backup.")
        create.add_argument("place", nargs="?", default="", help=where)
        create.add_argument(
            "--check",
            action="store_true",
            help="also read the originals that are there already, and replace what is damaged",
        )
        listed = steps.add_parser("list", help="List the backups of a place, the newest last.")
        listed.add_argument("place", nargs="?", default="", help=where)
        verify = steps.add_parser(
            "verify", help="Restore a backup into a scratch database and compare all of it; changes nothing."
        )
        verify.add_argument("place", nargs="?", default="", help=where)
        verify.add_argument("--name", default="", help="of the backup; the newest when left out")
        restore = steps.add_parser(
            "restore", help="Restore a backup into an empty database and store of files."
        )
        restore.add_argument("place", nargs="?", default="", help=where)
        restore.add_argument("--name", default="", help="of the backup; the newest when left out")
        restore.add_argument(
            "--files-in-place",
            action="store_true",
            help="the files are there already: compare each, bring only what differs",
        )
        restore.add_argument(
            "--without-credentials",
            action="store_true",
            help="restore although this server's keys can't read the stored credentials",
        )
        prune = steps.add_parser("prune", help="Remove old backups, and originals that none needs any more.")
        prune.add_argument("place", nargs="?", default="", help=where)
        prune.add_argument("--keep", type=int, help="backups that stay (default: GROUNDWORK_BACKUP_KEEP)")

    def handle(self, *args: Any, step: str, **options: Any) -> None:
        try:
            getattr(self, f"_{step}")(options["place"] or settings.BACKUP_URL, options)
        except ScratchBusy as error:
            raise CommandError(error.message, returncode=SCRATCH_BUSY) from error
        except DomainError as error:
            raise CommandError(f"{error.message} {getattr(error, 'reason', '')}".strip()) from error
        except OSError as error:  # a folder that isn't there, is full, or is another's
            raise CommandError(f"{error.strerror or error}: {error.filename or options['place']}") from error

    def _create(self, url: str, options: dict[str, Any]) -> None:
        made = recorded(
            BackupResult.Kind.CREATE,
            place_url(url),
            lambda: backup_create(url, is_checked=options["check"], say=self._say),
            lambda made: (made, backup_problem(made)),
        )
        self.stdout.write(
            f"{made.name}: {made.rows:,} rows of {len(made.tables)} tables in {gigabytes(made.size)}, "
            f"{made.originals.count:,} originals, {made.originals.sent:,} of them sent "
            f"({gigabytes(made.originals.sent_size)})"
        )
        if made.originals.missing_count:
            self.stderr.write(
                f"{made.originals.missing_count} originals that rows name are missing or damaged here and are not in the "
                f"backup, for example {made.originals.missing[0]}. Run: python manage.py ingestion_check"
            )
        if made.unreadable:
            self.stderr.write(
                f"Credentials that no key of this server reads: {', '.join(made.unreadable[:5])}"
            )
        if made.left_out:
            self.stderr.write(
                f"Tables that no part of Groundwork knows are not in the backup: {', '.join(made.left_out)}"
            )
        if made.keys is None:
            self.stdout.write(
                "The keys of credentials are not in it: keep GROUNDWORK_SECRET_KEY (or the file secret_key of the data "
                "directory) and GROUNDWORK_CREDENTIAL_KEYS somewhere else."
            )

    def _list(self, url: str, options: dict[str, Any]) -> None:
        found = backup_list(url)
        for one in found:
            if one.manifest is None:
                self.stdout.write(f"{one.name}  can't be read: {one.problem}")
                continue
            made = one.manifest
            sealed = "encrypted" if made.keys else "not encrypted"
            self.stdout.write(
                f"{one.name}  {made.rows:,} rows, {gigabytes(made.size)}, {made.originals.count:,} originals "
                f"({gigabytes(made.originals.size)}), {sealed}"
            )
        if not found:
            self.stdout.write("No backups.")

    def _verify(self, url: str, options: dict[str, Any]) -> None:
        found = recorded(
            BackupResult.Kind.VERIFY,
            place_url(url),
            lambda: backup_verify(url, name=options["name"], say=self._say),
            lambda found: (found.manifest, found.problems[0] if found.problems else ""),
        )
        for words in found.done:
            self.stdout.write(f"ok    {words}")
        for words in found.problems:
            self.stderr.write(f"WRONG {words}")
        if found.problems:
            raise CommandError(f"{found.manifest.name} can't be relied on.")
        self.stdout.write(f"{found.manifest.name} can be restored.")

    def _restore(self, url: str, options: dict[str, Any]) -> None:
        done = backup_restore(
            url,
            name=options["name"],
            has_files=options["files_in_place"],
            without_credentials=options["without_credentials"],
            say=self._say,
        )
        if done.keys:
            self.stdout.write(done.keys)
        self.stdout.write(
            f"Restored {done.manifest.name}: {done.manifest.rows:,} rows, {done.brought:,} originals brought. "
            "Next: python manage.py prepare --no-demo, then: python manage.py doctor"
        )

    def _prune(self, url: str, options: dict[str, Any]) -> None:
        keep = settings.BACKUP_KEEP if options["keep"] is None else options["keep"]
        if keep < 1:
            raise CommandError("--keep: at least one backup stays.")
        done = backup_prune(url, keep=keep)
        self.stdout.write(
            f"{len(done.backups)} backups removed, {done.unfinished} files of unfinished ones, {done.originals} originals "
            "that no backup needs."
        )

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()
