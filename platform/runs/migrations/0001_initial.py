import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
from tenancy.database.initial import InitialMigration

# With the usage record, whoever writes it and however: what is spent can neither be forgotten nor counted twice.
SETTLE = """
CREATE OR REPLACE FUNCTION budget_settle() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
    charged numeric := coalesce(NEW.charged_usd, NEW.cost_usd, 0);
BEGIN
    IF charged > 0 THEN
        ids := ARRAY(
            SELECT s.spend_id FROM budget_spends(NEW.tenant_id, NEW.user_id, (NEW.attribution->>'api_key_id')::bigint,
                (NEW.attribution->>'assistant')::bigint, (NEW.attribution->>'budget_job')::bigint) s
            WHERE NOT s.is_new ORDER BY 1);
        PERFORM FROM budgets_budgetspend s WHERE s.id = ANY(ids) ORDER BY s.id FOR UPDATE;
        UPDATE budgets_budgetspend s SET spent_usd = s.spent_usd + charged WHERE s.id = ANY(ids);
    END IF;
    IF NEW.hold_id IS NOT NULL THEN
        DELETE FROM budgets_budgethold h WHERE h.tenant_id = NEW.tenant_id AND h.id = NEW.hold_id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER budget_settle AFTER INSERT ON runs_usagerecord FOR EACH ROW EXECUTE FUNCTION budget_settle();
"""
UNSETTLE = "DROP TRIGGER budget_settle ON runs_usagerecord; DROP FUNCTION budget_settle();"


class Migration(InitialMigration):
    dependencies = [
        ("budgets", "0001_initial"),
        ("jobs", "0001_initial"),
        ("tenancy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Run",
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
                ("kind", models.CharField(max_length=40)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "job",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="SET NULL", null=True, related_name="runs", to="jobs.job"
                    ),
                ),
                ("model", models.CharField(help_text="Model with its provider prefix.", max_length=120)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("parked", "parked (waiting for a decision)"),
                            ("completed", "Completed"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("request", models.JSONField(default=dict)),
                ("answer", models.TextField(blank=True)),
                ("last_seq", models.BigIntegerField(default=0)),
                ("stop_requested_at", models.DateTimeField(null=True)),
                ("stop_reason", models.CharField(blank=True, max_length=20)),
                ("limit_reached", models.CharField(blank=True, max_length=30)),
                ("error_code", models.CharField(blank=True, max_length=60)),
                ("error_message", models.TextField(blank=True)),
                ("is_retryable", models.BooleanField(default=False)),
                ("usage", models.JSONField(default=dict)),
                (
                    "background",
                    models.JSONField(
                        db_default={},
                        default=dict,
                        help_text="The provider's id of an answer that it continues in the background, and the step it belongs to.",
                    ),
                ),
                ("cost_usd", models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "pruned_at",
                    models.DateTimeField(
                        help_text="When the retention rule removed its content.", null=True
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-created_at"], name="run_tenant_newest"),
                    models.Index(
                        condition=models.Q(("pruned_at__isnull", True)),
                        fields=["tenant", "finished_at"],
                        name="run_to_prune",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["queued", "running", "parked", "completed", "stopped", "failed"])
                        ),
                        name="run_status_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunEvent",
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
                    "run",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="events", to="runs.run"
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("kind", models.CharField(max_length=20)),
                ("data", models.JSONField(default=dict)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "seq"), name="run_event_seq")],
            },
        ),
        migrations.CreateModel(
            name="RunStep",
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
                    "run",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="steps", to="runs.run"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("turn", models.JSONField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "index"), name="run_step_index")],
            },
        ),
        migrations.CreateModel(
            name="ToolCall",
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
                    "run",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="tool_calls", to="runs.run"
                    ),
                ),
                ("user_id", models.BigIntegerField(help_text="Id of the run's user, kept when the user is deleted.", null=True)),
                ("step", models.PositiveIntegerField()),
                ("call_id", models.CharField(max_length=200)),
                (
                    "parent_call_id",
                    models.CharField(
                        blank=True,
                        help_text="Call of the tool or program that made this call.",
                        max_length=200,
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("chat", "Chat"),
                            ("job", "Job"),
                            ("code", "code (made by a tool or program)"),
                            ("rest", "REST"),
                            ("mcp", "MCP"),
                        ],
                        max_length=4,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("tool_version", models.CharField(blank=True, max_length=64)),
                ("arguments", models.JSONField(null=True)),
                (
                    "arguments_masked",
                    models.JSONField(
                        help_text="Shown instead of arguments that contain secrets.", null=True
                    ),
                ),
                (
                    "decision",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("allow", "allowed"),
                            ("ask", "asked (each call needs approval)"),
                            ("deny", "denied"),
                        ],
                        help_text="The policy's decision, if it was asked.",
                        max_length=5,
                    ),
                ),
                ("rule_id", models.BigIntegerField(help_text="Id of the grant that decided.", null=True)),
                ("decision_why", models.TextField(blank=True)),
                (
                    "has_side_effects",
                    models.BooleanField(
                        default=False, help_text="Not run again if its outcome is unknown."
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("waiting", "waiting for a decision"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("denied", "Denied"),
                            ("unknown", "unknown (started, outcome lost)"),
                            ("stopped", "stopped (with the answer)"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("content", models.TextField(blank=True, help_text="The result that the model received.")),
                ("payload", models.JSONField(help_text="The part of the result that only the application receives.", null=True)),
                (
                    "result_size",
                    models.PositiveIntegerField(
                        help_text="Characters in the full output; the model may have received less.",
                        null=True,
                    ),
                ),
                (
                    "cost_usd",
                    models.DecimalField(
                        decimal_places=8,
                        help_text="Its share of the cost of the model turn that made it; empty: unknown, or not made by a model.",
                        max_digits=14,
                        null=True,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=60)),
                ("attempts", models.PositiveSmallIntegerField(default=1)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("duration_ms", models.PositiveIntegerField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "name", "-started_at"], name="tool_call_by_name"),
                    models.Index(fields=["tenant", "-id"], name="tool_call_newest"),
                    models.Index(fields=["tenant", "user_id", "-id"], name="tool_call_by_person"),
                    models.Index(fields=["tenant", "started_at"], name="tool_call_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "step", "call_id"), name="tool_call_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingDecision",
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
                    "run",
                    tenancy.fields.TenantForeignKey(
                        db_on_delete="CASCADE", related_name="decisions", to="runs.run"
                    ),
                ),
                ("step", models.PositiveIntegerField()),
                ("call_id", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=100)),
                ("arguments", models.JSONField(null=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("approval", "Approval"), ("external", "external (answered from outside)")],
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField(blank=True, help_text="The tool's message to the approver.")),
                ("state", models.JSONField(help_text="What the tool gets back when it continues; opaque.", null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("answered", "Answered"),
                            ("expired", "Expired"),
                            ("cancelled", "cancelled (the run ended)"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "approver_kind",
                    models.CharField(
                        choices=[
                            ("self", "the requester"),
                            ("role", "someone else with this role or higher"),
                            ("member", "one other person"),
                        ],
                        default="self",
                        help_text="Who decides; the requester is the run's user.",
                        max_length=6,
                    ),
                ),
                (
                    "approver",
                    models.CharField(
                        blank=True, help_text="The role, or the id of the person.", max_length=20
                    ),
                ),
                ("needs_reason", models.BooleanField(default=False, help_text="Rejecting requires a reason.")),
                (
                    "assigned_to",
                    models.ForeignKey(
                        help_text="Member it was handed over to.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("edited_arguments", models.JSONField(help_text="Arguments that the call runs with instead.", null=True)),
                ("decision_reason", models.TextField(blank=True, help_text="The reason that the model reads.")),
                ("answer", models.TextField(blank=True, help_text="The call's result, given from outside.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run", "step"], name="decision_of_run"),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["tenant", "approver_kind", "approver"],
                        name="decision_inbox",
                    ),
                    models.Index(fields=["tenant", "-id"], name="decision_newest"),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["expires_at"],
                        name="decision_expiry",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                ["pending", "approved", "rejected", "answered", "expired", "cancelled"],
                            )
                        ),
                        name="decision_status_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "pending")),
                        fields=("run", "step", "call_id"),
                        name="decision_one_pending_a_call",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approver", ""), ("approver_kind", "self")),
                            models.Q(
                                ("approver_kind__in", ["role", "member"]),
                                models.Q(("approver", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="decision_approver",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UsageRecord",
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
                ("run_id", models.BigIntegerField(null=True)),
                ("user_id", models.BigIntegerField(null=True)),
                (
                    "step",
                    models.PositiveIntegerField(help_text="The model turn of the run that it paid for.", null=True),
                ),
                (
                    "kind",
                    models.CharField(help_text='What it was for; "turn" for a model turn.', max_length=30),
                ),
                ("provider", models.CharField(max_length=40)),
                ("model", models.CharField(max_length=120)),
                (
                    "service_tier",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="The provider's service tier it was priced by; empty for the default.",
                        max_length=40,
                    ),
                ),
                (
                    "input_tokens",
                    models.BigIntegerField(default=0, help_text="All input tokens, including cached ones."),
                ),
                ("cached_tokens", models.BigIntegerField(default=0, help_text="Input tokens read from the prompt cache.")),
                ("cache_write_tokens", models.BigIntegerField(default=0)),
                ("output_tokens", models.BigIntegerField(default=0, help_text="Output tokens, including reasoning.")),
                ("reasoning_tokens", models.BigIntegerField(default=0)),
                (
                    "cost_usd",
                    models.DecimalField(
                        decimal_places=8, help_text="Empty: the price is unknown.", max_digits=14, null=True
                    ),
                ),
                (
                    "charged_usd",
                    models.DecimalField(
                        decimal_places=8,
                        help_text="What budgets count: the cost, or an estimate if the price is unknown.",
                        max_digits=14,
                        null=True,
                    ),
                ),
                ("hold_id", models.BigIntegerField(help_text="Id of the BudgetHold that this settles.", null=True)),
                (
                    "duration_ms",
                    models.PositiveIntegerField(
                        help_text="Milliseconds from the request to the end of its answer.", null=True
                    ),
                ),
                ("attribution", models.JSONField(default=dict, help_text="On whose behalf, and for what.")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-at"], name="usage_tenant_newest"),
                    models.Index(fields=["tenant", "user_id", "-at"], name="usage_by_person"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "turn")),
                        fields=("run_id", "step"),
                        name="usage_one_a_turn",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ChunkRead",
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
                ("run_id", models.BigIntegerField()),
                ("user_id", models.BigIntegerField(null=True)),
                ("chunk_id", models.BigIntegerField(help_text="Empty if lines of the file itself were read.", null=True)),
                ("document_id", models.BigIntegerField()),
                ("document_name", models.CharField(max_length=255)),
                ("version", models.PositiveIntegerField(help_text="Version of the document.", null=True)),
                ("collection_name", models.CharField(blank=True, max_length=120)),
                ("tool", models.CharField(max_length=100)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "passage read",
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="chunk_read_newest"),
                    models.Index(fields=["tenant", "document_id", "-id"], name="chunk_read_of_document"),
                    models.Index(fields=["tenant", "chunk_id", "-id"], name="chunk_read_of_chunk"),
                    models.Index(fields=["tenant", "user_id", "-id"], name="chunk_read_by_person"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run_id", "chunk_id"), name="chunk_read_once_a_run"),
                    models.UniqueConstraint(
                        condition=models.Q(("chunk_id", None)),
                        fields=("run_id", "document_id"),
                        name="file_read_once_a_run",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunRetention",
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
                ("days", models.PositiveIntegerField(help_text="0 keeps it forever.")),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant",), name="run_retention_one_a_tenant")
                ],
            },
        ),
        migrations.RunSQL(SETTLE, UNSETTLE),
    ]
