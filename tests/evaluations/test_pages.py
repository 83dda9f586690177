"""Pages of evaluations: what they show, what they refuse, and that answers cannot run in them."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.datasets.records.record import Record
from apps.evaluations.models import Baseline, Experiment, Trial
from apps.evaluations.results.labels import label
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_compared, make_version
from tests.markup import flat

pytestmark = pytest.mark.django_db


def client_of(cast, role):
    client = Client()
    client.force_login(cast.user(role))
    return client


def at(cast, path=""):
    return f"/t/{cast.tenant.slug}/evaluations/{path}"


def test_the_comparison_says_what_it_found(cast):
    a, b = make_compared(cast)
    page = client_of(cast, "viewer").get(at(cast, "compare/"))
    text = flat(page.content.decode())
    assert page.status_code == 200
    assert (page.context["a"], page.context["b"]) == (a, b)
    assert "B answers better, at a higher price" in text
    assert "60 questions, same scorers; " in text
    assert "B misreads the note to chapter 87." in text
    assert "&lt;item&gt;" in text
    assert "<item>" not in text
    assert "<del>8714 91</del>" in text
    assert "Promote B" not in text
    worst = [row.change for row, *_ in page.context["rows"]]
    assert worst == sorted(worst)


def test_the_comparison_takes_its_choices_from_the_address(cast):
    a, b = make_compared(cast)
    client = client_of(cast, "member")
    page = client.get(at(cast, f"compare/?a={b.pk}&b={a.pk}&score=clarity&order=best"))
    assert page.context["found"].leading.name == "clarity"
    assert page.context["is_best"]
    row = page.context["rows"][3][0].row
    page = client.get(at(cast, f"compare/?a={a.pk}&b={b.pk}&row={row}"))
    assert page.context["found"].leading.name == "overall"
    assert "has a score" in client.get(at(cast, f"compare/?a={a.pk}&b={b.pk}&score=nope")).content.decode()


@pytest.mark.parametrize("query", ["a=x", "a=0", "a=99999999", "a=-1", "a=9999999999999999999999"])
def test_an_arm_that_is_not_there_is_not_found(cast, query):
    assert client_of(cast, "member").get(at(cast, f"compare/?{query}")).status_code == 404


def test_nothing_to_compare_names_the_next_step(cast):
    page = client_of(cast, "viewer").get(at(cast, "compare/"))
    assert "Two arms needed" in page.content.decode()


def test_another_workspace_sees_nothing(cast):
    a, b = make_compared(cast)
    client = client_of(cast, "outsider")
    other = f"/t/{cast.other_tenant.slug}/evaluations/"
    assert client.get(f"{other}compare/?a={a.pk}&b={b.pk}").status_code == 404
    assert client.get(f"{other}{a.experiment_id}/").status_code == 404
    assert client.post(f"{other}promote/", {"arm": a.pk}).status_code == 404
    assert client.get(at(cast, f"{a.experiment_id}/")).status_code in (403, 404)


def test_promoting_sets_the_baseline(cast):
    _, b = make_compared(cast)
    client = client_of(cast, "member")
    assert client.post(at(cast, "promote/"), {"arm": b.pk}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert Baseline.objects.get().arm_id == b.pk
    page = client.get(at(cast, f"{b.experiment_id}/")).content.decode()
    assert 'popovertarget="term-baseline"' in page
    assert client_of(cast, "viewer").post(at(cast, "promote/"), {"arm": b.pk}).status_code == 403


def test_an_experiment_is_started_by_its_form(cast):
    version = make_version(cast, [Record(question="q", answer="a")])
    client = client_of(cast, "member")
    given = {
        "name": "From the form",
        "version": version.pk,
        "kind": "assistant",
        "models": ["extractive"],
        "k": "10",
        "scorers": ["rubric", "token_f1"],
        "judges": ["lexical"],
        "repeats": 1,
    }
    assert "Start" in client.get(at(cast, "new/")).content.decode()
    assert client.post(at(cast, "new/"), given).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = Experiment.objects.get()
        assert [s["kind"] for s in row.scorers] == ["rubric", "token_f1"]
    refused = client.post(at(cast, "new/"), {**given, "kind": "retriever"})
    assert refused.status_code == 422
    assert "collections" in refused.content.decode()
    assert "From the form" in client.get(at(cast)).content.decode()
    act = at(cast, f"{row.pk}/act/")
    assert client.post(act, {"do": "pause"}).status_code == 302
    assert "Resume" in client.get(at(cast, f"{row.pk}/")).content.decode()
    assert client.post(act, {"do": "drop"}).status_code == 400


def test_a_completed_experiment_says_what_failed(cast):
    a, _ = make_compared(cast, rows=4)
    client = client_of(cast, "viewer")
    detail = at(cast, f"{a.experiment_id}/")
    assert "All failed" not in client.get(detail).content.decode()
    one, every = {"arm": a}, {"experiment_id": a.experiment_id}
    for which, told, icon in ((one, "4 of 8", "triangle-alert"), (every, "8 of 8", "circle-x")):
        with tenant_scope(cast.tenant.pk):
            Trial.objects.filter(**which).update(state="failed")
        for page in (at(cast), detail):
            text = client.get(page).content.decode()
            chip = text.partition(f"Completed, {told} failed")[0].rpartition('<span class="chip')[2]
            assert f"#i-{icon}" in chip
            assert " ok" not in chip
    assert "All failed" in text
    said = {"X-Tenant": cast.tenant.slug}
    read = client.get(f"/api/v1/experiments/{a.experiment_id}", headers=said).json()
    assert (read["state"], read["state_text"]) == ("completed", "Completed, 8 of 8 failed")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("token_f1", "Token F1"),
        ("rouge_l", "ROUGE-L"),
        ("ndcg@10", "nDCG@10"),
        ("clarity", "Clarity"),
        ("recall@5", "Recall@5"),
        ("My own", "My own"),
    ],
)
def test_scores_are_written_as_the_field_writes_them(name, told):
    assert label(name) == told


def test_our_own_scores_have_translated_names_and_a_teams_keep_theirs(monkeypatch):
    monkeypatch.setattr("apps.evaluations.results.labels._", lambda text: f"<{text}>")
    assert [label(name) for name in ("recall@5", "attack_resisted", "overall")] == [
        "<Recall>@5",
        "<Attack resisted>",
        "<Overall>",
    ]
    assert [label(name) for name in ("warmth", "My own", "mrr")] == ["Warmth", "My own", "MRR"]
