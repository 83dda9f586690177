"""Every text of the portal is shown to translators, by lint over the templates' sources."""

from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.unmarked import refusals, shadowed, unkept, unlocal, unmarked, untold

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"

KEPT_BY = (
    *(f"apps/collections/{room}/" for room in ("ingestion", "pipeline", "imports", "embedders")),
    *(f"apps/datasets/{room}/" for room in ("formats", "records", "generation", "curation")),
    *(f"apps/datasets/{room}/" for room in ("versions", "checks")),
    *(f"apps/evaluations/{room}/" for room in ("experiments", "trials", "arms", "failures", "sampling")),
    *(
        f"apps/evaluations/{room}/"
        for room in ("results", "scorers", "judges", "compare", "safety", "example")
    ),
    *(f"apps/conversations/{room}/" for room in ("answering", "turns", "traces")),
    "apps/tools/sources/",
    "apps/tools/connectors/",
    *(f"platform/{package}/" for package in ("jobs", "runs", "budgets", "erasure", "webhooks")),
    *("platform/batches/", "platform/audit/pump.py", "platform/audit/sinks.py", "platform/exports/moves.py"),
)
"""Whose refusals and failures end up in rows that people look at later, each in their own language."""

NOT_FOR_READERS = (
    # programs and operators
    *("*/management/*", "*/admin.py", "*/checks.py", "*/health.py", "*/readings.py"),
    *("platform/erasure/ledger.py", "platform/erasure/restored.py"),
    *("apps/collections/embedders/*", "apps/evaluations/compare/gate_reports.py"),
    # models, and the graders who follow the same rubric
    *("*/prompts.py", "*/judge_prompts.py", "*rubric*.py", "apps/evaluations/scorers/claims.py"),
    *("apps/collections/pipeline/summaries_model.py", "apps/conversations/turns/titles.py"),
    *(f"apps/tools/connectors/{name}.py" for name in ("openapi/calls", "openapi/requests", "version_tool")),
    "apps/tools/connectors/openapi/schemas.py",
    *("apps/conversations/answering/prepare.py", "apps/conversations/answering/helpers.py"),
    *("apps/evaluations/arms/delivery.py", "apps/evaluations/arms/tool_sets.py"),
    *("platform/runs/erasing.py", "platform/runs/retention.py", "platform/runs/services/*"),
    "platform/runs/approvals/expiry.py",
    *("platform/batches/asking.py", "platform/batches/lines.py"),
    # rows and files, in the language of the documents or of the format
    *("apps/datasets/generation/rule_*.py", "apps/datasets/generation/by_rules.py"),
    *("apps/datasets/generation/prompt_injection.py", "apps/datasets/formats/huggingface.py"),
    *("apps/datasets/formats/pairs.py", "apps/collections/ingestion/document_types.py"),
    # what pydantic says of a target
    "apps/evaluations/arms/targets.py",
)
"""Modules of these rooms whose plain sentences aren't for the readers of pages."""

PLAIN_NUMBERS = (
    # operators, programs and models
    *("*/management/*", "*/admin/*", "*/admin.py", "*/api.py", "*/shapes.py", "apps/tools/mcp_server/*"),
    *("platform/toolloop/*", "platform/config/*", "platform/backups/*", "platform/tenancy/upgrades/*"),
    *("platform/jobs/health.py", "platform/sso/*", "platform/exports/imports.py", "platform/basics/sizes.py"),
    *("platform/web/oauth/views.py", "apps/collections/embedders/*", "apps/conversations/openai/files.py"),
    *("apps/tools/connectors/openapi/calls.py", "apps/tools/exchange/files.py", "apps/tools/policy/*"),
    *("platform/jobs/context.py", "platform/basics/net_policy.py"),
    # files in the language of their format, cells as they are, names that are stored, the lines of a job
    *("apps/collections/ingestion/document_types.py", "apps/collections/ingestion/readers/sheet_cells.py"),
    *("apps/evaluations/compare/gate.py", "apps/evaluations/compare/gate_views.py"),
    *("apps/datasets/formats/huggingface.py", "apps/evaluations/experiments/forms.py"),
    *("apps/datasets/curation/jobs.py", "platform/basics/pictures.py"),
    # coordinates, and what localizes by itself
    *("apps/collections/documents/viewer.py", "platform/web/charts/*", "platform/basics/texts.py"),
)
"""Modules whose numbers are English on purpose."""

LEFT_ALONE = {
    "styleguide.html",  # development only
    "allauth/elements/_button_attributes.html",  # attributes, in a file of their own
    "allauth/elements/_button_class.html",
}
"""Files whose text nobody reads on a page, beside Django's admin."""


def test_every_text_of_the_portal_is_marked():
    assert [
        f"{name}:{line}: {text}"
        for path in sorted([*TEMPLATES.rglob("*.html"), *TEMPLATES.rglob("*.txt")])
        if not (name := path.relative_to(TEMPLATES).as_posix()).startswith("admin/")
        and name not in LEFT_ALONE
        for line, text in unmarked(path.read_text())
    ] == []


def test_every_text_that_a_row_keeps_can_be_told_in_another_language():
    trees = {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for kept in KEPT_BY
        for path in sorted((ROOT / kept).rglob("*.py") if kept.endswith("/") else [ROOT / kept])
        if path.name not in {"views.py", "forms.py", "api.py"}  # what they refuse, they say to who asked
    }
    raised = refusals(trees.values())
    assert [
        f"{name}:{line}: {text}" for name, tree in trees.items() for line, text in untold(tree, raised)
    ] == []
    assert [
        f"{name}:{line}: {text}"
        for name, tree in trees.items()
        if not any(fnmatch(name, pattern) for pattern in NOT_FOR_READERS)
        for line, text in unkept(tree)
    ] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise Invalid('code', 'It is too large.')", ["'It is too large.'"]),
        ("raise TooLarge('code', f'It has {n} bytes.')", ["f'It has {n} bytes.'"]),
        ("job_end(row, FAILED, 'lost', why or 'The worker was lost.')", ["why or 'The worker was lost.'"]),
        ("raise Invalid('code', _('It is too large.'))", []),
        (
            "from django.utils.translation import gettext as _\nraise Denied('code', _('No.'))",
            ["gettext: import it from basics.texts"],
        ),
        ("log.info('It is too large.')", []),
    ],
)
def test_a_text_that_cannot_be_told_is_found(source: str, found: list[str]):
    assert [text for _, text in untold(ast.parse(source), {"Invalid", "Denied", "TooLarge"})] == found


def test_every_number_that_people_read_is_written_in_their_language():
    assert unlocal(ast.parse("f'{x:,} {x:.2f} {x:.0%} {x:g}'")) == [(1, "x")] * 4
    assert unlocal(ast.parse("f'{x} {x:>5} {x:02d}'")) == []
    assert [
        f"{name}:{line}: {text}: use basics.texts.number_told"
        for package in ("apps", "platform")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not any(fnmatch(name := path.relative_to(ROOT).as_posix(), pattern) for pattern in PLAIN_NUMBERS)
        for line, text in unlocal(ast.parse(path.read_text()))
    ] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("WHY = 'There is no answer.'", ["There is no answer."]),
        ("def f():\n    return f'It has {n} bytes.'", ["It has … bytes."]),
        ("unscored(name, 'There is no ' 'answer.')", ["There is no answer."]),
        ("WHY = gettext_noop('There is no answer.')\nx = _('It has %(n)s bytes.') % {'n': 1}", []),
        ("def f():\n    'Say it to people.'\n    log.info('It is too large.')", []),
        ("raise ValueError('It must be a number.')\nx = Field(help_text='What it is for.')", []),
    ],
)
def test_a_sentence_that_no_translator_is_shown_is_found(source: str, found: list[str]):
    assert [text for _, text in unkept(ast.parse(source))] == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>\n  Saved.\n</p>", [(2, "Saved.")]),
        ('{% translate "Saved." %}\n<b>by {{ who }}</b>', [(2, "by")]),
        ("{{ n }} row{{ n|pluralize }}", [(1, "row"), (1, "{{ n|pluralize }}")]),
        ('<a\n  href="/x"\n  title="Open it">{{ x }}</a>', [(3, 'title="Open it"')]),
        ('<i aria-label="{% if a %}Up{% else %}{{ b }}{% endif %}"></i>', [(1, 'aria-label="Up"')]),
        ("<i title=\"{{ x|default:'none' }}\"></i>", [(1, 'title="none"')]),
        ('{{ x|default:"none" }}', [(1, "none")]),
        ('{% include "a.html" with noun="import" %}', [(1, 'noun="import"')]),
        ('{% include "a.html" with name="Calls by day" %}', [(1, 'name="Calls by day"')]),
        ('{% with x=y|default:"none" %}{% endwith %}', [(1, '"none"')]),
        ('{% firstof a "Somebody" %}', [(1, "Somebody")]),
        ('<input type="submit" value="Send">', [(1, 'value="Send"')]),
        ("<svg><text>{{ n }} worse</text></svg>", [(1, "worse")]),
        ("{% block title %}Models{% endblock %}", [(1, "Models")]),
        ("{% comment %}\nNot this.\n{% endcomment %}<p>This.</p>", [(3, "This.")]),
    ],
)
def test_unmarked_text_is_found(source: str, found: list[tuple[int, str]]):
    assert sorted((line, text) for line, text in unmarked(source)) == sorted(found)


@pytest.mark.parametrize(
    "source",
    [
        '{% translate "Saved." %}',
        "{% blocktranslate trimmed with a=b.c %}By <a class=\"x\" title='y'>{{ a }}</a>{% endblocktranslate %}",
        "{% blocktranslate trimmed count n=n %}{{ n }} row{% plural %}{{ n }} rows{% endblocktranslate %}",
        "<a title=\"{% translate 'Open' %}\" href=\"/x?ref={{ x|default:'HEAD' }}\">{{ x }}</a>",
        '{% include "a.html" with title=_("Files") icon="arrow-left" sid="a" %}',
        '{{ x|default:_("none") }}',
        "<code>manage.py worker</code> <kbd>Ctrl</kbd> {{ x }} ms",
        '<input placeholder="provider/model@dimensions" type="hidden" value="rows">',
        "{% block maincls %}chat solo{% endblock %}",
        "{# A word. #}{% comment %}Words.{% endcomment %}&nbsp;·",
    ],
)
def test_marked_text_is_left_alone(source: str):
    assert unmarked(source) == []


def test_no_function_gives_the_mark_of_texts_another_meaning():
    assert shadowed("def f():\n    for _ in x:\n        pass\n    raise E(_('words'))\n") == [1]
    assert shadowed("def f():\n    return [_('words') for a in [1 for _ in x]]\n") == []
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for package in ("apps", "platform")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "import" in (source := path.read_text()) and "as _" in source
        for line in shadowed(source)
    ] == []
