"""App configuration; raises the walls after every migrate."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TenancyConfig(AppConfig):
    name = "tenancy"
    default_auto_field = "django.db.models.BigAutoField"
    erasure = {  # what an erasure does to its columns: see erasure.rules
        "User": "names: first_name last_name email; codes: password language time_zone",
        "Tenant": "names: slug name; codes: sign_in_rules",
        "ApiKey": "names: name client_id; codes: prefix secret_sha256 scopes collections",
        "OAuthToken": "codes: kind sha256 redirect_uri challenge",
        "RateLimit": "codes: kind",
        "RateBucket": "names: subject",
        "WriteMark": "names: writer",
        "IdempotentAnswer": "names: caller route key; codes: fingerprint body_encrypted",
        "Membership": "codes: role finished",
        "Invite": "names: email; codes: role token_sha256",
        "ProviderCredential": (
            "names: endpoint label base_url; codes: provider secret_encrypted last_four model_names"
        ),
        "ModelEntry": "names: name label; codes: prices capabilities",
        "OutgoingHost": "names: pattern",
        "AuditEvent": (
            "names: actor_name object_id object_name data ip request_id; codes: actor_kind action "
            "object_type previous_hash hash"
        ),
        "AuditChain": "codes: hash",
    }
    moves = {  # what an import does with their rows: see exports.moves
        "Membership": "plain: finished",
        "AuditChain": "stays: sealed",
        "AuditEvent": "stays: sealed",
        "ApiKey": "stays: secret",
        "OAuthToken": "stays: secret",
        "ProviderCredential": "stays: secret",
        "Invite": "stays: secret",
        "IdempotentAnswer": "stays: passing",
        "WriteMark": "stays: passing",
        "RateBucket": "stays: passing",
        "RateLimit": "without: kind=key",
    }

    def ready(self) -> None:
        from basics import net_guard
        from basics.texts import translations_lend
        from tenancy import checks, rate_limits  # noqa: F401 - the first registers itself
        from tenancy.database.waiting import connections_let_go
        from tenancy.row_security import register_function
        from tenancy.translations import DjangoTranslations

        net_guard.before_request = connections_let_go
        translations_lend(DjangoTranslations())
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
