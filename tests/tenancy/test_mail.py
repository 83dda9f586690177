"""A mail server is told no password that anyone on the way could read."""

from __future__ import annotations

import socket
import threading
from smtplib import SMTPNotSupportedError

import pytest

from config.env import email_settings
from tenancy.mail import EmailBackend

SECRET = "mail-secret"


@pytest.mark.rules
def test_password_goes_in_clear_to_this_machine_only() -> None:
    tls = {
        "smtp://ann:pw@mail.example.org:25": True,
        "smtp://ann:pw@10.0.0.7:25": True,
        "smtp://ann:pw@localhost.example.org:25": True,
        "smtp://mail.example.org:25": False,
        "smtp://ann:pw@localhost:25": False,
        "smtp://ann:pw@127.0.0.1:25": False,
        "smtp://ann:pw@[::1]:25": False,
        "smtp://ann:pw@localhost:587": True,
        "smtp://mail.example.org": True,
    }
    assert {url: email_settings(url)["EMAIL_USE_TLS"] for url in tls} == tls


def test_server_without_starttls_hears_no_password_and_the_error_says_why() -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            line, _ = listening.accept()
            with line, line.makefile("rwb", buffering=0) as told:
                told.write(b"220 mail.example.org\r\n")
                for said in told:
                    heard.append(said)
                    verb = said.split()[0].upper()
                    told.write({b"EHLO": b"250-mail\r\n250 AUTH PLAIN LOGIN\r\n"}.get(verb, b"250 Ok\r\n"))
                    if verb == b"QUIT":
                        return

        server = threading.Thread(target=serve)
        server.start()
        port = listening.getsockname()[1]
        backend = EmailBackend(host="127.0.0.1", port=port, username="ann", password=SECRET, use_tls=True)
        with pytest.raises(SMTPNotSupportedError, match=f":{port} does not offer STARTTLS"):
            backend.open()
        vars(backend)["_partial_connection"].close()
        server.join()
    assert [said.split()[0].upper() for said in heard] == [b"EHLO"]
