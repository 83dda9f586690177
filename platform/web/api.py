"""REST of the workspace itself: who am I, who is here."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tenancy.models import Role
from tenancy.selectors import actor_person, member_list
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class MeView(TenantAPIView):
    """The caller, and what they may do."""

    actions = {"GET": "tenant.read"}

    class Output(serializers.Serializer[Any]):
        class TenantOutput(serializers.Serializer[Any]):
            slug = serializers.CharField()
            name = serializers.CharField()

            class Meta:
                ref_name = "Tenant"

        class UserOutput(serializers.Serializer[Any]):
            id = serializers.IntegerField()
            email = serializers.EmailField()
            name = serializers.CharField(help_text="Full name; may be empty.")

            class Meta:
                ref_name = "Person"

        kind = serializers.ChoiceField(choices=["user", "api_key"])
        tenant = TenantOutput()
        user = UserOutput(
            allow_null=True,
            help_text="The person, or the one a key acts for; null for a key that acts for no one.",
        )
        role = serializers.ChoiceField(choices=Role.choices, allow_null=True, help_text="Null for a key.")
        actions = serializers.ListField(
            child=serializers.CharField(), help_text="Everything the caller may do."
        )

        class Meta:
            ref_name = "Me"

    @extend_schema(operation_id="me", tags=["workspace"], responses=Output)
    def get(self, request: Request) -> Response:
        """Return which workspace the key or session is in, who it acts for and what it can do."""
        person = actor_person(actor=self.actor)
        return Response(
            self.Output(
                {
                    "kind": self.actor.kind,
                    "tenant": self.tenant,
                    "user": person
                    and {"id": person.pk, "email": person.email, "name": person.get_full_name()},
                    "role": self.actor.role or None,
                    "actions": sorted(self.actor.actions),
                }
            ).data
        )


class MembersView(TenantAPIView):
    """The members of the workspace."""

    actions = {"GET": "member.read"}
    pagination_class = Pagination

    class Output(serializers.Serializer[Any]):
        id = serializers.IntegerField(help_text="Id of the membership.")
        user_id = serializers.IntegerField(help_text="Id of the person, used in other operations.")
        email = serializers.EmailField(source="user.email")
        name = serializers.CharField(source="user.get_full_name")
        role = serializers.ChoiceField(choices=Role.choices)
        created_at = serializers.DateTimeField()

        class Meta:
            ref_name = "Member"

    @extend_schema(operation_id="members_list", tags=["workspace"], responses=Output(many=True))
    def get(self, request: Request) -> Response:
        """List the members, newest first."""
        return self.paginated(member_list(actor=self.actor), self.Output)
