"""Work that ended while its person looked elsewhere is told in the side bar, and gone when it is looked at (detail 20)."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from apps.datasets.models import GenerationJob, GenerationState
from apps.datasets.rows.dataset_services import dataset_create
from apps.evaluations.models import Experiment
from apps.evaluations.trials.batches import experiment_note
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tenancy.services import finished_note
from tests.browser.conftest import sign_in
from tests.browser.portal import Portal
from tests.browser.test_conversation_state import shot
from tests.cast import Cast
from tests.evaluations.support import make_compared
from tests.servers import wait_for

ASK = "document.dispatchEvent(new Event('gw:listed'))"
"""The side bar asks for itself every minute, at an answer's end and when a window comes to the front; this is the same request."""


def lines(portal: Portal) -> Locator:
    return portal.page.locator("#finished-a a")


def noted(cast: Cast) -> list[str]:
    """The kinds of work that are noted for the member and not looked at."""
    with tenant_scope(cast.tenant.pk):
        return [kind for kind, *_ in Membership.objects.get(user=cast.user("member")).finished]


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
        finished_note(
            tenant_id=cast.tenant.pk, user_id=member, kind="generation", pk=job.pk, state="completed"
        )
    return job, experiment


def test_what_has_ended_is_told_without_a_reload_and_gone_when_it_is_looked_at(
    portal: Portal, cast: Cast
) -> None:
    page = portal.page
    portal.open()
    expect(lines(portal)).to_have_count(0)
    job, experiment = end_all(cast)
    page.evaluate(ASK)
    expect(lines(portal)).to_have_count(2)
    expect(lines(portal).first).to_contain_text("Rows generated")
    expect(lines(portal).first).to_contain_text("Duties")
    expect(lines(portal).last).to_contain_text("Experiment finished")
    shot(page, "finished")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Open navigation").click()
    expect(page.locator("#drawer").get_by_role("link", name="Experiment finished")).to_be_visible()
    shot(page, "finished-drawer")
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1440, "height": 900})
    lines(portal).first.click()
    page.wait_for_url(f"**/jobs/{job.pk}/")
    expect(lines(portal)).to_have_count(1)
    portal.open("collections/")
    expect(lines(portal)).to_contain_text("Experiment finished")
    portal.open(f"evaluations/{experiment.pk}/")
    expect(lines(portal)).to_have_count(0)
    portal.open()
    expect(lines(portal)).to_have_count(0)


def test_what_ends_before_the_eyes_of_its_person_is_told_nowhere_else(portal: Portal, cast: Cast) -> None:
    page = portal.page
    job, _ = end_all(cast)
    portal.open(f"datasets/{job.dataset_id}/jobs/{job.pk}/")
    with tenant_scope(cast.tenant.pk):  # it is resumed, and ends once more
        finished_note(
            tenant_id=cast.tenant.pk,
            user_id=cast.user("member").pk,
            kind="generation",
            pk=job.pk,
            state="completed",
        )
    page.evaluate(ASK)
    wait_for(lambda: noted(cast) == ["experiment"], "the generation to be forgotten")
    portal.open()
    expect(lines(portal)).to_have_count(1)
    expect(lines(portal)).to_contain_text("Experiment finished")


def test_others_hear_nothing(portal: Portal, cast: Cast) -> None:
    end_all(cast)
    portal.page.context.clear_cookies()
    sign_in(portal.page, cast.user("admin").email)
    portal.open()
    expect(portal.page.get_by_role("link", name="Evaluations").first).to_be_visible()
    expect(lines(portal)).to_have_count(0)
