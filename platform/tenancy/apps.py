"""App configuration; raises the walls after every migrate."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TenancyConfig(AppConfig):
    name = "tenancy"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from basics import net_guard
        from tenancy import checks, rate_limits  # noqa: F401 - the first registers itself
        from tenancy.database.waiting import connections_let_go
        from tenancy.row_security import register_function

        net_guard.before_request = connections_let_go
        register_function(
            rate_limits.SIGNATURE, rate_limits.SQL, tables=["tenancy_ratelimit", "tenancy_ratebucket"]
        )
        post_migrate.connect(_walls_after_migrate, dispatch_uid="tenancy.row_security")


def _walls_after_migrate(sender: Any, using: str, **kwargs: Any) -> None:
    """Raise the walls once per migrate, when the last app has its tables."""
    from django.apps import apps
    from django.db import connections

    from tenancy.row_security import row_security_apply

    # The signal is sent for apps with a models module only, in the order of INSTALLED_APPS.
    if sender is [a for a in apps.get_app_configs() if a.models_module is not None][-1]:
        row_security_apply(connections[using])
