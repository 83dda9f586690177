"""The pages and the REST of erasure: what an owner and a person see and do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from basics.errors import Denied
from erasure.holds import hold_place, hold_release
from erasure.models import Erasure
from erasure.retention import retention_overview
from erasure.services import erasures_round
from runs.models import Run
from runs.retention import runs_prune
from tenancy.models import Tenant, User
from tenancy.scope import tenant_scope
from tests.factories import actor_of, make_user
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_an_owner_asks_undoes_holds_and_finds_the_report(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    side = Side()
    owner = side.user("owner")
    client = signed_in(owner)
    page = reverse("web:settings-erasure", args=[side.tenant.slug])
    assert "Erase workspace" in text_of(client.get(page))
    refused = client.post(page, {"do": "erase", "confirm": "another"})
    assert refused.status_code == 422
    assert f"Type {side.tenant.slug} to confirm." in text_of(refused)
    assert client.post(page, {"do": "erase"}).status_code == 422
    assert client.post(page, {"do": "nothing"}).status_code == 422
    assert not Erasure.objects.exists()
    assert client.post(page, {"do": "erase", "confirm": side.tenant.slug}).status_code == 302
    assert "This workspace will be erased on" in text_of(client.get(page))
    assert client.post(page, {"do": "undo"}).status_code == 302
    assert "Erase workspace" in text_of(client.get(page))
    assert client.post(page, {"do": "undo"}, follow=True).status_code == 200

    assert client.post(page, {"do": "hold", "reason": "Case 12"}).status_code == 302
    held = text_of(client.get(page))
    assert "On hold since" in held
    assert "Case 12" in held
    assert "Erase workspace" not in held
    retention = reverse("web:settings-retention", args=[side.tenant.slug])
    assert "until the legal hold is released" in text_of(client.get(retention))
    assert client.post(page, {"do": "erase", "confirm": side.tenant.slug}).status_code == 422
    assert client.post(page, {"do": "release"}).status_code == 302

    assert client.post(page, {"do": "erase", "confirm": side.tenant.slug}).status_code == 302
    made = Erasure.objects.get(state="waiting")
    Erasure.objects.filter(pk=made.pk).update(due_at=made.requested_at)
    assert erasures_round() == 1
    assert not Tenant.objects.filter(pk=side.tenant.pk).exists()
    assert client.get(page).status_code == 404
    mine = reverse("web:account-erasure")
    assert f"Workspace number {side.tenant.pk}" in text_of(client.get(mine))
    report = text_of(client.get(mine, {"report": made.pk}))
    assert "tenancy.AuditEvent" in report
    assert side.tenant.slug not in report
    assert signed_in(make_user()).get(mine, {"report": made.pk}).status_code == 404
    assert client.get(mine, {"report": 10**17}).status_code == 404


def test_a_person_erases_their_own_account(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    side = Side()
    person = side.user("member")
    client = signed_in(person)
    page = reverse("web:account-erasure")
    assert client.post(page, {"do": "erase", "confirm": "x@example.org"}).status_code == 422
    assert client.post(page, {"do": "erase", "confirm": person.email}).status_code == 302
    assert "Your account will be erased on" in text_of(client.get(page))
    assert client.post(page, {"do": "undo"}).status_code == 302
    assert client.post(page, {"do": "undo"}, follow=True).status_code == 200
    assert client.post(page, {"do": "erase", "confirm": person.email.upper()}).status_code == 302
    Erasure.objects.filter(state="waiting").update(due_at=person.date_joined)
    assert erasures_round() == 1
    assert client.get(page).status_code == 302  # to sign in, which nobody can any more
    owner = signed_in(side.user("owner"))
    refused = owner.post(page, {"do": "erase", "confirm": side.user("owner").email})
    assert refused.status_code == 422
    assert "only owner of" in text_of(refused)


def test_all_retention_rules_are_on_one_page_with_what_they_would_remove(home: Path, settings: Any) -> None:
    settings.RETENTION_DAYS, settings.CONVERSATION_DAYS = 30, 0
    side = Side()
    client = signed_in(side.user("owner"))
    page = reverse("web:settings-retention", args=[side.tenant.slug])
    old = timezone.now() - timedelta(days=40)
    with tenant_scope(side.tenant.pk):
        for _ in range(3):
            Run.objects.create(
                tenant=side.tenant, kind="conversation", model="m", status="completed", finished_at=old
            )
    shown = retention_overview(tenant=side.tenant, actor=actor_of(side.people["admin"]))
    assert [(r.name, r.days, r.is_own, r.due) for r in shown.rules] == [
        ("Runs", 30, False, 3),
        ("Conversations", 0, False, 0),
    ]
    assert shown.hold is None
    with pytest.raises(Denied):
        retention_overview(tenant=side.tenant, actor=actor_of(side.people["member"]))
    assert "steps of answers" in text_of(client.get(page))
    hold_place(tenant=side.tenant, actor=actor_of(side.people["owner"]), reason="Case")
    assert runs_prune() == 0
    hold_release(tenant=side.tenant, actor=actor_of(side.people["owner"]))
    assert runs_prune() == 3
