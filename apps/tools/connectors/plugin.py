"""Tools of plug-ins: installed packages that name them as an entry point, and files of a folder that the operator allows.

A plug-in is code of this installation, trusted like the rest of it. It is loaded once a process, so a changed one is taken
up when the processes start again. What a workspace accepted is compared with what is loaded: a tool that differs is not
called before somebody has accepted its new form.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType
from typing import Any

import structlog
from django.conf import settings

from apps.tools.connectors.base import FoundTool, SourceError, SourceKind
from apps.tools.connectors.version_tool import tool_refusing, version_tool
from apps.tools.models import ToolSource, ToolVersion
from basics.errors import Invalid
from basics.texts import gettext as _
from toolloop.errors import ToolloopError
from toolloop.tools import Tool

log = structlog.get_logger(__name__)

GROUP = "groundwork.tools"
"""Entry points of this group give an iterable of ``toolloop.tools.Tool``, or a function without arguments that does."""
TOOLS = "TOOLS"
"""What a file of the folder must define: the same."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_loaded: dict[str, tuple[Tool, ...] | SourceError] = {}


def plugins_available() -> dict[str, str]:
    """Return the plug-ins of this installation: name -> where it comes from, by name. Loads none of them.

    Raises:
        SourceError: the folder cannot be used.
    """
    return {name: where for name, (where, _load) in sorted(_finders().items())}


def plugin_tools(name: str) -> tuple[Tool, ...]:
    """Return the tools of a plug-in, loading it the first time.

    Raises:
        SourceError: there is none, it cannot be loaded, or what it gives are no tools.
    """
    found = _loaded.get(name)
    if found is None:
        finders = _finders()
        if name not in finders:
            text = _(
                "This server has no plug-in “%(name)s”. It has: %(known)s. To add one, an operator installs a package "
                "with an entry point of the group %(group)s, or puts a file into GROUNDWORK_PLUGIN_DIR."
            )
            known = ", ".join(sorted(finders)) or _("none")
            raise SourceError(text % {"name": name, "known": known, "group": GROUP}, code="plugin_unknown")
        found = _loaded[name] = _load(name, finders[name][1])
    if isinstance(found, SourceError):
        raise found
    return found


def plugins_forget() -> None:
    """Load plug-ins anew when they are next asked for; for tests."""
    _loaded.clear()


def _load(name: str, load: Callable[[], Any]) -> tuple[Tool, ...] | SourceError:
    try:
        given = load()
        tools = tuple(given() if callable(given) else given)
    except (Exception, SystemExit) as error:
        # Code of others: whatever it raises, the workspace's other tools must go on.
        log.exception("plugin_failed", plugin=name)
        what = error.message if isinstance(error, ToolloopError) else type(error).__name__
        text = _(
            "The plug-in “%(name)s” can't be loaded (%(why)s); the server's log says more. An operator must repair it "
            "and restart the server."
        )
        return SourceError(text % {"name": name, "why": what}, code="plugin_failed")
    odd = next((one for one in tools if not isinstance(one, Tool)), None)
    if odd is not None or not tools:
        text = _(
            "The plug-in “%(name)s” must return objects made by @tool of toolloop.tools. It returned: %(found)s."
        )
        what = _("nothing") if odd is None else type(odd).__name__
        return SourceError(text % {"name": name, "found": what}, code="plugin_failed")
    return tools


def _finders() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Return by name where each plug-in comes from, and what loads it. A package goes before a file of its name."""
    found: dict[str, tuple[str, Callable[[], Any]]] = {}
    for path in _files(settings.PLUGIN_DIR):
        found[path.stem] = (path.name, functools.partial(_load_file, path))
    for entry in entry_points(group=GROUP):
        if _NAME.fullmatch(entry.name):
            package = entry.dist.name if entry.dist is not None else entry.module
            found[entry.name] = (package, entry.load)
    return found


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        if folder.stat().st_mode & stat.S_IWOTH:
            raise SourceError(
                _(
                    "Anyone on the server can write to the plug-in folder, so nothing is loaded from it. An operator "
                    "must remove that permission."
                ),
                code="plugin_folder_open",
            )
        paths = sorted(folder.glob("*.py"))
    except OSError as error:
        text = _("The plug-in folder can't be read (%(why)s). An operator must check GROUNDWORK_PLUGIN_DIR.")
        raise SourceError(text % {"why": error.strerror}, code="plugin_folder_unreadable") from error
    return [path for path in paths if path.is_file() and _NAME.fullmatch(path.stem)]


class _Fresh(SourceFileLoader):
    """Reads the file itself: the cache of bytecode takes one of the same second and size for the same."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(path: Path) -> Any:
    name = f"groundwork_plugin_{path.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_Fresh(name, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    # Type hints of its tools are resolved in the module they name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return getattr(module, TOOLS)


def source_check(source: ToolSource) -> None:
    """Look at the fields of a plug-in's source. Raises Invalid."""
    unknown = sorted(set(source.settings) - {"plugin"})
    name = source.settings.get("plugin")
    if unknown or not isinstance(name, str):
        raise _invalid("settings", _('Give only {"plugin": "its name"}.'))
    for field in ("url", "document_url", "document", "allowed_hosts"):
        if getattr(source, field):
            raise _invalid(field, _("A plug-in is code on this server. Leave this empty."))
    known = plugins_available()
    if name not in known:
        text = _("There is no plug-in “%(name)s”. This server has: %(known)s.")
        raise _invalid("settings", text % {"name": name[:64], "known": ", ".join(known) or _("none")})


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"fields": {field: [message]}})


def source_read(source: ToolSource) -> Sequence[FoundTool]:
    """Return the tools of a source's plug-in. Raises SourceError."""
    found = [_found(source, tool) for tool in plugin_tools(str(source.settings.get("plugin", "")))]
    long = next((tool.name for tool in found if len(tool.name) > 64), None)
    if long is not None:
        text = _("“%(name)s” has more than 64 characters. Give the source a shorter name.")
        raise SourceError(text % {"name": long})
    return found


def _found(source: ToolSource, tool: Tool) -> FoundTool:
    return FoundTool(
        name=f"{source.name}_{tool.name}",
        description=tool.description,
        parameters=tool.parameters,
        category=tool.category,
        tags=tool.tags,
        side_effects=tool.side_effects,
        idempotent=tool.idempotent,
        timeout_s=tool.timeout_s,
        wire={"tool": tool.name, "version": tool.version},
    )


def tools_make(source: ToolSource, versions: Sequence[ToolVersion]) -> Iterable[Tool]:
    """Return the tools of accepted versions. Raises SourceError: the plug-in cannot be loaded."""
    tools = {tool.name: tool for tool in plugin_tools(str(source.settings.get("plugin", "")))}
    return [_made(source, version, tools) for version in versions]


def _made(source: ToolSource, version: ToolVersion, tools: Mapping[str, Tool]) -> Tool:
    tool = tools.get(str(version.spec.get("wire", {}).get("tool", "")))
    if tool is None or _found(source, tool).digest() != version.digest:
        return tool_refusing(
            source,
            version,
            "the plug-in is not as it was accepted; an admin must refresh the source and look at what changed.",
        )
    accepted = version_tool(source, version, tool.function)
    return replace(
        tool,
        name=accepted.name,
        description=accepted.description,
        group=accepted.group,
        version=accepted.version,
        siblings={name: f"{source.name}_{name}" for name in tools},
    )


KIND = SourceKind("plugin", source_check, source_read, tools_make)
