"""What a workspace states about tools: where its own come from, how they are shown, sets of them, and who may call what."""

from apps.tools.models.catalog import ContractTest, ToolCredential, ToolSource, ToolVersion
from apps.tools.models.grants import CollectionToolkit, ToolEntry, ToolGrant, Toolkit, ToolkitMember
from apps.tools.models.limits import ToolLimit, ToolLimitUse
from apps.tools.models.vectors import ToolVector

__all__ = [
    "CollectionToolkit",
    "ContractTest",
    "ToolCredential",
    "ToolEntry",
    "ToolGrant",
    "ToolLimit",
    "ToolLimitUse",
    "ToolSource",
    "ToolVector",
    "ToolVersion",
    "Toolkit",
    "ToolkitMember",
]
