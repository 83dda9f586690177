"""Charts and pictures in an answer: readable in every look, opened large and copied by keyboard, behind the content policy."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from uuid import uuid4

from django.db import transaction
from PIL import Image
from playwright.sync_api import Page, expect

from apps.conversations.models import Conversation, Picture
from apps.conversations.turns import conversations
from basics.pictures import picture_clean
from runs.models import Run, RunStatus, ToolCall
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import ALL_LOOKS, LOOKS, WIDE, examine
from tests.cast import Cast
from toolloop.tools.charting import Chart, chart_made

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
BARS = chart_made(
    "bar",
    "Declarations by month, and what was returned of them",
    [
        {"name": "Filed", "values": [310, 342, 398, 377, 421, 460, 433, 402, 455, 498, 512, 390]},
        {"name": "Returned", "values": [12, 18, -9, 22, 31, 25, None, 14, 19, 27, 30, 11]},
    ],
    labels=MONTHS,
    y_label="Declarations",
)
LINE = chart_made(
    "line",
    "Duty collected by quarter",
    [
        {"name": name, "values": [round(at * (1 + math.sin(n / 2) / 3)) for n in range(16)]}
        for name, at in (("Cars", 1_200_000), ("Trucks", 640_000), ("Parts", 220_000), ("Steel", 900_000))
    ],
    labels=[f"{year} Q{quarter}" for year in range(2022, 2026) for quarter in range(1, 5)],
    x_label="Quarter",
    y_label="EUR",
)
DOTS = chart_made(
    "scatter",
    "Weight and duty of 60 consignments",
    [{"name": "Sea", "values": [(n * 37 % 90) + n for n in range(60)], "x": [n * 1.7 for n in range(60)]}],
    x_label="Weight in t",
    y_label="Duty in kEUR",
)
SPREAD = chart_made("histogram", "Days until release", [{"values": [n * n % 23 for n in range(80)]}])


def answered(cast: Cast) -> Conversation:
    """Return a conversation with four charts, one of them at its place in the answer, and a picture."""
    gradient = Image.linear_gradient("L").resize((1200, 500)).convert("RGB")
    out = io.BytesIO()
    gradient.save(out, "PNG")
    clean = picture_clean(out.getvalue())
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        row = conversations.conversation_create(tenant=cast.tenant, actor=cast.actor("member"))
        text = f"Filings grew all year.\n\n![What was filed](figure:{BARS.key})\n\nThe rest is above."
        run = Run.objects.create(
            tenant=cast.tenant,
            user=cast.user("member"),
            kind="conversation",
            model="anthropic/claude-sonnet-5",
            status=RunStatus.COMPLETED,
            answer=text,
        )
        turn = row.turns.create(tenant=cast.tenant, run=run, index=0, client_id=uuid4(), is_active=False)
        turn.messages.create(tenant=cast.tenant, author="user", text="How did filings develop?")
        turn.messages.create(tenant=cast.tenant, author="assistant", text=text)
        Conversation.objects.filter(pk=row.pk).update(head=turn, title="Filings")
        charts: list[tuple[str, Chart | None]] = [("draw_chart", c) for c in (BARS, LINE, DOTS, SPREAD)]
        for step, (name, chart) in enumerate([*charts, ("maps_render", None)]):
            ToolCall.objects.create(
                tenant=cast.tenant,
                run=run,
                step=step,
                call_id=f"call_{step}",
                name=name,
                status="succeeded",
                arguments={},
                payload=chart and {"chart": chart.to_json(), "summary": chart.title},
                content="Drawn.",
                duration_ms=40,
            )
        Picture.objects.create(
            tenant=cast.tenant,
            run=run,
            step=4,
            call_id="call_4",
            index=0,
            name="maps_render",
            media_type=clean.media_type,
            width=clean.width,
            height=clean.height,
            size=len(clean.content),
            sha256="0" * 64,
            content=clean.content,
        )
    return row


def test_charts_and_pictures_are_readable_and_worked_by_keyboard(
    new_page: Callable[..., Page], cast: Cast
) -> None:
    problems: list[str] = []
    conversation = answered(cast)
    for look in LOOKS:
        page = new_page(bypass_csp=True, **ALL_LOOKS[look])
        sign_in(page, cast.user("member").email)
        page.goto(f"/t/{cast.tenant.slug}/chat/{conversation.pk}/")
        expect(page.locator(".work .graph")).to_have_count(3)
        expect(page.locator(".blocks .graph")).to_have_count(1)
        examine(page, "figures", look, problems)
        page.locator(".nums > summary").first.press("Enter")
        expect(page.get_by_role("columnheader", name="Cars").first).to_be_visible()
        page.locator(".see").first.scroll_into_view_if_needed()
        examine(page, "figures-picture", look, problems)
    assert problems == []
    page = new_page(viewport=WIDE, permissions=["clipboard-read", "clipboard-write"])
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text) if "Content Security" in said.text else None)
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/{conversation.pk}/")
    page.locator(".blocks").get_by_role("button", name="Copy as CSV").press("Enter")
    expect(page.get_by_text("Copied").first).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()").splitlines()[:2] == [
        ",Filed,Returned",
        "Jan,310,12",
    ]
    page.get_by_role("button", name="maps_render").press("Enter")
    large = page.get_by_role("dialog", name="maps_render")
    expect(large.get_by_role("link", name="Download")).to_be_visible()
    assert large.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1200
    box = large.bounding_box()
    assert box
    assert abs(2 * box["x"] + box["width"] - WIDE["width"]) <= 2, "in the middle"
    page.keyboard.press("Escape")
    expect(large).to_be_hidden()
    assert refused == []
