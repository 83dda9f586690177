"""The bell tells what happened elsewhere (detail 20), a browser shows it once, and an installed portal says that it is offline."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect

from apps.datasets.models import GenerationJob, GenerationState
from apps.datasets.rows.dataset_services import dataset_create
from apps.evaluations.models import Experiment
from apps.evaluations.trials.batches import experiment_note
from notices.models import Notice
from notices.services import notice_put
from tenancy.scope import tenant_scope
from tests.browser.conftest import FLAGS, MOTION, Site, browser_missing, sign_in
from tests.browser.portal import Portal, watch_console
from tests.browser.shots import shot
from tests.cast import Cast
from tests.evaluations.support import make_compared
from tests.patience import PATIENCE_S
from tests.servers import wait_for

ASK = "document.dispatchEvent(new Event('gw:listed'))"
"""The side bar asks for itself every minute, at an answer's end and when a window comes to the front; this is the same request."""
LOOK_AWAY = "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"
SHOWN = """async () => {
  const registration = await navigator.serviceWorker.ready;
  return (await registration.getNotifications()).map((one) => [one.title, one.body, one.data.url]);
}"""


def bell(page: Page) -> Locator:
    return page.locator("#bell")


def generated(cast: Cast, job: GenerationJob, state: str = "completed") -> None:
    with tenant_scope(cast.tenant.pk):
        notice_put(
            tenant_id=cast.tenant.pk,
            people=[cast.user("member").pk],
            kind="generation",
            pk=job.pk,
            state=state,
        )


def end_all(cast: Cast) -> tuple[GenerationJob, Experiment]:
    """Have a generation and an experiment of the member end, as the workers tell it."""
    arm, _ = make_compared(cast, rows=2, name="Night run")
    member = cast.user("member").pk
    with tenant_scope(cast.tenant.pk):
        experiment = Experiment.objects.get(pk=arm.experiment_id)
        experiment.created_by_id = member
        experiment_note(experiment)
        dataset = dataset_create(tenant=cast.tenant, actor=cast.actor("member"), name="Duties")
        job = GenerationJob.objects.create(
            tenant=cast.tenant,
            dataset=dataset,
            model="extractive",
            state=GenerationState.COMPLETED,
            wanted=3,
            kept=3,
            options={"collections": []},
            created_by_id=member,
        )
    generated(cast, job)
    return job, experiment


def unread(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        mine = Notice.objects.filter(user=cast.user("member"), read_at=None)
        return list(mine.order_by("pk").values_list("kind", flat=True))


def test_the_bell_tells_without_a_reload_and_forgets_what_is_looked_at(portal: Portal, cast: Cast) -> None:
    page = portal.page
    portal.open()
    expect(bell(page)).to_have_accessible_name("Notifications")
    bell(page).focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="Notifications")
    expect(panel).to_contain_text("No notifications")
    shot(page, "notices-empty")
    page.keyboard.press("Escape")
    job, _ = end_all(cast)
    page.evaluate(ASK)
    expect(bell(page)).to_have_accessible_name("Notifications, 2 unread")
    shot(page, "notices-bell")
    page.keyboard.press("Enter")
    lines = panel.get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("Rows generated")
    expect(lines.first).to_contain_text("Duties")
    shot(page, "notices-panel")
    lines.first.get_by_role("link").click()
    page.wait_for_url(f"**/jobs/{job.pk}/")
    expect(bell(page)).to_have_accessible_name("Notifications, 1 unread")
    generated(cast, job)  # it is resumed, and ends once more before the eyes of its person
    page.evaluate(ASK)
    wait_for(lambda: unread(cast) == ["experiment"], "the generation to be read")
    portal.open("notices/")
    shot(page, "notices-page")
    main = page.locator("main")
    main.get_by_role("button", name="Mark as read: Experiment finished, Night run").press("Enter")
    expect(main.get_by_role("link", name="Experiment finished")).to_be_focused()  # its button is gone
    expect(bell(page)).to_have_accessible_name("Notifications")
    expect(main.get_by_role("listitem")).to_have_count(2)
    expect(main.get_by_role("button")).to_have_count(0)
    assert unread(cast) == []
    portal.open("settings/notices/")
    shot(page, "notices-settings")
    page.get_by_label("Answers: Mail").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Answers: Mail")).to_be_checked()
    page.goto("about:blank")  # a page that finds its person signed out goes to the sign-in by itself
    page.context.clear_cookies()
    sign_in(page, cast.user("admin").email)
    portal.open("notices/")
    expect(page.locator("main")).to_contain_text("No notifications")


@pytest.fixture
def shower(site: Site, chromium: Browser) -> Iterator[Page]:
    """A page of a whole Chromium that may show notifications: the headless shell has none."""
    whole = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
    if whole is None:
        browser_missing("chromium")
    browser = chromium.browser_type.launch(executable_path=whole, args=FLAGS)
    context = browser.new_context(base_url=site.url, permissions=["notifications"], reduced_motion=MOTION)
    context.set_default_timeout(PATIENCE_S * 1000)
    problems: list[str] = []
    context.on("page", lambda page: watch_console(page, problems))
    yield context.new_page()
    browser.close()
    assert problems == []


def test_a_browser_is_asked_by_a_button_and_shows_each_notice_in_one_tab(shower: Page, cast: Cast) -> None:
    page = shower
    sign_in(page, cast.user("member").email)
    portal = Portal(page, cast.tenant.slug)
    page.add_init_script(LOOK_AWAY)
    job, _ = end_all(cast)
    portal.open("settings/notices/")
    page.evaluate(SHOWN)  # the worker is there

    def older() -> None:
        with tenant_scope(cast.tenant.pk):
            Notice.objects.update(at=timezone.now() - timedelta(minutes=1))

    older()
    with page.expect_response("**/chat/recent/**"):
        page.evaluate(ASK)
    assert page.evaluate(SHOWN) == []  # nobody has pressed the button
    page.get_by_role("button", name="Allow in this browser").click()
    expect(page.get_by_role("button", name="Switch off in this browser")).to_be_focused()
    shot(page, "notices-browser-on")
    other = page.context.new_page()
    other.add_init_script(LOOK_AWAY)
    other.goto(f"/t/{cast.tenant.slug}/collections/")
    for tab in (other, page):
        with tab.expect_response("**/chat/recent/**"):
            tab.evaluate(ASK)
    wait_for(lambda: len(page.evaluate(SHOWN)) == 2, "the notices to be shown")
    url = f"/t/{cast.tenant.slug}/datasets/{job.dataset_id}/jobs/{job.pk}/"
    assert ["Rows generated", "Duties", url] in page.evaluate(SHOWN)
    page.get_by_role("button", name="Account and theme").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/accounts/**")
    assert page.evaluate(SHOWN) == []


def test_an_installed_portal_tells_that_it_is_offline_and_keeps_nothing(
    new_page: Callable[..., Page], cast: Cast
) -> None:
    page = new_page(service_workers="allow")
    sign_in(page, cast.user("member").email)
    portal = Portal(page, cast.tenant.slug)
    portal.open("collections/")
    page.evaluate("navigator.serviceWorker.ready.then(() => 1)")
    kept = """async () => {
      const found = {};
      for (const name of await caches.keys()) {
        found[name] = (await (await caches.open(name)).keys()).map((r) => new URL(r.url).pathname);
      }
      return found;
    }"""
    portal.open()
    (files,) = page.evaluate(kept).values()
    assert sorted(path.split(".")[0] for path in files) == [
        "/offline/",
        "/static/bundles/offline",
        "/static/bundles/offline",
        "/static/favicon",
        "/static/js/theme",
    ]
    page.get_by_role("button", name="Account and theme").click()
    page.get_by_role("button", name="Dark", exact=True).click()
    page.context.set_offline(True)
    portal.open("collections/")
    expect(page.get_by_role("heading", name="You are offline")).to_be_visible()
    expect(page.locator("html")).to_have_css("color-scheme", "dark")  # the person's choice, not the system's
    shot(page, "offline")
    assert cast.tenant.name not in page.content()
    page.context.set_offline(False)  # it comes back by itself
    expect(page.get_by_role("heading", name="Collections").first).to_be_visible()
    manifest = page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((r) => r.json())")
    sizes = page.evaluate(
        """(icons) => Promise.all(icons.map(async ({ src, sizes }) => {
          const image = new Image();
          image.src = src;
          await image.decode();
          return sizes === "any" || sizes === `${image.naturalWidth}x${image.naturalHeight}`;
        }))""",
        manifest["icons"],
    )
    assert all(sizes)
    assert {one["purpose"] for one in manifest["icons"]} == {"any", "maskable"}
