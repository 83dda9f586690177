"""The URLs of no workspace's rows: public ones, personal ones, and the admin's own pages."""

from __future__ import annotations

from typing import Any

# Anyone may call these; they show nothing of any tenant.
PUBLIC: dict[str, dict[str, Any]] = {
    "web:healthz": {},
    "web:manifest": {},
    "web:worker": {},
    "web:offline": {},
    "web:readyz": {"ok": (200, 503)},
    "status:page": {"ok": (404,)},  # private unless the operator opens it (tests/config/test_operate.py)
    "web:invite-accept": {"args": ["no-such-token"], "ok": (404,)},
    "api-schema": {},
    "api-docs": {},
    "account_login": {},
    "web:language": {
        "ok": (405,)
    },  # a choice, by POST: kept in the browser, and with the account of whoever is signed in
    "account_signup": {},
    "account_inactive": {},
    "account_reset_password": {},
    "account_reset_password_done": {},
    "account_reset_password_from_key": {"kwargs": {"uidb36": "1", "key": "x-y"}},
    "account_reset_password_from_key_done": {},
    "account_email_verification_sent": {},
    "account_confirm_email": {"args": ["x"], "ok": (200, 404)},
    # For applications that ask for a token: made of the address alone, or proven by a code.
    "web:oauth-resource": {"kwargs": {"tenant_slug": "any"}},
    "web:oauth-server": {"kwargs": {"tenant_slug": "any"}},
    "web:oauth-register": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    "web:oauth-token": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    "web:oauth-revoke": {"kwargs": {"tenant_slug": "any"}, "ok": (405,)},
    # Ways to a workspace's identity provider, which say nothing of workspaces that have none.
    "sso:find": {},
    "sso:workspace": {"kwargs": {"slug": "any"}, "ok": (404,)},
    "sso:start": {"kwargs": {"slug": "any", "pk": 1}, "ok": (404,)},
    "sso:answer": {"kwargs": {"slug": "any", "pk": 1}, "ok": (404,)},
    "sso:acs": {"kwargs": {"slug": "any", "pk": 1}, "ok": (405,)},
    "sso:metadata": {"kwargs": {"slug": "any", "pk": 1}, "ok": (404,)},
    # Opened by a SCIM token alone.
    "scim:users": {"ok": (401,)},
    "scim:user": {"kwargs": {"resource_id": "x"}, "ok": (401,)},
    "scim:groups": {"ok": (401,)},
    "scim:group": {"kwargs": {"resource_id": "x"}, "ok": (401,)},
    "scim:config": {"ok": (401,)},
    "scim:resource-types": {"ok": (401,)},
    "scim:resource-type": {"kwargs": {"name": "User"}, "ok": (401,)},
    "scim:schemas": {"ok": (401,)},
    "scim:schema": {"kwargs": {"name": "x"}, "ok": (401,)},
    "scim:unknown": {"kwargs": {"rest": "Bulk"}, "ok": (401,)},
    # Steps of a sign-in that has begun: without one they lead back to its start.
    "account_confirm_login_code": {"ok": (302, 404)},
    "mfa_authenticate": {"ok": (302,)},
    "mfa_login_webauthn": {"ok": (302,)},
    # Begins a ceremony of passkeys: a sign-in for strangers, the others in a session that has come so far.
    "passkey_challenge": {"kwargs": {"purpose": "login"}, "ok": (405,)},
}
# URLs of a workspace that its keys alone open, by POST; each thing that is asked for there needs its own right.
KEYED: dict[str, dict[str, Any]] = {"mcp": {"data": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}}
# Pages about the signed-in person alone: anonymous people are sent to sign in.
PERSONAL: dict[str, dict[str, Any]] = {
    "web:home": {"ok": (302,)},
    "web:profile": {},
    "web:help": {},
    "web:help-page": {"args": ["ask"]},
    "web:help-picture": {"args": ["chat.png"]},
    "operate:overview": {"ok": (404,)},  # superusers alone (tests/config/test_operate.py)
    "operate:retry": {"ok": (404,)},
    "web:account-erasure": {},
    "web:tenant-create": {"ok": (200, 403)},
    "account_logout": {"anonymous": (302,)},
    "account_reauthenticate": {"ok": (200, 302)},
    "account_email": {},
    "account_change_password": {},
    "account_set_password": {"ok": (302,)},
    "mfa_index": {},
    "mfa_reauthenticate": {"ok": (200, 302)},
    "mfa_list_webauthn": {"ok": (302,)},
    "mfa_add_webauthn": {"ok": (200, 302)},
    "mfa_edit_webauthn": {"args": [1], "ok": (405,)},
    "mfa_remove_webauthn": {"args": [1], "ok": (302,)},
    "mfa_reauthenticate_webauthn": {"ok": (200, 302)},
    "mfa_activate_totp": {"ok": (200, 302)},
    "mfa_deactivate_totp": {"ok": (200, 302, 404)},
    "mfa_view_recovery_codes": {"ok": (200, 302, 404)},
    "mfa_generate_recovery_codes": {"ok": (200, 302, 404)},
    "mfa_download_recovery_codes": {"ok": (200, 302, 404)},
}
# The Django admin's own pages beside those of models; test_admin_matrix.py makes a row for each page of each model.
ADMIN_SITE = {
    "admin:index",
    "admin:login",
    "admin:logout",
    "admin:password_change",
    "admin:password_change_done",
    "admin:autocomplete",
    "admin:jsi18n",
    "admin:view_on_site",
    "admin:app_list",
    "admin:switch_tenant",
    "admin:collections_check",
    "admin:tools_exchange",
    "admin:tools_matrix",
    "admin:tools_decide",
    "admin:tools_run_tests",
    *(
        f"admin:tools_{m}_{p}"
        for m in ("toolentry", "toolkit", "toolgrant", "toolsource")
        for p in ("changes", "restore")
    ),
    "admin:?",  # what matches no other URL under /admin/
}
