"""``manage.py check`` names columns that say nothing about erasure."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from erasure.rules import undeclared


@register()
def columns_declared(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Return an error for each column that can hold text and isn't declared, or is declared and isn't there."""
    return [
        Error(
            f"{name} isn't declared in AppConfig.erasure, or isn't there any more.",
            hint="See erasure/rules.py.",
            id="erasure.E001",
        )
        for name in undeclared()
    ]
