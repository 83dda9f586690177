"""The local embedder: all-MiniLM-L6-v2 as an int8 ONNX graph on one thread, no torch, no download."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace
from apps.collections.embedders.minilm_build import (
    DIMS,
    WEIGHTS_SHA256,
    table_path,
    tokenizer_path,
)
from apps.collections.embedders.onnx_files import session_load, tokenizer_load
from apps.collections.embedders.sentence import OnnxEmbedder, SentenceModel
from basics.texts import gettext as _

Precision = Literal["int8", "fp32"]

MODEL_NAME = "all-MiniLM-L6-v2"
MAX_TOKENS = 256
# Raise it with any change that moves vectors: old and new ones must not share a space.
GRAPH_VERSION = 3
_ALIKE = (2,)
"""Graphs of the same weights that rounded otherwise: a text's vectors have a cosine of .98 or more. So their collections
go on as they are, and need not be moved."""
_BUILD_SECONDS = 180
_IDLE_S = 60.0
"""Sooner than other models: it is loaded again in a tenth of a second."""
_ROOT = Path(__file__).resolve().parents[3]


def space_of(precision: Precision) -> EmbeddingSpace:
    """Name the space of a precision."""
    kind = "int8-per-channel" if precision == "int8" else precision
    own, *alike = (f"{kind}-v{version}-{WEIGHTS_SHA256[:8]}" for version in (GRAPH_VERSION, *_ALIKE))
    return EmbeddingSpace("local", MODEL_NAME, DIMS, own, tuple(alike))


def model_file(data_dir: Path, precision: Precision = "int8") -> Path:
    """Name the model file in a data directory, whether it is there or not; its table is beside it."""
    return data_dir / "models" / f"{_name(precision)}-mapped.onnx"


def is_prepared(data_dir: Path, precision: Precision = "int8") -> bool:
    """Tell whether the model file and its table are there and whole."""
    target = model_file(data_dir, precision)
    try:
        return _digest(target) == _digest_file(target).read_text().strip()
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
            _(
                "The embedder's model cannot be stored in %(parent)s: %(strerror)s. Make the data "
                "directory writable."
            )
            % {"parent": target.parent, "strerror": error.strerror or error},
        ) from error
    return target


class MiniLmEmbedder(OnnxEmbedder):
    """Embeds with all-MiniLM-L6-v2; texts beyond 256 tokens are seen up to there.

    Args:
        data_dir: where the model file is kept.
        precision: see ``prepare_model``; part of the space's identity.
        threads: see ``session_load``.
    """

    def __init__(self, data_dir: Path, *, precision: Precision = "int8", threads: int = 1) -> None:
        def load() -> SentenceModel:
            path = prepare_model(data_dir, precision)
            tokenizer = tokenizer_load(tokenizer_path(), max_tokens=MAX_TOKENS)
            return SentenceModel(tokenizer, session_load(path, threads=threads), pooling="pooled")

        super().__init__(space_of(precision), load, idle_s=_IDLE_S)


def _build(target: Path, precision: Precision) -> None:
    """Build beside the target and move it in place; the digest file comes last and makes it count."""
    environment = {
        **{k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG")},
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "platform"))),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as folder:
        built = Path(folder) / target.name
        command = [sys.executable, "-m", "apps.collections.embedders.minilm_build", str(built), precision]
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
                _(
                    "Building the embedder's model took more than %(build_seconds)s s. Try again on a "
                    "quieter machine."
                )
                % {"build_seconds": _BUILD_SECONDS},
            ) from error
        if outcome.returncode != 0 or not built.is_file() or not table_path(built).is_file():
            said = outcome.stderr.strip().splitlines()
            raise EmbeddingError(
                "embedder_misconfigured",
                _("The embedder's model could not be built: %(reason)s")
                % {"reason": said[-1] if said else "no reason given"},
                data={"stderr": outcome.stderr[-2000:]},
            )
        note = Path(folder) / "digest"
        note.write_text(_digest(built) + "\n")
        table_path(built).replace(table_path(target))
        built.replace(target)
        note.replace(_digest_file(target))
    # What releases before wrote: the same model in one file.
    whole = target.with_name(f"{_name(precision)}.onnx")
    for left in (whole, _digest_file(whole)):
        left.unlink(missing_ok=True)


def _name(precision: Precision) -> str:
    return f"{MODEL_NAME}-{precision}-v{GRAPH_VERSION}-{WEIGHTS_SHA256[:8]}"


def _digest(target: Path) -> str:
    """Return the SHA-256 of the table and the model file after it, in hexadecimal; OSError where one is missing."""
    digest = hashlib.sha256()
    for path in (table_path(target), target):
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


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
