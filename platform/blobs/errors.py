"""What can stand between a program and its files."""

from __future__ import annotations

from django.utils.translation import gettext as _

from basics.errors import DomainError, TryAgain
from basics.metrics import STORE_ERRORS


class StoreAway(TryAgain):
    """The file store does not answer, or refuses this server: jobs wait for it, and a person gets status 503."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "file_store_away",
            _("The file store isn't answering right now. Try again in a minute."),
            data={"retry_after": int(self.retry_s)},
        )
        STORE_ERRORS.add()
        self.reason = reason  # for the log: it may name hosts


class BlobDamaged(DomainError):
    """The store has other bytes under a key than the key names."""

    def __init__(self) -> None:
        super().__init__(
            "file_damaged",
            _(
                "The stored file is not what was uploaded (its checksum differs). Delete this document and upload the "
                "file again."
            ),
        )


class BlobMissing(DomainError):
    """A key has no bytes."""

    def __init__(self) -> None:
        super().__init__(
            "file_missing",
            _("The original file is missing from storage. Delete this document and upload the file again."),
            status=410,
        )
