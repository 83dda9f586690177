"""What the pages of the admin are drawn without where each of them is asked for."""

from __future__ import annotations

import pytest

from config.admin_site import GroundworkAdminSite


@pytest.fixture
def no_list_of_apps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw pages without the list of all models, which is the same on each and a third of what a page takes.

    ``test_list_of_apps_is_the_one_django_makes`` and the browser's walk through the admin see it.
    """
    monkeypatch.setattr(GroundworkAdminSite, "get_app_list", lambda self, request, app_label=None: [])
