"""The seal of the audit trail names the tenant in each statement, so that a sharded Postgres finds the rows on one machine.

The function that it takes the place of, audit_seal(bigint), goes one release later.
"""

from django.db import migrations

SEAL = """
CREATE FUNCTION audit_seal(event bigint, owner bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    given tenancy_auditevent%ROWTYPE;
    row tenancy_auditevent%ROWTYPE;
    head tenancy_auditchain%ROWTYPE;
    digest text;
BEGIN
    SELECT * INTO given FROM tenancy_auditevent WHERE tenant_id = owner AND id = event;
    IF NOT FOUND OR given.hash <> '' THEN  -- its workspace is gone, or an event of the same transaction sealed it
        RETURN;
    END IF;
    SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = owner FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO tenancy_auditchain (tenant_id, seq, hash) VALUES (owner, 0, '')
            ON CONFLICT (tenant_id) DO NOTHING;
        SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = owner FOR UPDATE;
    END IF;
    -- All events of the same (sub)transaction at once: the head is then written once, not once an event, which would
    -- make a bulk act of n events cost n squared. Events of others that have no seal are left alone: they are forged.
    FOR row IN
        SELECT * FROM tenancy_auditevent
        WHERE tenant_id = owner AND seq IS NULL
            AND (id = event OR xmin = (SELECT xmin FROM tenancy_auditevent WHERE tenant_id = owner AND id = event))
        ORDER BY id
    LOOP
        digest := encode(sha256(convert_to(jsonb_build_object(
            'seq', head.seq + 1,
            'previous_hash', head.hash,
            'id', row.id,
            'tenant', row.tenant_id,
            'at', to_char(row.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
            'actor_kind', row.actor_kind,
            'actor_name', row.actor_name,
            'user', row.user_id,
            'api_key', row.api_key_id,
            'action', row.action,
            'object_type', row.object_type,
            'object_id', row.object_id,
            'object_name', row.object_name,
            'data', row.data,
            'ip', host(row.ip),
            'request_id', row.request_id
        )::text, 'UTF8')), 'hex');
        UPDATE tenancy_auditevent SET seq = head.seq + 1, previous_hash = head.hash, hash = digest
            WHERE tenant_id = owner AND id = row.id;
        head.seq := head.seq + 1;
        head.hash := digest;
    END LOOP;
    UPDATE tenancy_auditchain SET seq = head.seq, hash = head.hash WHERE tenant_id = owner AND id = head.id;
END
$$;
REVOKE ALL ON FUNCTION audit_seal(bigint, bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION audit_seal_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM audit_seal(NEW.id, NEW.tenant_id);
    RETURN NULL;
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0002_write_marks")]

    operations = [migrations.RunSQL(SEAL)]
