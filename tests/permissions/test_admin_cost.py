"""What no single row shows of the admin: lists that ask the database once a row, and forms before there is a row."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.permissions.test_admin_matrix import (  # noqa: F401 - fixtures
    SCOPED,
    label,
    mine,
    row_of,
    superuser,
    url,
)
from tests.permissions.world import Side


def listed(client: Client, model: type[models.Model]) -> tuple[int, int]:
    """Return how many rows the list of a model shows, and how many queries it took."""
    with CaptureQueriesContext(connection) as queries:
        page: Any = client.get(url(model, "changelist"))
    assert page.status_code == 200, label(model)
    return len(page.context["cl"].result_list), len(queries)


@pytest.mark.usefixtures("no_list_of_apps")
def test_lists_take_no_query_for_each_row(mine: Side, superuser: Client):  # noqa: F811
    for model in SCOPED:
        row_of(mine, model)
        listed(superuser, model)  # content types and the like are remembered from here on
    before = {model: listed(superuser, model) for model in SCOPED}
    for more in (Side(mine.tenant), Side(mine.tenant), Side(mine.tenant)):
        for model in SCOPED:
            try:
                with transaction.atomic():
                    row_of(more, model)
            except IntegrityError:
                continue  # one row for a workspace
    after = {model: listed(superuser, model) for model in SCOPED}
    assert sum(after[m][0] > before[m][0] for m in SCOPED) > len(SCOPED) * 0.9
    grown = {label(m): (before[m], after[m]) for m in SCOPED if after[m][1] > before[m][1]}
    assert grown == {}, "rows and queries, before and after: name the relation in list_select_related"


@pytest.mark.usefixtures("no_list_of_apps")
def test_form_of_a_new_row_shows_no_value_that_only_the_database_gives(superuser: Client):  # noqa: F811
    shown = {}
    for model in SCOPED:
        page: Any = superuser.get(url(model, "add"))
        if page.status_code == 200 and "object at 0x" in page.content.decode():
            shown[label(model)] = page.content.decode().split("object at 0x")[0][-60:]
    assert shown == {}
