"""The remote embedders through the real SDKs, against a transport that plays the service."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import numpy as np
import pytest

from apps.collections.embedders.base import EmbeddingError, batches_of, call_with_retry
from apps.collections.embedders.google import GoogleEmbedder
from apps.collections.embedders.openai import OpenAiEmbedder


class Service:
    """Answers with scripted failures first, then with vectors that tell their text."""

    def __init__(self, *failures: httpx2.Response | Exception) -> None:
        self.failures = list(failures)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        body = json.loads(request.content)
        if "requests" in body:  # Gemini
            texts = [r["content"]["parts"][0]["text"] for r in body["requests"]]
            dims = body["requests"][0]["outputDimensionality"]
            return httpx2.Response(200, json={"embeddings": [{"values": vector(t, dims)} for t in texts]})
        dims = body.get("dimensions", 1536)
        data = [
            {"object": "embedding", "index": i, "embedding": vector(text, dims)}
            for i, text in enumerate(body["input"])
        ]
        return httpx2.Response(
            200,
            json={
                "object": "list",
                "model": body["model"],
                "data": data[::-1],
                "usage": {"prompt_tokens": 7, "total_tokens": 7},
            },
        )

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]


def vector(text: str, dims: int) -> list[float]:
    values = [0.0] * dims
    values[len(text) % dims] = 3.0
    return values


def openai_with(service: Service, **settings) -> OpenAiEmbedder:
    settings = {"dims": 8, **settings}
    client = httpx2.Client(transport=httpx2.MockTransport(service))
    return OpenAiEmbedder(api_key="sk-test", http_client=client, **settings)


def google_with(service: Service, **settings) -> GoogleEmbedder:
    settings = {"dims": 8, **settings}
    client = httpx2.Client(transport=httpx2.MockTransport(service))
    return GoogleEmbedder(api_key="key-test", http_client=client, **settings)


MAKERS = [openai_with, google_with]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    waits: list[float] = []
    # The default argument was bound at import; calls go through it.
    monkeypatch.setitem(call_with_retry.__kwdefaults__, "sleep", waits.append)
    return waits


@pytest.mark.parametrize("make", MAKERS)
def test_vectors_are_normalised_and_in_order(make):
    embedder = make(Service())
    vectors = embedder.embed_documents(["a", "bb", "ccc"])
    assert vectors.shape == (3, 8)
    assert vectors.dtype == np.float32
    assert [int(v.argmax()) for v in vectors] == [1, 2, 3]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert embedder.usage.texts == 3
    assert embedder.usage.requests == 1


@pytest.mark.parametrize(("make", "batch"), [(openai_with, 256), (google_with, 100)])
def test_requests_are_cut_when_there_are_many_texts(make, batch):
    service = Service()
    seen: list[tuple[int, int]] = []
    texts = ["x" * (i % 7 + 1) for i in range(batch * 2 + 1)]
    vectors = make(service).embed_documents(texts, on_progress=lambda *p: seen.append(p))
    assert len(service.requests) == 3
    assert seen == [(batch, len(texts)), (batch * 2, len(texts)), (len(texts), len(texts))]
    assert [int(v.argmax()) for v in vectors] == [len(text) % 8 for text in texts]


def test_request_says_model_and_dimensions_when_openai():
    service = Service()
    embedder = openai_with(service, model="text-embedding-3-small", dims=512)
    embedder.embed_query("hello")
    [body] = service.bodies
    assert body["model"] == "text-embedding-3-small"
    assert body["dimensions"] == 512
    assert service.requests[0].headers["authorization"] == "Bearer sk-test"
    assert embedder.usage.tokens == 7
    assert embedder.space.key == "openai/text-embedding-3-small/512/float32"


def test_dimensions_are_not_sent_when_the_model_cannot_shorten():
    service = Service()
    openai_with(service, model="nomic-embed-text", dims=1536, base_url="http://server.test/v1").embed_query(
        "hi"
    )
    assert "dimensions" not in service.bodies[0]
    assert str(service.requests[0].url) == "http://server.test/v1/embeddings"


def test_task_differs_when_gemini_embeds_a_question():
    service = Service()
    embedder = google_with(service)
    embedder.embed_documents(["passage"])
    embedder.embed_query("question")
    assert [b["requests"][0]["taskType"] for b in service.bodies] == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]
    assert service.requests[0].url.path.endswith("gemini-embedding-001:batchEmbedContents")
    assert service.requests[0].headers["x-goog-api-key"] == "key-test"


@pytest.mark.parametrize("make", MAKERS)
def test_blank_text_gets_a_vector_when_the_service_would_refuse_it(make):
    service = Service()
    assert make(service).embed_documents(["", "word"]).shape == (2, 8)
    assert '""' not in service.requests[0].content.decode()


def openai_error(status: int, code: str = "", **headers: str) -> httpx2.Response:
    body = {"error": {"message": "said no", "type": "t", "param": None, "code": code or None}}
    return httpx2.Response(status, json=body, headers=headers)


def google_error(status: int, message: str = "said no", details: list[Any] | None = None) -> httpx2.Response:
    body = {"error": {"code": status, "message": message, "status": "X", "details": details or []}}
    return httpx2.Response(status, json=body)


def test_call_waits_as_told_when_openai_is_busy(no_waiting):
    service = Service(openai_error(429, **{"retry-after": "3"}), openai_error(503))
    embedder = openai_with(service)
    embedder.embed_query("x")
    assert len(service.requests) == 3 == embedder.usage.requests
    assert 3 <= no_waiting[0] < 3.5
    assert len(no_waiting) == 2


def test_call_waits_as_told_when_gemini_is_busy(no_waiting):
    info = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "4s"}]
    service = Service(google_error(429, details=info), google_error(500))
    google_with(service).embed_query("x")
    assert len(service.requests) == 3
    assert 4 <= no_waiting[0] < 4.5


@pytest.mark.parametrize(
    ("make", "failure", "code", "retryable"),
    [
        (openai_with, openai_error(401), "embedder_auth_failed", False),
        (openai_with, openai_error(403), "embedder_auth_failed", False),
        (openai_with, openai_error(400), "embedder_bad_request", False),
        (openai_with, openai_error(404), "embedder_bad_request", False),
        (openai_with, openai_error(429, "insufficient_quota"), "embedder_rate_limited", False),
        (openai_with, openai_error(429, **{"retry-after": "999"}), "embedder_rate_limited", True),
        (google_with, google_error(401), "embedder_auth_failed", False),
        (google_with, google_error(400, "API key not valid."), "embedder_auth_failed", False),
        (google_with, google_error(400), "embedder_bad_request", False),
        (google_with, google_error(404), "embedder_bad_request", False),
        (google_with, google_error(429, details=[{"retryDelay": "999s"}]), "embedder_rate_limited", True),
    ],
)
def test_error_is_typed_and_sent_once_when_waiting_is_useless(make, failure, code, retryable, no_waiting):
    service = Service(failure)
    with pytest.raises(EmbeddingError) as caught:
        make(service).embed_query("x")
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert len(service.requests) == 1
    assert no_waiting == []


@pytest.mark.parametrize("make", MAKERS)
def test_connection_is_tried_again_when_it_breaks(make):
    service = Service(httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow"))
    assert make(service).embed_query("x").shape == (8,)
    assert len(service.requests) == 3


@pytest.mark.parametrize("make", MAKERS)
def test_error_is_typed_when_vectors_have_the_wrong_length(make):
    class Short(Service):
        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            response = super().__call__(request)
            return httpx2.Response(200, content=response.content.replace(b"0.0,", b"", 1))

    with pytest.raises(EmbeddingError) as caught:
        make(Short()).embed_query("x")
    assert caught.value.code == "embedder_bad_response"


@pytest.mark.parametrize("make", [OpenAiEmbedder, GoogleEmbedder])
def test_error_says_which_key_is_missing(make):
    with pytest.raises(EmbeddingError, match="_API_KEY"):
        make(api_key="")


def test_retry_ends_at_the_deadline_when_failures_go_on():
    now = [0.0]
    calls: list[float] = []

    def fail() -> None:
        calls.append(now[0])
        raise EmbeddingError("embedder_unavailable", "down", retryable=True)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with pytest.raises(EmbeddingError):
        call_with_retry(fail, deadline_s=30, sleep=sleep, clock=lambda: now[0])
    assert 4 <= len(calls) <= 8
    assert calls[-1] <= 30


def test_batches_keep_order_and_limits():
    texts = ["a" * n for n in (5, 5, 5, 30, 1, 1, 1, 1)]
    batches = list(batches_of(texts, max_texts=3, max_chars=12))
    assert [t for _, batch in batches for t in batch] == texts
    assert [start for start, _ in batches] == [0, 2, 3, 4, 7]
    assert all(len(b) <= 3 and (len(b) == 1 or sum(map(len, b)) <= 12) for _, b in batches)
