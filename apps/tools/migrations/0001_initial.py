import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
from tenancy.database.initial import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ("collections", "0001_initial"),
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("openapi", "OpenAPI document"),
                            ("mcp", "MCP server"),
                            ("plugin", "plug-in on this server"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.SlugField(help_text="In lower case; also the group of its tools.", max_length=24)),
                ("title", models.CharField(blank=True, max_length=120)),
                (
                    "url",
                    models.URLField(
                        blank=True,
                        help_text="Where calls go: the API's or the MCP server's address.",
                        max_length=500,
                    ),
                ),
                (
                    "document_url",
                    models.URLField(
                        blank=True, help_text="Address from which the OpenAPI document is read again.", max_length=500
                    ),
                ),
                (
                    "document",
                    models.TextField(blank=True, help_text="The OpenAPI document as last read."),
                ),
                ("settings", models.JSONField(blank=True, default=dict)),
                (
                    "allowed_hosts",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Hosts that calls can go to; empty: only the host of the address.",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("new", "not read yet"), ("ready", "Ready"), ("failed", "Failed")],
                        default="new",
                        max_length=10,
                    ),
                ),
                (
                    "problem",
                    models.TextField(blank=True, help_text="Why it could not be read, and what to do."),
                ),
                ("refreshed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="tool_source_one_per_name"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["openapi", "mcp", "plugin"])),
                        name="tool_source_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["new", "ready", "failed"])),
                        name="tool_source_status",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "source",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="versions", to="tools.toolsource"
                    ),
                ),
                ("tool_name", models.CharField(help_text="Name that models use.", max_length=64)),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting to be accepted"),
                            ("current", "Current"),
                            ("retired", "Retired"),
                            ("rejected", "Rejected"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("spec", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                (
                    "is_gone",
                    models.BooleanField(default=False, help_text="The source no longer has this tool."),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["source", "state"], name="tool_version_of_source")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "tool_name", "number"), name="tool_version_number"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "current")),
                        fields=("tenant", "tool_name"),
                        name="tool_version_one_current",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("tenant", "tool_name"),
                        name="tool_version_one_waiting",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "current", "retired", "rejected"])),
                        name="tool_version_state",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolCredential",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "source",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="credentials", to="tools.toolsource"
                    ),
                ),
                (
                    "placement",
                    models.CharField(
                        choices=[
                            ("bearer", "bearer token"),
                            ("basic", "user name and password"),
                            ("header", "Header"),
                            ("query", "query parameter"),
                        ],
                        max_length=10,
                    ),
                ),
                ("parameter", models.CharField(blank=True, max_length=80)),
                ("secret_encrypted", models.BinaryField()),
                ("last_four", models.CharField(blank=True, max_length=4)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "placement", "parameter"), name="tool_credential_one_place"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("placement__in", ["bearer", "basic", "header", "query"])),
                        name="tool_credential_placement",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ContractTest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "source",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="contract_tests", to="tools.toolsource"
                    ),
                ),
                ("tool_name", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=80)),
                ("arguments", models.JSONField(default=dict)),
                (
                    "expected",
                    models.JSONField(
                        blank=True, default=dict, help_text="JSON Schema that the result must satisfy."
                    ),
                ),
                (
                    "last_outcome",
                    models.CharField(
                        blank=True, choices=[("passed", "Passed"), ("failed", "Failed")], max_length=6
                    ),
                ),
                ("last_problem", models.TextField(blank=True)),
                ("last_version", models.PositiveIntegerField(blank=True, null=True)),
                ("last_run_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "tool_name", "name"), name="contract_test_one_per_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("title", models.CharField(blank=True, max_length=120)),
                ("description", models.TextField(blank=True, help_text="What models read instead of the tool's own description.")),
                ("category", models.CharField(blank=True, max_length=60)),
                ("tags", models.JSONField(blank=True, default=list)),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "cost_hint",
                    models.CharField(blank=True, help_text="What a call costs, in words for people.", max_length=60),
                ),
                (
                    "timeout_s",
                    models.FloatField(blank=True, help_text="Maximum seconds per call.", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name_plural": "tool entries",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="tool_entry_one_per_name"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("timeout_s__isnull", True),
                            models.Q(("timeout_s__gt", 0), ("timeout_s__lte", 600)),
                            _connector="OR",
                        ),
                        name="tool_entry_timeout_sane",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Toolkit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("description", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "name"), name="toolkit_one_per_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolkitMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "toolkit",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="members", to="tools.toolkit"
                    ),
                ),
                ("tool_name", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("toolkit", "tool_name"), name="toolkit_member_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="CollectionToolkit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "collection",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="+", to="collections.collection"
                    ),
                ),
                (
                    "toolkit",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="collections", to="tools.toolkit"
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("collection",), name="collection_toolkit_one_each")
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolGrant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "effect",
                    models.CharField(
                        choices=[
                            ("allow", "Allow"),
                            ("ask", "ask (each call needs approval)"),
                            ("deny", "Deny"),
                        ],
                        max_length=5,
                    ),
                ),
                (
                    "target_kind",
                    models.CharField(
                        choices=[
                            ("tool", "Tool"),
                            ("group", "Group"),
                            ("pattern", "pattern of names"),
                            ("toolkit", "Toolkit"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "target",
                    models.CharField(
                        blank=True, help_text="Name, group or pattern; empty for a toolkit.", max_length=120
                    ),
                ),
                (
                    "toolkit",
                    tenancy.fields.TenantForeignKey(
                        blank=True,
                        db_on_delete="CASCADE",
                        null=True,
                        related_name="grants",
                        to="tools.toolkit",
                    ),
                ),
                (
                    "calls",
                    models.CharField(
                        choices=[
                            ("any", "all of them"),
                            ("read_only", "those that only read data"),
                            ("side_effects", "those with side effects"),
                        ],
                        default="any",
                        max_length=12,
                    ),
                ),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("everyone", "Everyone"),
                            ("role", "Role"),
                            ("member", "Member"),
                            ("api_key", "API key"),
                        ],
                        default="everyone",
                        max_length=10,
                    ),
                ),
                (
                    "subject",
                    models.CharField(
                        blank=True, help_text="The role, or the id of the person or key.", max_length=20
                    ),
                ),
                (
                    "collection",
                    tenancy.fields.TenantForeignKey(
                        blank=True,
                        db_on_delete="CASCADE",
                        null=True,
                        related_name="+",
                        to="collections.collection",
                    ),
                ),
                (
                    "arguments",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Conditions on the call's arguments; all must hold.",
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.CharField(blank=True, max_length=200)),
                (
                    "approver_kind",
                    models.CharField(
                        choices=[
                            ("self", "the requester"),
                            ("role", "someone else with this role or higher"),
                            ("member", "one other person"),
                        ],
                        default="self",
                        help_text="Who decides if the effect is ask.",
                        max_length=6,
                    ),
                ),
                (
                    "approver",
                    models.CharField(
                        blank=True, help_text="The role, or the id of the person.", max_length=20
                    ),
                ),
                (
                    "approval_hours",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="Hours a call can wait; empty: the server's setting.", null=True
                    ),
                ),
                (
                    "needs_reason",
                    models.BooleanField(default=False, help_text="Rejecting requires a reason."),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "subject_kind", "subject"], name="tool_grant_of_subject")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("effect__in", ["allow", "ask", "deny"])), name="tool_grant_effect"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("target", ""), ("target_kind", "toolkit"), ("toolkit__isnull", False)),
                            models.Q(
                                ("target_kind__in", ["tool", "group", "pattern"]),
                                ("toolkit__isnull", True),
                                models.Q(("target", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="tool_grant_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("calls__in", ["any", "read_only", "side_effects"])),
                        name="tool_grant_calls",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("subject", ""), ("subject_kind", "everyone")),
                            models.Q(
                                ("subject_kind__in", ["role", "member", "api_key"]),
                                models.Q(("subject", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="tool_grant_subject",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approver", ""), ("approver_kind", "self")),
                            models.Q(
                                ("approver_kind__in", ["role", "member"]),
                                ("effect", "ask"),
                                models.Q(("approver", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="tool_grant_approver",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("approval_hours__isnull", True), ("approval_hours__gt", 0), _connector="OR"
                        ),
                        name="tool_grant_approval_hours",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("tenant", "Whole workspace"),
                            ("member", "a member"),
                            ("key", "an API key"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "api_key",
                    tenancy.fields.TenantForeignKey(
                        blank=True, db_on_delete="CASCADE", null=True, related_name="+", to="tenancy.apikey"
                    ),
                ),
                (
                    "target_kind",
                    models.CharField(
                        choices=[
                            ("all", "all tools together"),
                            ("group", "a group of tools together"),
                            ("tool", "one tool"),
                        ],
                        default="all",
                        max_length=5,
                    ),
                ),
                (
                    "target",
                    models.CharField(
                        blank=True, help_text="Name of the tool or group; empty for all.", max_length=120
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[("minute", "a minute"), ("day", "a day"), ("month", "a month")], max_length=6
                    ),
                ),
                ("calls", models.PositiveIntegerField(help_text="Maximum calls per period.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "kind", "user", "api_key", "target_kind", "target", "period"),
                        name="tool_limit_one_each",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(condition=models.Q(("calls__gt", 0)), name="tool_limit_positive"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("api_key", None), ("kind", "tenant"), ("user", None)),
                            models.Q(("api_key", None), ("kind", "member")),
                            models.Q(("kind", "key"), ("user", None)),
                            _connector="OR",
                        ),
                        name="tool_limit_subject_of_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("target", ""), ("target_kind", "all")),
                            models.Q(
                                ("target_kind__in", ["group", "tool"]),
                                models.Q(("target", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="tool_limit_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("period__in", ["minute", "day", "month"])),
                        name="tool_limit_period",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolLimitUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "limit",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="uses", to="tools.toollimit"
                    ),
                ),
                ("subject", models.CharField(help_text="tenant, member:<id> or key:<id>.", max_length=30)),
                ("starts_at", models.DateTimeField(help_text="When the period began.")),
                ("used", models.PositiveIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("limit", "subject"), name="tool_limit_use_one_each")
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenancy.tenant"
                    ),
                ),
                (
                    "digest",
                    models.BinaryField(
                        help_text="SHA-256 of the embedder's space and the text.", max_length=32
                    ),
                ),
                ("vector", models.BinaryField(help_text="Half-precision numbers, little-endian.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "digest"), name="tool_vector_once")
                ],
            },
        ),
    ]
