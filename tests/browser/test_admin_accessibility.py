"""The stock Django admin under our templates and style: a page of each kind passes axe, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse
from playwright.sync_api import Page

from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create
from tenancy.models import ApiKey
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import Looking
from tests.cast import Cast
from tests.nightly import NIGHTLY

WHOLE = {"index", "app", "list"}
FRAME = [["#nav-sidebar"]]
"""The list of all models, on every page but the index: looked at on the pages of ``WHOLE``, on the others at night."""
# The admin's scripts build their fields in calls that jQuery makes one after another, at times after the page's load.
BUILT = "() => new Promise((done) => window.django?.jQuery ? django.jQuery(() => setTimeout(done)) : done())"


def rows(cast: Cast) -> tuple[ToolGrant, ApiKey]:
    """Return a rule and a key to open the pages of."""
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    key, _ = api_key_create(**who, name="Nightly import", scopes=["document.write", "search.run"])
    grant = grant_create(
        **who, target_kind="tool", target="calculate", subject_kind="role", subject="viewer", effect="ask"
    )
    return grant, key


def test_every_kind_of_admin_page_passes_axe(new_page: Callable[..., Page], cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        grant, key = rows(cast)
    boss = cast.user("owner")
    boss.is_superuser = boss.is_staff = True
    boss.save(update_fields=["is_superuser", "is_staff"])

    def at(name: str, *args: Any) -> str:
        return reverse(f"admin:{name}", args=args)

    paths = {
        "index": at("index"),
        "app": at("app_list", "tenancy"),
        "list": at("tenancy_apikey_changelist"),
        "list-filtered": at("tenancy_membership_changelist") + "?role__exact=owner&q=example",
        "list-empty": at("tenancy_invite_changelist") + "?q=nobody",
        "list-documents": at("collections_document_changelist"),
        "list-dates": at("tenancy_auditevent_changelist"),
        "form": at("tools_toolgrant_change", grant.pk),
        "form-readonly": at("tenancy_apikey_change", key.pk),
        "form-autocomplete": at("tenancy_ratelimit_add"),
        "form-inlines": at("tenancy_tenant_change", cast.tenant.pk),
        "form-person": at("tenancy_user_change", boss.pk),
        "form-new-person": at("tenancy_user_add"),
        "password": at("auth_user_password_change", boss.pk),
        "delete": at("tools_toolgrant_delete", grant.pk),
        "history": at("tools_toolgrant_history", grant.pk),
        "matrix": at("tools_matrix"),
        "import": at("tools_exchange"),
        "check": at("collections_check"),
    }
    problems: list[str] = []
    page = new_page(bypass_csp=True)
    looking = Looking(page, problems)
    sign_in(page, boss.email)
    for name, path in paths.items():
        page.goto(path)
        assert page.locator("#content h1").count() == 1, name
        looked(looking, name)
    looking.turn("light-1440")  # by mouse
    page.goto(paths["list"])
    page.locator("input.action-select").first.check()
    page.locator("select[name=action]").select_option("revoke")
    looked(looking, "list-action")
    looking.turn("light-1440")
    page.goto(at("tools_toolgrant_changelist"))
    page.locator("input.action-select").first.check()
    if page.locator("select[name=action] option[value=delete_selected]").count():
        page.locator("select[name=action]").select_option("delete_selected")
        page.locator("button[name=index]").click()
        looked(looking, "delete-many")
    looking.turn("light-1440")
    page.goto(paths["form-person"])
    page.get_by_label("Email").first.fill("no address")
    page.locator("input[name=_continue]").click()
    looked(looking, "form-errors")
    assert not problems, "\n".join(problems)


def looked(looking: Looking, name: str) -> None:
    """Examine the page that is open in each look."""
    looking.page.evaluate(BUILT)
    looking.here(f"admin-{name}", () if NIGHTLY or name in WHOLE else FRAME)
