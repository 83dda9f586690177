"""Who loses a right here and now, told to the rooms above in the transaction that takes it.

They end what goes on in that name: a stream, a run, a question that waits. Rights are read at each call all the same, so
that what happens elsewhere (a person deactivated in the admin, a key that expires) counts as well, only not as soon.
"""

from __future__ import annotations

from collections.abc import Callable

Loss = Callable[[int, int, int | None], None]
_told: list[Loss] = []


def on_loss(function: Loss) -> None:
    """Have it called with workspace, person and key (None: all that the person has) when access ends or shrinks.

    For rooms above this one, which it must not know; call it in ``AppConfig.ready``.
    """
    if function not in _told:
        _told.append(function)


def loss_tell(*, tenant_id: int, user_id: int | None, api_key_id: int | None = None) -> None:
    """Tell that a person or one of their keys has lost rights; call it inside the transaction, after the rows are changed."""
    if user_id is not None:
        for function in _told:
            function(tenant_id, user_id, api_key_id)
