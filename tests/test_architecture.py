"""The pictures of docs/ARCHITECTURE.md are the import contracts, drawn."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRACTS = {
    contract["id"]: contract["layers"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    if contract["type"] == "layers"
}
APPS = ["collections", "conversations", "tools", "datasets", "evaluations"]


@pytest.mark.parametrize("app", APPS)
def test_rooms_of_a_picture_are_those_of_the_contract_in_its_order(app: str) -> None:
    floors = [re.findall(r"\w+", layer) for layer in CONTRACTS[f"rooms-of-{app}"][1:-1]]
    floor_of = {room: number for number, rooms in enumerate(floors) for room in rooms}
    picture = re.search(rf"subgraph {app}\n(.*?)\n  end", PAGE, re.DOTALL)
    assert picture is not None
    chains = [
        [re.findall(r"\w+", re.sub(r'\w+\["(\w+)"\]', r"\1", part)) for part in line.split("-->")]
        for line in picture[1].splitlines()
    ]
    assert {room for chain in chains for rooms in chain for room in rooms} == set(floor_of)
    for chain in chains:
        for above, below in pairwise(chain):
            assert max(floor_of[room] for room in above) < min(floor_of[room] for room in below)


def test_floors_of_the_house_are_those_of_the_contract() -> None:
    picture = re.search(r"flowchart TD\n(.*?)```", PAGE, re.DOTALL)
    assert picture is not None
    drawn = set(re.findall(r"\w+", picture[1]))
    assert drawn == {
        name for layer in CONTRACTS["layers"] for name in re.findall(r"\w+", layer.replace("apps.", ""))
    }
