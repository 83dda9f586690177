"""The page of one answer, and the page of the gate: what they say, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.evaluations.compare.gate import NOT_COMPARABLE
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.judges.scoring import judges_of_kin
from apps.evaluations.models import Experiment, Score, Trial
from apps.evaluations.results.labels import author_told, money_told, time_told
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_compared
from tests.markup import flat

pytestmark = pytest.mark.django_db


def read(cast, role, path, *, slug=""):
    client = Client()
    client.force_login(cast.user(role))
    return client.get(f"/t/{slug or cast.tenant.slug}/evaluations/{path}")


def test_figures_and_authors_in_words():
    assert [money_told(x) for x in (0, 1e-6, 0.0156, 0.5, 12.5)] == [
        "$0",
        "< 0.01 ct",
        "1.6 ct",
        "50 ct",
        "$12.50",
    ]
    assert [time_told(x) for x in (41.6, 6_324)] == ["42 ms", "6.3 s"]
    assert author_told("judge:six@1:openai/gpt") == "openai/gpt, six, version 1"
    assert author_told("lexical:context_recall@1") == "Word count, context recall, version 1"
    assert author_told("token_f1@2") == "Rule, token f1, version 2"
    assert author_told("jury:judge:six@1:a/b+judge:six@1:c") == "Jury: a/b, six, version 1; c, six, version 1"
    assert author_told("person:7#2", {7: "ana@example.org"}) == "ana@example.org"


def test_an_answer_shows_what_each_judge_found_and_where_but_no_grade_of_a_person(cast):
    arm = make_compared(cast, rows=3)[1]
    claim = {
        "claim": "Steel pays <b>50</b>.",
        "verdict": "supported",
        "quote": "50 percent",
        "chunk": 1,
        "document": "notice.pdf",
        "start": 1200,
        "end": 1210,
    }
    given: list[dict[str, Any]] = [
        {
            "name": "faithfulness",
            "value": 0.5,
            "author": "judge:faithfulness@1:m",
            "author_kind": "judge",
            "details": {
                "claims": [claim, {**claim, "verdict": "unverified", "start": None, "quote": "never said"}]
            },
        },
        {
            "name": "context_recall",
            "value": None,
            "author": "judge:context_recall@1:m",
            "author_kind": "judge",
            "reason": "It answered prose.",
        },
        {"name": "clarity", "value": 1.0, "author": "person:1", "author_kind": "person", "reason": "by hand"},
    ]
    with tenant_scope(cast.tenant.pk):
        trial = Trial.objects.filter(arm=arm).order_by("pk")[0]
        Trial.objects.filter(pk=trial.pk).update(answer="**Bold** <script>alert(1)</script> [1]")
        for one in given:
            Score.objects.create(tenant=cast.tenant, trial=trial, **one)
    text = read(cast, "viewer", f"trials/{trial.pk}/").content.decode()
    assert "Steel pays &lt;b&gt;50&lt;/b&gt;." in text
    assert "<strong>Bold</strong> &lt;script&gt;alert(1)" in text
    assert "notice.pdf, characters 1,200 to 1,210" in text
    assert text.count("Quote not found") == 1
    assert "unscored" in text
    assert "It answered prose." in text
    assert "by hand" not in text
    client = Client()
    client.force_login(cast.user("viewer"))
    listed = client.get(
        f"/api/v1/experiments/{trial.experiment_id}/trials?page_size=100",
        headers={"X-Tenant": cast.tenant.slug},
    ).json()["results"]
    given_out = next(one["scores"] for one in listed if one["id"] == trial.pk)
    assert claim in next(one["details"] for one in given_out if one["name"] == "faithfulness")["claims"]
    assert read(cast, "viewer", f"trials/{10**9}/").status_code == 404
    other = read(cast, "outsider", f"trials/{trial.pk}/", slug=cast.other_tenant.slug)
    assert other.status_code == 404


def test_labels_that_went_stale_are_told_of_before_a_fall_is_believed(cast):
    a, b = make_compared(cast, rows=24)
    label = {"document_id": 1, "start": 0, "end": 9, "quote": "q"}
    with tenant_scope(cast.tenant.pk):
        Experiment.objects.filter(pk=a.experiment_id).update(
            scorers=[{"kind": "retrieval", "options": {"k": 5}}], corpus="one"
        )
        for trial in Trial.objects.filter(arm__in=[a, b]):
            chunks = [] if trial.position % 4 == 0 else [[7, 1.0]]
            trial.outcome = {"labels": [{**label, "chunks": chunks}]}
            trial.save(update_fields=["outcome"])
        baseline_set(tenant=cast.tenant, actor=cast.actor("member"), arm=a)
    told = "Only 75\u00a0% of the labelled passages are still in the documents"
    for path in (f"{a.experiment_id}/", f"compare/?a={a.pk}&b={b.pk}", f"arms/{b.pk}/gate/"):
        page = read(cast, "viewer", path)
        assert page.status_code == 200
        assert told in page.content.decode(), path
    assert page.context["result"].code == NOT_COMPARABLE


def test_a_judge_of_the_same_family_or_provider_is_named():
    specs = [
        {"kind": "rubric", "options": {"models": ["openai/gpt-6-mini", "anthropic/claude-5", "lexical"]}}
    ]
    assert judges_of_kin(specs, ["local/gpt-oss-20b"]) == ["openai/gpt-6-mini"]
    assert judges_of_kin(specs, ["anthropic/other"]) == ["anthropic/claude-5"]
    assert judges_of_kin(specs, ["google/gemini-3", "extractive"]) == []


def test_how_small_a_change_shows_is_said_before_the_start(cast):
    make_compared(cast, rows=24)
    text = read(cast, "member", "new/").content.decode()
    assert "version 1 (24 rows, show 0.14)" in text  # 2.8 standard errors of 0.25


def test_the_gate_says_what_it_decides_and_how_a_build_server_asks(cast):
    a, b = make_compared(cast, rows=24)
    path = f"arms/{a.pk}/gate/"
    page = read(cast, "viewer", path)
    assert "No baseline yet" in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        baseline_set(tenant=cast.tenant, actor=cast.actor("member"), arm=b, note="Second release")
    page = read(cast, "viewer", path)
    text = page.content.decode()
    assert "Can be released" in text  # judges alone have scored, and people agree with none of them
    assert flat(text).count("Advisory</span>") == len(page.context["checks"])
    assert "Second release" in text
    assert "Make baseline" not in text
    assert "Make baseline" in read(cast, "member", path).content.decode()
    command = read(cast, "viewer", f"{path}?tolerance=0.05&most_failed_rows=3").context["command"]
    assert command == (
        f"manage.py eval_gate --tenant {cast.tenant.slug} --experiment {a.experiment_id} --arm 0 "
        "--tolerance 0.05 --most-failed-rows 3 --junit gate.xml"
    )
    for wrong in ("tolerance=x", "baseline=none", "bar=2"):
        refused = read(cast, "viewer", f"{path}?{wrong}")
        assert refused.status_code == 422
        assert "command" not in refused.context
    other = read(cast, "outsider", path, slug=cast.other_tenant.slug)
    assert other.status_code == 404
