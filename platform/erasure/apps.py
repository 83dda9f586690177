"""App configuration."""

from django.apps import AppConfig


class ErasureConfig(AppConfig):
    name = "erasure"
    default_auto_field = "django.db.models.BigAutoField"
    # Its own tables, and those of the libraries, which can't declare anything.
    erasure = {
        "Erasure": "names: report detail; codes: kind state",
        "LegalHold": "names: reason",
        "RetentionRule": "codes: kind",
        "admin.LogEntry": "names: object_id object_repr change_message",
        "auth.Permission": "codes: name codename",
        "auth.Group": "names: name",
        "contenttypes.ContentType": "codes: app_label model",
        "sessions.Session": "codes: session_key session_data",
        "account.EmailAddress": "names: email",
        "account.EmailConfirmation": "codes: key",
        "mfa.Authenticator": "codes: type data",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "LegalHold": "numbers: placed_by=tenancy.User released_by=tenancy.User",
    }

    def ready(self) -> None:
        from backups.restoring import after_rows
        from blobs.caches import on_look
        from erasure import checks  # noqa: F401 - registers itself
        from erasure.old_jobs import JOBS
        from erasure.removal import retention_kind_register
        from erasure.restored import restored_check, restored_erase
        from erasure.rounds import rounds_start
        from erasure.workspaces import copies_look
        from jobs.registry import after_start

        after_rows(restored_check, restored_erase)
        on_look(copies_look)
        after_start(rounds_start)
        retention_kind_register(JOBS)
