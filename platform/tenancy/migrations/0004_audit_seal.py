"""Chain each tenant's audit events by hash as their transactions commit, and those that exist in the order of their ids."""

from django.db import migrations

# jsonb has one text for one value (keys sorted, numbers kept as written), so that it is the canonical JSON of the row.
# tenancy.audit_chain holds the same expression and hashes its text in Python.
SEAL = """
CREATE FUNCTION audit_seal(event bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    given tenancy_auditevent%ROWTYPE;
    row tenancy_auditevent%ROWTYPE;
    head tenancy_auditchain%ROWTYPE;
    digest text;
BEGIN
    SELECT * INTO given FROM tenancy_auditevent WHERE id = event;
    IF NOT FOUND OR given.hash <> '' THEN  -- its workspace is gone, or an event of the same transaction sealed it
        RETURN;
    END IF;
    SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO tenancy_auditchain (tenant_id, seq, hash) VALUES (given.tenant_id, 0, '')
            ON CONFLICT (tenant_id) DO NOTHING;
        SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;
    END IF;
    -- All events of the same (sub)transaction at once: the head is then written once, not once an event, which would
    -- make a bulk act of n events cost n squared. Events of others that have no seal are left alone: they are forged.
    FOR row IN
        SELECT * FROM tenancy_auditevent
        WHERE tenant_id = given.tenant_id AND seq IS NULL
            AND (id = event OR xmin = (SELECT xmin FROM tenancy_auditevent WHERE id = event))
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
            WHERE id = row.id;
        head.seq := head.seq + 1;
        head.hash := digest;
    END LOOP;
    UPDATE tenancy_auditchain SET seq = head.seq, hash = head.hash WHERE id = head.id;
END
$$;
REVOKE ALL ON FUNCTION audit_seal(bigint) FROM PUBLIC;

-- What the application gives as a seal is not taken.
CREATE FUNCTION audit_unsealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.seq := NULL;
    NEW.previous_hash := '';
    NEW.hash := '';
    RETURN NEW;
END
$$;

CREATE FUNCTION audit_seal_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM audit_seal(NEW.id);
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION audit_seal_new() FROM PUBLIC;

DO $$
DECLARE
    event bigint;
BEGIN
    FOR event IN SELECT id FROM tenancy_auditevent WHERE seq IS NULL ORDER BY id LOOP
        PERFORM audit_seal(event);
    END LOOP;
END
$$;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;

-- Deferred: the head is locked only while the act commits, after every other lock it takes, so that writers of a tenant
-- wait for each other's commit and not for each other's work, and the lock cannot be part of a deadlock.
CREATE CONSTRAINT TRIGGER audit_seal_new AFTER INSERT ON tenancy_auditevent
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit_seal_new();
CREATE TRIGGER audit_unsealed BEFORE INSERT ON tenancy_auditevent FOR EACH ROW EXECUTE FUNCTION audit_unsealed();
"""

UNSEAL = """
DROP TRIGGER audit_seal_new ON tenancy_auditevent;
DROP TRIGGER audit_unsealed ON tenancy_auditevent;
DROP FUNCTION audit_seal_new();
DROP FUNCTION audit_unsealed();
DROP FUNCTION audit_seal(bigint);
UPDATE tenancy_auditevent SET seq = NULL, previous_hash = '', hash = '';
DELETE FROM tenancy_auditchain;
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0003_audit_chain")]

    operations = [migrations.RunSQL(SEAL, UNSEAL)]
