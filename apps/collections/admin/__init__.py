"""Collections in the admin."""

from apps.collections.admin import documents, upkeep

__all__ = ["documents", "upkeep"]
