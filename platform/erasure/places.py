"""Where apps keep the files of workspaces: what an export holds, an import places and an erasure removes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """Where an app keeps files: ``<prefix>t<workspace>/<owner>/…``.

    Attributes:
        owner: the model of the second number.
        works: first word of a file's name -> model of the number behind it (``export-12-…``).
    """

    prefix: str
    owner: str
    works: Mapping[str, str] = field(default_factory=dict)


_places: dict[str, Place] = {}


def files_kept(place: Place) -> None:
    """Make a place of files known; at start-up."""
    _places[place.prefix] = place


def file_places() -> list[Place]:
    """Return the places, by their prefixes."""
    return [_places[prefix] for prefix in sorted(_places)]


def file_prefixes(tenant_id: int) -> list[str]:
    """Return what the keys of a workspace's files begin with."""
    return [f"{place.prefix}t{tenant_id}/" for place in file_places()]
