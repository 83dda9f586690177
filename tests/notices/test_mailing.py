"""Mail about notices reaches a real mail server: once, together, in its reader's language, with the rights of the moment."""

from __future__ import annotations

import email
import socketserver
import threading
from collections.abc import Iterator
from datetime import timedelta
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.models import Import
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from notices import mailing, services
from notices.models import MailState, Notice
from notices.selectors import notice_ways
from tenancy.models import Membership
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.catalogs import catalog_write, languages_in
from tests.notices.test_walls import browser, imported, put

pytestmark = pytest.mark.django_db(transaction=True)
OLD = timedelta(minutes=20)


class MailServer:
    """A real SMTP server that keeps what it is sent; ``refuses`` of the next messages it doesn't take."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.refuses = 0
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, line: str) -> None:
                self.wfile.write(f"{line}\r\n".encode())

            def handle(self) -> None:
                self.say("220 test")
                while line := self.rfile.readline().decode().strip():
                    word = line.split()[0].upper()
                    if word == "DATA":
                        self.say("354 go on")
                        lines = list(iter(self.rfile.readline, b".\r\n"))
                        server.refuses -= 1
                        if server.refuses >= 0:
                            self.say("451 not now")
                            continue
                        server.mails.append(email.message_from_bytes(b"".join(lines)))
                    self.say("221 bye" if word == "QUIT" else "250 ok")
                    if word == "QUIT":
                        return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    one = MailServer()
    settings.EMAIL_BACKEND = "tenancy.mail.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = one.server.server_address[:2]
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example.org", "https://desk.example.org"]
    yield one
    one.server.shutdown()
    one.server.server_close()


def aged(cast: Cast) -> None:
    """Make every notice, and every mail before, 20 minutes older."""
    with tenant_scope(cast.tenant.pk):
        for row in Notice.objects.all():
            mail_at = None if row.mail_at is None else row.mail_at - OLD
            Notice.objects.filter(pk=row.pk).update(at=row.at - OLD, mail_at=mail_at)


def work(cast: Cast) -> list[str]:
    """Sweep, and run every job of mail once, due or not; returns their states afterwards."""
    mailing.mails_due()
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(status=JobStatus.QUEUED).update(run_after=timezone.now())
        jobs = list(Job.objects.filter(status=JobStatus.QUEUED, kind=mailing.JOB_KIND).order_by("pk"))
    return [run_here(cast.tenant.pk, job.pk).status for job in jobs]


def text_of(mail: Message) -> str:
    content: Any = mail.get_payload(decode=True)
    return str(content.decode()).replace("\r\n", "\n")


def wanting_mail(cast: Cast, *names: str) -> list[Import]:
    """Have imports of the member end, who wants to be told of them by mail."""
    with tenant_scope(cast.tenant.pk):
        services.notice_ways_set(tenant=cast.tenant, actor=cast.actor("member"), ways={"work": ["mail"]})
        rows = [imported(cast, name) for name in names]
        for row in rows:
            put(cast, row.pk)
    return rows


def states(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        return list(Notice.objects.order_by("pk").values_list("mail", flat=True))


def test_one_message_tells_all_that_is_new_and_the_next_one_waits(cast: Cast, server: MailServer) -> None:
    rows = wanting_mail(cast, "Alpha", "Beta\n- Zqline", "Zqread")
    with tenant_scope(cast.tenant.pk):
        put(cast, rows[0].pk, "owner")  # mails of imports are off until somebody wants them
        Notice.objects.filter(object_id=rows[2].pk).update(read_at=timezone.now())
    assert work(cast) == []  # everybody has a moment to look by themselves
    aged(cast)
    assert work(cast) == [JobStatus.SUCCEEDED]
    (mail,) = server.mails
    assert mail["To"] == cast.user("member").email
    assert mail["Subject"] == f"2 notifications in {cast.tenant.name}"
    text = text_of(mail)
    address = f"https://desk.example.org/t/{cast.tenant.slug}/collections/{rows[0].collection_id}/imports/"
    assert f"- Import finished: Alpha\n  {address}{rows[0].pk}/" in text
    assert "Import finished: Beta - Zqline\n" in text  # a name adds no line to the message
    assert "Zqread" not in text
    assert f"https://desk.example.org/t/{cast.tenant.slug}/settings/notices/" in text
    assert sorted(states(cast)) == ["none", "none", "sent", "sent"]
    with tenant_scope(cast.tenant.pk):
        put(cast, imported(cast, "Gamma").pk)
        for row in rows[:2]:  # all that was sent happens again: that a message went out isn't forgotten
            put(cast, row.pk, state="failed")
        Notice.objects.filter(mail=MailState.OPEN).update(
            at=timezone.now() - mailing.WAIT - timedelta(seconds=1)
        )
    assert work(cast) == []  # one message in ten minutes
    aged(cast)
    assert work(cast) == [JobStatus.SUCCEEDED]
    assert all(news in text_of(server.mails[1]) for news in ("Gamma", "Import failed: Alpha"))
    assert work(cast) == []
    assert len(server.mails) == 2


def test_a_refused_message_is_sent_later_and_one_that_a_kill_leaves_open_never_twice(
    cast: Cast, server: MailServer
) -> None:
    wanting_mail(cast, "Alpha")
    aged(cast)
    server.refuses = 2
    assert work(cast) == work(cast) == [JobStatus.QUEUED]
    assert (server.mails, states(cast)) == ([], ["open"])
    assert work(cast) == [JobStatus.SUCCEEDED]
    assert (len(server.mails), states(cast)) == (1, ["sent"])
    with tenant_scope(cast.tenant.pk):
        put(cast, Notice.objects.get().object_id)
    aged(cast)
    with tenant_scope(cast.tenant.pk):  # a worker takes it, and is killed with the message on its way
        assert mailing.digest_take(tenant=cast.tenant, user_id=cast.user("member").pk) is not None
    aged(cast)
    assert (work(cast), states(cast)) == ([], ["sending"])
    assert len(server.mails) == 1


def test_given_up_stays_in_the_portal(cast: Cast, server: MailServer) -> None:
    wanting_mail(cast, "Alpha")
    aged(cast)
    server.refuses = 100
    found = [work(cast)[0] for _ in range(8)]
    assert found[-1] == JobStatus.FAILED
    assert (states(cast), work(cast), server.mails) == (["none"], [], [])


def test_rights_and_language_are_those_of_the_moment(cast: Cast, server: MailServer, tmp_path: Path) -> None:
    rows = wanting_mail(cast, "Zqgone", "Zqkept")
    aged(cast)
    mailing.mails_due()
    with tenant_scope(cast.tenant.pk):
        rows[0].collection.owner = cast.user("owner")
        rows[0].collection.save()
    with platform_scope():
        person = cast.user("member")
        person.language = "de"
        person.save()
    catalog_write(tmp_path, "de", {"Import finished": "Import fertig"})
    with languages_in(tmp_path):
        assert work(cast) == [JobStatus.SUCCEEDED]
    (mail,) = server.mails
    assert "Zqgone" not in text_of(mail)
    assert "Import fertig: Zqkept" in text_of(mail)
    wanting_mail(cast, "Zqleft")
    aged(cast)
    mailing.mails_due()
    with tenant_scope(cast.tenant.pk):
        Membership.objects.filter(pk=cast.member.pk).delete()
    assert work(cast) == [JobStatus.SUCCEEDED]
    assert len(server.mails) == 1
    assert "open" not in states(cast)


def test_without_a_mail_server_nothing_is_sent_and_the_setting_tells(cast: Cast, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    wanting_mail(cast, "Alpha")
    aged(cast)
    assert (work(cast), states(cast)) == ([], ["none"])
    url = f"/t/{cast.tenant.slug}/settings/notices/"
    page = browser(cast.member)
    assert b"doesn't send mail" in page.get(url).content.replace(b"&#x27;", b"'")
    page.post(url, {"way": ["answer:portal"]})  # the boxes of mail can't be ticked, and keep what they had
    with tenant_scope(cast.tenant.pk):
        chosen = notice_ways(actor=cast.actor("member"))
    assert chosen == {
        "answer": {"portal"},
        "approval": {"mail"},
        "work": {"mail"},
        "budget": {"mail"},
    }
