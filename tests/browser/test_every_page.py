"""Every page of the permission matrix: axe finds nothing, nothing is wider than the window.

A new page is looked at as soon as it has its row there: once, one in light on a desk, the next in the dark on a phone, and so on.
`make test-nightly` gives each page all four looks, those too that test_accessibility.py looks at with more on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from playwright.sync_api import Error, Page

from tests.browser.conftest import sign_in_by_form
from tests.browser.test_accessibility import NARROW, WIDE, examine
from tests.nightly import NIGHTLY
from tests.permissions.rows import PERSONAL, PORTAL
from tests.permissions.test_matrix import url_arguments
from tests.permissions.world import Side

LOOKS: dict[str, tuple[Any, Any]] = {
    "light-1440": (WIDE, "light"),
    "dark-390": (NARROW, "dark"),
    "dark-1440": (WIDE, "dark"),
    "light-390": (NARROW, "light"),
}
LOOKED_AT = {
    *(
        "assistants:create",
        "assistants:detail",
        "assistants:list",
        "assistants:version",
        "collections:chunks",
    ),
    *(
        "collections:create",
        "collections:detail",
        "collections:list",
        "collections:search",
        "collections:settings",
    ),
    *(
        "collections:document",
        "conversations:detail",
        "conversations:home",
        "tools:catalog",
        "tools:tool",
        "web:profile",
    ),
}
FRAME = [[".side"], ["dialog"]]
"""What is the same on every page, and looked at in test_accessibility.py."""


def test_every_page_of_the_matrix_passes_axe_and_fits_the_window(
    new_page: Callable[..., Page], transactional_db: None
) -> None:
    problems: list[str] = []
    side = Side()
    page = new_page(bypass_csp=True)
    sign_in_by_form(page, side.user("owner").email)
    each = [LOOKS] if NIGHTLY else [{name: look} for name, look in LOOKS.items()]
    looks = cycle(each)
    seen = set() if NIGHTLY else set(LOOKED_AT)
    for name, path in [
        ("web:offline", reverse("web:offline")),  # of nobody, so in neither list
        *((n, reverse(n)) for n, how in PERSONAL.items() if "args" not in how),
        *matrix_paths(side),
    ]:
        if name not in seen and looked_at(page, name, path, next(looks), problems):
            seen.add(name)
    assert {"datasets:detail", "evaluations:compare", "web:settings-budgets"} <= seen
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


def looked_at(page: Page, name: str, path: str, looks: dict[str, Any], problems: list[str]) -> bool:
    """Examine a page; tell whether it is one, and not a piece of a page, a picture or a file."""
    for look, (size, scheme) in looks.items():
        # Before the page comes, so that no colour is on its way to another while it is measured.
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        try:
            answer = page.goto(path)
        except Error as error:
            if "Download is starting" in error.message:
                return False
            raise
        is_page = "text/html" in (answer.headers if answer else {}).get("content-type", "")
        if not is_page or not page.evaluate("document.doctype !== null"):
            return False
        examine(page, name.replace(":", "-"), look, problems, without=FRAME)
    return True
