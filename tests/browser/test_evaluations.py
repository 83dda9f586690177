"""People grade answers with the keyboard alone, and the page of trust shows what that means for the judge.

With SCREENSHOT_FOLDER=<folder> each page is also kept as a picture there, light and dark, wide and narrow.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from playwright.sync_api import Page, expect

from apps.evaluations.annotation import services
from apps.evaluations.annotation.services import queue_create
from apps.evaluations.judges.services import rubric_seed
from apps.evaluations.models import Experiment, Preference, Score, Trial
from apps.evaluations.sampling.services import sampling_rule_create
from tenancy.scope import tenant_scope
from tests.browser.portal import READY_MS, Portal
from tests.browser.test_datasets import picture
from tests.cast import Cast
from tests.evaluations.support import make_attacked, make_compared

ROWS = 24


def shows(page: Page, text: str) -> None:
    """Wait for a page with a text and for its scripts, as a person does before pressing a key."""
    expect(page.get_by_text(text)).to_be_visible()
    page.wait_for_load_state()


def test_answers_are_graded_with_the_keyboard(portal: Portal, cast: Cast) -> None:
    page = portal.page
    portal.open("evaluations/annotation/")
    expect(page.get_by_text("Create a dataset first")).to_be_visible()
    portal.open("evaluations/live/")
    expect(page.get_by_text("No live answers scored yet")).to_be_visible()
    picture(portal, "live-empty")
    a, b = make_compared(cast, rows=ROWS)
    with tenant_scope(cast.tenant.pk):
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
        queue = queue_create(
            **who,
            name="Answers of October",
            rubric_version=rubric_seed(**who),
            experiment=Experiment.objects.get(pk=a.experiment_id),
            reviews=2,
            most=48,
            instructions="Grade what the answer says, not how long it is.",
        )
    portal.open(f"evaluations/annotation/{queue.pk}/")
    expect(page.get_by_text("No grades yet")).to_be_visible()
    picture(portal, "queue-empty")
    page.get_by_role("link", name="Grade an answer").click()
    shows(page, "48 left")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Grade every criterion")
    page.wait_for_load_state()
    for key in "45454":
        page.keyboard.press(key)
    picture(portal, "annotate")
    page.keyboard.press("Enter")
    shows(page, "47 left")
    page.keyboard.press("u")
    shows(page, "48 left")
    expect(page.locator("input:checked")).to_have_count(6)
    page.keyboard.press("Enter")
    shows(page, "47 left")
    page.keyboard.press("s")
    shows(page, "46 left")
    grade_like_the_judge(cast, queue)
    portal.open(f"evaluations/annotation/{queue.pk}/")
    picture(portal, "queue")
    page.get_by_role("link", name="Agreement").click()
    expect(page.get_by_text("Can block a release", exact=True).first).to_be_visible()
    expect(page.get_by_text("Advisory").first).to_be_visible()
    picture(portal, "trust")
    portal.open(f"evaluations/compare/?a={a.pk}&b={b.pk}")
    expect(page.get_by_role("link", name="advisory").first).to_be_visible()
    picture(portal, "compare")
    pairs_make(cast, a, b)
    portal.open(f"evaluations/{a.experiment_id}/")
    expect(page.get_by_text("verdicts depended on the order")).to_be_visible()
    picture(portal, "experiment")
    for name, path in (
        ("new", "new/"),
        ("queue-new", "annotation/new/"),
        ("rubrics", "rubrics/"),
        ("rubric-new", "rubrics/new/"),
        ("list", ""),
        ("queues", "annotation/"),
    ):
        portal.open(f"evaluations/{path}")
        picture(portal, name)
    with tenant_scope(cast.tenant.pk):
        rule = sampling_rule_create(
            **who, name="Five percent", rate=0.05, scorers=[{"kind": "faithfulness"}], budget_usd=Decimal(5)
        )
    portal.open(f"evaluations/live/{rule.pk}/")
    expect(page.get_by_text("Nothing scored yet")).to_be_visible()
    picture(portal, "live-rule")


def test_failures_are_grouped_and_tagged(portal: Portal, cast: Cast) -> None:
    page = portal.page
    a, _ = make_compared(cast, rows=ROWS, name="Failing questions")
    portal.open(f"evaluations/arms/{a.pk}/failures/")
    expect(page.get_by_role("heading", name="alike").first).to_be_visible(timeout=READY_MS)
    row = page.locator(".ftags").first
    row.get_by_text("Tag", exact=True).click()
    row.get_by_label("Add a tag").fill("Wrong chapter")
    row.get_by_label("Add a tag").press("Enter")
    expect(row.get_by_text("is set")).to_be_visible()
    picture(portal, "failures")
    row.get_by_role("button", name="Undo").click()
    expect(row.get_by_text("is removed")).to_be_visible()
    row.get_by_role("button", name="Undo").click()
    expect(row.locator(".chip.acc")).to_have_text("wrong chapter")
    page.reload()
    page.get_by_role("link", name="wrong chapter").click()
    shows(page, "Failing questions with the tag")
    expect(page.locator("table.failing tbody tr")).to_have_count(1)
    picture(portal, "failures-tag")


def grade_like_the_judge(cast: Cast, queue: Any) -> None:
    """Two people agree with the judge, but for two scores."""
    with tenant_scope(cast.tenant.pk):
        judged: dict[int, dict[str, int]] = {}
        for trial, name, level in Score.objects.filter(author_kind="judge").values_list(
            "trial_id", "name", "level"
        ):
            judged.setdefault(trial, {})[name] = round(level or 0)
        for place, role in enumerate(("admin", "owner")):
            who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor(role)}
            while (taken := services.assignment_take(**who, queue=queue)) is not None:
                levels = dict(judged[taken.item.trial_id])
                levels["clarity"] = 1 + (taken.item.position * 7 + place) % 5
                levels["reasoning"] = max(1, levels["reasoning"] - (taken.item.position % 3 == 0))
                services.assignment_grade(**who, assignment=taken, levels=levels)


def pairs_make(cast: Cast, a: Any, b: Any) -> None:
    """A judge preferred B mostly, and followed the order now and then."""
    with tenant_scope(cast.tenant.pk):
        Experiment.objects.filter(pk=a.experiment_id).update(
            scorers=[{"kind": "pairwise", "options": {"models": ["openai/judge"]}}]
        )
        first = Trial.objects.filter(arm=a).order_by("position")
        second = Trial.objects.filter(arm=b).order_by("position")
        Preference.objects.bulk_create(
            Preference(
                tenant=cast.tenant,
                experiment_id=a.experiment_id,
                a=x,
                b=y,
                author="judge:pairwise@1:openai/judge",
                better="tie" if n % 6 == 0 else "a" if n % 4 == 0 else "b",
                is_flip=n % 6 == 0,
                reason="B names the heading.",
            )
            for n, (x, y) in enumerate(zip(first, second, strict=True))
        )


def test_a_safety_suite_leads_to_its_experiment_and_its_report(portal: Portal, cast: Cast) -> None:
    page = portal.page
    portal.open("evaluations/safety/new/")
    picture(portal, "safety-new")
    page.get_by_label("Name", exact=True).fill("Attacks of November")
    page.get_by_role("button", name="Create suite").click()
    expect(page.get_by_text("The suite has 104 rows")).to_be_visible()
    expect(page.get_by_label("Planted instructions resisted")).to_be_checked()
    expect(page.get_by_label("Read-only tools")).to_be_checked()
    expect(page.get_by_label("Dataset", exact=True)).to_contain_text("Attacks of November")
    picture(portal, "safety-experiment")
    experiment = make_attacked(cast)
    portal.open(f"evaluations/{experiment.pk}/")
    page.get_by_role("link", name="Safety", exact=True).click()
    arms = page.get_by_role("region", name="Arms").get_by_role("row")
    expect(arms.nth(1)).to_contain_text("0 %")
    expect(arms.nth(4)).to_contain_text("of 80")
    expect(page.get_by_role("img", name="Share of attacks that succeeded")).to_be_visible()
    expect(page.get_by_text("No language model answered")).to_be_visible()
    picture(portal, "safety")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
