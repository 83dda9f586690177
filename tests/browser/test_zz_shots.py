from datetime import timedelta
from django.utils import timezone
from tenancy.models import User
from jobs.models import *
from backups.models import BackupResult
from tenancy.scope import tenant_scope
from tests.permissions.world import Side
from tests.browser.conftest import sign_in_by_form
from tests.browser.test_accessibility import NARROW, WIDE

def test_shots(new_page, transactional_db):
    side = Side(); side.row("collections.Chunk","owner")
    u = side.user("owner")
    op = User.objects.create_superuser("operator@example.org"); op.password = u.password; op.save()
    from allauth.account.models import EmailAddress
    EmailAddress.objects.create(user=op, email=op.email, verified=True, primary=True)
    now = timezone.now()
    with tenant_scope(side.tenant.pk):
        for k,c,m in (("collections.document_ingest","pdf_locked","This PDF is protected by a password. Upload it without."),("collections.document_ingest","pdf_locked","This PDF is protected by a password. Upload it without."),("conversations.turn_run","worker_died","The worker was killed three times in a row in the same step."),("webhooks.deliver","NotDelivered","delivery 5: The receiver answered with status 500.")):
            Job.objects.create(tenant=side.tenant, kind=k, payload={"document":1}, status="failed", error_code=c, error_message=m, finished_at=now)
    BackupResult.objects.create(kind="create", url="file:///b", name="b1", is_ok=True, began_at=now, ended_at=now, row_count=123456, original_count=987, size=45678901)
    BackupResult.objects.create(kind="verify", url="file:///b", name="b1", is_ok=True, began_at=now, ended_at=now)
    Worker.objects.create(name="machine-2:4711", seen_at=now-timedelta(minutes=5), version="0.1.0", processes=4)
    page = new_page()
    sign_in_by_form(page, op.email)
    for path, name in (("/","operate"),("/status","status"),("/admin/","admin")):
        for size, w in ((WIDE,"wide"),(NARROW,"narrow")):
            for scheme in ("light","dark"):
                page.set_viewport_size(size); page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.goto(path)
                page.screenshot(path=f"/tmp/shots/{name}-{w}-{scheme}.png", full_page=False)
                if name == "operate":
                    h = page.evaluate("document.querySelector('main').scrollHeight")
                    page.set_viewport_size({"width": size["width"], "height": min(3200, h+80)})
                    page.screenshot(path=f"/tmp/shots/{name}-{w}-{scheme}-full.png")
