"""What tests of datasets share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def dataset_storage(settings: Any, tmp_path: Path) -> Path:
    """Keep the files of this test apart; returns their folder."""
    settings.DATA_DIR = tmp_path
    settings.MEDIA_ROOT = tmp_path / "files"
    return tmp_path / "files"
