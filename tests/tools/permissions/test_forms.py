"""The form of a rule keeps who approves: editing something else must never weaken it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.tools.models import ToolGrant
from apps.tools.permissions.forms import GrantForm
from apps.tools.permissions.services import grant_create
from apps.tools.permissions.subjects import subjects_read
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_edited_rule_keeps_its_approver(cast: Cast) -> None:
    row = grant_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        effect="ask",
        target_kind="tool",
        target="calculate",
        approver_kind="role",
        approver="admin",
        approval_hours=4,
        needs_reason=True,
    )
    with tenant_scope(cast.tenant.pk):
        subjects = subjects_read(actor=cast.actor("owner"))
        form = GrantForm(initial=GrantForm.initial_of(row), subjects=subjects, collections=[])
        sent = {name: form[name].value() for name in form.fields}
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    url = reverse("tools:grant-edit", args=[cast.tenant.slug, row.pk])
    page = client.get(url).content.decode()
    assert '<option value="role:admin" selected>' in page
    sent = {name: value for name, value in sent.items() if value not in (None, "", False)}
    assert client.post(url, sent | {"note": "New."}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        new = ToolGrant.objects.get(note="New.")
    assert (new.approver_kind, new.approver, new.approval_hours, new.needs_reason) == (
        "role",
        "admin",
        4,
        True,
    )
    rules = client.get(reverse("tools:grants", args=[cast.tenant.slug])).content.decode()
    assert "after an admin or owner approves each call" in rules
