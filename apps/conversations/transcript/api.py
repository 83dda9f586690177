"""What REST views of one conversation have in common, in whichever room they are."""

from __future__ import annotations

from typing import Any

from apps.conversations.models import Conversation
from apps.conversations.transcript import selectors
from web.drf.views import TenantAPIView


class ConversationAPIView(TenantAPIView):
    """Base of what belongs to one conversation."""

    def conversation(self, pk: int) -> Conversation:
        """Return the actor's conversation. Raises Missing."""
        return selectors.conversation_get(actor=self.actor, pk=pk)

    def who(self) -> dict[str, Any]:
        """Return for whom services act."""
        return {"tenant": self.tenant, "actor": self.actor}
