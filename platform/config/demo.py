"""The demo: two workspaces that cannot see each other, each with a few real public-domain documents."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.contrib.auth.hashers import make_password
from django.db import transaction

from apps.collections.collection.samples import PLANS, TARIFFS, Sample, sample_add
from apps.conversations.assistants.examples import example_install
from blobs.services import placing_inside
from config.secrets import kept_secret
from tenancy.actors import Actor
from tenancy.models import Role, Tenant, User
from tenancy.scope import tenant_scope
from tenancy.selectors import membership_find, user_actor
from tenancy.services import member_add, tenant_create

EMAIL = "demo@groundwork.local"
OTHER_EMAIL = "other@groundwork.local"
VIEWER_EMAIL = "viewer@groundwork.local"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A demo workspace: slug, name, its people with their roles, a sample collection, and a worked example."""

    slug: str
    name: str
    people: tuple[tuple[str, str], ...]
    sample: Sample
    example: str = ""


WORKSPACES = (
    Workspace(
        "trade-desk",
        "Trade desk",
        ((EMAIL, Role.OWNER), (VIEWER_EMAIL, Role.VIEWER)),
        TARIFFS,
        "trade_compliance",
    ),
    Workspace("agency-plans", "Agency plans", ((OTHER_EMAIL, Role.OWNER),), PLANS),
)


def demo_password(data_dir: Path) -> str:
    """Return the password of the demo's people: made at random for this installation and kept in its data directory."""
    return kept_secret(data_dir, "demo_password")[:16]


def demo_hash_begin(data_dir: Path) -> Future[str] | None:
    """Begin to hash the password of a demo that was never made, in a thread; None where there is or was one.

    The hash is made to be slow. It takes a core that a first start leaves idle while it waits for the database.
    """
    if (data_dir / "demo_password").exists():
        return None
    threads = ThreadPoolExecutor(1, thread_name_prefix="demo-hash")
    hashed = threads.submit(make_password, demo_password(data_dir))
    threads.shutdown(wait=False)
    return hashed


def demo_seed(*, data_dir: Path, say: Callable[[str], None], hashed: Future[str] | None = None) -> None:
    """Create what is missing of the demo; what people changed or deleted in an existing workspace stays so.

    Args:
        data_dir: where the password is kept.
        say: takes one line for each thing done.
        hashed: what ``demo_hash_begin`` returned; by default the password is hashed when somebody needs it.
    """

    @cache
    def password() -> str:
        # One hash for all: they are told to share the password, and each hash is a third of a second.
        return make_password(demo_password(data_dir)) if hashed is None else hashed.result()

    for workspace in WORKSPACES:
        if Tenant.objects.filter(slug=workspace.slug).exists():
            continue
        # One transaction a workspace: a killed first start leaves none half made, and the next one makes it.
        with transaction.atomic(), placing_inside():
            _make(workspace, password)
        say(f"workspace {workspace.name}: {len(workspace.sample.files)} documents are being ingested")


def demo_lock(data_dir: Path) -> list[str]:
    """Switch off the demo's password, which lies in a file and was shown on a screen; sessions with it end.

    Returns:
        The addresses of the people who had it; a password that somebody chose stays.
    """
    if not (data_dir / "demo_password").exists():
        return []
    password = demo_password(data_dir)
    locked = [user for user in _people() if user.check_password(password)]
    for user in locked:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return [user.email for user in locked]


def demo_unlock(data_dir: Path) -> None:
    """Give the demo's people its password again, where ``demo_lock`` took it: only this machine reaches them now."""
    for user in _people():
        if not user.has_usable_password():
            user.set_password(demo_password(data_dir))
            user.save(update_fields=["password"])


def _people() -> list[User]:
    emails = {email for workspace in WORKSPACES for email, _ in workspace.people}
    return list(User.objects.filter(email__in=emails).order_by("email"))


def _make(workspace: Workspace, password: Callable[[], str]) -> None:
    people = [(_person(email, password), role) for email, role in workspace.people]
    owner = people[0][0]
    tenant = tenant_create(user=owner, name=workspace.name, slug=workspace.slug, is_operator=True)
    actor = _actor(owner, tenant)
    for person, role in people[1:]:
        member_add(tenant=tenant, actor=actor, user=person, role=role)
    with tenant_scope(tenant.pk):
        sample_add(tenant=tenant, actor=actor, sample=workspace.sample)
        if workspace.example:
            example_install(tenant=tenant, actor=actor, name=workspace.example)


def _person(email: str, password: Callable[[], str]) -> User:
    user = User.objects.filter(email=email).first()
    return user or User.objects.create(email=email, password=password())


def _actor(user: User, tenant: Tenant) -> Actor:
    membership = membership_find(user=user, slug=tenant.slug)
    if membership is None:
        raise RuntimeError(f"{user.email} is not a member of {tenant.slug}")
    membership.user = user
    return user_actor(membership)
