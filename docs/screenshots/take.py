"""Take the pictures of the README and of the guide: the demo's own documents, the built-in extractive model, a real Chromium.

Run: python docs/screenshots/take.py. Makes a database of its own, as the benchmarks do.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from _stack import database, product  # noqa: E402

EARLIER = "Which subheadings cover automobile parts?"
QUESTION = "Which steel and aluminum derivative products did the notice add, and from when?"


def main() -> None:
    """Write the pictures beside this file."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread
    with database(), product("fake-words20") as (stack, _):
        email, password = seed()
        take(stack.url, email, password)


def seed() -> tuple[str, str]:
    """Make the demo's workspaces; return how its person signs in."""
    from django.conf import settings

    from config.demo import EMAIL, demo_password, demo_seed

    demo_seed(data_dir=settings.DATA_DIR, say=print)
    return EMAIL, demo_password(settings.DATA_DIR)


def measured() -> tuple[int, str]:
    """Have rules make a dataset of the demo's documents, wait for it, and make two arms; return both addresses."""
    from apps.collections.models import Collection
    from apps.datasets.generation.services import generation_start
    from apps.datasets.rows.dataset_services import dataset_create
    from config.demo import EMAIL
    from tenancy.models import Membership, Tenant
    from tenancy.scope import tenant_scope
    from tests.cast import Cast
    from tests.evaluations.support import make_compared

    tenant = Tenant.objects.get(slug="trade-desk")
    with tenant_scope(tenant.pk):
        owner = Membership.objects.select_related("tenant", "user").get(user__email=EMAIL)
        cast = Cast(tenant, owner, owner, owner, owner, tenant, owner)
        who: Any = {"tenant": tenant, "actor": cast.actor("owner")}
        dataset = dataset_create(**who, name="Tariff questions")
        options = {"collections": [Collection.objects.earliest("pk").pk], "rows": 12}
        job = generation_start(**who, dataset=dataset, model="extractive", options=options)
        for _ in range(120):
            job.refresh_from_db()
            if job.state == "completed":
                break
            time.sleep(1)
        else:
            raise TimeoutError(f"the dataset is still {job.state}")
    a, b = make_compared(cast, name="Another search setting")
    return dataset.pk, f"evaluations/compare/?a={a.pk}&b={b.pk}"


def take(url: str, email: str, password: str) -> None:
    """Sign in, wait until the documents are ready, ask, and take the pictures."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.portal import Portal
    from tests.patience import PATIENCE_S

    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_context(
            base_url=url, viewport={"width": 1440, "height": 900}, color_scheme="light"
        ).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto("/accounts/login/")
        page.get_by_label("Email").fill(email)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/chat/")
        portal = Portal(page, "trade-desk")
        portal.open("collections/")
        page.locator(".ccard").first.click()
        for row in page.locator("#documents tr").all():
            expect(row.get_by_text("Ready", exact=True)).to_be_visible()
        for question in (EARLIER, QUESTION):  # the first one finds the worker's model cold
            portal.open()
            portal.ask(question, "extractive")
            portal.wait_end()
        portal.answer.locator("button.cite").first.click()
        expect(page.locator("details.src[open] .leaf mark")).to_be_visible()
        page.wait_for_load_state("networkidle")
        page.mouse.move(700, 700)
        page.screenshot(path=HERE / "chat.png")
        portal.open("collections/")
        page.locator(".ccard").first.click()
        expect(page.locator("#documents tr").first).to_be_visible()
        page.screenshot(path=HERE / "collections.png")
        page.get_by_role("link", name="Search test").click()
        page.wait_for_url("**/search/")
        page.locator("form.bench input[type=search]").fill(EARLIER)
        page.keyboard.press("Enter")
        page.wait_for_url("**/search/?*")
        page.screenshot(path=HERE / "search.png")
        portal.open("tools/permissions/")
        page.screenshot(path=HERE / "permissions.png")
        dataset, compared = measured()
        portal.open(f"datasets/{dataset}/")
        expect(page.get_by_role("link", name="Generate rows").first).to_be_visible()
        page.screenshot(path=HERE / "dataset.png")
        portal.open(compared)
        page.screenshot(path=HERE / "compare.png", clip={"x": 0, "y": 0, "width": 1440, "height": 716})
        browser.close()
    for path in HERE.glob("*.png"):
        shrink(path)


def shrink(path: Path) -> None:
    """Write a picture with 256 colours: a page has hardly more, and a clone carries each picture for ever.

    Beside it goes a small one for the guide in a window with one pixel a point.
    """
    from PIL import Image

    from web.guide.pages import SMALL

    with Image.open(path) as picture:
        whole = picture.convert("RGB")
    whole.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    small = whole.resize((SMALL, whole.height * SMALL // whole.width), Image.Resampling.LANCZOS)
    small.save(path.with_suffix(".webp"), quality=70, method=6)


if __name__ == "__main__":
    main()
