"""What is spent is settled by statements that name the tenant, so that a sharded Postgres finds the rows on one machine."""

from django.db import migrations

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
        PERFORM FROM budgets_budgetspend s WHERE s.tenant_id = NEW.tenant_id AND s.id = ANY(ids) ORDER BY s.id FOR UPDATE;
        UPDATE budgets_budgetspend s SET spent_usd = s.spent_usd + charged
            WHERE s.tenant_id = NEW.tenant_id AND s.id = ANY(ids);
    END IF;
    IF NEW.hold_id IS NOT NULL THEN
        DELETE FROM budgets_budgethold h WHERE h.tenant_id = NEW.tenant_id AND h.id = NEW.hold_id;
    END IF;
    RETURN NULL;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [migrations.RunSQL(SETTLE)]
