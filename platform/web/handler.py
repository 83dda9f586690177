"""How a request comes from the event loop to its view and back: in one thread, by one way there and one way back.

Django's own handler for ASGI goes back to the loop for its innermost part, and from there to the thread again for each
view that isn't a coroutine, for each ``process_view`` of a middleware and for rendering. Nearly all views here are plain
functions, for which these hops cost as much processor time as two statements.
"""

from __future__ import annotations

from typing import Any

import django
from django.core.handlers.asgi import ASGIHandler


class Handler(ASGIHandler):
    """Django's handler with its middleware and its innermost part in the request's thread.

    A view that is a coroutine runs in the event loop that serves the request, as before, and its thread waits for it.
    """

    _middleware_chain: Any

    def load_middleware(self, is_async: bool = False) -> None:
        """Make the chain as WSGI has it, and lead into it from the event loop."""
        super().load_middleware(is_async=False)
        self._middleware_chain = self.adapt_method_mode(
            is_async, self._middleware_chain, method_is_async=False
        )


def application_make() -> Handler:
    """Return the application of a web process, with Django set up."""
    django.setup(set_prefix=False)
    return Handler()
