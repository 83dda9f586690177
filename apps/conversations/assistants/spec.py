"""What a version of an assistant may be: its spec held against the workspace, before it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.translation import gettext as _

from apps.collections.models import Collection
from apps.conversations.assistants.options import (
    MAX_HELPER_DEPTH,
    VersionSpec,
    options_json,
    options_read,
    refused,
    starters_read,
)
from apps.conversations.models import (
    Assistant,
    AssistantCollection,
    AssistantHelper,
    AssistantVersion,
    Mode,
    Output,
)
from apps.conversations.transcript.locks import collections_checked, model_checked, text_plain
from apps.tools.models import Toolkit
from basics.errors import Invalid
from runs.providers import service_problem
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.errors import ConfigurationError
from toolloop.mcp.schemas import SchemaRefused, depth_check, schema_check
from toolloop.output import output_of
from toolloop.service import NAMES

MAX_SCHEMA, MAX_SCHEMA_DEPTH, MAX_OPTIONS = 32_000, 24, 16_000
MAX_PROMPT = 20_000
MAX_HELPERS = 8
_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CheckedSpec:
    """A spec that was held against the workspace, ready to become a version."""

    def __init__(self, tenant: Tenant, actor: Actor, assistant: Assistant | None, spec: VersionSpec) -> None:
        self.tenant, self.actor = tenant, actor
        if spec.mode not in Mode.values:
            raise refused("mode", _("Choose a mode: %(modes)s.") % {"modes": ", ".join(Mode.values)})
        if spec.mode == Mode.QUICK and (spec.has_toolkit or spec.helpers):
            raise refused(
                "mode",
                _("The mode “quick” does its own search, so it can't have a toolkit or other assistants."),
            )
        prompt = text_plain(spec.prompt)
        if len(prompt) > MAX_PROMPT:
            raise refused(
                "prompt",
                _("Instructions have at most %(most)s characters; these have %(length)s.")
                % {"most": intcomma(MAX_PROMPT), "length": intcomma(len(prompt))},
            )
        self.collections: list[Collection] = []
        if spec.collections is not None:
            self.collections = collections_checked(actor, spec.collections)
        self.helpers = _helpers(tenant, actor, assistant, spec)
        name, schema = _output(spec)
        options = options_json(options_read(spec.mode, spec.options))
        _storable("options", options, MAX_OPTIONS)
        self.values: dict[str, Any] = {
            "mode": spec.mode,
            "model": model_checked(tenant, spec.model) if spec.model else "",
            "prompt": prompt,
            "searches_all": spec.collections is None,
            "toolkit": _toolkit(actor, spec),
            "has_toolkit": spec.has_toolkit,
            "output": spec.output,
            "output_name": name,
            "output_schema": schema,
            "options": options,
            "starters": starters_read(spec.starters),
        }
        model = self.values["model"]
        if model and (problem := service_problem(tenant, model, options)):
            raise refused(next(name for name in NAMES if name in options), problem)

    def write(self, assistant: Assistant, number: int, note: str) -> AssistantVersion:
        """Make the rows; the caller holds the assistant's lock."""
        tenant = self.tenant
        version: AssistantVersion = AssistantVersion.objects.create(
            tenant=tenant,
            assistant=assistant,
            number=number,
            note=note,
            created_by_id=self.actor.user_id,
            **self.values,
        )
        AssistantCollection.objects.bulk_create(
            AssistantCollection(tenant=tenant, version=version, collection=c) for c in self.collections
        )
        AssistantHelper.objects.bulk_create(
            AssistantHelper(tenant=tenant, version=version, assistant_id=pk) for pk in self.helpers
        )
        return version


def _toolkit(actor: Actor, spec: VersionSpec) -> Toolkit | None:
    if spec.toolkit is None:
        return None
    if not spec.has_toolkit:
        raise refused("toolkit", _("Set has_toolkit when you choose a toolkit."))
    found: Toolkit | None = Toolkit.objects.visible_to(actor).filter(pk=spec.toolkit).first()
    if found is None:
        raise refused("toolkit", _("This toolkit no longer exists. Choose another one."))
    return found


def _output(spec: VersionSpec) -> tuple[str, dict[str, Any] | None]:
    """Return name and schema of the output. Raises Invalid."""
    if spec.output not in Output.values:
        raise refused(
            "output", _("Choose an answer format: %(formats)s.") % {"formats": ", ".join(Output.values)}
        )
    if spec.output != Output.SCHEMA:
        return "", None
    name, schema = spec.output_name.strip(), spec.output_schema
    if not _SCHEMA_NAME.fullmatch(name):
        raise refused(
            "output_name", _("Name the schema with 1 to 64 letters, digits, hyphens or underscores.")
        )
    return name, schema_checked(schema)


def schema_checked(schema: Any) -> dict[str, Any]:
    """Return a JSON Schema that answers can be asked for with. Raises Invalid for the field ``output_schema``."""
    if not isinstance(schema, Mapping):
        raise refused("output_schema", _("Give the schema as a JSON object."))
    _storable("output_schema", schema, MAX_SCHEMA)
    try:
        depth_check(schema, MAX_SCHEMA_DEPTH)
        schema_check(schema)
        output_of(schema)
    except SchemaRefused as error:
        raise refused("output_schema", _("This cannot be used: %(error)s.") % {"error": error}) from error
    except ConfigurationError as error:
        raise refused("output_schema", _("This cannot be used: %(error)s.") % {"error": error}) from error
    return dict(schema)


def _storable(name: str, value: Any, limit: int) -> None:
    """Refuse what Postgres' jsonb cannot hold, or what is too large. Raises Invalid."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise refused(name, _("This cannot be written as JSON, or is nested too deeply.")) from error
    if "\\u0000" in text:
        raise refused(name, _("Remove the NUL characters; they can't be stored."))
    if size > limit:
        raise refused(
            name,
            _("This has %(size)s bytes as JSON; at most %(limit)s are allowed.")
            % {"size": intcomma(size), "limit": intcomma(limit)},
        )


def _helpers(tenant: Tenant, actor: Actor, assistant: Assistant | None, spec: VersionSpec) -> list[int]:
    chosen = list(dict.fromkeys(spec.helpers))
    if not chosen:
        return []
    if len(chosen) > MAX_HELPERS:
        raise refused("helpers", _("An assistant can ask at most %(most)s others.") % {"most": MAX_HELPERS})
    rows = Assistant.objects.visible_to(actor).filter(pk__in=chosen, archived_at__isnull=True)
    if rows.count() != len(chosen):
        raise refused(
            "helpers", _("One of the chosen assistants doesn't exist or is archived. Choose again.")
        )
    helpers_hold(tenant, None if assistant is None else assistant.pk, chosen)
    return chosen


def helpers_hold(tenant: Tenant, assistant: int | None, asked: list[int]) -> None:
    """Refuse helpers that would come back to an assistant, or reach deeper than allowed through anybody.

    Args:
        assistant: id of the one whose published version would ask ``asked``; None for one that is new.
    """
    edges = AssistantHelper.objects.filter(
        tenant=tenant,
        version__in=Assistant.objects.filter(
            tenant=tenant, archived_at__isnull=True, published__isnull=False
        ).values("published"),
    ).values_list("version__assistant_id", "assistant_id")
    graph: dict[int, set[int]] = {}
    for asker, helper in edges:
        graph.setdefault(asker, set()).add(helper)
    me = assistant or 0
    graph[me] = set(asked)
    askers: dict[int, set[int]] = {}
    for asker, helpers in graph.items():
        for helper in helpers:
            askers.setdefault(helper, set()).add(asker)
    if _depth(graph, me) + _depth(askers, me) > MAX_HELPER_DEPTH:
        raise _too_deep()


def _depth(graph: Mapping[int, set[int]], start: int) -> int:
    """Return the longest way from a node. Raises Invalid for a circle through it and for a way that is too long."""
    level, depth = {start}, 0
    while level := {one for node in level for one in graph.get(node, ())}:
        depth += 1
        if start in level:
            raise refused("helpers", _("These assistants would ask each other in a circle. Choose others."))
        if depth > MAX_HELPER_DEPTH:
            raise _too_deep()
    return depth


def _too_deep() -> Invalid:
    return refused(
        "helpers",
        _("Assistants would ask each other more than %(most)s levels deep. Choose others.")
        % {"most": MAX_HELPER_DEPTH},
    )
