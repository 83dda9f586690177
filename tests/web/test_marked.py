"""Every text of the portal is shown to translators, by lint over the templates' sources."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unmarked import refusals, shadowed, unmarked, untold

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"

KEPT_BY = (
    *(f"apps/collections/{room}/" for room in ("ingestion", "pipeline", "imports", "embedders")),
    *(f"apps/datasets/{room}/" for room in ("formats", "records", "generation", "curation")),
    *(f"apps/evaluations/{room}/" for room in ("experiments", "trials", "arms", "failures", "sampling")),
    *("apps/datasets/tasks.py", "apps/evaluations/tasks.py", "apps/tools/tasks.py", "apps/tools/sources/"),
    *(f"platform/{package}/" for package in ("jobs", "runs", "budgets", "erasure", "webhooks")),
)
"""Whose refusals and failures end up in rows that people look at later, each in their own language."""

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
        if path.name not in {"views.py", "forms.py"}  # what they refuse, they say to who asked
    }
    raised = refusals(trees.values())
    assert [
        f"{name}:{line}: {text}" for name, tree in trees.items() for line, text in untold(tree, raised)
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
