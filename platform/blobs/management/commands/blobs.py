from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from basics.errors import DomainError
from blobs.errors import StoreAway
from blobs.moving import Copied, store_copy
from blobs.remote import S3Store
from blobs.stores import store, store_open


class Command(BaseCommand):
    help = (
        "Files of this installation: copy all of them into another store, before GROUNDWORK_FILES_URL names it; or make "
        "the bucket that it names."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        copy = steps.add_parser(
            "copy", help="Copy every file; run it again to continue, and once more just before the switch."
        )
        copy.add_argument(
            "--to", required=True, help="address of the other store, as GROUNDWORK_FILES_URL is written"
        )
        copy.add_argument(
            "--verify", action="store_true", help="also read again what is there already, and compare it"
        )

        copy.add_argument(
            "--prune",
            action="store_true",
            help="also delete from there what is no longer here, for the last run",
        )

        bucket = steps.add_parser(
            "bucket", help="Make the S3 bucket of GROUNDWORK_FILES_URL, unless it is there."
        )
        bucket.add_argument(
            "--wait", type=int, default=0, help="seconds to wait for a store that does not answer yet"
        )

    def handle(self, *args: Any, step: str, **options: Any) -> None:
        """Do the step."""
        if step == "bucket":
            self._bucket(options["wait"])
        else:
            self._copy(to=options["to"], verify=options["verify"], prune=options["prune"])

    def _bucket(self, wait: int) -> None:
        until = monotonic() + wait
        while True:
            own = store()
            if not isinstance(own, S3Store):
                raise CommandError("GROUNDWORK_FILES_URL names no S3 bucket, so there is none to make.")
            try:
                is_made = own.bucket_make()
            except StoreAway as error:
                if monotonic() >= until:
                    raise CommandError(f"The store doesn't answer: {error.reason}") from error
                sleep(1)
            else:
                self.stdout.write("Bucket made." if is_made else "The bucket is already there.")
                return

    def _copy(self, *, to: str, verify: bool, prune: bool) -> None:
        """Copy, and say how far it is; what could not be copied is listed and makes the command fail."""
        try:
            target = store_open(to)
        except ValueError as error:
            raise CommandError(f"--to: {error}") from error
        try:
            done = store_copy(store(), target, is_verified=verify, is_pruned=prune, on_progress=self._say)
        except DomainError as error:
            reason = getattr(error, "reason", "")
            raise CommandError(
                f"{error.message} {reason} Run this again: it continues where it stopped."
            ) from error
        self.stdout.write(
            f"{done.copied} copied ({done.copied_bytes / 1e6:.1f} MB), {done.there} already there"
            + (f", {done.replaced} replaced because they differed" if done.replaced else "")
            + "."
        )
        if done.extra:
            told = "deleted" if prune else "not deleted; see --prune"
            self.stdout.write(f"{len(done.extra)} files there are no longer here ({told}).")
        for key in done.foreign:
            self.stderr.write(f"not a file of Groundwork, not copied: {key}")
        for key in done.damaged:
            self.stderr.write(f"damaged here, not copied: {key}")
        if done.damaged:
            raise CommandError(
                f"{len(done.damaged)} files aren't what their names say. Run: python manage.py ingestion_check"
            )

    def _say(self, done: Copied) -> None:
        if (done.copied + done.there) % 100 == 0:
            self.stdout.write(f"{done.copied + done.there} files ...")
