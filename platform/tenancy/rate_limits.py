"""How fast a workspace, its members and its keys may call: token buckets in Postgres, in one statement a request.

A bucket holds ``burst`` tokens and is refilled at ``per_minute``; a request takes one from its caller's bucket and one from
the workspace's, or none at all. A workspace's own limits (``RateLimit``) replace the operator's defaults for members and
keys; its limit for the whole can only be lower than the operator's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from basics.errors import DomainError
from tenancy.actors import Actor
from tenancy.idempotency import caller_of
from tenancy.models import Tenant

# A function: one round trip, and both buckets are looked at before either is touched. Its caller's rights and row-level
# security hold inside.
SIGNATURE = "rate_take(bigint, text, text, bigint, integer, integer)"
SQL = """
CREATE OR REPLACE FUNCTION rate_take(
    p_tenant bigint, p_kind text, p_subject text, p_id bigint, own_default integer, whole_most integer,
    OUT scope text, OUT allowed boolean, OUT limit_ integer, OUT remaining double precision,
    OUT burst_ integer
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    rates integer[] := ARRAY[own_default, whole_most];
    bursts integer[] := ARRAY[greatest(own_default / 6, 1), greatest(whole_most / 6, 1)];
    subjects text[] := ARRAY[p_subject, 'tenant'];
    scopes text[] := ARRAY[p_kind, 'tenant'];
    tokens_left double precision[] := ARRAY[0, 0];
    rule record;
    have double precision;
    every boolean := true;
BEGIN
    FOR rule IN  -- the narrower rule comes last and wins
        SELECT kind, per_minute, burst FROM tenancy_ratelimit
        WHERE tenant_id = p_tenant AND (kind = 'tenant' OR kind = p_kind)
            AND (user_id IS NULL OR user_id = p_id) AND (api_key_id IS NULL OR api_key_id = p_id)
        ORDER BY (coalesce(user_id, api_key_id) IS NOT NULL)
    LOOP
        IF rule.kind <> 'tenant' THEN
            rates[1] := rule.per_minute;
            bursts[1] := rule.burst;
        ELSIF whole_most = 0 OR rule.per_minute < whole_most THEN
            rates[2] := rule.per_minute;
            bursts[2] := rule.burst;
        END IF;
    END LOOP;
    FOR i IN 1..2 LOOP
        CONTINUE WHEN rates[i] = 0;
        SELECT least(bursts[i], b.tokens + greatest(extract(epoch FROM moment - b.updated_at), 0) * rates[i] / 60.0)
            INTO have FROM tenancy_ratebucket b
            WHERE b.tenant_id = p_tenant AND b.subject = subjects[i] FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO tenancy_ratebucket (tenant_id, subject, tokens, updated_at)
                VALUES (p_tenant, subjects[i], bursts[i], moment) ON CONFLICT DO NOTHING;
            SELECT b.tokens INTO have FROM tenancy_ratebucket b
                WHERE b.tenant_id = p_tenant AND b.subject = subjects[i] FOR UPDATE;
        END IF;
        tokens_left[i] := have;
        every := every AND have >= 1;
    END LOOP;
    FOR i IN 1..2 LOOP
        CONTINUE WHEN rates[i] = 0;
        IF every THEN
            tokens_left[i] := tokens_left[i] - 1;
            UPDATE tenancy_ratebucket b SET tokens = tokens_left[i], updated_at = greatest(moment, b.updated_at)
                WHERE b.tenant_id = p_tenant AND b.subject = subjects[i];
        END IF;
        scope := scopes[i];
        allowed := every OR tokens_left[i] >= 1;
        limit_ := rates[i];
        remaining := tokens_left[i];
        burst_ := bursts[i];
        RETURN NEXT;
    END LOOP;
END
$$
"""


@dataclass(frozen=True, slots=True)
class RateState:
    """Where the tightest bucket of a request stands.

    Attributes:
        scope: ``tenant``, ``member`` or ``key``.
        limit: requests a minute.
        remaining: whole requests that may come at once now.
        reset_s: seconds until the bucket is full again.
        retry_s: seconds until the next request is allowed; 0 when it is now.
    """

    scope: str
    limit: int
    remaining: int
    reset_s: int
    retry_s: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every answer (draft-ietf-httpapi-ratelimit-headers-05)."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


class RateLimited(DomainError):
    """Too many requests; ``state`` says whose limit it was."""

    default_status = 429

    def __init__(self, state: RateState) -> None:
        whose = {"tenant": "This workspace", "member": "You", "key": "This API key"}[state.scope]
        verb = "have" if state.scope == "member" else "has"
        super().__init__(
            "rate_limited",
            f"{whose} {verb} sent more than {state.limit} requests a minute. Try again in {state.retry_s} s.",
            data={
                "scope": state.scope,
                "limit": state.limit,
                "remaining": state.remaining,
                "reset": state.reset_s,
                "retry_after": state.retry_s,
            },
        )
        self.state = state


def rate_take(*, tenant: Tenant, actor: Actor) -> RateState | None:
    """Take one request from the caller's and the workspace's buckets; None when neither is limited.

    Raises:
        RateLimited: one of them is empty; nothing was taken then.
    """
    is_key = actor.api_key_id is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT scope, allowed, limit_, remaining, burst_ FROM rate_take(%s, %s, %s, %s, %s, %s)",
            [
                tenant.pk,
                "key" if is_key else "member",
                caller_of(actor),
                actor.api_key_id if is_key else actor.user_id,
                settings.RATE_PER_MINUTE,
                settings.TENANT_RATE_PER_MINUTE,
            ],
        )
        rows = cursor.fetchall()
    if not rows:
        return None
    refused = [_state(*row) for row in rows if not row[1]]
    if refused:
        raise RateLimited(max(refused, key=lambda state: state.retry_s))
    return min((_state(*row) for row in rows), key=lambda state: state.remaining)


def _state(scope: str, allowed: bool, limit: int, tokens: float, burst: int) -> RateState:
    per_second = limit / 60
    return RateState(
        scope,
        limit,
        max(0, math.floor(tokens)),
        math.ceil((burst - tokens) / per_second),
        0 if allowed else max(1, math.ceil((1 - tokens) / per_second)),
    )
