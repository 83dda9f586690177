"""The pages and the REST of erasure: what an owner and a person see and do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.collections.models import Document
from basics.errors import Denied
from erasure.holds import hold_place, hold_release
from erasure.models import Erasure, RetentionRule
from erasure.removal import removal_round
from erasure.retention import retention_overview
from erasure.services import erasures_round
from runs.models import Run
from runs.retention import RUNS
from tenancy.models import AuditEvent, Tenant, User
from tenancy.scope import platform_scope, tenant_scope
from tests.factories import actor_of, make_user
from tests.permissions.test_matrix import key_client
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


def test_an_operator_erases_the_account_of_a_row_and_nobody_else_does(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    side = Side()
    person, owner = side.user("member"), side.user("owner")
    page = f"{reverse('web:account-erasure')}?person={person.pk}"
    members = reverse("web:settings-members", args=[side.tenant.slug])
    assert signed_in(owner).get(page).status_code == 404
    assert signed_in(owner).post(page, {"do": "erase", "confirm": person.email}).status_code == 404
    assert f"person={person.pk}" not in text_of(signed_in(owner).get(members))
    owner.is_superuser = owner.is_staff = True
    owner.save()
    client = signed_in(owner)
    assert f"person={person.pk}" in text_of(client.get(members))
    assert str(person) in text_of(client.get(page))
    assert client.post(page, {"do": "erase", "confirm": owner.email}).status_code == 422
    assert client.post(page, {"do": "erase", "confirm": person.email}).status_code == 302
    assert "This account will be erased on" in text_of(client.get(page))
    made = Erasure.objects.get(state="waiting")
    assert (made.subject, made.requested_by) == (person.pk, owner.pk)
    assert client.post(page, {"do": "undo"}).status_code == 302
    assert not Erasure.objects.filter(state="waiting").exists()
    assert client.get(f"{reverse('web:account-erasure')}?person=x").status_code == 404


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
    assert [(r.kind.name, r.days, r.own, r.count) for r in shown.rules if r.days] == [
        ("runs", 30, None, 3),
        ("reads", 365, None, 0),
        ("deliveries", 30, None, 0),
    ]
    assert shown.hold is None
    with pytest.raises(Denied):
        retention_overview(tenant=side.tenant, actor=actor_of(side.people["member"]))
    assert "3 to remove now" in text_of(client.get(page))
    hold_place(tenant=side.tenant, actor=actor_of(side.people["owner"]), reason="Case")
    assert removal_round(RUNS) == 0
    hold_release(tenant=side.tenant, actor=actor_of(side.people["owner"]))
    assert removal_round(RUNS) == 3


def test_the_page_previews_rules_before_they_are_saved(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    side = Side()
    client = signed_in(side.user("owner"))
    page = reverse("web:settings-retention", args=[side.tenant.slug])
    document = side.row("collections.Document", "owner")
    with platform_scope():
        Document.objects.filter(pk=document.pk).update(created_at="2020-03-04T12:00Z")
    before = text_of(client.get(page))
    assert "Kept forever (server default)" in before
    assert "No rule removes these" in before
    shown = text_of(client.post(page, {"documents": "365", "runs": "", "do": "preview"}))
    assert "These rules aren't saved yet." in shown
    assert "1 to remove now" in shown
    assert "the oldest from 4 March 2020" in shown
    assert "would start" in shown
    assert not RetentionRule.objects.filter(tenant=side.tenant).exists()
    refused = client.post(page, {"documents": "365", "reads": "7", "do": "save"})
    assert refused.status_code == 422
    assert "Give 30 to 365 days." in text_of(refused)
    saved = text_of(client.post(page, {"documents": "365", "do": "save"}, follow=True))
    assert "Retention rules saved." in saved
    assert "1 to remove now" in saved
    assert "starts" in saved
    with tenant_scope(side.tenant.pk):
        events = AuditEvent.objects.filter(action="retention.set").values_list("data", flat=True)
        assert list(events) == [{"kind": "documents", "before": None, "after": 365}]


def test_rest_sets_and_previews_all_rules(home: Path, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 0
    side = Side()
    client = key_client(side, ["audit.read", "retention.manage"])
    document = side.row("collections.Document", "owner")
    with platform_scope():
        Document.objects.filter(pk=document.pk).update(created_at="2020-03-04T12:00Z", size=12)

    def of(answer: Any, kind: str) -> dict[str, Any]:
        return next(rule for rule in answer.json()["rules"] if rule["kind"] == kind)

    rules, preview = "/api/v1/retention/rules", "/api/v1/retention/preview"
    assert of(client.get(rules), "documents")["days"] == 0
    tried = of(client.get(f"{preview}?kind=documents&days=30"), "documents")
    assert (tried["due"], tried["bytes"], tried["oldest_at"][:10]) == (1, 12, "2020-03-04")
    assert of(client.get(preview), "documents")["due"] == 0
    wrongs: list[dict[str, Any]] = [
        {"kind": "documents"},
        {"days": 3},
        {"kind": "audit", "days": 3},
        {"kind": "runs", "days": "x"},
    ]
    for wrong in wrongs:
        assert client.get(preview, wrong).status_code == 400
    sent = {"rules": [{"kind": "documents", "days": 30}]}
    put = client.put(rules, sent, content_type="application/json")
    assert of(put, "documents") == {
        "kind": "documents",
        "own_days": 30,
        "days": 30,
        "default_days": 0,
        "longest_days": 0,
        "starts_at": None,
        "removed": 0,
        "removed_at": None,
    }
    assert of(client.get(preview), "documents")["due"] == 1
    wrong_kind = {"rules": [{"kind": "audit", "days": 30}]}
    assert client.put(rules, wrong_kind, content_type="application/json").status_code == 400
