"""The test client, without loading the middleware anew for each of thousands of visitors."""

from __future__ import annotations

from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver
from django.test import Client
from django.test.client import ClientHandler

_HANDLER = ClientHandler(enforce_csrf_checks=False)


@receiver(setting_changed)
def _load_again(**_: Any) -> None:
    """Middleware reads its settings when it is loaded."""
    _HANDLER._middleware_chain = None  # type: ignore[attr-defined]


class Visitor(Client):
    """A browser with cookies of its own; what answers is one for all."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.handler = _HANDLER
