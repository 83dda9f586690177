"""Plug-ins: found in packages and in the operator's folder, refused in words when they cannot be trusted or used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.tools.connectors import plugin
from apps.tools.connectors.base import SourceError
from apps.tools.models import ToolSource
from basics.errors import Invalid
from tests.tools.sources.support import PLUGIN, plugin_put


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    settings.PLUGIN_DIR = tmp_path
    plugin.plugins_forget()
    plugin_put(tmp_path)
    yield tmp_path
    plugin.plugins_forget()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package beside the others, as pip leaves it."""
    site = tmp_path / "site"
    info = site / "groundwork_shop-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: groundwork-shop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[groundwork.tools]\npackaged = groundwork_shop_probe:TOOLS\nbroken = groundwork_shop_probe:NOTHING\n"
        "Bad Name = groundwork_shop_probe:TOOLS\n"
    )
    (site / "groundwork_shop_probe.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(site))
    return site


def test_packages_and_files_are_found_and_none_is_loaded_before_it_is_asked_for(
    folder: Path, package: Path
) -> None:
    plugin_put(folder, "raise SystemExit('loaded')", "never")
    plugin_put(folder, PLUGIN, "No-Name")
    assert plugin.plugins_available() == {
        "broken": "groundwork-shop",
        "never": "never.py",
        "packaged": "groundwork-shop",
        "shop": "shop.py",
    }
    assert [tool.name for tool in plugin.plugin_tools("packaged")] == ["stock", "order"]
    assert plugin.plugin_tools("packaged") is plugin.plugin_tools("packaged")


def test_entry_point_that_leads_nowhere_is_an_error_in_words(package: Path) -> None:
    with pytest.raises(SourceError, match="“broken” can't be loaded"):
        plugin.plugin_tools("broken")


def test_plugin_that_wants_to_end_the_process_is_an_error_in_words(folder: Path) -> None:
    plugin_put(folder, "raise SystemExit(1)", "end")
    with pytest.raises(SourceError, match="SystemExit"):
        plugin.plugin_tools("end")


def test_folder_that_anybody_may_write_is_not_read(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(SourceError, match="nyone on the server can write"):
        plugin.plugin_tools("shop")


def test_folder_that_is_not_there_is_an_error_in_words(folder: Path, settings: Any) -> None:
    settings.PLUGIN_DIR = folder / "nowhere"
    with pytest.raises(SourceError, match="GROUNDWORK_PLUGIN_DIR"):
        plugin.plugin_tools("shop")


def test_without_a_folder_there_are_packages_only(settings: Any) -> None:
    settings.PLUGIN_DIR = None
    assert "shop" not in plugin.plugins_available()


@pytest.mark.parametrize(
    "name",
    ["../shop", "shop.py", "/etc/passwd", "", "os", "shop\x00", "SHOP"],
    ids=["parent", "file name", "path", "empty", "module", "NUL", "capitals"],
)
def test_only_names_that_are_listed_are_loaded(name: str) -> None:
    with pytest.raises(SourceError, match="has no plug-in"):
        plugin.plugin_tools(name)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param(
            {"settings": {"plugin": "shop"}, "url": "https://example.org"}, "Leave this empty", id="url"
        ),
        pytest.param(
            {"settings": {"plugin": "shop"}, "allowed_hosts": ["example.org"]}, "Leave this empty", id="hosts"
        ),
        pytest.param({"settings": {"plugin": "other"}}, "This server has: shop", id="unknown"),
        pytest.param({"settings": {"plugin": ["shop"]}}, "its name", id="no text"),
        pytest.param({"settings": {}}, "its name", id="missing"),
        pytest.param({"settings": {"plugin": "shop", "path": "/tmp"}}, "Give only", id="more"),
    ],
)
def test_source_that_cannot_be_used_is_refused_in_words(values: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        plugin.source_check(ToolSource(kind="plugin", name="shop", **values))
    assert said in json.dumps(refused.value.data, ensure_ascii=False)


def test_found_tools_carry_what_they_state(folder: Path) -> None:
    source = ToolSource(kind="plugin", name="shop", settings={"plugin": "shop"})
    plugin.source_check(source)
    stock, order = plugin.source_read(source)
    assert (stock.name, stock.side_effects, stock.idempotent) == ("shop_stock", False, True)
    assert (order.name, order.side_effects, order.idempotent) == ("shop_order", True, False)
    assert stock.parameters["required"] == ["article"]


def test_name_that_no_provider_takes_is_an_error_in_words(folder: Path) -> None:
    plugin_put(
        folder, PLUGIN.replace("def stock", f"def {'s' * 60}").replace("[stock,", f"[{'s' * 60},"), "long"
    )
    with pytest.raises(SourceError, match="more than 64"):
        plugin.source_read(ToolSource(kind="plugin", name="shop", settings={"plugin": "long"}))
