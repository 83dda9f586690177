"""Embedders that the operator installs: by a command, choosable per collection, with a clear word where one is missing."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.collections.collection import swaps
from apps.collections.embedders.base import EmbeddingError
from apps.collections.embedders.minilm import MiniLmEmbedder, prepare_model
from apps.collections.embedders.minilm_build import table_path, tokenizer_path
from apps.collections.index.embedding import embedder_choices, embedder_for, setting_of, space_for
from apps.collections.models import InstalledEmbedder
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.embedders.onnx_models import DIMS, folder_write, reference
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_write(tmp_path / "tiny-embed")


def add(*args: Any) -> str:
    out = StringIO()
    call_command("embedder_add", *map(str, args), stdout=out, stderr=out)
    return out.getvalue()


def test_command_checks_and_installs_what_collections_can_then_choose(cast: Cast, folder: Path) -> None:
    said = add(folder, "--query-prefix", "query: ")
    assert "dimensions:     8" in said
    assert "similarity:" in said
    assert "passages of 120 words a second" in said
    assert "Installed as local/tiny-embed." in said
    assert "local/tiny-embed" in embedder_choices()
    with tenant_scope(cast.tenant.pk):
        space = space_for("local/tiny-embed", tenant=cast.tenant)
        assert (space.dimensions, setting_of(space)) == (DIMS, "local/tiny-embed")
        embedder = embedder_for(space, tenant=cast.tenant)
        vector = embedder.embed_query("wine")
        assert np.abs(vector - reference("query: wine", "mean")).max() < 1e-6
        assert embedder_for(space, tenant=cast.tenant) is embedder  # loaded once a process
        swap = swaps.swap_start(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            collection=make_collection(cast.tenant, "Trade"),
            embedder="local/tiny-embed",
        )
        assert swap.to_space == space


def test_check_alone_installs_nothing(folder: Path) -> None:
    assert "Nothing was installed" in add(folder, "--check")
    assert not InstalledEmbedder.objects.exists()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CommandError, match=r"has no tokenizer.json"):
        add(folder)
    assert not InstalledEmbedder.objects.exists()


def test_same_model_may_move_and_another_takes_its_name_only_while_nobody_uses_it(
    cast: Cast, folder: Path, tmp_path: Path
) -> None:
    add(folder)
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    add(moved, "--name", "tiny-embed")
    assert InstalledEmbedder.objects.get().folder == str(moved)
    add(moved, "--name", "tiny-embed", "--pooling", "cls")
    with tenant_scope(cast.tenant.pk):
        space = space_for("local/tiny-embed", tenant=cast.tenant)
        make_collection(cast.tenant, "Trade", space=space)
    with pytest.raises(CommandError, match=r"1 collection uses it. Give this one another --name"):
        add(moved, "--name", "tiny-embed", "--pooling", "last")
    add(moved, "--name", "tiny-embed", "--pooling", "cls")  # the same again
    assert InstalledEmbedder.objects.get().options["pooling"] == "cls"


def test_machine_without_the_folder_says_which_and_what_to_do(cast: Cast, folder: Path) -> None:
    add(folder)
    with tenant_scope(cast.tenant.pk):
        space = space_for("local/tiny-embed", tenant=cast.tenant)  # needs no files
        shutil.rmtree(folder)
        with pytest.raises(EmbeddingError, match=r"isn't on the machine .* Copy its folder") as caught:
            embedder_for(space, tenant=cast.tenant).embed_query("wine")
        assert caught.value.code == "embedder_misconfigured"


def test_embedder_that_nobody_installed_is_refused(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk), pytest.raises(EmbeddingError, match="embedder_add"):
        space_for("local/tiny-embed", tenant=cast.tenant)


def test_prepare_verifies_the_installed_model_of_new_collections(folder: Path, settings: Any) -> None:
    settings.EMBEDDER = "local/tiny-embed"
    with pytest.raises(CommandError, match="embedder_add"):
        call_command("embedder_prepare")
    add(folder)
    out = StringIO()
    call_command("embedder_prepare", stdout=out)
    assert "local/tiny-embed is here" in out.getvalue()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CommandError, match="other files on the machine"):
        call_command("embedder_prepare")


def test_built_in_model_taken_from_a_folder_gives_the_same_vectors(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    file = prepare_model(settings.DATA_DIR)
    folder = tmp_path / "minilm"
    shutil.copytree(tokenizer_path().parent, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.copy(file, folder / "model.onnx")
    shutil.copy(table_path(file), folder)
    add(folder, "--name", "minilm-folder")
    texts = ["Steel imports pay an additional duty.", "", "tariff " * 400, "Größe ändern 鋼鐵"]
    with tenant_scope(cast.tenant.pk):
        space = space_for("local/minilm-folder", tenant=cast.tenant)
        embedder = embedder_for(space, tenant=cast.tenant)
    own = MiniLmEmbedder(settings.DATA_DIR)
    assert space.dimensions == 384
    assert np.array_equal(embedder.embed_documents(texts), own.embed_documents(texts))
    assert np.array_equal(embedder.embed_query(texts[0]), own.embed_query(texts[0]))
