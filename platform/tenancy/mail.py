"""Mail by SMTP, sent by a thread that holds no database connection meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends import smtp

from tenancy.database.waiting import connections_let_go


class EmailBackend(smtp.EmailBackend):
    """Django's own; a mail server may take its time."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send messages; returns how many were sent."""
        connections_let_go()
        return super().send_messages(email_messages)
