"""A workspace's own tools: the places they come from, each tool's versions, its tests, and the secrets they need."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from tenancy.fields import TenantForeignKey, ToldTextField
from tenancy.models import TenantModel


class ToolSource(TenantModel):
    """Where tools of a workspace come from. ``name`` is the group they are granted by and the prefix of their names.

    ``settings`` holds what the kind needs and nothing secret: see ``apps.tools.sources``.
    """

    class Kind(models.TextChoices):
        OPENAPI = "openapi", gettext_lazy("OpenAPI document")
        MCP = "mcp", gettext_lazy("MCP server")
        PLUGIN = "plugin", gettext_lazy("plug-in on this server")

    class Status(models.TextChoices):
        NEW = "new", gettext_lazy("not read yet")
        READY = "ready", gettext_lazy("Ready")
        FAILED = "failed", gettext_lazy("Failed")

    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.SlugField(max_length=24, help_text="In lower case; also the group of its tools.")
    title = models.CharField(max_length=120, blank=True)
    url = models.URLField(
        max_length=500, blank=True, help_text="Where calls go: the API's or the MCP server's address."
    )
    document_url = models.URLField(
        max_length=500, blank=True, help_text="Address from which the OpenAPI document is read again."
    )
    document = models.TextField(blank=True, help_text="The OpenAPI document as last read.")
    settings = models.JSONField(default=dict, blank=True)
    allowed_hosts = models.JSONField(
        default=list, blank=True, help_text="Hosts that calls can go to; empty: only the host of the address."
    )
    is_enabled = models.BooleanField(default=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.NEW)
    problem = ToldTextField(blank=True, help_text="Why it could not be read, and what to do.")
    refreshed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tool_source_one_per_name"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["openapi", "mcp", "plugin"]), name="tool_source_kind"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=["new", "ready", "failed"]), name="tool_source_status"
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class ToolVersion(TenantModel):
    """One form of one tool, as its source described it. Never changed, but for its state.

    A tool has at most one ``current`` version, which is the one that is offered and called, and at most one that
    ``waits`` for somebody to accept it. ``spec`` is ``apps.tools.connectors.base.FoundTool`` as JSON, ``digest`` the SHA-256 of it.
    """

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("waiting to be accepted")
        CURRENT = "current", gettext_lazy("Current")
        RETIRED = "retired", gettext_lazy("Retired")
        REJECTED = "rejected", gettext_lazy("Rejected")

    source = TenantForeignKey(ToolSource, related_name="versions", db_index=False)
    tool_name = models.CharField(max_length=64, help_text="Name that models use.")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    spec = models.JSONField()
    digest = models.CharField(max_length=64)
    is_gone = models.BooleanField(default=False, help_text="The source no longer has this tool.")
    created_at = models.DateTimeField(db_default=Now())
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tool_name", "number"], name="tool_version_number"),
            models.UniqueConstraint(
                fields=["tenant", "tool_name"],
                condition=models.Q(state="current"),
                name="tool_version_one_current",
            ),
            models.UniqueConstraint(
                fields=["tenant", "tool_name"],
                condition=models.Q(state="waiting"),
                name="tool_version_one_waiting",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "current", "retired", "rejected"]),
                name="tool_version_state",
            ),
        ]
        indexes = [models.Index(fields=["source", "state"], name="tool_version_of_source")]

    def __str__(self) -> str:
        return f"{self.tool_name} v{self.number}"


class ToolCredential(TenantModel):
    """What a source's calls prove themselves with, encrypted; never shown again.

    ``placement`` says where it goes; ``parameter`` is the name of the header, query parameter or cookie, the user's name
    for ``basic``, and empty for ``bearer``.
    """

    class Placement(models.TextChoices):
        BEARER = "bearer", gettext_lazy("bearer token")
        BASIC = "basic", gettext_lazy("user name and password")
        HEADER = "header", gettext_lazy("Header")
        QUERY = "query", gettext_lazy("query parameter")

    source = TenantForeignKey(ToolSource, related_name="credentials", db_index=False)
    placement = models.CharField(max_length=10, choices=Placement.choices)
    parameter = models.CharField(max_length=80, blank=True)
    secret_encrypted = models.BinaryField()
    last_four = models.CharField(max_length=4, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "placement", "parameter"], name="tool_credential_one_place"
            ),
            models.CheckConstraint(
                condition=models.Q(placement__in=["bearer", "basic", "header", "query"]),
                name="tool_credential_placement",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_placement_display()} of {self.source_id}"

    @property
    def purpose(self) -> str:
        """What the stored secret is bound to: one that is copied to another row cannot be read there."""
        return f"tool:{self.source_id}:{self.placement}:{self.parameter}"


class ContractTest(TenantModel):
    """A sample call of a tool and what its result must look like; run before a version is accepted, and by hand."""

    class Outcome(models.TextChoices):
        PASSED = "passed", gettext_lazy("Passed")
        FAILED = "failed", gettext_lazy("Failed")

    source = TenantForeignKey(ToolSource, related_name="contract_tests")
    tool_name = models.CharField(max_length=64)
    name = models.CharField(max_length=80)
    arguments = models.JSONField(default=dict)
    expected = models.JSONField(
        default=dict, blank=True, help_text="JSON Schema that the result must satisfy."
    )
    last_outcome = models.CharField(max_length=6, choices=Outcome.choices, blank=True)
    last_problem = models.TextField(blank=True)
    last_version = models.PositiveIntegerField(null=True, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tool_name", "name"], name="contract_test_one_per_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.tool_name})"
