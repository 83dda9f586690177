"""The local embedder: all-MiniLM-L6-v2 as an int8 ONNX graph on one thread, no torch, no download."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace, EmbeddingUsage
from apps.collections.embedders.minilm_build import DIMS, WEIGHTS_SHA256, tokenizer_path

if TYPE_CHECKING:
    from apps.collections.embedders.base import Vectors

Precision = Literal["int8", "fp32"]

MODEL_NAME = "all-MiniLM-L6-v2"
MAX_TOKENS = 256
# Raise it with any change that moves vectors: old and new ones must not share a space.
GRAPH_VERSION = 2
_PROGRESS_EVERY = 16
_BUILD_SECONDS = 180
_ROOT = Path(__file__).resolve().parents[3]


def space_of(precision: Precision) -> EmbeddingSpace:
    """Name the space of a precision."""
    kind = "int8-per-channel" if precision == "int8" else precision
    return EmbeddingSpace(
        "local", MODEL_NAME, DIMS, f"{kind}-v{GRAPH_VERSION}-{WEIGHTS_SHA256[:8]}"
    )


def model_file(data_dir: Path, precision: Precision = "int8") -> Path:
    """Name the model file in a data directory, whether it is there or not."""
    name = f"{MODEL_NAME}-{precision}-v{GRAPH_VERSION}-{WEIGHTS_SHA256[:8]}.onnx"
    return data_dir / "models" / name


def is_prepared(data_dir: Path, precision: Precision = "int8") -> bool:
    """Tell whether the model file is there and whole."""
    target = model_file(data_dir, precision)
    try:
        expected = _digest_file(target).read_text().strip()
        with target.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == expected
    except OSError:
        return False


def prepare_model(data_dir: Path, precision: Precision = "int8") -> Path:
    """Make sure that the model file exists; builds it once (about 3 s) in a process of its own.

    Several processes may call this at once: one builds, the others wait. A damaged file is built again.

    Args:
        data_dir: the product's data directory; the file goes to ``models/`` in it.
        precision: ``int8`` (60 MB, fast) or ``fp32`` (90 MB, exact).

    Returns:
        The model file.

    Raises:
        EmbeddingError: ``embedder_misconfigured`` with what to do.
    """
    target = model_file(data_dir, precision)
    if is_prepared(data_dir, precision):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _file_lock(target.with_suffix(".lock")):
            if not is_prepared(data_dir, precision):
                _build(target, precision)
    except OSError as error:
        raise EmbeddingError(
            "embedder_misconfigured",
            f"The embedder's model cannot be kept in {target.parent}: {error.strerror or error}. "
            "Make the data directory writable.",
        ) from error
    return target


class MiniLmEmbedder:
    """Embeds with all-MiniLM-L6-v2; texts beyond 256 tokens are seen up to there.

    The model loads with the first text, not before, and is then shared by all threads of the process.

    Args:
        data_dir: where the model file is kept.
        precision: see ``prepare_model``; part of the space's identity.
        threads: threads inside one call; more than one is slower per processor second.
    """

    def __init__(self, data_dir: Path, *, precision: Precision = "int8", threads: int = 1) -> None:
        self._data_dir = data_dir
        self._precision: Precision = precision
        self._threads = threads
        self._space = space_of(precision)
        self._usage = EmbeddingUsage()
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors."""
        return self._space

    @property
    def usage(self) -> EmbeddingUsage:
        """Counts since this embedder was made."""
        return self._usage

    def counting_apart(self) -> MiniLmEmbedder:
        """Return an embedder on the same loaded model whose ``usage`` counts its own texts alone.

        Raises:
            EmbeddingError: ``embedder_misconfigured``.
        """
        self._ready()
        apart = copy.copy(self)
        apart._usage = EmbeddingUsage()
        return apart

    def load(self) -> None:
        """Load model and tokenizer now instead of with the first text (about 0.3 s).

        Raises:
            EmbeddingError: ``embedder_misconfigured``.
        """
        self._ready()

    def embed_documents(
        self, texts: Sequence[str], *, on_progress: Callable[[int, int], None] | None = None
    ) -> Vectors:
        """Embed passages; see ``Embedder``."""
        import numpy as np

        result = np.empty((len(texts), DIMS), dtype=np.float32)
        if not texts:
            return result
        tokenizer, session = self._ready()
        encoded = tokenizer.encode_batch_fast(list(texts))
        # One text a run: activations are quantised with one scale a run, so in a batch a text's vector would depend on
        # its company. On one thread it costs nothing either (28.8 against 27.9 chunks of 256 tokens a second in
        # batches), because a small run stays in the processor's cache and nothing is padded.
        for i, tokens in enumerate(encoded):
            ids = np.array([tokens.ids], dtype=np.int64)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            result[i] = session.run(None, feed)[0][0]
            if on_progress is not None and ((i + 1) % _PROGRESS_EVERY == 0 or i + 1 == len(texts)):
                on_progress(i + 1, len(texts))
        with self._lock:
            self._usage = self._usage.plus(
                texts=len(texts),
                tokens=sum(len(e.ids) for e in encoded),
                truncated=sum(1 for e in encoded if e.overflowing),
            )
        return result

    def embed_query(self, text: str) -> Vectors:
        """Embed a question."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector

    def _ready(self) -> tuple[Any, Any]:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded
                if loaded is None:
                    path = prepare_model(self._data_dir, self._precision)
                    loaded = self._loaded = (_load_tokenizer(), _load_session(path, self._threads))
        return loaded


def _load_tokenizer() -> Any:
    # The tokenizer's own thread pool breaks after a fork and only competes with other workers.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_path()))
    # The file comes with truncation and padding to 128 tokens each.
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def _load_session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the largest batch's memory for ever; the allocator's own cache is enough here.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"]
    )


def _build(target: Path, precision: Precision) -> None:
    """Build beside the target and move it in place; the digest file comes last and makes it count."""
    environment = {
        **{k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG")},
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "platform"))),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as folder:
        built = Path(folder) / target.name
        command = [
            sys.executable,
            "-m",
            "apps.collections.embedders.minilm_build",
            str(built),
            precision,
        ]
        try:
            outcome = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddingError(
                "embedder_misconfigured",
                f"Building the embedder's model took more than {_BUILD_SECONDS} s. Try again on a quieter machine.",
            ) from error
        if outcome.returncode != 0 or not built.is_file():
            said = outcome.stderr.strip().splitlines()
            raise EmbeddingError(
                "embedder_misconfigured",
                f"The embedder's model could not be built: {said[-1] if said else 'no reason given'}",
                data={"stderr": outcome.stderr[-2000:]},
            )
        with built.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        note = Path(folder) / "digest"
        note.write_text(digest + "\n")
        built.replace(target)
        note.replace(_digest_file(target))


def _digest_file(target: Path) -> Path:
    return target.with_suffix(".sha256")


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock; the system frees it if the holder dies."""
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(stream, fcntl.LOCK_UN)
