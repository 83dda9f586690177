"""Conversations of a workspace that was imported: no turn is being answered."""

from __future__ import annotations

from apps.conversations.models import Turn
from exports.moves import Arrival


def conversations_arrived(arrival: Arrival) -> None:
    """Close the turns whose runs have ended with the move; in the transaction of the import."""
    Turn.objects.filter(tenant=arrival.tenant, is_active=True).update(is_active=False)
