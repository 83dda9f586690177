"""The database for all tests of a module or a folder that share what serves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest

from tests.sweeping import sweep


def shared_database(scope: Literal["module", "package"]) -> Any:
    """Return a fixture for which there is one database: starting what serves it costs more than most of what is tried there.

    Call it ``transactional_db``, as pytest-django's own: that name makes it set up the database.
    """

    @pytest.fixture(scope=scope)
    def opened(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
        with django_db_blocker.unblock():
            yield
            sweep()

    return opened
