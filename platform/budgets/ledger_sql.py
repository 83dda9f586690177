"""The ledger's SQL: which budgets a call counts in, and reserve before it; a trigger on usage records settles (runs 0008).

Row-level security holds inside: the functions run with the rights of their caller. Locks are always taken in one order
(spends by id), and no statement waits for anything else while it has them.

A call is let through while ``p_needed`` is left in every budget it counts in. It may then use ``p_most``, but no more than a
quarter of what is left while other calls may want the rest (``p_fair`` is never cut): the last money of a budget goes in
small pieces instead of lying all in the first hold.
"""

from __future__ import annotations

from budgets.periods import starts_at_sql
from budgets.warnings import WARN_AT

TABLES = (
    "budgets_budget",
    "budgets_budgetspend",
    "budgets_budgethold",
    "budgets_budgetrules",
    "runs_usagerecord",
)
_PAYER = "p_tenant bigint, p_user bigint, p_key bigint, p_assistant bigint, p_job bigint"

# A new period's row begins with what the usage records say, so a budget that is set in mid-month counts the whole month.
# ``is_new`` tells the caller that a record it has just written is in that sum already.
_SPENDS = f"""
CREATE OR REPLACE FUNCTION budget_spends({_PAYER}, OUT spend_id bigint, OUT is_new boolean)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    rule record;
BEGIN
    FOR rule IN
        SELECT DISTINCT ON (b.kind, b.period) b.id, b.kind,
            CASE b.kind WHEN 'tenant' THEN 0 WHEN 'member' THEN p_user WHEN 'key' THEN p_key
                WHEN 'assistant' THEN p_assistant ELSE p_job END AS subject,
            {starts_at_sql("clock_timestamp()")} AS starts_at
        FROM budgets_budget b
        WHERE b.tenant_id = p_tenant AND (b.kind = 'tenant'
            OR (b.kind = 'member' AND coalesce(b.subject_id, p_user) = p_user)
            OR (b.kind = 'key' AND coalesce(b.subject_id, p_key) = p_key)
            OR (b.kind = 'assistant' AND coalesce(b.subject_id, p_assistant) = p_assistant)
            OR (b.kind = 'job' AND b.subject_id = p_job))
        ORDER BY b.kind, b.period, b.subject_id NULLS LAST  -- one that names somebody goes before that of each
    LOOP
        is_new := false;
        SELECT s.id INTO spend_id FROM budgets_budgetspend s
        WHERE s.tenant_id = p_tenant AND s.budget_id = rule.id AND s.subject_id = rule.subject AND s.starts_at = rule.starts_at;
        IF NOT FOUND THEN
            INSERT INTO budgets_budgetspend (tenant_id, budget_id, subject_id, starts_at, spent_usd)
            SELECT p_tenant, rule.id, rule.subject, rule.starts_at,
                coalesce(sum(coalesce(u.charged_usd, u.cost_usd)), 0)
            FROM runs_usagerecord u
            WHERE u.tenant_id = p_tenant AND u.at >= rule.starts_at AND CASE rule.kind
                WHEN 'tenant' THEN true
                WHEN 'member' THEN u.user_id = p_user
                WHEN 'key' THEN u.attribution->>'api_key_id' = p_key::text
                WHEN 'assistant' THEN u.attribution->>'assistant' = p_assistant::text
                ELSE u.attribution->>'budget_job' = p_job::text END
            ON CONFLICT ON CONSTRAINT budget_spend_one_a_period DO NOTHING
            RETURNING id INTO spend_id;
            is_new := spend_id IS NOT NULL;
            IF NOT is_new THEN
                SELECT s.id INTO spend_id FROM budgets_budgetspend s
                WHERE s.tenant_id = p_tenant AND s.budget_id = rule.id AND s.subject_id = rule.subject AND s.starts_at = rule.starts_at;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$
"""  # noqa: S608 - constants

_RESERVE = f"""
CREATE OR REPLACE FUNCTION budget_reserve({_PAYER}, p_run bigint, p_needed numeric, p_fair numeric, p_most numeric,
    p_is_priced boolean, p_seconds integer, OUT hold_id bigint, OUT granted_usd numeric, OUT must_tell boolean,
    OUT refusal text, OUT kind text, OUT period text, OUT starts_at timestamptz, OUT amount_usd numeric,
    OUT left_usd numeric)
LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
    one record;
    open_usd numeric;
BEGIN
    ids := ARRAY(SELECT s.spend_id FROM budget_spends(p_tenant, p_user, p_key, p_assistant, p_job) s ORDER BY 1);
    granted_usd := p_most;
    must_tell := false;
    refusal := '';
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    IF NOT p_is_priced AND EXISTS (SELECT FROM budgets_budgetrules r WHERE r.tenant_id = p_tenant AND r.refuses_unpriced)
    THEN
        refusal := 'unpriced';
        RETURN;
    END IF;
    PERFORM FROM budgets_budgetspend s WHERE s.tenant_id = p_tenant AND s.id = ANY(ids) ORDER BY s.id FOR UPDATE;
    FOR one IN
        SELECT s.id, b.kind, b.period, s.starts_at, b.amount_usd, b.amount_usd - s.spent_usd AS unspent,
            s.warned_at, s.exceeded_at, s.spent_usd >= b.amount_usd * {WARN_AT} AS is_late,
            (SELECT coalesce(sum(h.amount_usd), 0) FROM budgets_budgethold h
             WHERE h.tenant_id = p_tenant AND h.expires_at > clock_timestamp() AND s.id = ANY(h.spends)) AS held
        FROM budgets_budgetspend s JOIN budgets_budget b ON b.tenant_id = s.tenant_id AND b.id = s.budget_id
        WHERE s.tenant_id = p_tenant AND s.id = ANY(ids) ORDER BY s.id
    LOOP
        must_tell := must_tell OR (one.is_late AND one.warned_at IS NULL);
        open_usd := one.unspent - one.held;
        IF (one.unspent < p_needed AND one.unspent <= one.amount_usd / 20) OR one.unspent <= 0 THEN  -- not when one call alone is too large
            UPDATE budgets_budgetspend s SET refused_at = clock_timestamp()
                WHERE s.tenant_id = p_tenant AND s.id = one.id AND s.refused_at IS NULL;
            must_tell := must_tell OR one.exceeded_at IS NULL;
        END IF;
        IF open_usd < p_needed OR open_usd <= 0 THEN  -- one that is used up is named before one that others hold
            IF refusal = '' OR (refusal = 'held' AND (one.unspent < p_needed OR one.unspent <= 0)) THEN
                refusal := CASE WHEN one.unspent < p_needed OR one.unspent <= 0 THEN 'spent' ELSE 'held' END;
                kind := one.kind;
                period := one.period;
                starts_at := one.starts_at;
                amount_usd := one.amount_usd;
                left_usd := one.unspent;
            END IF;
        ELSIF p_most > open_usd / 4 THEN
            granted_usd := least(granted_usd, open_usd, greatest(open_usd / 4, p_fair));
        END IF;
    END LOOP;
    IF refusal = '' THEN
        INSERT INTO budgets_budgethold (tenant_id, spends, run_id, amount_usd, expires_at)
            VALUES (p_tenant, ids, p_run, granted_usd, clock_timestamp() + make_interval(secs => p_seconds))
            RETURNING id INTO hold_id;
    END IF;
END
$$
"""  # noqa: S608 - constants

FUNCTIONS = {
    "budget_spends(bigint, bigint, bigint, bigint, bigint)": _SPENDS,
    "budget_reserve(bigint, bigint, bigint, bigint, bigint, bigint, numeric, numeric, numeric, boolean, integer)": _RESERVE,
}
