"""Sentence models in ONNX Runtime: tokens in, one vector of length 1 a text out; loaded with the first text."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from apps.collections.embedders.base import EmbeddingSpace, EmbeddingUsage
from apps.collections.embedders.kept import IDLE_S, KeptModel
from apps.collections.embedders.onnx_files import first_line, refused

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from apps.collections.embedders.base import Vectors

_PROGRESS_EVERY = 16
_INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_GIVEN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


class SentenceModel:
    """A loaded tokenizer and session, and how their output becomes a vector.

    Args:
        pooling: mean, cls or last of the tokens, or pooled: the graph gives one vector a text.
        is_firm: it is done so or not at all. Else it is what the files say, and a graph that pools by itself goes before.
        dimensions: the first numbers of each vector that are kept, 0 for all.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: the graph wants or gives what is not known here.
    """

    def __init__(
        self,
        tokenizer: Any,
        session: Any,
        *,
        pooling: str,
        is_firm: bool = True,
        dimensions: int = 0,
        lowercase: bool = False,
    ) -> None:
        self._tokenizer, self._session, self._lowercase = tokenizer, session, lowercase
        self._types = {i.name: _integer(i) for i in session.get_inputs()}
        self._output, self.pooling = _output(session, pooling, is_firm=is_firm)
        self._dimensions = dimensions

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """Return the tokens of each text; a text without any gets those of a full stop.

        Raises:
            EmbeddingError: ``embedder_misconfigured``: the tokenizer knows no full stop either.
        """
        lowered = [text.lower() for text in texts] if self._lowercase else list(texts)
        encoded: list[Any] = self._tokenizer.encode_batch_fast(lowered)
        for number, one in enumerate(encoded):
            if not one.ids:
                encoded[number] = self._tokenizer.encode(".")
                if not encoded[number].ids:
                    raise refused("The tokenizer makes no tokens of an empty text.")
        return encoded

    def vector(self, encoding: Any) -> npt.NDArray[np.float32]:
        """Return the vector of one text, not yet of length 1; shape (dimensions,).

        Raises:
            EmbeddingError: ``embedder_misconfigured``: the graph fails, or gives no such vector.
        """
        import numpy as np

        length = len(encoding.ids)
        columns = {
            "input_ids": encoding.ids,
            "attention_mask": [1] * length,
            "token_type_ids": encoding.type_ids,
            "position_ids": range(length),
        }
        feed = {name: np.array([columns[name]], kind) for name, kind in self._types.items()}
        try:
            (found,) = self._session.run([self._output], feed)
        except Exception as error:  # the runtime's own errors have no common class
            raise refused(f"The model can't be run ({first_line(error)}).") from error
        wanted = 2 if self.pooling == "pooled" else 3
        if found.ndim != wanted or found.shape[0] != 1 or (wanted == 3 and found.shape[1] != length):
            raise refused(
                f"The model's output {self._output} has the shape {found.shape}, which isn't one of {'a vector' if wanted == 2 else 'one vector a token'}."
            )
        whole: npt.NDArray[np.float32] = _pooled(np.asarray(found[0], np.float32), self.pooling)
        if len(whole) < self._dimensions:
            raise refused(f"The model's vectors have {len(whole):,} numbers, not {self._dimensions:,}.")
        return whole[: self._dimensions] if self._dimensions else whole


class OnnxEmbedder:
    """Embeds with a sentence model on this machine's processor; see ``Embedder``.

    The model loads with the first text, not before, and is then shared by all threads of the process until none has had
    a text for a while.

    Args:
        space: identity of the vectors.
        load: gives the model; raises ``EmbeddingError``.
        query_prefix, passage_prefix: put before each question and each passage.
        idle_s: see ``KeptModel``.
    """

    def __init__(
        self,
        space: EmbeddingSpace,
        load: Callable[[], SentenceModel],
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        idle_s: float = IDLE_S,
    ) -> None:
        self._space = space
        self._kept = KeptModel(load, idle_s=idle_s)
        self._query_prefix, self._passage_prefix = query_prefix, passage_prefix
        self._usage = EmbeddingUsage()
        self._lock = threading.Lock()

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors."""
        return self._space

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts since this embedder was made."""
        return self._usage

    def counting_apart(self) -> OnnxEmbedder:
        """Return an embedder on the same loaded model whose ``usage`` counts its own texts alone.

        Raises:
            EmbeddingError: ``embedder_misconfigured``.
        """
        self.load()
        apart = copy.copy(self)
        apart._usage = EmbeddingUsage()
        return apart

    def load(self) -> None:
        """Load model and tokenizer now instead of with the first text.

        Raises:
            EmbeddingError: ``embedder_misconfigured``.
        """
        with self._kept.use():
            pass

    def embed_documents(
        self, texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """Embed passages; see ``Embedder``."""
        return self._embed([self._passage_prefix + text for text in texts], on_progress)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self._embed([self._query_prefix + text], None)[0]
        return vector

    def _embed(self, texts: Sequence[str], on_progress: Callable[[int, int], None] | None) -> Vectors:
        import numpy as np

        result = np.empty((len(texts), self._space.dims), dtype=np.float32)
        if not texts:
            return result
        with self._kept.use() as model:
            encoded = model.encode(texts)
            # One text a run: activations are quantised with one scale a run, so in a batch a text's vector would depend
            # on its company. On one thread it costs nothing either (28.8 against 27.9 chunks of 256 tokens a second in
            # batches), because a small run stays in the processor's cache and nothing is padded.
            for i, tokens in enumerate(encoded):
                result[i] = _unit(model.vector(tokens), self._space)
                if on_progress is not None and ((i + 1) % _PROGRESS_EVERY == 0 or i + 1 == len(texts)):
                    on_progress(i + 1, len(texts))
        with self._lock:
            self._usage = self._usage.plus(
                texts=len(texts),
                tokens=sum(len(e.ids) for e in encoded),
                truncated=sum(1 for e in encoded if e.overflowing),
            )
        return result


def _unit(vector: Any, space: EmbeddingSpace) -> Any:
    import numpy as np

    if vector.shape != (space.dims,):
        raise refused(f"The model gave {vector.size:,} numbers for a vector of {space.dims:,}.")
    # In double precision: squares of half-precision numbers are too small for single.
    exact = vector.astype(np.float64)
    length = math.sqrt(exact.dot(exact))
    if not math.isfinite(length) or length == 0:
        raise refused("The model gave a vector that isn't finite or has length zero.")
    return vector / length


def _pooled(found: Any, pooling: str) -> Any:
    """Pool one text's output; all its tokens count, as nothing is padded."""
    import numpy as np

    if pooling == "mean":
        return found.mean(axis=0, dtype=np.float64).astype(np.float32)
    if pooling == "cls":
        return found[0]
    return found[-1] if pooling == "last" else found


def _integer(entry: Any) -> str:
    if entry.name not in _GIVEN:
        raise refused(
            f"The model wants the input {entry.name}, which isn't known here. Export it for sentence embeddings with "
            f"the inputs {', '.join(_GIVEN[:3])}."
        )
    if entry.type not in _INTEGERS:
        raise refused(f"The model wants {entry.name} as {entry.type}; only int64 and int32 are given.")
    return _INTEGERS[entry.type]


def _output(session: Any, pooling: str, *, is_firm: bool) -> tuple[str, str]:
    """Return which output is used, and how it is pooled.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: none fits, or the pooling must be said.
    """
    ranks = {o.name: len(o.shape or ()) for o in session.get_outputs()}
    # A classifier's scores and BERT's pooler (trained to tell next sentences) are no sentence vectors.
    whole = [n for n, rank in ranks.items() if rank == 2 and n not in ("logits", "pooler_output")]
    tokens = [n for n, rank in ranks.items() if rank == 3]
    whole.sort(key=lambda name: name != "sentence_embedding")
    tokens.sort(key=lambda name: name not in ("last_hidden_state", "token_embeddings"))
    goes_before = not is_firm and (not tokens or whole[:1] == ["sentence_embedding"])
    if whole and (pooling == "pooled" or goes_before):
        return whole[0], "pooled"
    if whole and not tokens:
        raise refused(f"The model does its own pooling (its output is {whole[0]}). Leave --pooling out.")
    if not tokens or pooling == "pooled":
        raise refused(
            f"None of the model's outputs ({', '.join(ranks)}) can be used. Is it a sentence model?"
        )
    if not pooling:
        raise refused(
            "Its files don't say how it pools. Set --pooling to mean, cls or last; see the model's page."
        )
    return tokens[0], pooling


__all__ = ["OnnxEmbedder", "SentenceModel"]
