"""Make one row of anything, in a given tenant: what the matrix points its URLs at."""

from __future__ import annotations

import itertools
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone
from django.utils.crypto import get_random_string
from pgvector import SparseVector
from pgvector.django import HalfVectorField, SparseVectorField

from apps.collections.models import Document
from tenancy.database.base import as_login_role
from tenancy.models import Membership, Tenant, TenantModel, User
from tenancy.scope import platform_scope
from tests.factories import make_member, make_members, make_space, make_tenant, make_user

_numbers = itertools.count(1)


def make_row(model: type[models.Model], tenant: Tenant, person: User, /, **given: Any) -> Any:
    """Return a saved row of any model in the tenant; required references are made with it.

    Args:
        person: whose it is, where a model asks for one.
    """
    if model is Tenant:
        return tenant
    if model is User:
        return person
    if model._meta.label == "collections.EmbeddingSpace":
        return make_space()
    number = next(_numbers)
    if model._meta.label == "budgets.Budget":  # one of each kind, subject and period
        given = {"kind": "key", "subject_id": number, **given}
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.name in given or field.name == "pk" or field.null:
            continue
        if field.name == "tenant":
            values["tenant"] = tenant
        elif isinstance(field, models.ForeignKey):
            values[field.name] = make_row(field.related_model, tenant, person)
        elif field.has_default() or field.db_default is not models.NOT_PROVIDED or field.blank:
            continue
        elif not field.primary_key or not isinstance(field, models.AutoField):
            values[field.name] = _value(field, number)
    with platform_scope():
        row = model(**values, **given)
        row.save(force_insert=True)
    if isinstance(row, Document):
        _original(row)
    return row


def _value(field: Any, number: int) -> Any:
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, HalfVectorField):
        return [0.0] * 383 + [1.0]
    if isinstance(field, SparseVectorField):
        return SparseVector({1: 1.0}, field.dimensions or 1)
    if isinstance(field, models.EmailField):
        return f"row{number}@example.org"
    if isinstance(field, SearchVectorField):
        return ""
    if isinstance(field, (models.CharField, models.TextField)):
        return f"{field.name[:6]}{number}"
    for kind, value in (
        (models.UUIDField, uuid.uuid4()),
        (models.BooleanField, False),
        (models.DateTimeField, timezone.now()),
        (models.JSONField, {}),
        (ArrayField, []),
        (models.BinaryField, b"x"),
        (models.FloatField, 1.0),
        (models.DecimalField, Decimal(number)),
        (models.IntegerField, number),
    ):
        if isinstance(field, kind):
            return value
    raise NotImplementedError(f"tests/permissions/world.py: no value for {field!r}")


def _original(document: Document) -> None:
    """Put a file where the document's original must lie."""
    path = Path(settings.MEDIA_ROOT) / document.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("The original.")


class People(dict[str, Membership]):
    """The members of one tenant by role, each made when first asked for: most cases need one of the four."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__()
        self._tenant = tenant

    def __missing__(self, role: str) -> Membership:
        self[role] = make_member(self._tenant, role)
        return self[role]

    def everyone(self) -> list[Membership]:
        """Return one member of every role; those not met so far are made together."""
        roles = ("owner", "admin", "member", "viewer")
        new = [role for role in roles if role not in self]
        self.update(zip(new, make_members(*((self._tenant, role) for role in new)), strict=True))
        return [self[role] for role in roles]


class Side:
    """One tenant with its people and one row of each thing, made when first asked for."""

    def __init__(self, tenant: Tenant | None = None) -> None:
        self.tenant = tenant or make_tenant()
        self.people = People(self.tenant)
        self._rows: dict[tuple[str, str], Any] = {}
        self._sessions: dict[str, str] = {}

    def sign_in(self, *roles: str) -> dict[str, str]:
        """Return the keys of new sessions, as sign-ins leave them: in one statement, where each of those takes six."""
        store, made = SessionStore(), {}
        for role in roles:
            user = self.user(role)
            data = {
                SESSION_KEY: str(user.pk),
                BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
                HASH_SESSION_KEY: user.get_session_auth_hash(),
            }
            ends = store.get_expiry_date()
            made[role] = Session(
                session_key=get_random_string(32), session_data=store.encode(data), expire_date=ends
            )
        Session.objects.bulk_create(made.values())
        return {role: row.session_key for role, row in made.items()}

    def sign_in_everyone(self) -> None:
        """Let ``session`` answer with one session a role from now on."""
        self._sessions = self.sign_in(*self.people)

    def session(self, role: str) -> str:
        """Return the key of a session of the role: a new one each time, unless everyone is signed in."""
        return self._sessions.get(role) or self.sign_in(role)[role]

    def user(self, role: str) -> User:
        user: User = self.people[role].user
        return user

    def row(self, label: str, role: str) -> Any:
        """Return the row of a model ("collections.Document"); what belongs to a person is the role's.

        Rows made one after another hang together: a chunk's document is the side's document.
        """
        return self._make(apps.get_model(label), role)

    def _make(self, model: type[models.Model], role: str) -> Any:
        key = (model._meta.label, role)
        if key not in self._rows:
            given: dict[str, Any] = {}
            if model is Document:
                given["status"] = "ready"
            if model._meta.label == "datasets.DatasetRow":
                given["answer"] = "Because."
            if model._meta.label in {"conversations.Conversation", "runs.Run"}:
                given["model"] = "extractive"
            if model._meta.label == "runs.ToolCall":
                given["user_id"] = self.user(role).pk
            if model._meta.label == "tools.ToolVersion":
                given["spec"] = {
                    "name": "some_tool",
                    "description": "Does something.",
                    "parameters": {"type": "object"},
                }
            if model._meta.label == "datasets.RowContent":
                given["data"] = {"question": "Why?", "answer": "So."}
            if model._meta.label == "tools.ToolGrant":
                given["target"] = "some_tool"
            if model._meta.label == "evaluations.Arm":
                given["target"] = {"kind": "model", "model": "extractive"}
            for field in model._meta.concrete_fields:
                target: Any = field.related_model
                if field.name == "user" and target is User:
                    given["user"] = self.user(role)
                is_row = isinstance(field, models.ForeignKey) and issubclass(target, TenantModel)
                if is_row and (not field.null or field.name in {"chunk", "document"}):
                    given[field.name] = self._make(target, role)
            if model._meta.label == "tools.ToolLimit":
                given["user"] = None  # one of the whole workspace
            if model._meta.label == "collections.ChunkLink":
                given["target"] = make_row(
                    apps.get_model("collections.Chunk"),
                    self.tenant,
                    self.user(role),
                    **{n: getattr(given["chunk"], n) for n in ("collection", "document")},
                )
            if model._meta.label == "tenancy.Membership":
                self._rows[key] = make_member(self.tenant, "viewer", make_user())
            elif getattr(model, "read_only", False):  # written by the database alone
                with as_login_role():
                    self._rows[key] = make_row(model, self.tenant, self.user(role), **given)
            else:
                self._rows[key] = make_row(model, self.tenant, self.user(role), **given)
        return self._rows[key]
