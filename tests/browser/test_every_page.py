"""Every page of the permission matrix: axe finds nothing, nothing is wider than the window.

A new page is looked at as soon as it has its row there: once, ten of them in light on a desk, the next ten in the dark on a
phone, and so on.
`make test-nightly` gives each page all four looks, those too that other tests look at with more on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from urllib.parse import urlencode

from django.urls import reverse
from playwright.sync_api import Error, Page

from tests.browser.conftest import sign_in_by_form
from tests.browser.test_accessibility import ALL_LOOKS, Looking, examine
from tests.nightly import NIGHTLY
from tests.permissions.rows import PERSONAL, PORTAL
from tests.permissions.test_matrix import url_arguments
from tests.permissions.world import Side

LOOKED_AT = {
    *(f"assistants:{name}" for name in ("create", "detail", "list", "version")),
    *(
        f"collections:{name}"
        for name in ("chunks", "create", "detail", "document", "list", "search", "settings")
    ),
    *(f"conversations:{name}" for name in ("detail", "home", "prompts", "prompt-create")),
    *(f"conversations:settings-{name}" for name in ("instructions", "memory")),
    "sso:settings-sign-in",
    *(f"tools:{name}" for name in ("approval", "approvals", "catalog", "settings-limits", "tool")),
    "web:profile",
    *(f"web:settings-{name}" for name in ("connections", "webhook", "webhooks")),
}
"""What other tests of this folder look at in two looks, with more on the page."""
RUN = 10
"""Pages in one look after the other: each change draws the page that is open again, and is for nothing."""
FRAME = [[".side"], ["dialog"]]
"""What is the same on every page, and looked at in test_accessibility.py."""


def test_every_page_of_the_matrix_passes_axe_and_fits_the_window(
    new_page: Callable[..., Page], transactional_db: None
) -> None:
    problems: list[str] = []
    side = Side()
    page = new_page(bypass_csp=True, reduced_motion="reduce")
    sign_in_by_form(page, side.user("owner").email)
    looking = Looking(page, problems)
    looks = cycle([list(ALL_LOOKS)] if NIGHTLY else [[look] for look in ALL_LOOKS for _ in range(RUN)])
    seen = set() if NIGHTLY else set(LOOKED_AT)
    for name, path in [
        ("web:offline", reverse("web:offline")),  # of nobody, so in neither list
        *((n, reverse(n)) for n, how in PERSONAL.items() if "args" not in how),
        *matrix_paths(side),
    ]:
        if name not in seen and looked_at(looking, name, path, next(looks)):
            seen.add(name)
    assert {"datasets:detail", "evaluations:compare", "evaluations:detail", "web:settings-budgets"} <= seen
    assert {"web:notices", "web:settings-notices", "web:offline"} <= seen
    assert problems == []


def matrix_paths(side: Side) -> Iterator[tuple[str, str]]:
    """Yield URL name and path of whatever the matrix gets, each when the side's rows are ready for it."""
    for row in PORTAL:
        if row.method != "GET" or row.ok != 200 or row.is_stream:
            continue
        if row.before is not None:
            row.before(side, "owner")
        arguments = url_arguments(row, slug=side.tenant.slug, ids=side, role="owner")
        given = urlencode(row.data(side, "owner") if row.data else {}, doseq=True)
        yield row.url, reverse(row.url, kwargs=arguments) + (f"?{given}" if given else "")


def looked_at(looking: Looking, name: str, path: str, looks: list[str]) -> bool:
    """Examine a page; tell whether it is one, and not a piece of a page, a picture, a file or an error."""
    for look in looks:
        # Before the page comes, so that no colour is on its way to another while it is measured.
        looking.turn(look)
        try:
            answer = looking.page.goto(path)
        except Error as error:
            if "Download is starting" in error.message:
                return False
            raise
        is_page = answer is not None and answer.ok and "text/html" in answer.headers.get("content-type", "")
        if not is_page or not looking.page.evaluate("document.doctype !== null"):
            return False
        examine(looking.page, name.replace(":", "-"), look, looking.problems, without=FRAME)
    return True
