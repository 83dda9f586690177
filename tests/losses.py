"""How a person loses access while something of theirs is under way."""

from __future__ import annotations

from tenancy.models import ApiKey, Tenant, User
from tenancy.scope import tenant_scope
from tenancy.services import api_key_revoke, member_remove
from tests.cast import Cast


def remove(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        member_remove(tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk)


def deactivate(cast: Cast) -> None:
    User.objects.filter(pk=cast.member.user_id).update(is_active=False)


def close_workspace(cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.tenant.pk).update(is_active=False)


def revoke(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        for row in ApiKey.objects.filter(user_id=cast.member.user_id):
            api_key_revoke(tenant=cast.tenant, actor=cast.actor("owner"), key_id=row.pk)


def narrow(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        ApiKey.objects.filter(user_id=cast.member.user_id).update(scopes=["tenant.read"])


LOSSES = (remove, deactivate, close_workspace, revoke, narrow)
