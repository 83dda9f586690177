"""Find what an operator names at the command line."""

from __future__ import annotations

from django.core.management.base import CommandError

from tenancy.models import Tenant, User


def tenant_named(slug: str, *, open_only: bool = True) -> Tenant:
    """Return a workspace by its address.

    Args:
        open_only: take no workspace that is closed, as one is that waits for its erasure.

    Raises:
        CommandError: there is none; it names those there are.
    """
    rows = Tenant.objects.filter(is_active=True) if open_only else Tenant.objects.all()
    tenant = rows.filter(slug=slug).first()
    if tenant is None:
        known = ", ".join(rows.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"There is no workspace “{slug}”. Known: {known or 'none yet'}.")
    return tenant


def person_named(email: str) -> User:
    """Return a person by e-mail address, in any letter case. Raises CommandError: there is no such account."""
    person = User.objects.filter(email=email.strip().lower()).first()
    if person is None:
        raise CommandError(f"There is no account “{email}”.")
    return person
