"""Why a backup cannot be written, believed or restored."""

from __future__ import annotations

from basics.errors import DomainError


class BackupRefused(DomainError):
    """Nothing was changed; the message says what is in the way and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__("backup_refused", message, status=409)


class BackupDamaged(DomainError):
    """Something in a backup isn't what was written; the message names the part."""

    def __init__(self, part: str, what: str) -> None:
        super().__init__("backup_damaged", f"{part}: {what}. Use another backup.", status=409)
        self.part = part


class BackupBusy(BackupRefused):
    """Another backup of this database is at work; trying again later is all there is to do."""

    def __init__(
        self,
        message: str = "Another backup of this database is being written or pruned. Try again later.",
    ) -> None:
        super().__init__(message)
