"""Mail by SMTP, sent by a thread that holds no database connection meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from smtplib import SMTPNotSupportedError

from django.core.mail import EmailMessage
from django.core.mail.backends import smtp

from tenancy.database.waiting import connections_let_go


class EmailBackend(smtp.EmailBackend):
    """Django's own; a mail server may take its time, and gets no password that anyone on the way could read."""

    def open(self) -> bool | None:
        """Connect, with TLS where the settings want it; returns whether there is a new connection.

        Raises:
            SMTPNotSupportedError: the server offers no STARTTLS; it was told neither name nor password.
        """
        try:
            return super().open()
        except SMTPNotSupportedError as error:
            if "STARTTLS" not in str(error):
                raise
            raise SMTPNotSupportedError(
                f"The mail server {self.host}:{self.port} does not offer STARTTLS, so nothing was sent to it. Use "
                "smtps:// or another server, leave out the password, or use a mail server on this machine (localhost)."
            ) from error

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Send messages; returns how many were sent."""
        connections_let_go()
        return super().send_messages(email_messages)
