"""The database for all tests of a folder that share what serves it; a conftest imports the fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sweeping import sweep


@pytest.fixture(scope="package")
def transactional_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database for the whole folder: starting what serves it costs more than most of what is tried here.

    It has the name of pytest-django's fixture because that makes it set up the database.
    """
    with django_db_blocker.unblock():
        yield
        sweep()
