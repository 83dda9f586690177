from __future__ import annotations

import pytest

from apps.collections.embedders.base import EmbeddingError
from apps.collections.embedders.minilm import MiniLmEmbedder
from apps.collections.embedders.registry import EmbedderName, make_embedder, parse_embedder


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("local/all-MiniLM-L6-v2", EmbedderName("local", "all-MiniLM-L6-v2", 0)),
        ("local/bge-small-en-v1.5", EmbedderName("local", "bge-small-en-v1.5", 0)),
        ("openai/text-embedding-3-small", EmbedderName("openai", "text-embedding-3-small", 1536)),
        ("openai/org/model@1024", EmbedderName("openai", "org/model", 1024)),
        ("google/gemini-embedding-001@256", EmbedderName("google", "gemini-embedding-001", 256)),
    ],
)
def test_setting_is_parsed(setting, expected):
    assert parse_embedder(setting) == expected


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "local",
        "local/other@256",
        "local/two words",
        "local/../other",
        "openai/",
        "openai/unknown-model",
        "cohere/x@3",
        "openai/x@0",
        "openai/x@many",
    ],
)
def test_setting_is_refused_with_examples_when_wrong(setting):
    with pytest.raises(EmbeddingError, match="text-embedding-3-small@512") as caught:
        parse_embedder(setting)
    assert caught.value.code == "embedder_misconfigured"


def test_local_model_that_nobody_installed_is_refused(tmp_path):
    with pytest.raises(EmbeddingError, match="embedder_add"):
        make_embedder("local/other", data_dir=tmp_path)


def test_local_embedder_is_shared_and_remote_is_not(tmp_path):
    first = make_embedder(data_dir=tmp_path)
    assert isinstance(first, MiniLmEmbedder)
    assert make_embedder(data_dir=tmp_path) is first
    remote = [make_embedder("openai/text-embedding-3-small", data_dir=tmp_path, api_key=key) for key in "ab"]
    assert remote[0] is not remote[1]


def test_spaces_differ_when_anything_that_moves_vectors_differs(tmp_path):
    settings = [
        "local/all-MiniLM-L6-v2",
        "local/all-MiniLM-L6-v2:fp32",
        "openai/text-embedding-3-small",
        "openai/text-embedding-3-small@512",
        "google/gemini-embedding-001",
    ]
    keys = [make_embedder(s, data_dir=tmp_path, api_key="k").space.key for s in settings]
    other = make_embedder(settings[2], data_dir=tmp_path, api_key="k", base_url="http://else.test/v1")
    assert len({*keys, other.space.key}) == 6
    assert not (tmp_path / "models").exists()  # naming a space builds nothing
