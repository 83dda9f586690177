from tests.browser.conftest import sign_in
from erasure.models import Erasure
from django.utils import timezone
from datetime import timedelta
import pytest

pytestmark = pytest.mark.browser


def test_shots(new_page, cast):
    slug = cast.tenant.slug
    for scheme in ("light", "dark"):
        for w, h in ((1440, 900), (390, 844)):
            page = new_page(viewport={"width": w, "height": h}, color_scheme=scheme)
            Erasure.objects.all().delete()
            sign_in(page, cast.user("owner").email)
            page.goto(f"/t/{slug}/settings/erasure/")
            page.screenshot(path=f"/tmp/shot-{scheme}-{w}-a.png", full_page=True)
            if scheme == "light":
                page.get_by_label("Reason").fill("Case 12 of the regulator")
                page.get_by_role("button", name="Place legal hold").click()
                page.screenshot(path=f"/tmp/shot-{scheme}-{w}-b.png", full_page=True)
                page.get_by_role("button", name="Release legal hold").click()
                page.get_by_label("Confirm").fill(slug)
                page.get_by_role("button", name="Erase workspace").click()
                page.screenshot(path=f"/tmp/shot-{scheme}-{w}-c.png", full_page=True)
                page.get_by_role("button", name="Keep the workspace").click()
            row = Erasure.objects.create(
                kind="workspace",
                subject=4711,
                requested_by=cast.user("owner").pk,
                due_at=timezone.now(),
                state="done",
                ended_at=timezone.now(),
                report=[
                    {"where": "collections.Document", "what": "removed", "count": 812, "why": ""},
                    {
                        "where": "backups",
                        "what": "kept",
                        "count": 1,
                        "why": "older backups have it until they are pruned; one that is restored is erased again before it opens",
                    },
                ],
            )
            page.goto("/profile/erasure/")
            page.screenshot(path=f"/tmp/shot-{scheme}-{w}-d.png", full_page=True)
            page.goto(f"/profile/erasure/?report={row.pk}")
            page.screenshot(path=f"/tmp/shot-{scheme}-{w}-e.png", full_page=True)
