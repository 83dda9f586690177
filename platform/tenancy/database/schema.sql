-- The schema of a new database. Written by `make snapshot`, never by hand: after a conflict take either side and run it
-- again. Read by tenancy.database.snapshot.
-- fingerprint: b6dafafb07700711c0a67e8f43ca35d5b19fac52f55f6a424d8f9085723d473b
-- migration: account.0001_initial
-- migration: account.0002_email_max_length
-- migration: account.0003_alter_emailaddress_create_unique_verified_email
-- migration: account.0004_alter_emailaddress_drop_unique_email
-- migration: account.0005_emailaddress_idx_upper_email
-- migration: account.0006_emailaddress_lower
-- migration: account.0007_emailaddress_idx_email
-- migration: account.0008_emailaddress_unique_primary_email_fixup
-- migration: account.0009_emailaddress_unique_primary_email
-- migration: admin.0001_initial
-- migration: admin.0002_logentry_remove_auto_add
-- migration: admin.0003_logentry_add_action_flag_choices
-- migration: auth.0001_initial
-- migration: auth.0002_alter_permission_name_max_length
-- migration: auth.0003_alter_user_email_max_length
-- migration: auth.0004_alter_user_username_opts
-- migration: auth.0005_alter_user_last_login_null
-- migration: auth.0006_require_contenttypes_0002
-- migration: auth.0007_alter_validators_add_error_messages
-- migration: auth.0008_alter_user_username_max_length
-- migration: auth.0009_alter_user_last_name_max_length
-- migration: auth.0010_alter_group_name_max_length
-- migration: auth.0011_update_proxy_permissions
-- migration: auth.0012_alter_user_first_name_max_length
-- migration: budgets.0001_initial
-- migration: collections.0001_initial
-- migration: collections.0001_squashed_0011_file_batches
-- migration: collections.0002_linked_chunks
-- migration: collections.0003_pending_versions
-- migration: collections.0004_search_indexes
-- migration: collections.0005_code_edge_names
-- migration: collections.0006_file_revision_kinds
-- migration: collections.0007_packed_postings
-- migration: collections.0008_leaner_chunk_tables
-- migration: collections.0009_collection_reranker
-- migration: collections.0010_retired_indexes
-- migration: collections.0011_file_batches
-- migration: collections.0012_private_collections
-- migration: contenttypes.0001_initial
-- migration: contenttypes.0002_remove_content_type_name
-- migration: conversations.0001_initial
-- migration: conversations.0001_squashed_0006_search_rules_and_readers
-- migration: conversations.0002_searches_all
-- migration: conversations.0003_modes_branches_and_assistants
-- migration: conversations.0004_parents_of_turns
-- migration: conversations.0005_assistants_tried
-- migration: conversations.0006_search_rules_and_readers
-- migration: conversations.0007_tools_switched_off
-- migration: conversations.0008_attachments
-- migration: datasets.0001_initial
-- migration: datasets.0001_squashed_0004_curation
-- migration: datasets.0002_record_fields
-- migration: datasets.0003_spare_items
-- migration: datasets.0004_curation
-- migration: datasets.0005_row_search_and_counts
-- migration: django_q.0001_initial
-- migration: django_q.0002_auto_20150630_1624
-- migration: django_q.0003_auto_20150708_1326
-- migration: django_q.0004_auto_20150710_1043
-- migration: django_q.0005_auto_20150718_1506
-- migration: django_q.0006_auto_20150805_1817
-- migration: django_q.0007_ormq
-- migration: django_q.0008_auto_20160224_1026
-- migration: django_q.0009_auto_20171009_0915
-- migration: django_q.0010_auto_20200610_0856
-- migration: django_q.0011_auto_20200628_1055
-- migration: django_q.0012_auto_20200702_1608
-- migration: django_q.0013_task_attempt_count
-- migration: django_q.0014_schedule_cluster
-- migration: django_q.0015_alter_schedule_schedule_type
-- migration: django_q.0016_schedule_intended_date_kwarg
-- migration: django_q.0017_task_cluster_alter
-- migration: django_q.0018_task_success_index
-- migration: django_q.0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more
-- migration: evaluations.0001_initial
-- migration: evaluations.0002_kept_scores
-- migration: evaluations.0003_trust_pairs_and_live
-- migration: jobs.0001_initial
-- migration: mfa.0001_initial
-- migration: mfa.0002_authenticator_timestamps
-- migration: mfa.0003_authenticator_type_uniq
-- migration: runs.0001_initial
-- migration: runs.0001_squashed_0008_budget_columns
-- migration: runs.0002_parking_and_usage
-- migration: runs.0003_call_log_columns
-- migration: runs.0004_call_log_backfill
-- migration: runs.0005_approvers
-- migration: runs.0006_call_cost
-- migration: runs.0007_reads_and_retention
-- migration: runs.0008_budget_columns
-- migration: runs.0009_usage_duration
-- migration: sessions.0001_initial
-- migration: tenancy.0001_initial
-- migration: tenancy.0001_squashed_0008_oauth_connections
-- migration: tenancy.0002_model_entries_and_endpoints
-- migration: tenancy.0003_audit_chain
-- migration: tenancy.0004_audit_seal
-- migration: tenancy.0005_idempotent_answers
-- migration: tenancy.0006_rate_limits
-- migration: tenancy.0007_key_collections
-- migration: tenancy.0008_oauth_connections
-- migration: tenancy.0009_outgoing_hosts
-- migration: tools.0001_initial
-- migration: tools.0001_squashed_0005_limits
-- migration: tools.0002_default_grants
-- migration: tools.0003_catalog
-- migration: tools.0004_approvers
-- migration: tools.0005_limits
-- migration: tools.0006_collection_toolkits
-- migration: webhooks.0001_initial
-- migration: webhooks.0001_squashed_0003_budget_events
-- migration: webhooks.0002_failures
-- migration: webhooks.0003_budget_events

CREATE EXTENSION IF NOT EXISTS "vector";
CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(100) NOT NULL, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
ALTER TABLE "django_content_type" ADD CONSTRAINT "django_content_type_app_label_model_76bd3d3b_uniq" UNIQUE ("app_label", "model");
ALTER TABLE "django_content_type" ALTER COLUMN "name" DROP NOT NULL;
ALTER TABLE "django_content_type" DROP COLUMN "name" CASCADE;
CREATE TABLE "auth_permission" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(50) NOT NULL, "content_type_id" integer NOT NULL, "codename" varchar(100) NOT NULL);
CREATE TABLE "auth_group" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(80) NOT NULL UNIQUE);
CREATE TABLE "auth_group_permissions" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "group_id" integer NOT NULL, "permission_id" integer NOT NULL);
ALTER TABLE "auth_permission" ADD CONSTRAINT "auth_permission_content_type_id_codename_01ab375a_uniq" UNIQUE ("content_type_id", "codename");
ALTER TABLE "auth_permission" ADD CONSTRAINT "auth_permission_content_type_id_2f476e4b_fk_django_co" FOREIGN KEY ("content_type_id") REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");
CREATE INDEX "auth_group_name_a6ea08ec_like" ON "auth_group" ("name" varchar_pattern_ops);
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissions_group_id_permission_id_0cd325b0_uniq" UNIQUE ("group_id", "permission_id");
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissions_group_id_b120cbf9_fk_auth_group_id" FOREIGN KEY ("group_id") REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "auth_group_permissions" ADD CONSTRAINT "auth_group_permissio_permission_id_84c5c92e_fk_auth_perm" FOREIGN KEY ("permission_id") REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "auth_group_permissions_group_id_b120cbf9" ON "auth_group_permissions" ("group_id");
CREATE INDEX "auth_group_permissions_permission_id_84c5c92e" ON "auth_group_permissions" ("permission_id");
ALTER TABLE "auth_permission" ALTER COLUMN "name" TYPE varchar(255);
ALTER TABLE "auth_group" ALTER COLUMN "name" TYPE varchar(150);
CREATE TABLE "tenancy_tenant" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "slug" varchar(40) NOT NULL UNIQUE, "name" varchar(120) NOT NULL, "created_at" timestamp with time zone NOT NULL, "is_active" boolean NOT NULL);
CREATE TABLE "tenancy_user" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "password" varchar(128) NOT NULL, "last_login" timestamp with time zone NULL, "is_superuser" boolean NOT NULL, "first_name" varchar(150) NOT NULL, "last_name" varchar(150) NOT NULL, "is_staff" boolean NOT NULL, "is_active" boolean NOT NULL, "date_joined" timestamp with time zone NOT NULL, "email" varchar(254) NOT NULL UNIQUE);
CREATE TABLE "tenancy_user_groups" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "user_id" bigint NOT NULL, "group_id" integer NOT NULL);
CREATE TABLE "tenancy_user_user_permissions" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "user_id" bigint NOT NULL, "permission_id" integer NOT NULL);
CREATE TABLE "tenancy_apikey" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(80) NOT NULL, "prefix" varchar(16) NOT NULL UNIQUE, "secret_sha256" varchar(64) NOT NULL, "scopes" jsonb NOT NULL, "created_at" timestamp with time zone NOT NULL, "expires_at" timestamp with time zone NULL, "last_used_at" timestamp with time zone NULL, "revoked_at" timestamp with time zone NULL, "collections" bigint[] NULL, "client_id" text NOT NULL, "user_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "tenancy_invite" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "email" varchar(254) NOT NULL, "role" varchar(10) NOT NULL, "token_sha256" varchar(64) NOT NULL UNIQUE, "created_at" timestamp with time zone NOT NULL, "expires_at" timestamp with time zone NOT NULL, "accepted_at" timestamp with time zone NULL, "revoked_at" timestamp with time zone NULL, "invited_by_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "tenancy_ratelimit" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "per_minute" integer NOT NULL CHECK ("per_minute" >= 0), "burst" integer NOT NULL CHECK ("burst" >= 0), "api_key_id" bigint NULL, "user_id" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "rate_limit_positive" CHECK (("burst" > 0 AND "per_minute" > 0)), CONSTRAINT "rate_limit_subject_of_kind" CHECK ((("api_key_id" IS NULL AND "kind" = 'tenant' AND "user_id" IS NULL) OR ("api_key_id" IS NULL AND "kind" = 'member') OR ("kind" = 'key' AND "user_id" IS NULL))));
CREATE TABLE "tenancy_ratebucket" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "subject" varchar(30) NOT NULL, "tokens" double precision NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "rate_bucket_one_each" UNIQUE ("tenant_id", "subject"));
CREATE TABLE "tenancy_providercredential" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "provider" varchar(20) NOT NULL, "label" varchar(80) NOT NULL, "secret_encrypted" bytea NOT NULL, "last_four" varchar(4) NOT NULL, "base_url" varchar(200) NOT NULL, "model_names" jsonb NOT NULL, "is_enabled" boolean NOT NULL, "created_at" timestamp with time zone NOT NULL, "updated_at" timestamp with time zone NOT NULL, "endpoint" varchar(30) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "credential_one_per_endpoint" UNIQUE ("tenant_id", "provider", "endpoint"), CONSTRAINT "credential_endpoint_compatible" CHECK (("endpoint" = '' OR "provider" = 'compatible')));
CREATE TABLE "tenancy_oauthtoken" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "sha256" varchar(64) NOT NULL UNIQUE, "redirect_uri" text NOT NULL, "challenge" varchar(43) NOT NULL, "created_at" timestamp with time zone NOT NULL, "expires_at" timestamp with time zone NOT NULL, "used_at" timestamp with time zone NULL, "api_key_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "oauth_token_kind_known" CHECK ("kind" IN ('code', 'access', 'refresh')));
CREATE TABLE "tenancy_modelentry" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "label" varchar(80) NOT NULL, "is_enabled" boolean NOT NULL, "context_window" integer NULL CHECK ("context_window" >= 0), "max_output_tokens" integer NULL CHECK ("max_output_tokens" >= 0), "prices" jsonb NULL, "capabilities" jsonb NOT NULL, "created_at" timestamp with time zone NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "model_entry_one_per_name" UNIQUE ("tenant_id", "name"), CONSTRAINT "model_entry_window_positive" CHECK (("context_window" IS NULL OR "context_window" > 0)), CONSTRAINT "model_entry_output_positive" CHECK (("max_output_tokens" IS NULL OR "max_output_tokens" > 0)));
CREATE TABLE "tenancy_membership" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "role" varchar(10) NOT NULL, "created_at" timestamp with time zone NOT NULL, "user_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "membership_one_per_user" UNIQUE ("tenant_id", "user_id"), CONSTRAINT "membership_role_known" CHECK ("role" IN ('owner', 'admin', 'member', 'viewer')));
CREATE TABLE "tenancy_idempotentanswer" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "caller" varchar(30) NOT NULL, "route" varchar(150) NOT NULL, "key" varchar(255) NOT NULL, "fingerprint" varchar(64) NOT NULL, "status" smallint NOT NULL CHECK ("status" >= 0), "body_encrypted" bytea NOT NULL, "expires_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "idempotent_answer_one_per_key" UNIQUE ("tenant_id", "caller", "route", "key"));
CREATE TABLE "tenancy_auditevent" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "actor_kind" varchar(10) NOT NULL, "actor_name" varchar(150) NOT NULL, "user_id" bigint NULL, "api_key_id" bigint NULL, "action" varchar(60) NOT NULL, "object_type" varchar(60) NOT NULL, "object_id" varchar(40) NOT NULL, "object_name" varchar(200) NOT NULL, "data" jsonb NOT NULL, "ip" inet NULL, "request_id" varchar(36) NOT NULL, "hash" varchar(64) NOT NULL, "previous_hash" varchar(64) NOT NULL, "seq" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "audit_one_per_seq" UNIQUE ("tenant_id", "seq"));
CREATE TABLE "tenancy_auditchain" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "seq" bigint NOT NULL, "hash" varchar(64) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "audit_chain_one_head" UNIQUE ("tenant_id"));
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
ALTER TABLE tenancy_ratebucket SET UNLOGGED;
CREATE INDEX "tenancy_tenant_slug_0716575e_like" ON "tenancy_tenant" ("slug" varchar_pattern_ops);
CREATE INDEX "tenancy_user_email_472b4278_like" ON "tenancy_user" ("email" varchar_pattern_ops);
ALTER TABLE "tenancy_user_groups" ADD CONSTRAINT "tenancy_user_groups_user_id_group_id_97039fdd_uniq" UNIQUE ("user_id", "group_id");
ALTER TABLE "tenancy_user_groups" ADD CONSTRAINT "tenancy_user_groups_user_id_ceb8a49a_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_user_groups" ADD CONSTRAINT "tenancy_user_groups_group_id_914c203a_fk_auth_group_id" FOREIGN KEY ("group_id") REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_user_groups_user_id_ceb8a49a" ON "tenancy_user_groups" ("user_id");
CREATE INDEX "tenancy_user_groups_group_id_914c203a" ON "tenancy_user_groups" ("group_id");
ALTER TABLE "tenancy_user_user_permissions" ADD CONSTRAINT "tenancy_user_user_permis_user_id_permission_id_b2633d4a_uniq" UNIQUE ("user_id", "permission_id");
ALTER TABLE "tenancy_user_user_permissions" ADD CONSTRAINT "tenancy_user_user_pe_user_id_624e1286_fk_tenancy_u" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_user_user_permissions" ADD CONSTRAINT "tenancy_user_user_pe_permission_id_dc97e8b3_fk_auth_perm" FOREIGN KEY ("permission_id") REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_user_user_permissions_user_id_624e1286" ON "tenancy_user_user_permissions" ("user_id");
CREATE INDEX "tenancy_user_user_permissions_permission_id_dc97e8b3" ON "tenancy_user_user_permissions" ("permission_id");
ALTER TABLE "tenancy_apikey" ADD CONSTRAINT "tenancy_apikey_user_id_fe7939f3_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_apikey" ADD CONSTRAINT "tenancy_apikey_tenant_id_8327dd4d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_apikey_prefix_4cba4279_like" ON "tenancy_apikey" ("prefix" varchar_pattern_ops);
CREATE INDEX "tenancy_apikey_user_id_fe7939f3" ON "tenancy_apikey" ("user_id");
CREATE INDEX "tenancy_apikey_tenant_id_8327dd4d" ON "tenancy_apikey" ("tenant_id");
ALTER TABLE "tenancy_invite" ADD CONSTRAINT "tenancy_invite_invited_by_id_75999fbb_fk_tenancy_user_id" FOREIGN KEY ("invited_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_invite" ADD CONSTRAINT "tenancy_invite_tenant_id_a5e620ec_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_invite_token_sha256_adb12fdb_like" ON "tenancy_invite" ("token_sha256" varchar_pattern_ops);
CREATE INDEX "tenancy_invite_invited_by_id_75999fbb" ON "tenancy_invite" ("invited_by_id");
CREATE INDEX "tenancy_invite_tenant_id_a5e620ec" ON "tenancy_invite" ("tenant_id");
ALTER TABLE "tenancy_ratelimit" ADD CONSTRAINT "tenancy_ratelimit_user_id_7a162e5f_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_ratelimit" ADD CONSTRAINT "tenancy_ratelimit_tenant_id_7f79186a_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_ratelimit" ADD CONSTRAINT "rate_limit_one_each" UNIQUE NULLS NOT DISTINCT ("tenant_id", "kind", "user_id", "api_key_id");
CREATE INDEX "tenancy_ratelimit_api_key_id_0db442a4" ON "tenancy_ratelimit" ("api_key_id");
CREATE INDEX "tenancy_ratelimit_user_id_7a162e5f" ON "tenancy_ratelimit" ("user_id");
CREATE INDEX "tenancy_ratelimit_tenant_id_7f79186a" ON "tenancy_ratelimit" ("tenant_id");
ALTER TABLE "tenancy_ratebucket" ADD CONSTRAINT "tenancy_ratebucket_tenant_id_1ca218da_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_ratebucket_tenant_id_1ca218da" ON "tenancy_ratebucket" ("tenant_id");
ALTER TABLE "tenancy_providercredential" ADD CONSTRAINT "tenancy_providercred_tenant_id_c3cc7c75_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_providercredential_tenant_id_c3cc7c75" ON "tenancy_providercredential" ("tenant_id");
ALTER TABLE "tenancy_oauthtoken" ADD CONSTRAINT "tenancy_oauthtoken_tenant_id_645c81cb_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_oauthtoken_sha256_6e47f8eb_like" ON "tenancy_oauthtoken" ("sha256" varchar_pattern_ops);
CREATE INDEX "tenancy_oauthtoken_api_key_id_88700075" ON "tenancy_oauthtoken" ("api_key_id");
CREATE INDEX "tenancy_oauthtoken_tenant_id_645c81cb" ON "tenancy_oauthtoken" ("tenant_id");
CREATE INDEX "oauth_token_expiry" ON "tenancy_oauthtoken" ("expires_at");
ALTER TABLE "tenancy_modelentry" ADD CONSTRAINT "tenancy_modelentry_tenant_id_d40f6a38_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_modelentry_tenant_id_d40f6a38" ON "tenancy_modelentry" ("tenant_id");
ALTER TABLE "tenancy_membership" ADD CONSTRAINT "tenancy_membership_user_id_69c4e8b6_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tenancy_membership" ADD CONSTRAINT "tenancy_membership_tenant_id_ed5a45f8_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_membership_user_id_69c4e8b6" ON "tenancy_membership" ("user_id");
CREATE INDEX "tenancy_membership_tenant_id_ed5a45f8" ON "tenancy_membership" ("tenant_id");
ALTER TABLE "tenancy_idempotentanswer" ADD CONSTRAINT "tenancy_idempotentan_tenant_id_7b017cbf_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_idempotentanswer_tenant_id_7b017cbf" ON "tenancy_idempotentanswer" ("tenant_id");
CREATE INDEX "idempotent_answer_expiry" ON "tenancy_idempotentanswer" ("expires_at");
ALTER TABLE "tenancy_auditevent" ADD CONSTRAINT "tenancy_auditevent_tenant_id_a174885c_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_auditevent_tenant_id_a174885c" ON "tenancy_auditevent" ("tenant_id");
CREATE INDEX "audit_tenant_at" ON "tenancy_auditevent" ("tenant_id", "at" DESC);
CREATE INDEX "audit_object" ON "tenancy_auditevent" ("tenant_id", "object_type", "object_id");
ALTER TABLE "tenancy_auditchain" ADD CONSTRAINT "tenancy_auditchain_tenant_id_2c1d2006_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_auditchain_tenant_id_2c1d2006" ON "tenancy_auditchain" ("tenant_id");
CREATE TABLE "account_emailaddress" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "email" varchar(75) NOT NULL UNIQUE, "verified" boolean NOT NULL, "primary" boolean NOT NULL, "user_id" bigint NOT NULL);
CREATE TABLE "account_emailconfirmation" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "created" timestamp with time zone NOT NULL, "sent" timestamp with time zone NULL, "key" varchar(64) NOT NULL UNIQUE, "email_address_id" integer NOT NULL);
ALTER TABLE "account_emailaddress" ADD CONSTRAINT "account_emailaddress_user_id_2c513194_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "account_emailaddress_email_03be32b2_like" ON "account_emailaddress" ("email" varchar_pattern_ops);
CREATE INDEX "account_emailaddress_user_id_2c513194" ON "account_emailaddress" ("user_id");
ALTER TABLE "account_emailconfirmation" ADD CONSTRAINT "account_emailconfirm_email_address_id_5b7f8c58_fk_account_e" FOREIGN KEY ("email_address_id") REFERENCES "account_emailaddress" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "account_emailconfirmation_key_f43612bd_like" ON "account_emailconfirmation" ("key" varchar_pattern_ops);
CREATE INDEX "account_emailconfirmation_email_address_id_5b7f8c58" ON "account_emailconfirmation" ("email_address_id");
ALTER TABLE "account_emailaddress" ALTER COLUMN "email" TYPE varchar(254);
ALTER TABLE "account_emailaddress" ADD CONSTRAINT "account_emailaddress_user_id_email_987c8728_uniq" UNIQUE ("user_id", "email");
CREATE UNIQUE INDEX "unique_verified_email" ON "account_emailaddress" ("email") WHERE "verified";
ALTER TABLE "account_emailaddress" DROP CONSTRAINT "account_emailaddress_email_key";
DROP INDEX IF EXISTS "account_emailaddress_email_03be32b2_like";
CREATE INDEX "account_emailaddress_upper" ON "account_emailaddress" ((UPPER("email")));
UPDATE "account_emailaddress" SET "email" = LOWER("account_emailaddress"."email") WHERE NOT ("account_emailaddress"."email" = (LOWER("account_emailaddress"."email")));
UPDATE "tenancy_user" SET "email" = LOWER("tenancy_user"."email") WHERE NOT ("tenancy_user"."email" = (LOWER("tenancy_user"."email")));
DROP INDEX IF EXISTS "account_emailaddress_upper";
CREATE INDEX "account_emailaddress_email_03be32b2" ON "account_emailaddress" ("email");
CREATE INDEX "account_emailaddress_email_03be32b2_like" ON "account_emailaddress" ("email" varchar_pattern_ops);
CREATE UNIQUE INDEX "unique_primary_email" ON "account_emailaddress" ("user_id", "primary") WHERE "primary";
CREATE TABLE "django_admin_log" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "action_time" timestamp with time zone NOT NULL, "object_id" text NULL, "object_repr" varchar(200) NOT NULL, "action_flag" smallint NOT NULL CHECK ("action_flag" >= 0), "change_message" text NOT NULL, "content_type_id" integer NULL, "user_id" bigint NOT NULL);
ALTER TABLE "django_admin_log" ADD CONSTRAINT "django_admin_log_content_type_id_c4bce8eb_fk_django_co" FOREIGN KEY ("content_type_id") REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "django_admin_log" ADD CONSTRAINT "django_admin_log_user_id_c564eba6_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "django_admin_log_content_type_id_c4bce8eb" ON "django_admin_log" ("content_type_id");
CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
CREATE TABLE "budgets_budget" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "subject_id" bigint NULL, "period" varchar(5) NOT NULL, "amount_usd" numeric(12, 4) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "budget_not_negative" CHECK ("amount_usd" >= 0), CONSTRAINT "budget_subject_of_kind" CHECK ((("kind" = 'tenant' AND "subject_id" IS NULL) OR "kind" IN ('member', 'key', 'assistant') OR ("kind" = 'job' AND "subject_id" IS NOT NULL))));
CREATE TABLE "budgets_budgethold" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "spends" bigint[] NOT NULL, "run_id" bigint NULL, "amount_usd" numeric(16, 8) NOT NULL, "expires_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "budgets_budgetrules" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "refuses_unpriced" boolean NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "budget_rules_one_a_tenant" UNIQUE ("tenant_id"));
CREATE TABLE "budgets_budgetspend" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "subject_id" bigint NOT NULL, "starts_at" timestamp with time zone NOT NULL, "spent_usd" numeric(16, 8) NOT NULL, "warned_at" timestamp with time zone NULL, "refused_at" timestamp with time zone NULL, "exceeded_at" timestamp with time zone NULL, "budget_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "budget_spend_one_a_period" UNIQUE ("budget_id", "subject_id", "starts_at"));
ALTER TABLE "budgets_budget" ADD CONSTRAINT "budgets_budget_tenant_id_aa2dc14e_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "budgets_budget" ADD CONSTRAINT "budget_one_each" UNIQUE NULLS NOT DISTINCT ("tenant_id", "kind", "subject_id", "period");
CREATE INDEX "budgets_budget_tenant_id_aa2dc14e" ON "budgets_budget" ("tenant_id");
ALTER TABLE "budgets_budgethold" ADD CONSTRAINT "budgets_budgethold_tenant_id_d48827b9_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "budgets_budgethold_tenant_id_d48827b9" ON "budgets_budgethold" ("tenant_id");
CREATE INDEX "budget_hold_open" ON "budgets_budgethold" ("tenant_id", "expires_at");
CREATE INDEX "budget_hold_of_run" ON "budgets_budgethold" ("run_id") WHERE "run_id" IS NOT NULL;
ALTER TABLE "budgets_budgetrules" ADD CONSTRAINT "budgets_budgetrules_tenant_id_a89631e5_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "budgets_budgetrules_tenant_id_a89631e5" ON "budgets_budgetrules" ("tenant_id");
ALTER TABLE "budgets_budgetspend" ADD CONSTRAINT "budgets_budgetspend_tenant_id_c5d8e817_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "budgets_budgetspend_budget_id_47664abf" ON "budgets_budgetspend" ("budget_id");
CREATE INDEX "budgets_budgetspend_tenant_id_c5d8e817" ON "budgets_budgetspend" ("tenant_id");
CREATE TABLE "jobs_worker" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(80) NOT NULL UNIQUE, "started_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "seen_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "processes" smallint NOT NULL CHECK ("processes" >= 0));
CREATE TABLE "jobs_job" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(60) NOT NULL, "payload" jsonb NOT NULL, "lane" varchar(4) NOT NULL, "status" varchar(10) NOT NULL, "dedupe_key" varchar(120) NOT NULL, "topic" varchar(60) NOT NULL, "user_id" bigint NULL, "attempts" smallint NOT NULL CHECK ("attempts" >= 0), "max_attempts" smallint NOT NULL CHECK ("max_attempts" >= 0), "worker" varchar(80) NOT NULL, "lease_expires_at" timestamp with time zone NULL, "run_after" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "woken_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "progress_current" bigint NOT NULL, "progress_total" bigint NOT NULL, "progress_message" varchar(200) NOT NULL, "cancel_requested_at" timestamp with time zone NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "started_at" timestamp with time zone NULL, "finished_at" timestamp with time zone NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "job_status_known" CHECK ("status" IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')));
CREATE INDEX "jobs_worker_name_000fa5e7_like" ON "jobs_worker" ("name" varchar_pattern_ops);
ALTER TABLE "jobs_job" ADD CONSTRAINT "jobs_job_tenant_id_47fdbf2d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "job_one_active_per_dedupe_key" ON "jobs_job" ("tenant_id", "kind", "dedupe_key") WHERE ("status" IN ('queued', 'running') AND NOT ("dedupe_key" = ''));
CREATE INDEX "jobs_job_tenant_id_47fdbf2d" ON "jobs_job" ("tenant_id");
CREATE INDEX "job_queue" ON "jobs_job" ("status", "run_after") WHERE "status" = 'queued';
CREATE INDEX "job_leases" ON "jobs_job" ("lease_expires_at") WHERE "status" = 'running';
CREATE INDEX "job_tenant_newest" ON "jobs_job" ("tenant_id", "created_at" DESC);
CREATE TABLE "runs_run" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "status" varchar(10) NOT NULL, "request" jsonb NOT NULL, "answer" text NOT NULL, "last_seq" bigint NOT NULL, "stop_requested_at" timestamp with time zone NULL, "stop_reason" varchar(20) NOT NULL, "limit_reached" varchar(30) NOT NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "is_retryable" boolean NOT NULL, "usage" jsonb NOT NULL, "cost_usd" numeric(12, 6) NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "started_at" timestamp with time zone NULL, "finished_at" timestamp with time zone NULL, "pruned_at" timestamp with time zone NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, CONSTRAINT "run_status_known" CHECK ("status" IN ('queued', 'running', 'parked', 'completed', 'stopped', 'failed')));
CREATE TABLE "runs_pendingdecision" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "step" integer NOT NULL CHECK ("step" >= 0), "call_id" varchar(200) NOT NULL, "name" varchar(100) NOT NULL, "arguments" jsonb NULL, "kind" varchar(10) NOT NULL, "reason" text NOT NULL, "state" jsonb NULL, "status" varchar(10) NOT NULL, "decided_at" timestamp with time zone NULL, "edited_arguments" jsonb NULL, "decision_reason" text NOT NULL, "answer" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "expires_at" timestamp with time zone NOT NULL, "approver" varchar(20) NOT NULL, "approver_kind" varchar(6) NOT NULL, "needs_reason" boolean NOT NULL, "assigned_to_id" bigint NULL, "decided_by_id" bigint NULL, "tenant_id" bigint NOT NULL, "run_id" bigint NOT NULL, CONSTRAINT "decision_status_known" CHECK ("status" IN ('pending', 'approved', 'rejected', 'answered', 'expired', 'cancelled')), CONSTRAINT "decision_approver" CHECK ((("approver" = '' AND "approver_kind" = 'self') OR ("approver_kind" IN ('role', 'member') AND NOT ("approver" = '')))));
CREATE TABLE "runs_runevent" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "seq" bigint NOT NULL, "kind" varchar(20) NOT NULL, "data" jsonb NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "run_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "run_event_seq" UNIQUE ("run_id", "seq"));
CREATE TABLE "runs_runretention" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "days" integer NOT NULL CHECK ("days" >= 0), "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "run_retention_one_a_tenant" UNIQUE ("tenant_id"));
CREATE TABLE "runs_runstep" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "index" integer NOT NULL CHECK ("index" >= 0), "turn" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "run_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "run_step_index" UNIQUE ("run_id", "index"));
CREATE TABLE "runs_toolcall" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "step" integer NOT NULL CHECK ("step" >= 0), "call_id" varchar(200) NOT NULL, "name" varchar(100) NOT NULL, "arguments" jsonb NULL, "has_side_effects" boolean NOT NULL, "status" varchar(10) NOT NULL, "content" text NOT NULL, "payload" jsonb NULL, "error_code" varchar(60) NOT NULL, "attempts" smallint NOT NULL CHECK ("attempts" >= 0), "started_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "duration_ms" integer NULL CHECK ("duration_ms" >= 0), "arguments_masked" jsonb NULL, "decision" varchar(5) NOT NULL, "decision_why" text NOT NULL, "parent_call_id" varchar(200) NOT NULL, "path" varchar(4) NOT NULL, "result_size" integer NULL CHECK ("result_size" >= 0), "rule_id" bigint NULL, "tool_version" varchar(64) NOT NULL, "user_id" bigint NULL, "cost_usd" numeric(14, 8) NULL, "run_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "tool_call_once" UNIQUE ("run_id", "step", "call_id"));
CREATE TABLE "runs_usagerecord" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "run_id" bigint NULL, "user_id" bigint NULL, "step" integer NULL CHECK ("step" >= 0), "kind" varchar(30) NOT NULL, "provider" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "input_tokens" bigint NOT NULL, "cached_tokens" bigint NOT NULL, "cache_write_tokens" bigint NOT NULL, "output_tokens" bigint NOT NULL, "reasoning_tokens" bigint NOT NULL, "cost_usd" numeric(14, 8) NULL, "attribution" jsonb NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "charged_usd" numeric(14, 8) NULL, "hold_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "runs_chunkread" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "run_id" bigint NOT NULL, "user_id" bigint NULL, "chunk_id" bigint NOT NULL, "document_id" bigint NOT NULL, "document_name" varchar(255) NOT NULL, "version" integer NULL CHECK ("version" >= 0), "collection_name" varchar(120) NOT NULL, "tool" varchar(100) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "chunk_read_once_a_run" UNIQUE ("run_id", "chunk_id"));
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
ALTER TABLE "runs_run" ADD CONSTRAINT "runs_run_tenant_id_45914888_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "runs_run" ADD CONSTRAINT "runs_run_user_id_da0ac57b_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_run_job_id_0ad2ed4c" ON "runs_run" ("job_id");
CREATE INDEX "runs_run_tenant_id_45914888" ON "runs_run" ("tenant_id");
CREATE INDEX "runs_run_user_id_da0ac57b" ON "runs_run" ("user_id");
CREATE INDEX "run_tenant_newest" ON "runs_run" ("tenant_id", "created_at" DESC);
CREATE INDEX "run_to_prune" ON "runs_run" ("tenant_id", "finished_at") WHERE "pruned_at" IS NULL;
ALTER TABLE "runs_pendingdecision" ADD CONSTRAINT "runs_pendingdecision_assigned_to_id_986da13f_fk_tenancy_user_id" FOREIGN KEY ("assigned_to_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "runs_pendingdecision" ADD CONSTRAINT "runs_pendingdecision_decided_by_id_9d61b81b_fk_tenancy_user_id" FOREIGN KEY ("decided_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "runs_pendingdecision" ADD CONSTRAINT "runs_pendingdecision_tenant_id_e3e17a57_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "decision_one_pending_a_call" ON "runs_pendingdecision" ("run_id", "step", "call_id") WHERE "status" = 'pending';
CREATE INDEX "runs_pendingdecision_assigned_to_id_986da13f" ON "runs_pendingdecision" ("assigned_to_id");
CREATE INDEX "runs_pendingdecision_decided_by_id_9d61b81b" ON "runs_pendingdecision" ("decided_by_id");
CREATE INDEX "runs_pendingdecision_tenant_id_e3e17a57" ON "runs_pendingdecision" ("tenant_id");
CREATE INDEX "runs_pendingdecision_run_id_e7eeb789" ON "runs_pendingdecision" ("run_id");
CREATE INDEX "decision_of_run" ON "runs_pendingdecision" ("run_id", "step");
CREATE INDEX "decision_expiry" ON "runs_pendingdecision" ("expires_at") WHERE "status" = 'pending';
CREATE INDEX "decision_inbox" ON "runs_pendingdecision" ("tenant_id", "approver_kind", "approver") WHERE "status" = 'pending';
CREATE INDEX "decision_newest" ON "runs_pendingdecision" ("tenant_id", "id" DESC);
ALTER TABLE "runs_runevent" ADD CONSTRAINT "runs_runevent_tenant_id_a54eccb3_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_runevent_run_id_8bd13aa7" ON "runs_runevent" ("run_id");
CREATE INDEX "runs_runevent_tenant_id_a54eccb3" ON "runs_runevent" ("tenant_id");
ALTER TABLE "runs_runretention" ADD CONSTRAINT "runs_runretention_tenant_id_567f1f45_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_runretention_tenant_id_567f1f45" ON "runs_runretention" ("tenant_id");
ALTER TABLE "runs_runstep" ADD CONSTRAINT "runs_runstep_tenant_id_52866f17_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_runstep_run_id_b15bfaff" ON "runs_runstep" ("run_id");
CREATE INDEX "runs_runstep_tenant_id_52866f17" ON "runs_runstep" ("tenant_id");
ALTER TABLE "runs_toolcall" ADD CONSTRAINT "runs_toolcall_tenant_id_1e9971bc_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_toolcall_run_id_d2fbb3a3" ON "runs_toolcall" ("run_id");
CREATE INDEX "runs_toolcall_tenant_id_1e9971bc" ON "runs_toolcall" ("tenant_id");
CREATE INDEX "tool_call_by_name" ON "runs_toolcall" ("tenant_id", "name", "started_at" DESC);
CREATE INDEX "tool_call_newest" ON "runs_toolcall" ("tenant_id", "id" DESC);
CREATE INDEX "tool_call_by_person" ON "runs_toolcall" ("tenant_id", "user_id", "id" DESC);
CREATE INDEX "tool_call_by_time" ON "runs_toolcall" ("tenant_id", "started_at");
ALTER TABLE "runs_usagerecord" ADD CONSTRAINT "runs_usagerecord_tenant_id_2440c64d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "usage_one_a_turn" ON "runs_usagerecord" ("run_id", "step") WHERE "kind" = 'turn';
CREATE INDEX "runs_usagerecord_tenant_id_2440c64d" ON "runs_usagerecord" ("tenant_id");
CREATE INDEX "usage_tenant_newest" ON "runs_usagerecord" ("tenant_id", "at" DESC);
CREATE INDEX "usage_by_person" ON "runs_usagerecord" ("tenant_id", "user_id", "at" DESC);
ALTER TABLE "runs_chunkread" ADD CONSTRAINT "runs_chunkread_tenant_id_063e2787_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "runs_chunkread_tenant_id_063e2787" ON "runs_chunkread" ("tenant_id");
CREATE INDEX "chunk_read_newest" ON "runs_chunkread" ("tenant_id", "id" DESC);
CREATE INDEX "chunk_read_of_document" ON "runs_chunkread" ("tenant_id", "document_id", "id" DESC);
CREATE INDEX "chunk_read_of_chunk" ON "runs_chunkread" ("tenant_id", "chunk_id", "id" DESC);
CREATE INDEX "chunk_read_by_person" ON "runs_chunkread" ("tenant_id", "user_id", "id" DESC);
CREATE TABLE "collections_collection" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "description" text NOT NULL, "chunk_size" integer NOT NULL CHECK ("chunk_size" >= 0), "chunk_overlap" integer NOT NULL CHECK ("chunk_overlap" >= 0), "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "term_total" bigint NOT NULL, "chunk_total" bigint NOT NULL, "average_length" double precision NOT NULL, "file_rules" jsonb NOT NULL, "keep_versions" integer NOT NULL CHECK ("keep_versions" >= 0), "language" varchar(20) NOT NULL, "links_by" varchar(10) NOT NULL, "links_model" varchar(120) NOT NULL, "reranker" varchar(13) NOT NULL, "reranker_model" varchar(120) NOT NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "collections_chunk" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "index" integer NOT NULL CHECK ("index" >= 0), "kind" varchar(10) NOT NULL, "text" text NOT NULL, "char_start" integer NOT NULL CHECK ("char_start" >= 0), "char_end" integer NOT NULL CHECK ("char_end" >= 0), "page_start" integer NULL CHECK ("page_start" >= 0), "page_end" integer NULL CHECK ("page_end" >= 0), "headings" jsonb NOT NULL, "metadata" jsonb NOT NULL, "is_disabled" boolean DEFAULT false NOT NULL, "is_edited" boolean DEFAULT false NOT NULL, "key_points" jsonb DEFAULT '[]'::jsonb NOT NULL, "line_end" integer NULL CHECK ("line_end" >= 0), "line_start" integer NULL CHECK ("line_start" >= 0), "points_by" varchar(10) DEFAULT '' NOT NULL, "qualified_name" varchar(500) DEFAULT '' NOT NULL, "tenant_id" bigint NOT NULL, "collection_id" bigint NOT NULL);
CREATE TABLE "collections_document" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(255) NOT NULL, "media_type" varchar(100) NOT NULL, "title" varchar(300) NOT NULL, "is_paged" boolean NOT NULL, "warnings" jsonb NOT NULL, "metadata" jsonb NOT NULL, "size" bigint NOT NULL, "sha256" varchar(64) NOT NULL, "file" varchar(255) NOT NULL, "status" varchar(10) NOT NULL, "stage" varchar(10) NOT NULL, "progress_current" integer NOT NULL CHECK ("progress_current" >= 0), "progress_total" integer NOT NULL CHECK ("progress_total" >= 0), "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "page_count" integer NOT NULL CHECK ("page_count" >= 0), "skipped_pages" integer NOT NULL CHECK ("skipped_pages" >= 0), "chunk_count" integer NOT NULL CHECK ("chunk_count" >= 0), "vector_count" integer NOT NULL CHECK ("vector_count" >= 0), "lexical_count" integer NOT NULL CHECK ("lexical_count" >= 0), "identifiers_found" integer NOT NULL CHECK ("identifiers_found" >= 0), "identifiers_total" integer NOT NULL CHECK ("identifiers_total" >= 0), "timings" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "finished_at" timestamp with time zone NULL, "attributes" jsonb NOT NULL, "dated" date NULL, "document_type" varchar(60) NOT NULL, "is_restricted" boolean NOT NULL, "live_from" timestamp with time zone NULL, "live_to" timestamp with time zone NULL, "path" varchar(1000) NOT NULL, "source" varchar(10) NOT NULL, "source_url" text NOT NULL, "tags" varchar(60)[] NOT NULL, "type_reason" varchar(255) NOT NULL, "version" integer NOT NULL CHECK ("version" >= 0), "collection_id" bigint NOT NULL, "job_id" bigint NULL, "restored_from_id" bigint NULL, "tenant_id" bigint NOT NULL, "uploaded_by_id" bigint NULL);
CREATE TABLE "collections_chunkrevision" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "before" jsonb NOT NULL, "after" jsonb NOT NULL, "note" varchar(255) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "chunk_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, "document_id" bigint NOT NULL);
ALTER TABLE "collections_chunk" ADD COLUMN "document_id" bigint NOT NULL;
CREATE TABLE "collections_documentaccess" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "role" varchar(10) NOT NULL, "document_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, CONSTRAINT "document_access_role_or_user" CHECK ((("role" = '' AND "user_id" IS NOT NULL) OR (NOT ("role" = '') AND "user_id" IS NULL))));
CREATE TABLE "collections_documenttyperules" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "rules" jsonb NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, "updated_by_id" bigint NULL, CONSTRAINT "document_type_rules_once" UNIQUE ("tenant_id"));
CREATE TABLE "collections_embeddingspace" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "provider" varchar(20) NOT NULL, "model" varchar(100) NOT NULL, "dimensions" integer NOT NULL CHECK ("dimensions" >= 0), "fingerprint" varchar(80) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, CONSTRAINT "embedding_space_once" UNIQUE ("provider", "model", "dimensions", "fingerprint"));
CREATE TABLE "collections_embedding" ("document_id" bigint NOT NULL, "vector" halfvec NOT NULL, "chunk_id" bigint NOT NULL, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "space_id" bigint NOT NULL, PRIMARY KEY ("chunk_id", "space_id"));
ALTER TABLE "collections_collection" ADD COLUMN "space_id" bigint NOT NULL CONSTRAINT "collections_collecti_space_id_bffa2ca8_fk_collectio" REFERENCES "collections_embeddingspace"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "collections_collecti_space_id_bffa2ca8_fk_collectio" IMMEDIATE;
CREATE TABLE "collections_filebatch" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "action" varchar(10) NOT NULL, "note" varchar(255) NOT NULL, "is_undone" boolean NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "collection_id" bigint NOT NULL, "run_id" bigint NULL, "tenant_id" bigint NOT NULL, "undoes_id" bigint NULL, "user_id" bigint NULL);
CREATE TABLE "collections_fileblob" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "sha256" varchar(64) NOT NULL, "size" bigint NOT NULL, "content" bytea NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "file_blob_once" UNIQUE ("tenant_id", "sha256"));
CREATE TABLE "collections_filerevision" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "path" varchar(1000) NOT NULL, "is_indexed" boolean NOT NULL, "is_restricted" boolean NOT NULL, "after_id" bigint NULL, "batch_id" bigint NOT NULL, "before_id" bigint NULL, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "file_revision_once" UNIQUE ("batch_id", "path"));
CREATE TABLE "collections_import" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "source" varchar(10) NOT NULL, "name" varchar(255) NOT NULL, "options" jsonb NOT NULL, "file" varchar(255) NOT NULL, "status" varchar(10) NOT NULL, "entries" jsonb NOT NULL, "problems" jsonb NOT NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "collection_id" bigint NOT NULL, "created_by_id" bigint NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL);
ALTER TABLE "collections_document" ADD COLUMN "batch_id" bigint NULL;
CREATE TABLE "collections_page" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "number" integer NOT NULL CHECK ("number" >= 0), "text" text NOT NULL, "char_start" integer NOT NULL CHECK ("char_start" >= 0), "skip_reason" varchar(30) NOT NULL, "width" double precision NOT NULL, "height" double precision NOT NULL, "layout" jsonb NOT NULL, "document_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "page_number" UNIQUE ("document_id", "number"));
CREATE TABLE "collections_searchcase" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "query" text NOT NULL, "filters" jsonb NOT NULL, "k" integer NOT NULL CHECK ("k" >= 0), "expected" jsonb NOT NULL, "note" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "collection_id" bigint NOT NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "collections_searchindex" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "status" varchar(10) NOT NULL, "chunk_count" bigint NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "built_at" timestamp with time zone NULL, "last_chunk" bigint NOT NULL, "chunk_ids" bytea NOT NULL, "document_ids" bytea NOT NULL, "edited" bigint[] NOT NULL, "collection_id" bigint NOT NULL, "job_id" bigint NULL, "space_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "collections_posting" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "term" integer NOT NULL, "size" integer NOT NULL, "block" integer NOT NULL, "places" bytea NOT NULL, "weights" bytea NOT NULL, "tenant_id" bigint NOT NULL, "index_id" bigint NOT NULL);
CREATE TABLE "collections_spaceswap" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "status" varchar(10) NOT NULL, "done" bigint NOT NULL, "total" bigint NOT NULL, "comparison" jsonb NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "switched_at" timestamp with time zone NULL, "collection_id" bigint NOT NULL, "created_by_id" bigint NULL, "from_space_id" bigint NOT NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL, "to_space_id" bigint NOT NULL);
CREATE TABLE "collections_termfrequency" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "term" integer NOT NULL, "chunks" integer NOT NULL, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "term_once" UNIQUE ("collection_id", "term"));
CREATE TABLE "collections_chunkterms" ("chunk_id" bigint NOT NULL PRIMARY KEY, "document_id" bigint NOT NULL, "length" integer NOT NULL CHECK ("length" >= 0), "weights" sparsevec(1000000000) NOT NULL, "lexemes" tsvector NOT NULL, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "collections_collectionsnapshot" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "collection_id" bigint NOT NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "snapshot_name_once" UNIQUE ("collection_id", "name"));
CREATE TABLE "collections_codeedge" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "source_name" varchar(500) NOT NULL, "target_name" varchar(500) NOT NULL, "is_ambiguous" boolean NOT NULL, "line" integer NULL CHECK ("line" >= 0), "is_stale" boolean DEFAULT false NOT NULL, "name" varchar(200) DEFAULT '' NOT NULL, "written" varchar(500) DEFAULT '' NOT NULL, "chunk_id" bigint NOT NULL, "target_id" bigint NULL, "tenant_id" bigint NOT NULL, "collection_id" bigint NOT NULL, "document_id" bigint NOT NULL);
CREATE TABLE "collections_chunklink" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "relation" varchar(40) NOT NULL, "common_topic" varchar(200) NOT NULL, "made_by" varchar(10) NOT NULL, "weight" double precision NOT NULL, "chunk_id" bigint NOT NULL, "target_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "document_id" bigint NOT NULL, CONSTRAINT "chunk_link_once" UNIQUE ("chunk_id", "target_id", "relation"), CONSTRAINT "chunk_link_elsewhere" CHECK (NOT ("chunk_id" = ("target_id"))));
CREATE INDEX "chunk_collection" ON "collections_chunk" ("collection_id", "id");
CREATE INDEX "chunk_qualified_name" ON "collections_chunk" ("collection_id", "qualified_name") WHERE NOT ("qualified_name" = '');
CREATE INDEX "chunk_disabled" ON "collections_chunk" ("collection_id") WHERE "is_disabled";
ALTER TABLE "collections_chunk" ADD CONSTRAINT "chunk_index" UNIQUE ("document_id", "index");
CREATE UNIQUE INDEX "collection_name_once" ON "collections_collection" ("tenant_id", (LOWER("name")));
ALTER TABLE "collections_collection" ADD CONSTRAINT "collection_chunk_sizes" CHECK (("chunk_size" >= 200 AND "chunk_size" <= 4000 AND "chunk_overlap" < ("chunk_size" / 2)));
CREATE INDEX "document_newest" ON "collections_document" ("collection_id", "created_at" DESC);
CREATE INDEX "document_tags" ON "collections_document" USING gin ("tags");
CREATE INDEX "document_attributes" ON "collections_document" USING gin ("attributes" jsonb_path_ops);
CREATE INDEX "document_not_open" ON "collections_document" ("collection_id") WHERE ("chunk_count" > 0 AND (NOT ("status" = 'ready') OR "live_to" IS NOT NULL OR "is_restricted"));
ALTER TABLE "collections_document" ADD CONSTRAINT "document_status_known" CHECK ("status" IN ('queued', 'processing', 'ready', 'failed', 'cancelled'));
CREATE UNIQUE INDEX "document_one_live" ON "collections_document" ("collection_id", "path") WHERE ("live_from" IS NOT NULL AND "live_to" IS NULL);
ALTER TABLE "collections_document" ADD CONSTRAINT "document_version_once" UNIQUE ("collection_id", "path", "version");
CREATE UNIQUE INDEX "document_once_per_collection" ON "collections_document" ("collection_id", "path", "sha256") WHERE ("live_from" IS NULL AND "live_to" IS NULL);
ALTER TABLE collections_embedding ALTER vector SET STORAGE PLAIN;ALTER TABLE collections_chunkterms ALTER weights SET STORAGE PLAIN;
ALTER TABLE collections_posting ALTER places SET STORAGE EXTERNAL, ALTER weights SET STORAGE EXTERNAL;ALTER TABLE collections_searchindex ALTER chunk_ids SET STORAGE EXTERNAL, ALTER document_ids SET STORAGE EXTERNAL;
ALTER TABLE "collections_collection" ADD CONSTRAINT "collections_collecti_created_by_id_b784d394_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_collection" ADD CONSTRAINT "collections_collection_tenant_id_6b842066_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_collection_created_by_id_b784d394" ON "collections_collection" ("created_by_id");
CREATE INDEX "collections_collection_tenant_id_6b842066" ON "collections_collection" ("tenant_id");
ALTER TABLE "collections_document" ADD CONSTRAINT "collections_document_tenant_id_c2efe9c8_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_document" ADD CONSTRAINT "collections_document_uploaded_by_id_390ef7bb_fk_tenancy_user_id" FOREIGN KEY ("uploaded_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_document_collection_id_e3df9e15" ON "collections_document" ("collection_id");
CREATE INDEX "collections_document_job_id_f5db9aa2" ON "collections_document" ("job_id");
CREATE INDEX "collections_document_restored_from_id_53413403" ON "collections_document" ("restored_from_id");
CREATE INDEX "collections_document_tenant_id_c2efe9c8" ON "collections_document" ("tenant_id");
CREATE INDEX "collections_document_uploaded_by_id_390ef7bb" ON "collections_document" ("uploaded_by_id");
ALTER TABLE "collections_chunkrevision" ADD CONSTRAINT "collections_chunkrev_tenant_id_a05f68a4_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_chunkrevision" ADD CONSTRAINT "collections_chunkrevision_user_id_305d34b0_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_chunkrevision_chunk_id_5e63de15" ON "collections_chunkrevision" ("chunk_id");
CREATE INDEX "collections_chunkrevision_tenant_id_a05f68a4" ON "collections_chunkrevision" ("tenant_id");
CREATE INDEX "collections_chunkrevision_user_id_305d34b0" ON "collections_chunkrevision" ("user_id");
ALTER TABLE "collections_documentaccess" ADD CONSTRAINT "collections_document_tenant_id_33e6c698_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_documentaccess" ADD CONSTRAINT "collections_documentaccess_user_id_aca539fd_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_documentaccess" ADD CONSTRAINT "document_access_once" UNIQUE NULLS NOT DISTINCT ("document_id", "role", "user_id");
CREATE INDEX "collections_documentaccess_document_id_d3c09dd1" ON "collections_documentaccess" ("document_id");
CREATE INDEX "collections_documentaccess_tenant_id_33e6c698" ON "collections_documentaccess" ("tenant_id");
CREATE INDEX "collections_documentaccess_user_id_aca539fd" ON "collections_documentaccess" ("user_id");
ALTER TABLE "collections_documenttyperules" ADD CONSTRAINT "collections_document_tenant_id_f73c260e_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_documenttyperules" ADD CONSTRAINT "collections_document_updated_by_id_10ce9ee3_fk_tenancy_u" FOREIGN KEY ("updated_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_documenttyperules_tenant_id_f73c260e" ON "collections_documenttyperules" ("tenant_id");
CREATE INDEX "collections_documenttyperules_updated_by_id_10ce9ee3" ON "collections_documenttyperules" ("updated_by_id");
ALTER TABLE "collections_embedding" ADD CONSTRAINT "collections_embeddin_space_id_c802bd13_fk_collectio" FOREIGN KEY ("space_id") REFERENCES "collections_embeddingspace" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "embedding_scope_chunk" ON "collections_embedding" ("collection_id", "space_id", "chunk_id");
CREATE INDEX "collections_collection_space_id_bffa2ca8" ON "collections_collection" ("space_id");
ALTER TABLE "collections_filebatch" ADD CONSTRAINT "collections_filebatch_tenant_id_95c462c7_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_filebatch" ADD CONSTRAINT "collections_filebatch_user_id_9ae4f2b7_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_filebatch_collection_id_7a94d512" ON "collections_filebatch" ("collection_id");
CREATE INDEX "collections_filebatch_run_id_bfeff9d8" ON "collections_filebatch" ("run_id");
CREATE INDEX "collections_filebatch_tenant_id_95c462c7" ON "collections_filebatch" ("tenant_id");
CREATE INDEX "collections_filebatch_undoes_id_e2d44b90" ON "collections_filebatch" ("undoes_id");
CREATE INDEX "collections_filebatch_user_id_9ae4f2b7" ON "collections_filebatch" ("user_id");
CREATE INDEX "file_batch_newest" ON "collections_filebatch" ("collection_id", "id" DESC);
ALTER TABLE "collections_fileblob" ADD CONSTRAINT "collections_fileblob_tenant_id_8177d473_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_fileblob_tenant_id_8177d473" ON "collections_fileblob" ("tenant_id");
ALTER TABLE "collections_filerevision" ADD CONSTRAINT "collections_filerevi_tenant_id_33daf444_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_filerevision_after_id_82b71615" ON "collections_filerevision" ("after_id");
CREATE INDEX "collections_filerevision_batch_id_3c0cce9d" ON "collections_filerevision" ("batch_id");
CREATE INDEX "collections_filerevision_before_id_1166e9ca" ON "collections_filerevision" ("before_id");
CREATE INDEX "collections_filerevision_tenant_id_33daf444" ON "collections_filerevision" ("tenant_id");
CREATE INDEX "file_revision_path" ON "collections_filerevision" ("collection_id", "path", "id" DESC);
ALTER TABLE "collections_import" ADD CONSTRAINT "collections_import_created_by_id_5073b709_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_import" ADD CONSTRAINT "collections_import_tenant_id_bbd8145d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_import_collection_id_5f341ce4" ON "collections_import" ("collection_id");
CREATE INDEX "collections_import_created_by_id_5073b709" ON "collections_import" ("created_by_id");
CREATE INDEX "collections_import_job_id_23b4eed7" ON "collections_import" ("job_id");
CREATE INDEX "collections_import_tenant_id_bbd8145d" ON "collections_import" ("tenant_id");
CREATE INDEX "collections_document_batch_id_ecf7ab07" ON "collections_document" ("batch_id");
ALTER TABLE "collections_page" ADD CONSTRAINT "collections_page_tenant_id_f1fcab6b_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_page_document_id_967dbde0" ON "collections_page" ("document_id");
CREATE INDEX "collections_page_tenant_id_f1fcab6b" ON "collections_page" ("tenant_id");
ALTER TABLE "collections_searchcase" ADD CONSTRAINT "collections_searchca_created_by_id_964c6f8d_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_searchcase" ADD CONSTRAINT "collections_searchcase_tenant_id_f4e2ed38_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_searchcase_collection_id_8021812a" ON "collections_searchcase" ("collection_id");
CREATE INDEX "collections_searchcase_created_by_id_964c6f8d" ON "collections_searchcase" ("created_by_id");
CREATE INDEX "collections_searchcase_tenant_id_f4e2ed38" ON "collections_searchcase" ("tenant_id");
ALTER TABLE "collections_searchindex" ADD CONSTRAINT "collections_searchin_space_id_4910abec_fk_collectio" FOREIGN KEY ("space_id") REFERENCES "collections_embeddingspace" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_searchindex" ADD CONSTRAINT "collections_searchindex_tenant_id_563828aa_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "search_index_once" ON "collections_searchindex" ("collection_id", "kind", "space_id", "status") NULLS NOT DISTINCT WHERE NOT ("status" = 'retired');
CREATE INDEX "collections_searchindex_collection_id_967952a2" ON "collections_searchindex" ("collection_id");
CREATE INDEX "collections_searchindex_job_id_26f7aec3" ON "collections_searchindex" ("job_id");
CREATE INDEX "collections_searchindex_space_id_4910abec" ON "collections_searchindex" ("space_id");
CREATE INDEX "collections_searchindex_tenant_id_563828aa" ON "collections_searchindex" ("tenant_id");
CREATE UNIQUE INDEX "posting_once" ON "collections_posting" ("index_id", "term", "block") INCLUDE ("size");
ALTER TABLE "collections_spaceswap" ADD CONSTRAINT "collections_spaceswap_created_by_id_00f147cb_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_spaceswap" ADD CONSTRAINT "collections_spaceswa_from_space_id_cc8ee749_fk_collectio" FOREIGN KEY ("from_space_id") REFERENCES "collections_embeddingspace" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_spaceswap" ADD CONSTRAINT "collections_spaceswap_tenant_id_9e10d96b_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_spaceswap" ADD CONSTRAINT "collections_spaceswa_to_space_id_48db6118_fk_collectio" FOREIGN KEY ("to_space_id") REFERENCES "collections_embeddingspace" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "space_swap_one_open" ON "collections_spaceswap" ("collection_id") WHERE "status" IN ('building', 'ready', 'switched');
CREATE INDEX "collections_spaceswap_collection_id_633fd7b1" ON "collections_spaceswap" ("collection_id");
CREATE INDEX "collections_spaceswap_created_by_id_00f147cb" ON "collections_spaceswap" ("created_by_id");
CREATE INDEX "collections_spaceswap_from_space_id_cc8ee749" ON "collections_spaceswap" ("from_space_id");
CREATE INDEX "collections_spaceswap_job_id_331f8555" ON "collections_spaceswap" ("job_id");
CREATE INDEX "collections_spaceswap_tenant_id_9e10d96b" ON "collections_spaceswap" ("tenant_id");
CREATE INDEX "collections_spaceswap_to_space_id_48db6118" ON "collections_spaceswap" ("to_space_id");
CREATE INDEX "chunk_terms_lexemes" ON "collections_chunkterms" USING gin ("lexemes") WITH (fastupdate = off);
CREATE INDEX "chunk_terms_scope" ON "collections_chunkterms" ("collection_id", "chunk_id");
ALTER TABLE "collections_collectionsnapshot" ADD CONSTRAINT "collections_collecti_created_by_id_4c83ebe0_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "collections_collectionsnapshot" ADD CONSTRAINT "collections_collecti_tenant_id_fda021eb_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_collectionsnapshot_collection_id_2780d686" ON "collections_collectionsnapshot" ("collection_id");
CREATE INDEX "collections_collectionsnapshot_created_by_id_4c83ebe0" ON "collections_collectionsnapshot" ("created_by_id");
CREATE INDEX "collections_collectionsnapshot_tenant_id_fda021eb" ON "collections_collectionsnapshot" ("tenant_id");
ALTER TABLE "collections_codeedge" ADD CONSTRAINT "collections_codeedge_tenant_id_b82c67ab_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_codeedge_chunk_id_ddf07290" ON "collections_codeedge" ("chunk_id");
CREATE INDEX "collections_codeedge_target_id_e415424b" ON "collections_codeedge" ("target_id");
CREATE INDEX "collections_codeedge_tenant_id_b82c67ab" ON "collections_codeedge" ("tenant_id");
CREATE INDEX "collections_codeedge_document_id_7a6b5933" ON "collections_codeedge" ("document_id");
CREATE INDEX "code_edge_to" ON "collections_codeedge" ("collection_id", "target_name", "kind");
CREATE INDEX "code_edge_from" ON "collections_codeedge" ("collection_id", "source_name", "kind");
CREATE INDEX "code_edge_name" ON "collections_codeedge" ("collection_id", "name", "kind");
CREATE INDEX "code_edge_stale" ON "collections_codeedge" ("collection_id", "document_id") WHERE "is_stale";
ALTER TABLE "collections_chunklink" ADD CONSTRAINT "collections_chunklink_tenant_id_14856ae5_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "collections_chunklink_chunk_id_238a8f4c" ON "collections_chunklink" ("chunk_id");
CREATE INDEX "collections_chunklink_target_id_37d92191" ON "collections_chunklink" ("target_id");
CREATE INDEX "collections_chunklink_tenant_id_14856ae5" ON "collections_chunklink" ("tenant_id");
CREATE INDEX "collections_chunklink_document_id_44ec00d5" ON "collections_chunklink" ("document_id");
ALTER TABLE "collections_collection" ADD COLUMN "owner_id" bigint NULL CONSTRAINT "collections_collection_owner_id_b0f9a22c_fk_tenancy_user_id" REFERENCES "tenancy_user"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "collections_collection_owner_id_b0f9a22c_fk_tenancy_user_id" IMMEDIATE;
DROP INDEX IF EXISTS "collection_name_once";
CREATE UNIQUE INDEX "collection_name_once" ON "collections_collection" ("tenant_id", (LOWER("name"))) WHERE "owner_id" IS NULL;
CREATE INDEX "collections_collection_owner_id_b0f9a22c" ON "collections_collection" ("owner_id");
CREATE TABLE "tools_toolkit" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(80) NOT NULL, "description" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "toolkit_one_per_name" UNIQUE ("tenant_id", "name"));
CREATE TABLE "tools_toolgrant" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "effect" varchar(5) NOT NULL, "target_kind" varchar(10) NOT NULL, "target" varchar(120) NOT NULL, "calls" varchar(12) NOT NULL, "subject_kind" varchar(10) NOT NULL, "subject" varchar(20) NOT NULL, "arguments" jsonb NOT NULL, "expires_at" timestamp with time zone NULL, "note" varchar(200) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "approval_hours" smallint NULL CHECK ("approval_hours" >= 0), "approver" varchar(20) NOT NULL, "approver_kind" varchar(6) NOT NULL, "needs_reason" boolean NOT NULL, "collection_id" bigint NULL, "tenant_id" bigint NOT NULL, "toolkit_id" bigint NULL, CONSTRAINT "tool_grant_effect" CHECK ("effect" IN ('allow', 'ask', 'deny')), CONSTRAINT "tool_grant_target" CHECK ((("target" = '' AND "target_kind" = 'toolkit' AND "toolkit_id" IS NOT NULL) OR ("target_kind" IN ('tool', 'group', 'pattern') AND "toolkit_id" IS NULL AND NOT ("target" = '')))), CONSTRAINT "tool_grant_calls" CHECK ("calls" IN ('any', 'read_only', 'side_effects')), CONSTRAINT "tool_grant_subject" CHECK ((("subject" = '' AND "subject_kind" = 'everyone') OR ("subject_kind" IN ('role', 'member', 'api_key') AND NOT ("subject" = '')))), CONSTRAINT "tool_grant_approver" CHECK ((("approver" = '' AND "approver_kind" = 'self') OR ("approver_kind" IN ('role', 'member') AND "effect" = 'ask' AND NOT ("approver" = '')))), CONSTRAINT "tool_grant_approval_hours" CHECK (("approval_hours" IS NULL OR "approval_hours" > 0)));
CREATE TABLE "tools_toolkitmember" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "tool_name" varchar(64) NOT NULL, "tenant_id" bigint NOT NULL, "toolkit_id" bigint NOT NULL, CONSTRAINT "toolkit_member_once" UNIQUE ("toolkit_id", "tool_name"));
CREATE TABLE "tools_toollimit" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "target_kind" varchar(5) NOT NULL, "target" varchar(120) NOT NULL, "period" varchar(6) NOT NULL, "calls" integer NOT NULL CHECK ("calls" >= 0), "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "api_key_id" bigint NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, CONSTRAINT "tool_limit_positive" CHECK ("calls" > 0), CONSTRAINT "tool_limit_subject_of_kind" CHECK ((("api_key_id" IS NULL AND "kind" = 'tenant' AND "user_id" IS NULL) OR ("api_key_id" IS NULL AND "kind" = 'member') OR ("kind" = 'key' AND "user_id" IS NULL))), CONSTRAINT "tool_limit_target" CHECK ((("target" = '' AND "target_kind" = 'all') OR ("target_kind" IN ('group', 'tool') AND NOT ("target" = '')))), CONSTRAINT "tool_limit_period" CHECK ("period" IN ('minute', 'day', 'month')));
CREATE TABLE "tools_toollimituse" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "subject" varchar(30) NOT NULL, "starts_at" timestamp with time zone NOT NULL, "used" integer NOT NULL CHECK ("used" >= 0), "limit_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "tool_limit_use_one_each" UNIQUE ("limit_id", "subject"));
CREATE TABLE "tools_toolsource" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "kind" varchar(10) NOT NULL, "name" varchar(24) NOT NULL, "title" varchar(120) NOT NULL, "url" varchar(500) NOT NULL, "document_url" varchar(500) NOT NULL, "document" text NOT NULL, "settings" jsonb NOT NULL, "allowed_hosts" jsonb NOT NULL, "is_enabled" boolean NOT NULL, "status" varchar(10) NOT NULL, "problem" text NOT NULL, "refreshed_at" timestamp with time zone NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "tool_source_one_per_name" UNIQUE ("tenant_id", "name"), CONSTRAINT "tool_source_kind" CHECK ("kind" IN ('openapi', 'mcp', 'plugin')), CONSTRAINT "tool_source_status" CHECK ("status" IN ('new', 'ready', 'failed')));
CREATE TABLE "tools_toolcredential" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "placement" varchar(10) NOT NULL, "parameter" varchar(80) NOT NULL, "secret_encrypted" bytea NOT NULL, "last_four" varchar(4) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, "source_id" bigint NOT NULL, CONSTRAINT "tool_credential_one_place" UNIQUE ("source_id", "placement", "parameter"), CONSTRAINT "tool_credential_placement" CHECK ("placement" IN ('bearer', 'basic', 'header', 'query')));
CREATE TABLE "tools_contracttest" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "tool_name" varchar(64) NOT NULL, "name" varchar(80) NOT NULL, "arguments" jsonb NOT NULL, "expected" jsonb NOT NULL, "last_outcome" varchar(6) NOT NULL, "last_problem" text NOT NULL, "last_version" integer NULL CHECK ("last_version" >= 0), "last_run_at" timestamp with time zone NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, "source_id" bigint NOT NULL, CONSTRAINT "contract_test_one_per_name" UNIQUE ("tenant_id", "tool_name", "name"));
CREATE TABLE "tools_toolversion" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "tool_name" varchar(64) NOT NULL, "number" integer NOT NULL CHECK ("number" >= 0), "state" varchar(10) NOT NULL, "spec" jsonb NOT NULL, "digest" varchar(64) NOT NULL, "is_gone" boolean NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "decided_at" timestamp with time zone NULL, "decided_by_id" bigint NULL, "source_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "tool_version_number" UNIQUE ("tenant_id", "tool_name", "number"), CONSTRAINT "tool_version_state" CHECK ("state" IN ('waiting', 'current', 'retired', 'rejected')));
CREATE TABLE "tools_toolentry" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(64) NOT NULL, "title" varchar(120) NOT NULL, "description" text NOT NULL, "category" varchar(60) NOT NULL, "tags" jsonb NOT NULL, "is_enabled" boolean NOT NULL, "cost_hint" varchar(60) NOT NULL, "timeout_s" double precision NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "tool_entry_one_per_name" UNIQUE ("tenant_id", "name"), CONSTRAINT "tool_entry_timeout_sane" CHECK (("timeout_s" IS NULL OR ("timeout_s" > 0.0 AND "timeout_s" <= 600.0))));
ALTER TABLE "tools_toolkit" ADD CONSTRAINT "tools_toolkit_tenant_id_cdc54a56_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolkit_tenant_id_cdc54a56" ON "tools_toolkit" ("tenant_id");
ALTER TABLE "tools_toolgrant" ADD CONSTRAINT "tools_toolgrant_tenant_id_658581e9_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolgrant_collection_id_9ceb50a8" ON "tools_toolgrant" ("collection_id");
CREATE INDEX "tools_toolgrant_tenant_id_658581e9" ON "tools_toolgrant" ("tenant_id");
CREATE INDEX "tools_toolgrant_toolkit_id_7530ae3b" ON "tools_toolgrant" ("toolkit_id");
CREATE INDEX "tool_grant_of_subject" ON "tools_toolgrant" ("tenant_id", "subject_kind", "subject");
ALTER TABLE "tools_toolkitmember" ADD CONSTRAINT "tools_toolkitmember_tenant_id_97da971d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolkitmember_tenant_id_97da971d" ON "tools_toolkitmember" ("tenant_id");
CREATE INDEX "tools_toolkitmember_toolkit_id_88ea529c" ON "tools_toolkitmember" ("toolkit_id");
ALTER TABLE "tools_toollimit" ADD CONSTRAINT "tools_toollimit_tenant_id_718d1262_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tools_toollimit" ADD CONSTRAINT "tools_toollimit_user_id_b750e4c8_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tools_toollimit" ADD CONSTRAINT "tool_limit_one_each" UNIQUE NULLS NOT DISTINCT ("tenant_id", "kind", "user_id", "api_key_id", "target_kind", "target", "period");
CREATE INDEX "tools_toollimit_api_key_id_f33c3d9b" ON "tools_toollimit" ("api_key_id");
CREATE INDEX "tools_toollimit_tenant_id_718d1262" ON "tools_toollimit" ("tenant_id");
CREATE INDEX "tools_toollimit_user_id_b750e4c8" ON "tools_toollimit" ("user_id");
ALTER TABLE "tools_toollimituse" ADD CONSTRAINT "tools_toollimituse_tenant_id_9d3aab81_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toollimituse_limit_id_de1ecf30" ON "tools_toollimituse" ("limit_id");
CREATE INDEX "tools_toollimituse_tenant_id_9d3aab81" ON "tools_toollimituse" ("tenant_id");
ALTER TABLE "tools_toolsource" ADD CONSTRAINT "tools_toolsource_tenant_id_5d6285e0_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolsource_name_2174aef1" ON "tools_toolsource" ("name");
CREATE INDEX "tools_toolsource_name_2174aef1_like" ON "tools_toolsource" ("name" varchar_pattern_ops);
CREATE INDEX "tools_toolsource_tenant_id_5d6285e0" ON "tools_toolsource" ("tenant_id");
ALTER TABLE "tools_toolcredential" ADD CONSTRAINT "tools_toolcredential_tenant_id_6b8a5f08_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolcredential_tenant_id_6b8a5f08" ON "tools_toolcredential" ("tenant_id");
CREATE INDEX "tools_toolcredential_source_id_a7e38a0a" ON "tools_toolcredential" ("source_id");
ALTER TABLE "tools_contracttest" ADD CONSTRAINT "tools_contracttest_tenant_id_516718c0_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_contracttest_tenant_id_516718c0" ON "tools_contracttest" ("tenant_id");
CREATE INDEX "tools_contracttest_source_id_5bdc4616" ON "tools_contracttest" ("source_id");
ALTER TABLE "tools_toolversion" ADD CONSTRAINT "tools_toolversion_decided_by_id_095225cb_fk_tenancy_user_id" FOREIGN KEY ("decided_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "tools_toolversion" ADD CONSTRAINT "tools_toolversion_tenant_id_cf93af6b_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "tool_version_one_current" ON "tools_toolversion" ("tenant_id", "tool_name") WHERE "state" = 'current';
CREATE UNIQUE INDEX "tool_version_one_waiting" ON "tools_toolversion" ("tenant_id", "tool_name") WHERE "state" = 'waiting';
CREATE INDEX "tools_toolversion_decided_by_id_095225cb" ON "tools_toolversion" ("decided_by_id");
CREATE INDEX "tools_toolversion_source_id_a85ed2a3" ON "tools_toolversion" ("source_id");
CREATE INDEX "tools_toolversion_tenant_id_cf93af6b" ON "tools_toolversion" ("tenant_id");
CREATE INDEX "tool_version_of_source" ON "tools_toolversion" ("source_id", "state");
ALTER TABLE "tools_toolentry" ADD CONSTRAINT "tools_toolentry_tenant_id_70dd0d82_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_toolentry_tenant_id_70dd0d82" ON "tools_toolentry" ("tenant_id");
CREATE TABLE "conversations_assistant" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "slug" varchar(60) NOT NULL, "name" varchar(80) NOT NULL, "description" varchar(300) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "archived_at" timestamp with time zone NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "conversations_assistantversion" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "number" integer NOT NULL CHECK ("number" >= 0), "mode" varchar(8) NOT NULL, "model" varchar(120) NOT NULL, "prompt" text NOT NULL, "searches_all" boolean NOT NULL, "has_toolkit" boolean NOT NULL, "output" varchar(10) NOT NULL, "output_name" varchar(64) NOT NULL, "output_schema" jsonb NULL, "options" jsonb NOT NULL, "starters" jsonb NOT NULL, "note" varchar(200) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "assistant_id" bigint NOT NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL, "toolkit_id" bigint NULL, CONSTRAINT "assistant_version_number" UNIQUE ("assistant_id", "number"), CONSTRAINT "assistant_version_schema" CHECK ((("output" = 'schema' AND "output_schema" IS NOT NULL) OR (NOT ("output" = 'schema') AND "output_schema" IS NULL))));
CREATE TABLE "conversations_assistanthelper" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "assistant_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "version_id" bigint NOT NULL, CONSTRAINT "assistant_helper_once" UNIQUE ("version_id", "assistant_id"));
CREATE TABLE "conversations_assistantcollection" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "version_id" bigint NOT NULL, CONSTRAINT "assistant_collection_once" UNIQUE ("version_id", "collection_id"));
ALTER TABLE "conversations_assistant" ADD COLUMN "published_id" bigint NULL;
CREATE TABLE "conversations_conversation" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "title" varchar(200) NOT NULL, "model" varchar(120) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "searches_all" boolean NOT NULL, "draft" text NOT NULL, "seen_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "assistant_id" bigint NULL, "forked_from_id" bigint NULL, "pinned_version_id" bigint NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NOT NULL);
CREATE TABLE "conversations_conversationcollection" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "collection_id" bigint NOT NULL, "conversation_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "conversation_collection_once" UNIQUE ("conversation_id", "collection_id"));
CREATE TABLE "conversations_conversationrules" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "keep_days" integer NULL CHECK ("keep_days" >= 0), "makes_titles" boolean NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "conversation_rules_one_a_tenant" UNIQUE ("tenant_id"));
CREATE TABLE "conversations_conversationshare" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "key" uuid NOT NULL UNIQUE, "title" varchar(200) NOT NULL, "snapshot" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "revoked_at" timestamp with time zone NULL, "conversation_id" bigint NOT NULL, "created_by_id" bigint NOT NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "conversations_queuedquestion" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "text" text NOT NULL, "model" varchar(120) NOT NULL, "client_id" uuid NOT NULL, "request" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "problem" text NOT NULL, "conversation_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "queued_question_client_id" UNIQUE ("conversation_id", "client_id"));
CREATE TABLE "conversations_sharereader" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "first_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "share_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NOT NULL, CONSTRAINT "share_reader_once" UNIQUE ("share_id", "user_id"));
CREATE TABLE "conversations_turn" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "index" integer NOT NULL CHECK ("index" >= 0), "client_id" uuid NOT NULL, "is_active" boolean NOT NULL, "removed_markers" integer NOT NULL CHECK ("removed_markers" >= 0), "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "assistant_version_id" bigint NULL, "conversation_id" bigint NOT NULL, "parent_id" bigint NULL, "run_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "turn_index" UNIQUE ("conversation_id", "index"), CONSTRAINT "turn_client_id" UNIQUE ("conversation_id", "client_id"));
CREATE TABLE "conversations_message" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "author" varchar(10) NOT NULL, "text" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "data" jsonb NULL, "problem" text NOT NULL, "unsupported" jsonb NOT NULL, "words" tsvector GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, COALESCE(LEFT("text", 200000), ''))) STORED, "tenant_id" bigint NOT NULL, "turn_id" bigint NOT NULL);
CREATE TABLE "conversations_feedback" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "verdict" varchar(4) NOT NULL, "reason" varchar(40) NOT NULL, "comment" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NOT NULL, "turn_id" bigint NOT NULL, CONSTRAINT "feedback_one_a_person" UNIQUE ("turn_id", "user_id"));
ALTER TABLE "conversations_conversation" ADD COLUMN "head_id" bigint NULL;
CREATE TABLE "conversations_citation" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "number" integer NOT NULL CHECK ("number" >= 0), "chunk_ref" bigint NOT NULL, "document_name" varchar(255) NOT NULL, "collection_name" varchar(120) NOT NULL, "page" integer NULL CHECK ("page" >= 0), "quote" text NOT NULL, "char_start" integer NOT NULL CHECK ("char_start" >= 0), "char_end" integer NOT NULL CHECK ("char_end" >= 0), "chunk_id" bigint NULL, "document_id" bigint NULL, "tenant_id" bigint NOT NULL, "turn_id" bigint NOT NULL, CONSTRAINT "citation_number" UNIQUE ("turn_id", "number"));
CREATE TABLE "conversations_attachment" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(255) NOT NULL, "media_type" varchar(100) NOT NULL, "size" bigint NOT NULL CHECK ("size" >= 0), "text" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "document_id" bigint NULL, "tenant_id" bigint NOT NULL, "conversation_id" bigint NOT NULL, "turn_id" bigint NULL);
ALTER TABLE "conversations_assistant" ADD CONSTRAINT "assistant_one_per_slug" UNIQUE ("tenant_id", "slug");
CREATE INDEX "conversation_recent" ON "conversations_conversation" ("tenant_id", "user_id", "updated_at" DESC);
ALTER TABLE "conversations_assistant" ADD CONSTRAINT "conversations_assist_created_by_id_121c4329_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_assistant" ADD CONSTRAINT "conversations_assistant_tenant_id_70403c7a_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_assistant_slug_8f8f2dbf" ON "conversations_assistant" ("slug");
CREATE INDEX "conversations_assistant_slug_8f8f2dbf_like" ON "conversations_assistant" ("slug" varchar_pattern_ops);
CREATE INDEX "conversations_assistant_created_by_id_121c4329" ON "conversations_assistant" ("created_by_id");
CREATE INDEX "conversations_assistant_tenant_id_70403c7a" ON "conversations_assistant" ("tenant_id");
ALTER TABLE "conversations_assistantversion" ADD CONSTRAINT "conversations_assist_created_by_id_a7a3c6ab_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_assistantversion" ADD CONSTRAINT "conversations_assist_tenant_id_724a7f93_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_assistantversion_assistant_id_51228b80" ON "conversations_assistantversion" ("assistant_id");
CREATE INDEX "conversations_assistantversion_created_by_id_a7a3c6ab" ON "conversations_assistantversion" ("created_by_id");
CREATE INDEX "conversations_assistantversion_tenant_id_724a7f93" ON "conversations_assistantversion" ("tenant_id");
CREATE INDEX "conversations_assistantversion_toolkit_id_992422e7" ON "conversations_assistantversion" ("toolkit_id");
ALTER TABLE "conversations_assistanthelper" ADD CONSTRAINT "conversations_assist_tenant_id_11928b6b_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_assistanthelper_assistant_id_c27b66f5" ON "conversations_assistanthelper" ("assistant_id");
CREATE INDEX "conversations_assistanthelper_tenant_id_11928b6b" ON "conversations_assistanthelper" ("tenant_id");
CREATE INDEX "conversations_assistanthelper_version_id_9cc0ac54" ON "conversations_assistanthelper" ("version_id");
ALTER TABLE "conversations_assistantcollection" ADD CONSTRAINT "conversations_assist_tenant_id_37a68528_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_assistantcollection_collection_id_1244283d" ON "conversations_assistantcollection" ("collection_id");
CREATE INDEX "conversations_assistantcollection_tenant_id_37a68528" ON "conversations_assistantcollection" ("tenant_id");
CREATE INDEX "conversations_assistantcollection_version_id_31240b98" ON "conversations_assistantcollection" ("version_id");
CREATE INDEX "conversations_assistant_published_id_44565b03" ON "conversations_assistant" ("published_id");
ALTER TABLE "conversations_conversation" ADD CONSTRAINT "conversations_conver_tenant_id_0c232464_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_conversation" ADD CONSTRAINT "conversations_conversation_user_id_c3e4e6ca_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_conversation_assistant_id_65ea9e8a" ON "conversations_conversation" ("assistant_id");
CREATE INDEX "conversations_conversation_forked_from_id_76bfaf33" ON "conversations_conversation" ("forked_from_id");
CREATE INDEX "conversations_conversation_pinned_version_id_9268ad29" ON "conversations_conversation" ("pinned_version_id");
CREATE INDEX "conversations_conversation_tenant_id_0c232464" ON "conversations_conversation" ("tenant_id");
CREATE INDEX "conversations_conversation_user_id_c3e4e6ca" ON "conversations_conversation" ("user_id");
ALTER TABLE "conversations_conversationcollection" ADD CONSTRAINT "conversations_conver_tenant_id_b7db106d_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_conversationcollection_collection_id_0c593750" ON "conversations_conversationcollection" ("collection_id");
CREATE INDEX "conversations_conversationcollection_conversation_id_f2ef464a" ON "conversations_conversationcollection" ("conversation_id");
CREATE INDEX "conversations_conversationcollection_tenant_id_b7db106d" ON "conversations_conversationcollection" ("tenant_id");
ALTER TABLE "conversations_conversationrules" ADD CONSTRAINT "conversations_conver_tenant_id_5465f245_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_conversationrules_tenant_id_5465f245" ON "conversations_conversationrules" ("tenant_id");
ALTER TABLE "conversations_conversationshare" ADD CONSTRAINT "conversations_conver_created_by_id_25e5685c_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_conversationshare" ADD CONSTRAINT "conversations_conver_tenant_id_1424786c_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_conversationshare_conversation_id_e562fef5" ON "conversations_conversationshare" ("conversation_id");
CREATE INDEX "conversations_conversationshare_created_by_id_25e5685c" ON "conversations_conversationshare" ("created_by_id");
CREATE INDEX "conversations_conversationshare_tenant_id_1424786c" ON "conversations_conversationshare" ("tenant_id");
ALTER TABLE "conversations_queuedquestion" ADD CONSTRAINT "conversations_queued_tenant_id_3a0fa43c_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_queuedquestion_conversation_id_deb16b9d" ON "conversations_queuedquestion" ("conversation_id");
CREATE INDEX "conversations_queuedquestion_tenant_id_3a0fa43c" ON "conversations_queuedquestion" ("tenant_id");
ALTER TABLE "conversations_sharereader" ADD CONSTRAINT "conversations_sharer_tenant_id_1aa33d42_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_sharereader" ADD CONSTRAINT "conversations_sharereader_user_id_96263e9f_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_sharereader_share_id_b5f0abee" ON "conversations_sharereader" ("share_id");
CREATE INDEX "conversations_sharereader_tenant_id_1aa33d42" ON "conversations_sharereader" ("tenant_id");
CREATE INDEX "conversations_sharereader_user_id_96263e9f" ON "conversations_sharereader" ("user_id");
ALTER TABLE "conversations_turn" ADD CONSTRAINT "conversations_turn_tenant_id_4a650abb_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE UNIQUE INDEX "turn_one_active" ON "conversations_turn" ("conversation_id") WHERE "is_active";
CREATE INDEX "conversations_turn_assistant_version_id_a61ae287" ON "conversations_turn" ("assistant_version_id");
CREATE INDEX "conversations_turn_conversation_id_5017480b" ON "conversations_turn" ("conversation_id");
CREATE INDEX "conversations_turn_parent_id_1c592ef8" ON "conversations_turn" ("parent_id");
CREATE INDEX "conversations_turn_run_id_a978525d" ON "conversations_turn" ("run_id");
CREATE INDEX "conversations_turn_tenant_id_4a650abb" ON "conversations_turn" ("tenant_id");
ALTER TABLE "conversations_message" ADD CONSTRAINT "conversations_message_tenant_id_eb27372f_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_message" ADD CONSTRAINT "message_per_author" UNIQUE ("turn_id", "author");
CREATE INDEX "conversations_message_tenant_id_eb27372f" ON "conversations_message" ("tenant_id");
CREATE INDEX "conversations_message_turn_id_ff2e7681" ON "conversations_message" ("turn_id");
ALTER TABLE "conversations_feedback" ADD CONSTRAINT "conversations_feedback_tenant_id_a4b63060_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "conversations_feedback" ADD CONSTRAINT "conversations_feedback_user_id_565e7e90_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_feedback_tenant_id_a4b63060" ON "conversations_feedback" ("tenant_id");
CREATE INDEX "conversations_feedback_user_id_565e7e90" ON "conversations_feedback" ("user_id");
CREATE INDEX "conversations_feedback_turn_id_ac7d2330" ON "conversations_feedback" ("turn_id");
CREATE INDEX "conversations_conversation_head_id_bbe49fa4" ON "conversations_conversation" ("head_id");
ALTER TABLE "conversations_citation" ADD CONSTRAINT "conversations_citation_tenant_id_b7602617_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_citation_chunk_id_22a10e10" ON "conversations_citation" ("chunk_id");
CREATE INDEX "conversations_citation_document_id_8cc43665" ON "conversations_citation" ("document_id");
CREATE INDEX "conversations_citation_tenant_id_b7602617" ON "conversations_citation" ("tenant_id");
CREATE INDEX "conversations_citation_turn_id_b4c97277" ON "conversations_citation" ("turn_id");
ALTER TABLE "conversations_attachment" ADD CONSTRAINT "conversations_attach_tenant_id_a77a8261_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "conversations_attachment_document_id_7b88ddf3" ON "conversations_attachment" ("document_id");
CREATE INDEX "conversations_attachment_tenant_id_a77a8261" ON "conversations_attachment" ("tenant_id");
CREATE INDEX "conversations_attachment_conversation_id_9d924662" ON "conversations_attachment" ("conversation_id");
CREATE INDEX "conversations_attachment_turn_id_f9a9c999" ON "conversations_attachment" ("turn_id");
ALTER TABLE "conversations_conversation" ADD COLUMN "tools_off" jsonb DEFAULT '[]'::jsonb NOT NULL;
ALTER TABLE "conversations_conversation" ALTER COLUMN "tools_off" DROP DEFAULT;
ALTER TABLE "conversations_attachment" DROP COLUMN "text" CASCADE;
CREATE TABLE "datasets_dataset" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "slug" varchar(60) NOT NULL, "name" varchar(120) NOT NULL, "description" text NOT NULL, "needs_two_people" boolean NOT NULL, "options" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "dataset_one_per_slug" UNIQUE ("tenant_id", "slug"));
CREATE TABLE "datasets_acceptance" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "fingerprint" varchar(64) NOT NULL, "kind" varchar(20) NOT NULL, "shown" varchar(200) NOT NULL, "note" varchar(300) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, "dataset_id" bigint NOT NULL, CONSTRAINT "acceptance_once" UNIQUE ("dataset_id", "fingerprint"));
CREATE TABLE "datasets_datasetcheck" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "status" varchar(9) NOT NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "kind" varchar(13) NOT NULL, "options" jsonb NOT NULL, "result" jsonb NOT NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "datasets_datasetimport" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "status" varchar(9) NOT NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "format" varchar(20) NOT NULL, "name" varchar(255) NOT NULL, "file" varchar(255) NOT NULL, "is_trial" boolean NOT NULL, "found" integer NOT NULL CHECK ("found" >= 0), "created" integer NOT NULL CHECK ("created" >= 0), "duplicates" integer NOT NULL CHECK ("duplicates" >= 0), "failed" integer NOT NULL CHECK ("failed" >= 0), "problems" jsonb NOT NULL, "errors_file" varchar(255) NOT NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "datasets_datasetrow" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "content_hash" varchar(64) NOT NULL, "question" text NOT NULL, "answer" text NOT NULL, "type" varchar(14) NOT NULL, "difficulty" varchar(6) NOT NULL, "expected" varchar(10) NOT NULL, "language" varchar(20) NOT NULL, "rationale" text NOT NULL, "steps" jsonb NOT NULL, "sources" jsonb NOT NULL, "scores" jsonb NOT NULL, "quality" double precision NULL, "extra" jsonb NOT NULL, "status" varchar(8) NOT NULL, "split" varchar(10) NOT NULL, "tags" varchar(60)[] NOT NULL, "lineage" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "run_id" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "dataset_row_once" UNIQUE ("dataset_id", "content_hash"), CONSTRAINT "dataset_row_status_known" CHECK ("status" IN ('draft', 'review', 'approved', 'rejected')));
CREATE TABLE "datasets_datasetversion" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "number" integer NOT NULL CHECK ("number" >= 0), "content_hash" varchar(64) NOT NULL, "row_count" integer NOT NULL CHECK ("row_count" >= 0), "manifest" jsonb NOT NULL, "signature" varchar(64) NOT NULL, "note" varchar(200) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "dataset_version_number" UNIQUE ("dataset_id", "number"));
CREATE TABLE "datasets_datasetexport" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "status" varchar(9) NOT NULL, "error_code" varchar(60) NOT NULL, "error_message" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "format" varchar(20) NOT NULL, "split" varchar(10) NOT NULL, "file" varchar(255) NOT NULL, "size" bigint NOT NULL CHECK ("size" >= 0), "rows" integer NOT NULL CHECK ("rows" >= 0), "left_out" integer NOT NULL CHECK ("left_out" >= 0), "problems" jsonb NOT NULL, "findings" jsonb NOT NULL, "finding_count" integer NOT NULL CHECK ("finding_count" >= 0), "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "job_id" bigint NULL, "tenant_id" bigint NOT NULL, "version_id" bigint NOT NULL);
CREATE TABLE "datasets_generationjob" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "options" jsonb NOT NULL, "model" varchar(120) NOT NULL, "state" varchar(9) NOT NULL, "reason" varchar(300) NOT NULL, "actor" jsonb NOT NULL, "probe" integer NOT NULL CHECK ("probe" >= 0), "estimate" jsonb NOT NULL, "budget_usd" numeric(12, 6) NULL, "spent_usd" numeric(14, 8) NOT NULL, "wanted" integer NOT NULL CHECK ("wanted" >= 0), "kept" integer NOT NULL CHECK ("kept" >= 0), "dropped" integer NOT NULL CHECK ("dropped" >= 0), "failed" integer NOT NULL CHECK ("failed" >= 0), "shortfall" jsonb NOT NULL, "manifest" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "started_at" timestamp with time zone NULL, "finished_at" timestamp with time zone NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "generation_job_state_known" CHECK ("state" IN ('queued', 'running', 'paused', 'stopped', 'completed', 'failed')));
CREATE TABLE "datasets_generationitem" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "slot" integer NOT NULL CHECK ("slot" >= 0), "round" smallint NOT NULL CHECK ("round" >= 0), "type" varchar(14) NOT NULL, "difficulty" varchar(6) NOT NULL, "chunks" bigint[] NOT NULL, "state" varchar(9) NOT NULL, "reason" varchar(300) NOT NULL, "data" jsonb NOT NULL, "repairs" smallint NOT NULL CHECK ("repairs" >= 0), "failures" smallint NOT NULL CHECK ("failures" >= 0), "not_before" timestamp with time zone NULL, "driver" varchar(40) NOT NULL, "reserved_usd" numeric(14, 8) NOT NULL, "spent_usd" numeric(14, 8) NOT NULL, "updated_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "row_id" bigint NULL, "tenant_id" bigint NOT NULL, "job_id" bigint NOT NULL, CONSTRAINT "generation_item_once" UNIQUE ("job_id", "slot", "round"));
CREATE TABLE "datasets_paidcall" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "stage" varchar(9) NOT NULL, "attempt" smallint NOT NULL CHECK ("attempt" >= 0), "step" smallint NOT NULL CHECK ("step" >= 0), "turn" jsonb NOT NULL, "input_tokens" bigint NOT NULL, "output_tokens" bigint NOT NULL, "cost_usd" numeric(14, 8) NULL, "duration_ms" integer NOT NULL CHECK ("duration_ms" >= 0), "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "results" jsonb NOT NULL, "item_id" bigint NOT NULL, "job_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "paid_call_once" UNIQUE ("item_id", "stage", "attempt", "step"));
CREATE TABLE "datasets_rowcontent" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "hash" varchar(64) NOT NULL, "data" jsonb NOT NULL, "dataset_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "row_content_once" UNIQUE ("dataset_id", "hash"));
CREATE TABLE "datasets_rowreview" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "verdict" varchar(7) NOT NULL, "note" text NOT NULL, "content_hash" varchar(64) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "row_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL);
CREATE TABLE "datasets_versionrow" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "position" integer NOT NULL CHECK ("position" >= 0), "row_ref" bigint NOT NULL, "split" varchar(10) NOT NULL, "content_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "version_id" bigint NOT NULL, CONSTRAINT "version_row_position" UNIQUE ("version_id", "position"), CONSTRAINT "version_row_once" UNIQUE ("version_id", "row_ref"));
ALTER TABLE "datasets_dataset" ADD CONSTRAINT "datasets_dataset_created_by_id_d772db1e_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_dataset" ADD CONSTRAINT "datasets_dataset_tenant_id_7d58d3a6_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_dataset_slug_98c53a48" ON "datasets_dataset" ("slug");
CREATE INDEX "datasets_dataset_slug_98c53a48_like" ON "datasets_dataset" ("slug" varchar_pattern_ops);
CREATE INDEX "datasets_dataset_created_by_id_d772db1e" ON "datasets_dataset" ("created_by_id");
CREATE INDEX "datasets_dataset_tenant_id_7d58d3a6" ON "datasets_dataset" ("tenant_id");
CREATE INDEX "dataset_recent" ON "datasets_dataset" ("tenant_id", "updated_at" DESC);
ALTER TABLE "datasets_acceptance" ADD CONSTRAINT "datasets_acceptance_tenant_id_8373d33b_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_acceptance" ADD CONSTRAINT "datasets_acceptance_user_id_259c4b21_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_acceptance_tenant_id_8373d33b" ON "datasets_acceptance" ("tenant_id");
CREATE INDEX "datasets_acceptance_user_id_259c4b21" ON "datasets_acceptance" ("user_id");
CREATE INDEX "datasets_acceptance_dataset_id_2d41e825" ON "datasets_acceptance" ("dataset_id");
ALTER TABLE "datasets_datasetcheck" ADD CONSTRAINT "datasets_datasetcheck_created_by_id_34971072_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_datasetcheck" ADD CONSTRAINT "datasets_datasetcheck_tenant_id_9bca7ca2_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_datasetcheck_created_by_id_34971072" ON "datasets_datasetcheck" ("created_by_id");
CREATE INDEX "datasets_datasetcheck_dataset_id_470cfb8c" ON "datasets_datasetcheck" ("dataset_id");
CREATE INDEX "datasets_datasetcheck_job_id_31712a85" ON "datasets_datasetcheck" ("job_id");
CREATE INDEX "datasets_datasetcheck_tenant_id_9bca7ca2" ON "datasets_datasetcheck" ("tenant_id");
ALTER TABLE "datasets_datasetimport" ADD CONSTRAINT "datasets_datasetimpo_created_by_id_81affb9d_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_datasetimport" ADD CONSTRAINT "datasets_datasetimport_tenant_id_0248c1b3_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_datasetimport_created_by_id_81affb9d" ON "datasets_datasetimport" ("created_by_id");
CREATE INDEX "datasets_datasetimport_dataset_id_5bead9ab" ON "datasets_datasetimport" ("dataset_id");
CREATE INDEX "datasets_datasetimport_job_id_d7f2b74a" ON "datasets_datasetimport" ("job_id");
CREATE INDEX "datasets_datasetimport_tenant_id_0248c1b3" ON "datasets_datasetimport" ("tenant_id");
ALTER TABLE "datasets_datasetrow" ADD CONSTRAINT "datasets_datasetrow_created_by_id_21491abc_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_datasetrow" ADD CONSTRAINT "datasets_datasetrow_tenant_id_73ed478d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_datasetrow_created_by_id_21491abc" ON "datasets_datasetrow" ("created_by_id");
CREATE INDEX "datasets_datasetrow_run_id_58c889cb" ON "datasets_datasetrow" ("run_id");
CREATE INDEX "datasets_datasetrow_tenant_id_73ed478d" ON "datasets_datasetrow" ("tenant_id");
CREATE INDEX "dataset_row_order" ON "datasets_datasetrow" ("dataset_id", "id");
CREATE INDEX "dataset_row_status" ON "datasets_datasetrow" ("dataset_id", "status", "id");
CREATE INDEX "dataset_row_type" ON "datasets_datasetrow" ("dataset_id", "type", "id");
ALTER TABLE "datasets_datasetversion" ADD CONSTRAINT "datasets_datasetvers_created_by_id_4d4f45a8_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_datasetversion" ADD CONSTRAINT "datasets_datasetversion_tenant_id_4729c661_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_datasetversion_created_by_id_4d4f45a8" ON "datasets_datasetversion" ("created_by_id");
CREATE INDEX "datasets_datasetversion_dataset_id_e05150c5" ON "datasets_datasetversion" ("dataset_id");
CREATE INDEX "datasets_datasetversion_tenant_id_4729c661" ON "datasets_datasetversion" ("tenant_id");
ALTER TABLE "datasets_datasetexport" ADD CONSTRAINT "datasets_datasetexpo_created_by_id_f8633d21_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_datasetexport" ADD CONSTRAINT "datasets_datasetexport_tenant_id_2e26986d_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_datasetexport_created_by_id_f8633d21" ON "datasets_datasetexport" ("created_by_id");
CREATE INDEX "datasets_datasetexport_dataset_id_7053345f" ON "datasets_datasetexport" ("dataset_id");
CREATE INDEX "datasets_datasetexport_job_id_d8df89bf" ON "datasets_datasetexport" ("job_id");
CREATE INDEX "datasets_datasetexport_tenant_id_2e26986d" ON "datasets_datasetexport" ("tenant_id");
CREATE INDEX "datasets_datasetexport_version_id_5d48a086" ON "datasets_datasetexport" ("version_id");
ALTER TABLE "datasets_generationjob" ADD CONSTRAINT "datasets_generationj_created_by_id_8fc36a0e_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_generationjob" ADD CONSTRAINT "datasets_generationjob_tenant_id_94760c44_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_generationjob_created_by_id_8fc36a0e" ON "datasets_generationjob" ("created_by_id");
CREATE INDEX "datasets_generationjob_dataset_id_930cde86" ON "datasets_generationjob" ("dataset_id");
CREATE INDEX "datasets_generationjob_tenant_id_94760c44" ON "datasets_generationjob" ("tenant_id");
CREATE INDEX "generation_job_newest" ON "datasets_generationjob" ("tenant_id", "id" DESC);
ALTER TABLE "datasets_generationitem" ADD CONSTRAINT "datasets_generationitem_tenant_id_d2b50335_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_generationitem_row_id_4aaac4ae" ON "datasets_generationitem" ("row_id");
CREATE INDEX "datasets_generationitem_tenant_id_d2b50335" ON "datasets_generationitem" ("tenant_id");
CREATE INDEX "generation_item_state" ON "datasets_generationitem" ("job_id", "state", "id");
CREATE INDEX "generation_item_latest" ON "datasets_generationitem" ("job_id", "updated_at" DESC);
ALTER TABLE "datasets_paidcall" ADD CONSTRAINT "datasets_paidcall_tenant_id_9ec95a24_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_paidcall_tenant_id_9ec95a24" ON "datasets_paidcall" ("tenant_id");
CREATE INDEX "paid_call_stage" ON "datasets_paidcall" ("job_id", "stage");
ALTER TABLE "datasets_rowcontent" ADD CONSTRAINT "datasets_rowcontent_tenant_id_2ea8fe27_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_rowcontent_tenant_id_2ea8fe27" ON "datasets_rowcontent" ("tenant_id");
ALTER TABLE "datasets_rowreview" ADD CONSTRAINT "datasets_rowreview_tenant_id_2127c853_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "datasets_rowreview" ADD CONSTRAINT "datasets_rowreview_user_id_2c70f111_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_rowreview_row_id_53d04c19" ON "datasets_rowreview" ("row_id");
CREATE INDEX "datasets_rowreview_tenant_id_2127c853" ON "datasets_rowreview" ("tenant_id");
CREATE INDEX "datasets_rowreview_user_id_2c70f111" ON "datasets_rowreview" ("user_id");
ALTER TABLE "datasets_versionrow" ADD CONSTRAINT "datasets_versionrow_tenant_id_cbd78499_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "datasets_versionrow_content_id_60b2c43f" ON "datasets_versionrow" ("content_id");
CREATE INDEX "datasets_versionrow_tenant_id_cbd78499" ON "datasets_versionrow" ("tenant_id");
ALTER TABLE "datasets_versionrow" DROP CONSTRAINT "version_row_once";
DROP INDEX IF EXISTS "dataset_row_status";
CREATE INDEX "dataset_row_status" ON "datasets_datasetrow" ("dataset_id", "status", "id") INCLUDE ("tenant_id");
CREATE INDEX "dataset_row_difficulty" ON "datasets_datasetrow" ("dataset_id", "difficulty", "id");
CREATE INDEX "dataset_row_split" ON "datasets_datasetrow" ("dataset_id", "split", "id");
CREATE INDEX dataset_row_words ON datasets_datasetrow USING gin ((to_tsvector('simple'::regconfig, left(question, 20000) || ' ' || left(answer, 100000)) || to_tsvector('simple'::regconfig, jsonb_path_query_array(sources, '$[*].document')) || to_tsvector('simple'::regconfig, regexp_replace(jsonb_path_query_array(sources, '$[*].document')::text, '[^[:alnum:]]+', ' ', 'g')) || array_to_tsvector(ARRAY['dataset ' || dataset_id::text]))) WITH (fastupdate = off);
CREATE UNIQUE INDEX "version_row_once" ON "datasets_versionrow" ("version_id", "row_ref") INCLUDE ("tenant_id", "content_id");
CREATE TABLE "django_q_schedule" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "func" varchar(256) NOT NULL, "hook" varchar(256) NULL, "args" varchar(256) NULL, "kwargs" varchar(256) NULL, "schedule_type" varchar(1) NOT NULL, "repeats" smallint NOT NULL, "next_run" timestamp with time zone NULL, "task" varchar(100) NULL);
CREATE TABLE "django_q_task" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(100) NOT NULL, "func" varchar(256) NOT NULL, "hook" varchar(256) NULL, "args" text NULL, "kwargs" text NULL, "result" text NULL, "started" timestamp with time zone NOT NULL, "stopped" timestamp with time zone NOT NULL, "success" boolean NOT NULL);
ALTER TABLE "django_q_schedule" ALTER COLUMN "args" TYPE text USING "args"::text;
ALTER TABLE "django_q_schedule" ALTER COLUMN "kwargs" TYPE text USING "kwargs"::text;
ALTER TABLE "django_q_task" DROP COLUMN "id" CASCADE;
ALTER TABLE "django_q_task" ADD COLUMN "id" varchar(32) NOT NULL PRIMARY KEY;
CREATE INDEX "django_q_task_id_32882367_like" ON "django_q_task" ("id" varchar_pattern_ops);
ALTER TABLE "django_q_schedule" ADD COLUMN "name" varchar(100) NULL;
ALTER TABLE "django_q_task" ADD COLUMN "group" varchar(100) NULL;
ALTER TABLE "django_q_schedule" ADD COLUMN "minutes" smallint NULL CHECK ("minutes" >= 0);
CREATE TABLE "django_q_ormq" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "key" varchar(100) NOT NULL, "payload" text NOT NULL, "lock" timestamp with time zone NULL);
ALTER TABLE "django_q_schedule" ALTER COLUMN "repeats" TYPE integer USING "repeats"::integer;
ALTER TABLE "django_q_schedule" ADD COLUMN "cron" varchar(100) NULL;
ALTER TABLE "django_q_task" ADD COLUMN "attempt_count" integer DEFAULT 0 NOT NULL;
ALTER TABLE "django_q_task" ALTER COLUMN "attempt_count" DROP DEFAULT;
ALTER TABLE "django_q_schedule" ADD COLUMN "cluster" varchar(100) NULL;
ALTER TABLE "django_q_schedule" ALTER COLUMN "schedule_type" TYPE varchar(2);
ALTER TABLE "django_q_schedule" ADD COLUMN "intended_date_kwarg" varchar(100) NULL;
ALTER TABLE "django_q_task" ADD COLUMN "cluster" varchar(100) NULL;
CREATE INDEX "success_index" ON "django_q_task" ("group", "name", "func") WHERE "success";
CREATE TABLE "evaluations_annotationqueue" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "reviews" smallint NOT NULL CHECK ("reviews" >= 0), "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "closed_at" timestamp with time zone NULL, "created_by_id" bigint NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "evaluations_annotationitem" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "position" integer NOT NULL CHECK ("position" >= 0), "tenant_id" bigint NOT NULL, "queue_id" bigint NOT NULL);
CREATE TABLE "evaluations_arm" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "position" smallint NOT NULL CHECK ("position" >= 0), "name" varchar(160) NOT NULL, "target" jsonb NOT NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "evaluations_assignment" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "state" varchar(7) NOT NULL, "note" text NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "item_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NOT NULL, CONSTRAINT "assignment_one_a_person" UNIQUE ("item_id", "user_id"));
CREATE TABLE "evaluations_baseline" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(60) NOT NULL, "note" varchar(200) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "arm_id" bigint NOT NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "tenant_id" bigint NOT NULL);
CREATE TABLE "evaluations_experiment" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "split" varchar(10) NOT NULL, "repeats" smallint NOT NULL CHECK ("repeats" >= 0), "scorers" jsonb NOT NULL, "concurrency" smallint NOT NULL CHECK ("concurrency" >= 0), "budget_usd" numeric(12, 6) NULL, "state" varchar(9) NOT NULL, "reason" varchar(300) NOT NULL, "corpus" varchar(64) NOT NULL, "actor" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL, "created_by_id" bigint NULL, "dataset_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "version_id" bigint NOT NULL, CONSTRAINT "experiment_state_known" CHECK ("state" IN ('running', 'paused', 'stopped', 'completed')), CONSTRAINT "experiment_repeats_positive" CHECK ("repeats" >= 1));
ALTER TABLE "evaluations_arm" ADD COLUMN "experiment_id" bigint NOT NULL;
ALTER TABLE "evaluations_annotationqueue" ADD COLUMN "experiment_id" bigint NULL;
CREATE TABLE "evaluations_rubric" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "slug" varchar(40) NOT NULL, "name" varchar(120) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "rubric_one_per_slug" UNIQUE ("tenant_id", "slug"));
CREATE TABLE "evaluations_rubricversion" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "number" integer NOT NULL CHECK ("number" >= 0), "criteria" jsonb NOT NULL, "note" varchar(200) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "created_by_id" bigint NULL, "rubric_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "rubric_version_number" UNIQUE ("rubric_id", "number"));
ALTER TABLE "evaluations_annotationqueue" ADD COLUMN "rubric_version_id" bigint NOT NULL;
CREATE TABLE "evaluations_scorecache" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "key" varchar(64) NOT NULL, "model" varchar(120) NOT NULL, "value" jsonb NOT NULL, "cost_usd" numeric(14, 8) NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "score_cache_once" UNIQUE ("tenant_id", "key"));
CREATE TABLE "evaluations_trial" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "row_ref" bigint NOT NULL, "position" integer NOT NULL CHECK ("position" >= 0), "repeat" smallint NOT NULL CHECK ("repeat" >= 0), "state" varchar(9) NOT NULL, "answer" text NOT NULL, "outcome" jsonb NOT NULL, "error" varchar(500) NOT NULL, "latency_ms" double precision NULL, "cost_usd" numeric(14, 8) NULL, "judge_usd" numeric(14, 8) NOT NULL, "finished_at" timestamp with time zone NULL, "arm_id" bigint NOT NULL, "content_id" bigint NOT NULL, "experiment_id" bigint NOT NULL, "job_id" bigint NULL, "run_id" bigint NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "trial_once" UNIQUE ("arm_id", "row_ref", "repeat"), CONSTRAINT "trial_state_known" CHECK ("state" IN ('pending', 'answering', 'scoring', 'done', 'failed')));
CREATE TABLE "evaluations_score" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(60) NOT NULL, "value" double precision NULL, "level" double precision NULL, "reason" text NOT NULL, "evidence" text NOT NULL, "details" jsonb NOT NULL, "author_kind" varchar(6) NOT NULL, "author" varchar(300) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "assignment_id" bigint NULL, "rubric_version_id" bigint NULL, "tenant_id" bigint NOT NULL, "user_id" bigint NULL, "trial_id" bigint NOT NULL, CONSTRAINT "score_once" UNIQUE ("trial_id", "name", "author"), CONSTRAINT "score_value_range" CHECK (("value" IS NULL OR ("value" >= 0.0 AND "value" <= 1.0))));
ALTER TABLE "evaluations_annotationitem" ADD COLUMN "trial_id" bigint NOT NULL;
ALTER TABLE "evaluations_arm" ADD CONSTRAINT "arm_position" UNIQUE ("experiment_id", "position");
ALTER TABLE "evaluations_annotationqueue" ADD CONSTRAINT "annotation_reviews_positive" CHECK ("reviews" >= 1);
ALTER TABLE "evaluations_annotationitem" ADD CONSTRAINT "annotation_item_once" UNIQUE ("queue_id", "trial_id");
ALTER TABLE "evaluations_annotationitem" ADD CONSTRAINT "annotation_item_position" UNIQUE ("queue_id", "position");
ALTER TABLE "evaluations_annotationqueue" ADD CONSTRAINT "evaluations_annotati_created_by_id_aeb0115a_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_annotationqueue" ADD CONSTRAINT "evaluations_annotati_tenant_id_ef632dbd_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_annotationqueue_created_by_id_aeb0115a" ON "evaluations_annotationqueue" ("created_by_id");
CREATE INDEX "evaluations_annotationqueue_tenant_id_ef632dbd" ON "evaluations_annotationqueue" ("tenant_id");
ALTER TABLE "evaluations_annotationitem" ADD CONSTRAINT "evaluations_annotati_tenant_id_4ad21b3c_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_annotationitem_tenant_id_4ad21b3c" ON "evaluations_annotationitem" ("tenant_id");
ALTER TABLE "evaluations_arm" ADD CONSTRAINT "evaluations_arm_tenant_id_2f5280f5_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_arm_tenant_id_2f5280f5" ON "evaluations_arm" ("tenant_id");
ALTER TABLE "evaluations_assignment" ADD CONSTRAINT "evaluations_assignment_tenant_id_c273f441_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_assignment" ADD CONSTRAINT "evaluations_assignment_user_id_e4159e08_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_assignment_tenant_id_c273f441" ON "evaluations_assignment" ("tenant_id");
CREATE INDEX "evaluations_assignment_user_id_e4159e08" ON "evaluations_assignment" ("user_id");
CREATE INDEX "assignment_of_person" ON "evaluations_assignment" ("user_id", "state");
ALTER TABLE "evaluations_baseline" ADD CONSTRAINT "evaluations_baseline_created_by_id_63c51a5d_fk_tenancy_user_id" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_baseline" ADD CONSTRAINT "evaluations_baseline_tenant_id_c59abbf0_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_baseline_name_ce3f98ea" ON "evaluations_baseline" ("name");
CREATE INDEX "evaluations_baseline_name_ce3f98ea_like" ON "evaluations_baseline" ("name" varchar_pattern_ops);
CREATE INDEX "evaluations_baseline_arm_id_ae9e0ebb" ON "evaluations_baseline" ("arm_id");
CREATE INDEX "evaluations_baseline_created_by_id_63c51a5d" ON "evaluations_baseline" ("created_by_id");
CREATE INDEX "evaluations_baseline_dataset_id_71f908a7" ON "evaluations_baseline" ("dataset_id");
CREATE INDEX "evaluations_baseline_tenant_id_c59abbf0" ON "evaluations_baseline" ("tenant_id");
CREATE INDEX "baseline_newest" ON "evaluations_baseline" ("dataset_id", "name", "id" DESC);
ALTER TABLE "evaluations_experiment" ADD CONSTRAINT "evaluations_experime_created_by_id_dc5b5f44_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_experiment" ADD CONSTRAINT "evaluations_experiment_tenant_id_8beef0a6_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_experiment_created_by_id_dc5b5f44" ON "evaluations_experiment" ("created_by_id");
CREATE INDEX "evaluations_experiment_dataset_id_19a7e344" ON "evaluations_experiment" ("dataset_id");
CREATE INDEX "evaluations_experiment_tenant_id_8beef0a6" ON "evaluations_experiment" ("tenant_id");
CREATE INDEX "evaluations_experiment_version_id_c905efcf" ON "evaluations_experiment" ("version_id");
CREATE INDEX "experiment_newest" ON "evaluations_experiment" ("tenant_id", "id" DESC);
CREATE INDEX "evaluations_annotationqueue_experiment_id_b07e6cab" ON "evaluations_annotationqueue" ("experiment_id");
ALTER TABLE "evaluations_rubric" ADD CONSTRAINT "evaluations_rubric_tenant_id_39d91118_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_rubric_slug_415c0b11" ON "evaluations_rubric" ("slug");
CREATE INDEX "evaluations_rubric_slug_415c0b11_like" ON "evaluations_rubric" ("slug" varchar_pattern_ops);
CREATE INDEX "evaluations_rubric_tenant_id_39d91118" ON "evaluations_rubric" ("tenant_id");
ALTER TABLE "evaluations_rubricversion" ADD CONSTRAINT "evaluations_rubricve_created_by_id_2ab8e4a8_fk_tenancy_u" FOREIGN KEY ("created_by_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_rubricversion" ADD CONSTRAINT "evaluations_rubricve_tenant_id_2ea9d7ed_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_rubricversion_created_by_id_2ab8e4a8" ON "evaluations_rubricversion" ("created_by_id");
CREATE INDEX "evaluations_rubricversion_tenant_id_2ea9d7ed" ON "evaluations_rubricversion" ("tenant_id");
CREATE INDEX "evaluations_annotationqueue_rubric_version_id_430c5760" ON "evaluations_annotationqueue" ("rubric_version_id");
ALTER TABLE "evaluations_scorecache" ADD CONSTRAINT "evaluations_scorecache_tenant_id_355ec5fd_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_scorecache_tenant_id_355ec5fd" ON "evaluations_scorecache" ("tenant_id");
ALTER TABLE "evaluations_trial" ADD CONSTRAINT "evaluations_trial_tenant_id_9ba7cc3b_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_trial_content_id_98be23df" ON "evaluations_trial" ("content_id");
CREATE INDEX "evaluations_trial_job_id_7891e93c" ON "evaluations_trial" ("job_id");
CREATE INDEX "evaluations_trial_run_id_8d5edf8d" ON "evaluations_trial" ("run_id");
CREATE INDEX "evaluations_trial_tenant_id_9ba7cc3b" ON "evaluations_trial" ("tenant_id");
CREATE INDEX "trial_state" ON "evaluations_trial" ("experiment_id", "state", "id");
CREATE INDEX "trial_order" ON "evaluations_trial" ("arm_id", "position", "repeat");
ALTER TABLE "evaluations_score" ADD CONSTRAINT "evaluations_score_tenant_id_cb4e9206_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "evaluations_score" ADD CONSTRAINT "evaluations_score_user_id_c4d8534e_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_score_assignment_id_3907401a" ON "evaluations_score" ("assignment_id");
CREATE INDEX "evaluations_score_rubric_version_id_97e99893" ON "evaluations_score" ("rubric_version_id");
CREATE INDEX "evaluations_score_tenant_id_cb4e9206" ON "evaluations_score" ("tenant_id");
CREATE INDEX "evaluations_score_user_id_c4d8534e" ON "evaluations_score" ("user_id");
CREATE INDEX "evaluations_annotationitem_trial_id_5f234b6b" ON "evaluations_annotationitem" ("trial_id");
CREATE TABLE "evaluations_keptscores" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "data" bytea NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "arm_id" bigint NOT NULL UNIQUE, "tenant_id" bigint NOT NULL);
ALTER TABLE "evaluations_keptscores" ADD CONSTRAINT "evaluations_keptscores_tenant_id_361cb7b1_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "evaluations_keptscores_tenant_id_361cb7b1" ON "evaluations_keptscores" ("tenant_id");
CREATE TABLE "evaluations_livesample" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "is_doubtful" boolean NOT NULL, "state" varchar(7) NOT NULL, "error" varchar(500) NOT NULL, "cost_usd" numeric(14, 8) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "finished_at" timestamp with time zone NULL);
CREATE TABLE "evaluations_livescore" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(60) NOT NULL, "value" double precision NULL, "author_kind" varchar(6) NOT NULL, "author" varchar(300) NOT NULL, "reason" text NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL);
CREATE TABLE "evaluations_preference" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "better" varchar(3) NOT NULL, "is_flip" boolean NOT NULL, "reason" text NOT NULL, "author" varchar(300) NOT NULL, "at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL);
CREATE TABLE "evaluations_samplingrule" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "name" varchar(120) NOT NULL, "is_active" boolean NOT NULL, "rate" double precision NOT NULL, "takes_doubtful" boolean NOT NULL, "scorers" jsonb NOT NULL, "budget_usd" numeric(12, 6) NOT NULL, "actor" jsonb NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL);
ALTER TABLE "evaluations_trial" DROP CONSTRAINT "trial_state_known";
ALTER TABLE "evaluations_annotationitem" ADD COLUMN "gold" jsonb DEFAULT '{}'::jsonb NOT NULL;
ALTER TABLE "evaluations_annotationitem" ALTER COLUMN "gold" DROP DEFAULT;
ALTER TABLE "evaluations_annotationqueue" ADD COLUMN "assignees" jsonb DEFAULT '[]'::jsonb NOT NULL;
ALTER TABLE "evaluations_annotationqueue" ALTER COLUMN "assignees" DROP DEFAULT;
ALTER TABLE "evaluations_annotationqueue" ADD COLUMN "instructions" text DEFAULT '' NOT NULL;
ALTER TABLE "evaluations_annotationqueue" ALTER COLUMN "instructions" DROP DEFAULT;
ALTER TABLE "evaluations_experiment" ADD COLUMN "budget_job" bigint NULL;
ALTER TABLE "evaluations_trial" ADD COLUMN "answered_at" timestamp with time zone NULL;
ALTER TABLE "evaluations_trial" ADD COLUMN "judge_asked" integer DEFAULT 0 NOT NULL CHECK ("judge_asked" >= 0);
ALTER TABLE "evaluations_trial" ALTER COLUMN "judge_asked" DROP DEFAULT;
ALTER TABLE "evaluations_trial" ADD COLUMN "judge_cached" integer DEFAULT 0 NOT NULL CHECK ("judge_cached" >= 0);
ALTER TABLE "evaluations_trial" ALTER COLUMN "judge_cached" DROP DEFAULT;
ALTER TABLE "evaluations_trial" ADD CONSTRAINT "trial_state_known" CHECK ("state" IN ('pending', 'answering', 'scoring', 'done', 'failed', 'stopped'));
ALTER TABLE "evaluations_livesample" ADD COLUMN "job_id" bigint NULL;
ALTER TABLE "evaluations_livesample" ADD COLUMN "tenant_id" bigint NOT NULL CONSTRAINT "evaluations_livesample_tenant_id_dc4f8bac_fk_tenancy_tenant_id" REFERENCES "tenancy_tenant"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "evaluations_livesample_tenant_id_dc4f8bac_fk_tenancy_tenant_id" IMMEDIATE;
ALTER TABLE "evaluations_livesample" ADD COLUMN "turn_id" bigint NOT NULL;
ALTER TABLE "evaluations_livescore" ADD COLUMN "sample_id" bigint NOT NULL;
ALTER TABLE "evaluations_livescore" ADD COLUMN "tenant_id" bigint NOT NULL CONSTRAINT "evaluations_livescore_tenant_id_623df886_fk_tenancy_tenant_id" REFERENCES "tenancy_tenant"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "evaluations_livescore_tenant_id_623df886_fk_tenancy_tenant_id" IMMEDIATE;
ALTER TABLE "evaluations_preference" ADD COLUMN "a_id" bigint NOT NULL;
ALTER TABLE "evaluations_preference" ADD COLUMN "b_id" bigint NOT NULL;
ALTER TABLE "evaluations_preference" ADD COLUMN "experiment_id" bigint NOT NULL;
ALTER TABLE "evaluations_preference" ADD COLUMN "tenant_id" bigint NOT NULL CONSTRAINT "evaluations_preference_tenant_id_1051897c_fk_tenancy_tenant_id" REFERENCES "tenancy_tenant"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "evaluations_preference_tenant_id_1051897c_fk_tenancy_tenant_id" IMMEDIATE;
ALTER TABLE "evaluations_samplingrule" ADD COLUMN "assistant_id" bigint NULL;
ALTER TABLE "evaluations_samplingrule" ADD COLUMN "created_by_id" bigint NULL CONSTRAINT "evaluations_sampling_created_by_id_2e339b67_fk_tenancy_u" REFERENCES "tenancy_user"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "evaluations_sampling_created_by_id_2e339b67_fk_tenancy_u" IMMEDIATE;
ALTER TABLE "evaluations_samplingrule" ADD COLUMN "tenant_id" bigint NOT NULL CONSTRAINT "evaluations_sampling_tenant_id_f15bd399_fk_tenancy_t" REFERENCES "tenancy_tenant"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "evaluations_sampling_tenant_id_f15bd399_fk_tenancy_t" IMMEDIATE;
ALTER TABLE "evaluations_livesample" ADD COLUMN "rule_id" bigint NOT NULL;
ALTER TABLE "evaluations_livescore" ADD CONSTRAINT "live_score_once" UNIQUE ("sample_id", "name", "author");
ALTER TABLE "evaluations_livescore" ADD CONSTRAINT "live_score_value_range" CHECK (("value" IS NULL OR ("value" >= 0.0 AND "value" <= 1.0)));
CREATE INDEX "preference_of_experiment" ON "evaluations_preference" ("experiment_id", "id");
ALTER TABLE "evaluations_preference" ADD CONSTRAINT "preference_once" UNIQUE ("a_id", "b_id", "author");
CREATE INDEX "sampling_rule_active" ON "evaluations_samplingrule" ("tenant_id", "is_active");
ALTER TABLE "evaluations_samplingrule" ADD CONSTRAINT "sampling_rate_range" CHECK (("rate" >= 0.0 AND "rate" <= 1.0));
CREATE INDEX "live_sample_newest" ON "evaluations_livesample" ("rule_id", "created_at" DESC);
ALTER TABLE "evaluations_livesample" ADD CONSTRAINT "live_sample_once" UNIQUE ("rule_id", "turn_id");
ALTER TABLE "evaluations_livesample" ADD CONSTRAINT "live_sample_state_known" CHECK ("state" IN ('waiting', 'done', 'failed', 'skipped'));
CREATE INDEX "evaluations_livesample_job_id_d2d8e0aa" ON "evaluations_livesample" ("job_id");
CREATE INDEX "evaluations_livesample_tenant_id_dc4f8bac" ON "evaluations_livesample" ("tenant_id");
CREATE INDEX "evaluations_livesample_turn_id_8d45f0ff" ON "evaluations_livesample" ("turn_id");
CREATE INDEX "evaluations_livescore_tenant_id_623df886" ON "evaluations_livescore" ("tenant_id");
CREATE INDEX "evaluations_preference_a_id_894be44e" ON "evaluations_preference" ("a_id");
CREATE INDEX "evaluations_preference_b_id_eda3c36f" ON "evaluations_preference" ("b_id");
CREATE INDEX "evaluations_preference_tenant_id_1051897c" ON "evaluations_preference" ("tenant_id");
CREATE INDEX "evaluations_samplingrule_assistant_id_c800942f" ON "evaluations_samplingrule" ("assistant_id");
CREATE INDEX "evaluations_samplingrule_created_by_id_2e339b67" ON "evaluations_samplingrule" ("created_by_id");
CREATE INDEX "evaluations_samplingrule_tenant_id_f15bd399" ON "evaluations_samplingrule" ("tenant_id");
CREATE TABLE "mfa_authenticator" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "type" varchar(20) NOT NULL, "data" jsonb NOT NULL, "user_id" bigint NOT NULL);
ALTER TABLE "mfa_authenticator" ADD CONSTRAINT "mfa_authenticator_user_id_type_798d27ea_uniq" UNIQUE ("user_id", "type");
ALTER TABLE "mfa_authenticator" ADD CONSTRAINT "mfa_authenticator_user_id_0c3a50c0_fk_tenancy_user_id" FOREIGN KEY ("user_id") REFERENCES "tenancy_user" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "mfa_authenticator_user_id_0c3a50c0" ON "mfa_authenticator" ("user_id");
ALTER TABLE "mfa_authenticator" ADD COLUMN "created_at" timestamp with time zone DEFAULT '2026-11-22 12:58:30.079792+00:00'::timestamptz NOT NULL;
ALTER TABLE "mfa_authenticator" ALTER COLUMN "created_at" DROP DEFAULT;
ALTER TABLE "mfa_authenticator" ADD COLUMN "last_used_at" timestamp with time zone NULL;
ALTER TABLE "mfa_authenticator" DROP CONSTRAINT "mfa_authenticator_user_id_type_798d27ea_uniq";
CREATE UNIQUE INDEX "unique_authenticator_type" ON "mfa_authenticator" ("user_id", "type") WHERE "type" IN ('totp', 'recovery_codes');
ALTER TABLE "runs_usagerecord" ADD COLUMN "duration_ms" integer NULL CHECK ("duration_ms" >= 0);
CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY, "session_data" text NOT NULL, "expire_date" timestamp with time zone NOT NULL);
CREATE INDEX "django_session_session_key_c0390e0f_like" ON "django_session" ("session_key" varchar_pattern_ops);
CREATE INDEX "django_session_expire_date_a5c62663" ON "django_session" ("expire_date");
CREATE TABLE "tenancy_outgoinghost" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "pattern" varchar(253) NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "tenant_id" bigint NOT NULL, CONSTRAINT "outgoing_host_once" UNIQUE ("tenant_id", "pattern"), CONSTRAINT "outgoing_host_not_empty" CHECK (NOT ("pattern" = '')));
ALTER TABLE "tenancy_outgoinghost" ADD CONSTRAINT "tenancy_outgoinghost_tenant_id_6d1dab67_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tenancy_outgoinghost_tenant_id_6d1dab67" ON "tenancy_outgoinghost" ("tenant_id");
CREATE TABLE "tools_collectiontoolkit" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "collection_id" bigint NOT NULL, "tenant_id" bigint NOT NULL, "toolkit_id" bigint NOT NULL, CONSTRAINT "collection_toolkit_one_each" UNIQUE ("collection_id"));
ALTER TABLE "tools_collectiontoolkit" ADD CONSTRAINT "tools_collectiontoolkit_tenant_id_2cc0ff59_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "tools_collectiontoolkit_collection_id_33bb807f" ON "tools_collectiontoolkit" ("collection_id");
CREATE INDEX "tools_collectiontoolkit_tenant_id_2cc0ff59" ON "tools_collectiontoolkit" ("tenant_id");
CREATE INDEX "tools_collectiontoolkit_toolkit_id_59aee4cc" ON "tools_collectiontoolkit" ("toolkit_id");
CREATE TABLE "webhooks_webhook" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "url" varchar(2000) NOT NULL, "description" varchar(200) NOT NULL, "events" jsonb NOT NULL, "secret_encrypted" bytea NOT NULL, "is_enabled" boolean NOT NULL, "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "updated_at" timestamp with time zone NOT NULL, "disabled_at" timestamp with time zone NULL, "failures" smallint NOT NULL CHECK ("failures" >= 0), "tenant_id" bigint NOT NULL);
CREATE TABLE "webhooks_webhookdelivery" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "event_id" uuid NOT NULL, "event" varchar(40) NOT NULL, "object_key" varchar(80) NOT NULL, "payload" jsonb NOT NULL, "status" varchar(10) NOT NULL, "attempts" smallint NOT NULL CHECK ("attempts" >= 0), "response_status" smallint NULL CHECK ("response_status" >= 0), "error" varchar(300) NOT NULL, "duration_ms" integer NULL CHECK ("duration_ms" >= 0), "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL, "attempted_at" timestamp with time zone NULL, "tenant_id" bigint NOT NULL, "webhook_id" bigint NOT NULL, CONSTRAINT "delivery_status_known" CHECK ("status" IN ('queued', 'delivered', 'failed')));
ALTER TABLE "webhooks_webhook" ADD CONSTRAINT "webhooks_webhook_tenant_id_97465aca_fk_tenancy_tenant_id" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "webhooks_webhook_tenant_id_97465aca" ON "webhooks_webhook" ("tenant_id");
ALTER TABLE "webhooks_webhookdelivery" ADD CONSTRAINT "webhooks_webhookdeli_tenant_id_9545aa29_fk_tenancy_t" FOREIGN KEY ("tenant_id") REFERENCES "tenancy_tenant" ("id") DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX "webhooks_webhookdelivery_tenant_id_9545aa29" ON "webhooks_webhookdelivery" ("tenant_id");
CREATE INDEX "webhooks_webhookdelivery_webhook_id_195f5243" ON "webhooks_webhookdelivery" ("webhook_id");
CREATE INDEX "delivery_log" ON "webhooks_webhookdelivery" ("webhook_id", "id" DESC);
CREATE INDEX "delivery_waiting" ON "webhooks_webhookdelivery" ("webhook_id", "object_key", "id") WHERE "status" = 'queued';
CREATE INDEX "delivery_age" ON "webhooks_webhookdelivery" ("created_at");
