"""Workspaces come into being."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from basics.errors import Conflict, Denied, Invalid
from basics.texts import gettext as _
from tenancy.models import Membership, Role, Tenant, User
from tenancy.scope import tenant_scope
from tenancy.selectors import may_create_tenant, user_actor
from tenancy.services.audit import audit_record

_SLUG = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")


_started: list[Callable[[Tenant], None]] = []


def on_tenant_create(function: Callable[[Tenant], None]) -> None:
    """Let an app give new workspaces what they start with, inside the transaction that makes them.

    For rooms above this one, which it must not know; call it in ``AppConfig.ready``.
    """
    if function not in _started:
        _started.append(function)


def tenant_start(tenant: Tenant) -> None:
    """Give a workspace what the apps let it start with; part of ``tenant_create``."""
    for function in _started:
        function(tenant)


def tenant_names_check(name: str, slug: str) -> str:
    """Return the name of a new workspace without needless white space. Raises Invalid for what can't be one's name or slug."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 120:
        raise Invalid(
            "invalid", _("A workspace needs a name of 1 to 120 characters."), data={"field": "name"}
        )
    if not _SLUG.match(slug):
        raise Invalid(
            "invalid",
            _("Use 1 to 40 lower-case letters, digits and hyphens, without a hyphen at either end."),
            data={"field": "slug"},
        )
    return name


def _slugs_of(name: str) -> list[str]:
    """Return addresses for a workspace of that name, the best first; the last one is hardly ever taken."""
    made = slugify(name).replace("_", "-")[:30].strip("-") or "workspace"
    numbered = [f"{made}-{number}" for number in range(2, 6)]
    return [made, *numbered, f"{made}-{get_random_string(8, string.ascii_lowercase + string.digits)}"]


def _created(name: str, slug: str) -> Tenant | None:
    """Return a new workspace; None where its address is taken."""
    try:
        with transaction.atomic():
            return Tenant.objects.create(name=name, slug=slug)
    except IntegrityError:
        return None


@transaction.atomic
def tenant_create(*, user: User, name: str, slug: str, is_operator: bool = False) -> Tenant:
    """Create a workspace that the user owns.

    Args:
        name: what people see, 1 to 120 characters.
        slug: its part of the URL: 1 to 40 of a-z, 0-9 and "-", neither first nor last a "-"; "" has one made from the name.
        is_operator: asked for at the command line, where the operator's sign-up policy does not bind.

    Raises:
        Denied: the user may not create workspaces here.
        Invalid: name or slug cannot be used.
        Conflict: ``slug_taken``.
    """
    if not (is_operator or may_create_tenant(user=user)):
        raise Denied(
            "permission_denied",
            _("Only this server's operator can create workspaces. Ask them for one, or ask to be invited."),
        )
    slugs = [slug] if slug else _slugs_of(name)
    name = tenant_names_check(name, slugs[0])
    tenant = next(filter(None, (_created(name, candidate) for candidate in slugs)), None)
    if tenant is None:
        raise Conflict(
            "slug_taken",
            _("The address “%(slug)s” is already taken. Choose another one.") % {"slug": slugs[0]},
            data={"field": "slug"},
        )
    with tenant_scope(tenant.pk):
        membership = Membership.objects.create(tenant=tenant, user=user, role=Role.OWNER)
        audit_record(tenant=tenant, actor=user_actor(membership), action="tenant.create", object=tenant)
        tenant_start(tenant)
    return tenant
