"""Sources of a workspace's own tools, read and accepted, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.tools.connectors.base import kind_get
from apps.tools.models import ToolGrant, ToolSource, ToolVersion
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

PLUGIN = '''
from toolloop.tools import Tool, ToolError, tool

ran = []

@tool
def stock(article: str) -> dict:
    """Tell how many pieces of an article there are.

    Args:
        article: its name.
    """
    ran.append(article)
    if article == "none":
        raise ToolError("there is no such article")
    return {"article": article, "pieces": 12}

@tool(side_effects=True)
async def order(article: str) -> str:
    """Order an article.

    Args:
        article: its name.
    """
    ran.append(f"ordered {article}")
    return f"ordered {article}"

TOOLS = [stock, order]
'''
CALLING = PLUGIN.replace(
    "TOOLS = [stock, order]",
    '''
import json

from toolloop.tools import ToolContext

@tool
async def stock_twice(article: str, ctx: ToolContext) -> int:
    """Tell how many pieces of an article two shops of ours have.

    Args:
        article: its name.
    """
    found = await ctx.call("stock", {"article": article})
    return 2 * json.loads(found.content)["pieces"]

TOOLS = [stock, order, stock_twice]
''',
)


def many(count: int, words: int = 60) -> str:
    """Return a plug-in of so many tools, each with a description of so many words."""
    return f"""
from toolloop.tools import Tool

def make(i):
    async def run(text):
        return f"{{i}} {{text}}"
    schema = {{"type": "object", "properties": {{"text": {{"type": "string"}}}}, "required": ["text"]}}
    return Tool(f"tool{{i}}", f"Does number {{i}}. " + "word " * {words}, schema, run, context_parameter="")

TOOLS = [make(i) for i in range({count})]
"""


def plugin_put(folder: Path, text: str = PLUGIN, name: str = "shop") -> None:
    """Write a plug-in's file."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")


def source_made(tenant: Tenant, kind: str = "plugin", name: str = "shop", **values: Any) -> ToolSource:
    """Return a source with everything that it has accepted."""
    if kind == "plugin":
        values.setdefault("settings", {"plugin": name})
    with tenant_scope(tenant.pk):
        source: ToolSource = ToolSource.objects.create(tenant=tenant, kind=kind, name=name, **values)
        accepted(source)
    return source


def accepted(source: ToolSource, number: int = 1) -> list[ToolVersion]:
    """Accept what the source has now, as version ``number``; in the tenant's scope."""
    found = kind_get(source.kind).read(source)
    ToolVersion.objects.filter(source=source).update(state="retired")
    return ToolVersion.objects.bulk_create(
        ToolVersion(
            tenant_id=source.tenant_id,
            source=source,
            tool_name=tool.name,
            number=number,
            state="current",
            spec=tool.to_json(),
            digest=tool.digest(),
        )
        for tool in found
    )


def granted(tenant: Tenant, target: str, effect: str = "allow") -> None:
    """Grant a group to everyone."""
    with tenant_scope(tenant.pk):
        ToolGrant.objects.create(tenant=tenant, effect=effect, target_kind="group", target=target)
