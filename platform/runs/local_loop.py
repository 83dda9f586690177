"""Run a coroutine in this thread, with the thread's own database connection within its reach."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tenancy.database.waiting import connections_let_go

T = TypeVar("T")


class LocalLoop:
    """An event loop of this thread that is left whenever its coroutine wants the database.

    Django lets no ORM code run inside an event loop, and another thread has another connection, with other transactions. So
    when the coroutine awaits ``in_db(function, *args)``, the loop is left, the function runs, and the loop goes on; whatever
    else it does waits so long.
    """

    def __init__(self) -> None:
        self._wanted: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._knock = asyncio.Event()

    async def in_db(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run ORM code for the coroutine; returns and raises what it does."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._wanted.append((lambda: function(*args), answer))
        self._knock.set()
        return await answer

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        Raises:
            RuntimeError: called from an event loop's thread.
        """
        with asyncio.Runner() as runner:
            task = runner.run(_begun(main))
            while not task.done():
                connections_let_go()
                runner.run(self._until_wanted(task))
                self._serve()
            return task.result()

    async def _until_wanted(self, task: asyncio.Task[Any]) -> None:
        knock = asyncio.create_task(self._knock.wait())
        try:
            await asyncio.wait({task, knock}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            knock.cancel()

    def _serve(self) -> None:
        self._knock.clear()
        wanted, self._wanted = self._wanted, []
        for function, answer in wanted:
            try:
                value = function()
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(value)


async def _begun(main: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.create_task(main)
