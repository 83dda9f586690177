"""People, workspaces, and the base of every table that belongs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models

from tenancy.fields import TenantKey

if TYPE_CHECKING:
    from tenancy.actors import Actor

M = TypeVar("M", bound=models.Model)
_COLLECTION_PATHS = {"collection": "collection_id", "document": "document__collection_id"}


class UserManager(BaseUserManager["User"]):
    """Make people who sign in by e-mail address."""

    use_in_migrations = True

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a person; without a password they can sign in only after setting one by mail."""
        if not email:
            raise ValueError("a user needs an e-mail address")
        user = self.model(email=self.normalize_email(email).lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        """Create a person who may see every workspace in the admin."""
        return self.create_user(email, password, **{"is_staff": True, "is_superuser": True, **extra})


class User(AbstractUser):
    """A person; the e-mail address is the name to sign in with."""

    username = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)
    # Of pages and mails; empty where the person has chosen none (web.reader_language, web.reader_zone).
    language = models.CharField(max_length=12, blank=True, default="", db_default="", editable=False)
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.get_full_name() or self.email


class Tenant(models.Model):
    """A workspace: the wall around everything a team owns."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    is_active = models.BooleanField(default=True)
    sign_in_rules = models.JSONField(
        null=True, editable=False, help_text="What sessions must have done to enter (tenancy.sign_in_rules)."
    )

    class Meta:
        verbose_name = "workspace"

    def __str__(self) -> str:
        return self.name


class TenantQuerySet(models.QuerySet[M]):
    """Every read of a tenant table starts here, with row-level security as the second net."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows of the actor's tenant, and of a limited key's collections; narrower rules override this."""
        rows = self.filter(tenant_id=actor.tenant_id)
        path = self.model.collection_path()  # type: ignore[attr-defined]
        if actor.collections is None or not path:
            return rows
        return rows.filter(**{f"{path}__in": actor.collections})


class TenantModel(models.Model):
    """Base of every table that belongs to a tenant.

    ``append_only`` tables get no UPDATE and DELETE rights for the application's role, ``read_only`` ones no INSERT
    either: what stands in those, the database writes by itself.
    """

    tenant = TenantKey(Tenant, on_delete=models.CASCADE, related_name="+")

    append_only = False
    read_only = False

    objects: Any = TenantQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def collection_path(cls) -> str:
        """Return the look-up of the collection that a row belongs to, "" for rows of none.

        A key that is limited to collections sees no rows of others. Models without a required ``collection`` that belong to
        one all the same say how.
        """
        for name, path in _COLLECTION_PATHS.items():
            field = next((f for f in cls._meta.concrete_fields if f.name == name), None)
            if field is not None and field.is_relation and not field.null:
                return path
        return ""
