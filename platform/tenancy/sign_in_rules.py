"""What a workspace asks of those who sign in to it: company sign-in, a second factor, how long a sign-in holds.

The rules are a column of the workspace's row, which every request reads anyway.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tenancy.models import Tenant
from tenancy.models.workspace import Role


@dataclass(frozen=True, slots=True)
class SignInRules:
    """The rules of one workspace; those of a new one ask for nothing.

    Attributes:
        requires_sso: a password opens nothing here, except for ``break_glass``.
        requires_second_factor: who comes in by password must have entered a code in this session.
        session_hours: how long a sign-in holds; None leaves it to the server's session.
        break_glass: id of the owner who may come in by password and code whatever the identity provider does.
        default_role: role of those who come by company sign-in or SCIM without a group that has one; "" lets them not in.
    """

    requires_sso: bool = False
    requires_second_factor: bool = False
    session_hours: int | None = None
    break_glass: int | None = None
    default_role: str = Role.MEMBER.value

    @classmethod
    def of(cls, tenant: Tenant) -> SignInRules:
        """Return a workspace's rules; what a later release has added to the column is left out."""
        stored = tenant.sign_in_rules or {}
        known = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        return cls(**known)

    def as_json(self) -> dict[str, bool | int | str | None]:
        """Return the value of the column."""
        return asdict(self)

    @property
    def binds(self) -> bool:
        """Tell whether anything is asked of a session."""
        return self.requires_sso or self.requires_second_factor or self.session_hours is not None
