"""A reranker that reads question and passage together with a cross-encoder the operator put on disk, as an ONNX file.

Beside the file lies its ``tokenizer.json``. Nothing is downloaded, and no torch is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.collections.embedders.onnx_files import session_load, tokenizer_load
from apps.collections.search.types import SearchHit
from basics.errors import DomainError

MAX_TOKENS = 512  # of question and passage together
_BATCH = 8


class CrossEncoder:
    """Scores pairs of question and passage; loads its file with the first search and is shared by all threads.

    Args:
        file: takes ``input_ids`` and ``attention_mask``, ``token_type_ids`` if it wants them, and gives one row of
            logits per pair, whose last column says how relevant the passage is.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """Return what the trace and notes call it."""
        return f"cross-encoder:{self._file.stem}"

    def rerank(self, query: str, hits: Sequence[SearchHit]) -> list[SearchHit]:
        """Return the same hits, best first; see ``Reranker``.

        Raises:
            DomainError: ``reranker_misconfigured``: file or tokenizer cannot be used.
        """
        tokenizer, session = self._ready()
        try:
            logits = pair_logits(tokenizer, session, [(query, _passage(hit)) for hit in hits])
        except Exception as error:  # the runtime's own errors have no common class
            raise _misconfigured(self._file, error) from error
        scores = [row[-1] for row in logits]
        scored = [replace(hit, rerank_score=score) for hit, score in zip(hits, scores, strict=True)]
        return sorted(scored, key=lambda hit: -(hit.rerank_score or 0.0))

    def _ready(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = pair_model_load(self._file)
                except Exception as error:  # as above
                    raise _misconfigured(self._file, error) from error
            return self._loaded


def reranker_configured() -> CrossEncoder | None:
    """Return the cross-encoder that the operator has set, None for none."""
    return _cross_encoder(Path(settings.RERANKER)) if settings.RERANKER else None


@lru_cache(maxsize=2)
def _cross_encoder(file: Path) -> CrossEncoder:
    return CrossEncoder(file)


def pair_model_load(file: Path) -> tuple[Any, Any]:
    """Return tokenizer and session of a model that reads two texts together; ``tokenizer.json`` lies beside the file.

    Whatever the runtime or the tokenizer raises is passed on: their errors have no common class.
    """
    beside = file.with_name("tokenizer.json")
    return tokenizer_load(beside, max_tokens=MAX_TOKENS, padded=True), session_load(file)


def pair_logits(tokenizer: Any, session: Any, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
    """Return one row of logits per pair of texts, asked ``_BATCH`` pairs at a time.

    Raises:
        ValueError: a logit is not a finite number. What the runtime raises is passed on.
    """
    import numpy as np

    wanted = [entry.name for entry in session.get_inputs()]
    rows: list[list[float]] = []
    for start in range(0, len(pairs), _BATCH):
        encoded = tokenizer.encode_batch(list(pairs[start : start + _BATCH]))
        columns = {
            "input_ids": [one.ids for one in encoded],
            "attention_mask": [one.attention_mask for one in encoded],
            "token_type_ids": [one.type_ids for one in encoded],
        }
        feed = {name: np.array(columns[name], np.int64) for name in wanted}
        logits = np.asarray(session.run(None, feed)[0], np.float64).reshape(len(encoded), -1)
        if not np.isfinite(logits).all():
            raise ValueError("it gave scores that are not finite numbers")
        rows += logits.tolist()
    return rows


def _passage(hit: SearchHit) -> str:
    return " > ".join([*hit.headings, ""]) + hit.text


def _misconfigured(file: Path, error: Exception) -> DomainError:
    return DomainError(
        "reranker_misconfigured",
        f"The reranker {file.name} cannot be used ({error}). Put an ONNX cross-encoder and its tokenizer.json into one "
        "folder and name the file in GROUNDWORK_RERANKER, or unset it.",
        status=500,
    )


__all__ = ["MAX_TOKENS", "CrossEncoder", "pair_logits", "pair_model_load", "reranker_configured"]
