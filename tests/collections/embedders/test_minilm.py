from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings

from apps.collections.embedders import minilm, minilm_build
from apps.collections.embedders.base import EmbeddingError
from apps.collections.embedders.minilm import MiniLmEmbedder, is_prepared, model_file, prepare_model
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [
    "Steel imports pay an additional duty of 50 percent.",
    "The tariff on steel was raised.",
    "My cat likes to sleep on the warm roof.",
    "Heading 8539.50.00 covers light-emitting diode (LED) lamps. " * 8,
    "x",
    "",
    "Unemployment insurance is administered by the Department of Labor and its state partners. " * 30,
]


@pytest.fixture(scope="session")
def models() -> Path:
    """The run's own data folder: it has the model anyway, and a build takes seconds."""
    prepare_model(settings.DATA_DIR)
    return settings.DATA_DIR


@pytest.fixture(scope="session")
def embedder(models) -> MiniLmEmbedder:
    return MiniLmEmbedder(models)


def test_vectors_are_normalised_and_in_order_when_lengths_differ(embedder):
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    alone = np.stack([embedder.embed_documents([text])[0] for text in TEXTS])
    assert np.array_equal(vectors, alone)  # whatever company a text is in
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]


def test_int8_stays_close_to_fp32(models, embedder):
    full = MiniLmEmbedder(models, precision="fp32")
    texts = [text for text in TEXTS if len(text) > 20]
    cosine = (embedder.embed_documents(texts) * full.embed_documents(texts)).sum(axis=1)
    assert cosine.min() >= 0.993
    assert cosine.mean() >= 0.995
    assert full.space != embedder.space


def test_fp32_equals_the_published_model(models):
    # The reference is a plain numpy forward pass over the same weights, by the paper.
    text = "This is an example sentence"
    vector = MiniLmEmbedder(models, precision="fp32").embed_query(text)
    assert vector @ _reference(text) > 0.99999


def test_question_equals_its_passage_vector(embedder):
    assert np.array_equal(embedder.embed_query("tariff"), embedder.embed_documents(["tariff"])[0])


def test_no_texts_give_no_vectors(embedder):
    assert embedder.embed_documents([]).shape == (0, 384)


def test_text_is_seen_to_256_tokens_when_it_is_longer(embedder):
    before = embedder.usage
    base = "word " * 254
    same, cut = embedder.embed_documents([base + "zebra " * 50, base + "quantum " * 400])
    after = embedder.usage
    assert same @ cut > 0.9999
    assert after.truncated - before.truncated == 2
    assert after.tokens - before.tokens == 512
    # Not cut at 128, as the tokenizer's file would have it.
    early, late = embedder.embed_documents(["word " * 140, "word " * 140 + "zebra " * 60])
    assert early @ late < 0.99


def test_progress_reaches_the_total_and_may_stop(embedder):
    seen: list[tuple[int, int]] = []
    embedder.embed_documents(["some words here"] * 70, on_progress=lambda *p: seen.append(p))
    assert seen[-1] == (70, 70)
    assert len(seen) > 1

    class Stopped(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        embedder.embed_documents(["a"] * 100, on_progress=stop)


def test_vectors_agree_when_threads_share_an_embedder(models):
    shared = MiniLmEmbedder(models)
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: results.append(shared.embed_query("one question"))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.array_equal(results[0], other) for other in results)
    assert shared.usage.texts == 6


def test_model_is_built_once_when_processes_race_in_place_of_a_damaged_and_an_old_one(models, tmp_path):
    """A build takes seconds, so one serves: it replaces a file cut short, and the single file of an earlier release."""
    target = model_file(tmp_path)
    target.parent.mkdir()
    target.write_bytes(model_file(models).read_bytes()[:1000])
    old = target.with_name(target.name.replace("-mapped", ""))
    old.write_bytes(b"graph and table")
    for file in (target, old):
        file.with_suffix(".sha256").write_text("0" * 64)
    assert not is_prepared(tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from apps.collections.embedders.minilm import prepare_model\n"
        "print(prepare_model(Path(sys.argv[1])).stat().st_mtime_ns)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) for _ in range(3)
    ]
    times = {run.communicate(timeout=PATIENCE_S)[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(times) == 1
    assert is_prepared(tmp_path)
    assert [p.name for p in target.parent.iterdir() if p.name.startswith(".")] == []
    assert prepare_model(tmp_path) == target
    made, wanted = (hashlib.sha256(model_file(one).read_bytes()).digest() for one in (tmp_path, models))
    assert made == wanted
    assert not old.exists()
    assert not old.with_suffix(".sha256").exists()


def test_model_is_built_again_when_its_table_is_damaged(models, tmp_path):
    precision: minilm.Precision = "fp32"  # it is built in a fraction of the time
    prepare_model(models, precision)
    (tmp_path / "models").mkdir()
    for built in (model_file(models), model_file(models, precision)):
        for file in (built, minilm_build.table_path(built), built.with_suffix(".sha256")):
            shutil.copy(file, tmp_path / "models")
    assert is_prepared(tmp_path, precision)
    table = minilm_build.table_path(model_file(tmp_path, precision))
    with table.open("r+b") as stream:
        stream.seek(1_000_000)
        stream.write(b"\1")
    assert not is_prepared(tmp_path, precision)
    assert is_prepared(tmp_path), "the other one is whole"
    table.unlink()
    assert not is_prepared(tmp_path, precision)
    prepare_model(tmp_path, precision)
    assert is_prepared(tmp_path, precision)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_table_of_words_is_mapped_and_not_copied(models, embedder):
    embedder.embed_query("steel")
    table = minilm_build.table_path(model_file(models))
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert str(table) in maps
    assert table.stat().st_size > 40_000_000 > model_file(models).stat().st_size


def test_weights_are_refused_when_their_hash_differs(tmp_path):
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"not the weights")
    with pytest.raises(minilm_build.WeightsError, match="not the checked ones"):
        minilm_build.build(tmp_path / "x.onnx", "int8", weights)
    assert not (tmp_path / "x.onnx").exists()


def test_error_says_what_to_do_when_the_build_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "_ROOT", tmp_path)  # the child finds no module to run
    with pytest.raises(EmbeddingError) as caught:
        prepare_model(tmp_path / "data")
    assert caught.value.code == "embedder_misconfigured"
    assert not caught.value.retryable
    assert not is_prepared(tmp_path / "data")


def test_error_says_what_to_do_when_the_folder_is_a_file(tmp_path):
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(EmbeddingError, match="writable"):
        prepare_model(tmp_path / "data")


def test_importing_costs_nothing_when_nothing_is_embedded():
    code = (
        "import sys\n"
        "import apps.collections.embedders.registry, apps.collections.embedders.minilm, apps.collections.ingestion.lexical\n"
        "import apps.collections.ingestion.extraction, apps.collections.ingestion.chunking\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'pypdfium2', 'kreuzberg', 'openai', 'google.genai',"
        " 'django', 'PIL', 'snowballstemmer'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == ""
    assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
    return {"PYTHONPATH": path, "PATH": os.environ["PATH"]}


def _reference(text: str) -> Any:
    """Run BERT by the book in float64."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights = {
        k.removeprefix("bert."): v.astype(np.float64)
        for k, v in load_file(minilm_build.weights_path()).items()
        if v.dtype == np.float32
    }
    tokenizer = Tokenizer.from_file(str(minilm_build.tokenizer_path()))
    tokenizer.no_padding()
    ids = tokenizer.encode(text).ids

    def norm(x: Any, name: str) -> Any:
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(var + 1e-12)
        return scaled * weights[name + ".weight"] + weights[name + ".bias"]

    def dense(x: Any, name: str) -> Any:
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def gelu(x: Any) -> Any:
        from math import erf

        return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    e = "embeddings."
    x = weights[e + "word_embeddings.weight"][ids] + weights[e + "token_type_embeddings.weight"][0]
    x = norm(x + weights[e + "position_embeddings.weight"][: len(ids)], e + "LayerNorm")
    for i in range(6):
        p = f"encoder.layer.{i}."
        q, k, v = (
            dense(x, f"{p}attention.self.{n}").reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for n in ("query", "key", "value")
        )
        scores = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(32))
        mixed = ((scores / scores.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(-1, 384)
        x = norm(x + dense(mixed, p + "attention.output.dense"), p + "attention.output.LayerNorm")
        wide = gelu(dense(x, p + "intermediate.dense"))
        x = norm(x + dense(wide, p + "output.dense"), p + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)
