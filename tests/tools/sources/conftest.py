"""A workspace and a kind of source that a test controls."""

from __future__ import annotations

import pytest

from apps.tools.connectors import base
from apps.tools.connectors.base import SourceKind
from tests.cast import Cast, make_cast
from tests.tools.sources.shop import Shop


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    """A workspace with people of all roles."""
    return make_cast()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    """What sources of the kind "openapi" read, in place of the network."""
    one = Shop()
    kind = SourceKind("openapi", one.check, one.read, one.make)
    monkeypatch.setitem(base._kinds, "openapi", kind)
    return one
