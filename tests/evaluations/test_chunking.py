"""Arms that search the same documents cut into other passages: labels follow, and other documents are refused."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.models import Chunk, Collection, Document
from apps.collections.search import SearchResult
from apps.evaluations.experiments.forms import ExperimentForm
from apps.evaluations.models import Arm, Experiment, Score
from apps.evaluations.trials import tasks
from basics.errors import Invalid
from tenancy.scope import tenant_scope
from tests.conversations.conftest import hit_of
from tests.conversations.support import TEXTS, Library, make_library
from tests.evaluations.support import make_experiment, make_version, rows_of, work_off


@pytest.fixture
def longer(cast, library) -> Library:
    """The library's document once more: the first two passages are one."""
    made = make_library(cast, "Long", texts=(f"{TEXTS[0]}\n\n{TEXTS[1]}", *TEXTS[2:]))
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=made.document.pk).update(
            sha256=library.document.sha256, name="Another name.pdf"
        )
        Collection.objects.filter(pk=made.collection.pk).update(chunk_total=2)
    return made


@pytest.fixture
def form(cast, library, longer):
    version = make_version(cast, rows_of(library))

    def fill(**given: Any) -> ExperimentForm:
        both = [library.collection.pk, longer.collection.pk]
        data = {
            "name": "Passages",
            "version": version.pk,
            "kind": "retriever",
            "collections": both,
            "apart": "on",
            "scorers": ["retrieval"],
            "judges": ["lexical"],
            "repeats": 1,
        }
        with tenant_scope(cast.tenant.pk):
            made = ExperimentForm({**data, **given}, tenant=cast.tenant, actor=cast.actor("member"))
            made.is_valid()
            return made

    return fill


@pytest.mark.django_db
def test_the_form_makes_an_arm_of_each_collection(form, library, longer):
    arms = form(k="3 5").arms()
    assert [(a.target["collections"], a.target["k"]) for a in arms] == [
        ([library.collection.pk], 3),
        ([library.collection.pk], 5),
        ([longer.collection.pk], 3),
        ([longer.collection.pk], 5),
    ]
    assert arms[-1].name == "Long (2 passages), hybrid search, k 5"
    chat = form(kind="assistant", neighbours="0 2").arms()
    assert [a.target["neighbours"] for a in chat] == [0, 2, 0, 2]
    assert "neighbours" in form(neighbours="many").errors
    with pytest.raises(Invalid, match="neighbours"):
        form(kind="assistant", neighbours="9").arms()
    assert "apart" in form(collections=[longer.collection.pk]).errors
    assert "apart" in form(kind="model", models=["extractive"]).errors


@pytest.mark.django_db
def test_collections_of_other_documents_are_no_arms_of_one_comparison(cast, library, longer):
    other = make_library(cast, "Other")
    version = make_version(cast, rows_of(library))

    def start(*collections: Any) -> Experiment:
        targets = [{"kind": "retriever", "collections": one} for one in collections]
        return make_experiment(cast, version, *targets, same_documents=True)

    mine = [library.collection.pk]
    assert start(mine, [longer.collection.pk]).pk
    with pytest.raises(Invalid, match=r"“Other” doesn't have the same documents.* 1 are missing.* 1 are"):
        start(mine, [other.collection.pk])
    with pytest.raises(Invalid, match="two or more collections"):
        start(mine, mine)


@pytest.mark.django_db(transaction=True)
async def test_labels_follow_their_passages_into_the_other_collection(
    cast, library, longer, monkeypatch, lane_threads
):
    def search(**kwargs: Any) -> SearchResult:
        chunks = Chunk.objects.select_related("document")
        chunks = chunks.filter(collection__in=kwargs["collections"]).order_by("pk")
        hits = [hit_of(chunk) for chunk in chunks]
        return SearchResult(kwargs["query"], hits, [], ("lexical",), "", 0.0, 0.0)

    monkeypatch.setattr(tasks, "search_run", search)
    version = await sync_to_async(make_version)(cast, rows_of(library))
    targets = [{"kind": "retriever", "collections": [one.collection.pk]} for one in (library, longer)]
    experiment = await sync_to_async(make_experiment)(cast, version, *targets, same_documents=True)
    await work_off(experiment, lane_threads)

    def ranks(place: int) -> list[float]:
        with tenant_scope(cast.tenant.pk):
            arm = Arm.objects.get(experiment=experiment, position=place)
            scores = Score.objects.filter(trial__arm=arm, name="mrr").order_by("trial__position")
            return [float(value or 0) for value in scores.values_list("value", flat=True)]

    assert await sync_to_async(ranks)(0) == pytest.approx([1, 1 / 2, 1 / 3])
    assert await sync_to_async(ranks)(1) == pytest.approx([1, 1, 1 / 2])
