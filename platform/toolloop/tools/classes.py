"""Tools as classes, for tools with settings or a connection of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.schema import signature_read
from toolloop.tools.tool import ApprovalRule, Tool


class ToolClass:
    """Base of a tool whose function is the method ``run``; make an instance, then ``as_tool``.

    ``run`` is typed and documented like the function of a plain tool (its docstring, or the class's, describes it);
    ``mock`` takes the same arguments. The class attributes are those of ``Tool``; the name defaults to the class's own in
    snake case.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    category: ClassVar[str] = ""
    tags: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str] = ""
    version: ClassVar[str] = ""
    side_effects: ClassVar[bool] = False
    idempotent: ClassVar[bool | None] = None
    blocking: ClassVar[bool | None] = None
    sequential: ClassVar[bool] = False
    timeout_s: ClassVar[float | None] = None
    needs_approval: ClassVar[ApprovalRule] = False
    external: ClassVar[bool] = False
    excluded: ClassVar[tuple[str, ...]] = ()

    run: Callable[..., Any]
    mock: Callable[..., Any] | None = None

    def as_tool(self) -> Tool:
        """Return the tool of this instance.

        Raises:
            ToolDefinitionError: without a ``run``, or as for ``tool``.
        """
        kind = type(self)
        run = getattr(self, "run", None)
        if not inspect.ismethod(run):
            raise ToolDefinitionError(f"{kind.__name__} has no method run")
        own_doc = kind.__doc__ if "__doc__" in vars(kind) else None
        signature = signature_read(run, excluded=self.excluded, doc=run.__doc__ or own_doc)
        return Tool(
            name=self.name or _snake(kind.__name__),
            description=self.description or signature.description,
            parameters=signature.parameters,
            function=run,
            side_effects=self.side_effects,
            idempotent=not self.side_effects if self.idempotent is None else self.idempotent,
            blocking=self.blocking,
            sequential=self.sequential,
            timeout_s=self.timeout_s,
            context_parameter=signature.context_parameter,
            converters=signature.converters,
            injected=signature.injected,
            category=self.category,
            tags=tuple(self.tags),
            group=self.group,
            version=self.version,
            # Through the class: a rule given as a plain function must not be bound to the instance.
            needs_approval=kind.needs_approval,
            external=self.external,
            mock=self.mock,
        )


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
