"""Open ONNX models and tokenizers that somebody put on disk: only files of their own folder, of sane size, one loader for all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from apps.collections.embedders.base import EmbeddingError

CONFIG_BYTES = 1_000_000
TOKENIZER_BYTES = 100_000_000
MODEL_BYTES = 8_000_000_000
_PROTOBUF_BYTES = 2_000_000_000  # the format's own limit for one file
_HUB_FOLDERS = ("snapshots", "blobs")


class ModelFolder:
    """A folder with a model, or one in a Hugging Face hub cache, whose files are links into its ``blobs``.

    Args:
        path: the folder, a snapshot of a hub cache, or the cache's ``models--...`` folder with one revision.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: it is no folder, or of several revisions none is the main one.
    """

    def __init__(self, path: Path) -> None:
        folder = Path(os.path.abspath(path))
        if not folder.is_dir():
            raise refused(f"There is no folder {folder} on this machine.")
        if all((folder / name).is_dir() for name in _HUB_FOLDERS):
            folder = _snapshot(folder)
        self.path = folder.resolve()
        hub = self.path.parent.parent
        in_hub = self.path.parent.name == "snapshots" and (hub / "blobs").is_dir()
        self._allowed = (self.path, hub / "blobs") if in_hub else (self.path,)

    def file(self, name: str, *, most_bytes: int) -> Path:
        """Return a file of the folder by its name in it, with ``/`` between parts.

        Raises:
            EmbeddingError: ``embedder_misconfigured``: it is not there, lies outside, is no plain file or is too large.
        """
        target = self.path / name
        try:
            real = target.resolve(strict=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise refused(f"{self.path} has no file {name}.") from error
        if PurePosixPath(name).is_absolute() or not any(real.is_relative_to(a) for a in self._allowed):
            raise refused(f"{name} points outside of {self.path}. Copy the file itself into the folder.")
        facts = real.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise refused(f"{name} in {self.path} isn't a plain file.")
        if facts.st_size > most_bytes:
            raise refused(
                f"{name} has {facts.st_size:,} bytes; at most {most_bytes:,} are read. Is it the right file?"
            )
        # Not the resolved path: a model finds its external data beside the name it is opened by.
        return target

    def has(self, name: str) -> bool:
        """Tell whether there is something of that name, whatever it is."""
        return os.path.lexists(self.path / name)

    def json(self, name: str) -> Any:
        """Return the content of a JSON file, None where there is none.

        Raises:
            EmbeddingError: ``embedder_misconfigured``: it cannot be read.
        """
        if not self.has(name):
            return None
        try:
            return json.loads(self.file(name, most_bytes=CONFIG_BYTES).read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise refused(f"{name} in {self.path} isn't readable JSON ({error}).") from error

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return the object in a JSON file, an empty one where there is no file. Raises as ``json``."""
        found = self.json(name)
        if found is not None and not isinstance(found, dict):
            raise refused(f"{name} in {self.path} doesn't hold a JSON object.")
        return found or {}

    def onnx_names(self) -> list[str]:
        """Return the ONNX files of the folder and of its ``onnx`` folder, by their names in it."""
        found = [f for sub in (self.path, self.path / "onnx") if sub.is_dir() for f in sub.glob("*.onnx")]
        return sorted(file.relative_to(self.path).as_posix() for file in found)

    def external_names(self, name: str) -> list[str]:
        """Return the files in which an ONNX file of the folder keeps its weights, by their names in the folder.

        Raises:
            EmbeddingError: ``embedder_misconfigured``: it is no ONNX file, or names files outside of the folder.
        """
        import onnx

        file = self.file(name, most_bytes=_PROTOBUF_BYTES)
        try:
            model = onnx.load(str(file), load_external_data=False)
        except Exception as error:  # protobuf's errors have no common class
            raise refused(f"{name} in {self.path} isn't an ONNX model ({first_line(error)}).") from error
        below = PurePosixPath(name).parent
        found = []
        for place in sorted({place for tensor in _tensors(model) for place in _places(tensor)}):
            if not place or PurePosixPath(place).is_absolute() or ".." in PurePosixPath(place).parts:
                raise refused(f"{name} keeps weights in {place!r}, which is outside of {self.path}.")
            found.append((below / place).as_posix())
            self.file(found[-1], most_bytes=MODEL_BYTES)
        return found

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file in hexadecimal. Raises as ``file``."""
        file = self.file(name, most_bytes=MODEL_BYTES)
        try:
            with file.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise refused(f"{name} in {self.path} can't be read ({error.strerror}).") from error


def tokenizer_load(file: Path, *, max_tokens: int, padded: bool = False) -> Any:
    """Return the tokenizer of a ``tokenizer.json`` that cuts at a length, whatever the file says of that.

    Args:
        max_tokens: of one text, or of a pair together, special tokens included.
        padded: texts of one batch get one length.
    """
    # The tokenizer's own thread pool breaks after a fork and only competes with other workers.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(max_tokens, strategy="longest_first")
    if padded:
        tokenizer.enable_padding()
    else:
        tokenizer.no_padding()
    return tokenizer


def session_load(file: Path, *, threads: int = 1) -> Any:
    """Return a session of ONNX Runtime on the processor that leaves the machine to others.

    Args:
        threads: inside one call; more than one is slower per processor second.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the largest batch's memory for ever; the allocator's own cache is enough here.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    # The kernel that adds and normalises in one takes five times as long as an Add and a LayerNormalization: 500 against
    # 80 us for 256 tokens of 384 numbers, twelve times a passage.
    return onnxruntime.InferenceSession(
        str(file),
        sess_options=options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )


def refused(why: str) -> EmbeddingError:
    """Return the error for a model that cannot be used."""
    return EmbeddingError("embedder_misconfigured", why)


def first_line(error: Exception) -> str:
    """Return the first line of what a library says, cut to 200 characters."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _snapshot(hub: Path) -> Path:
    """Return the revision of a hub cache's model: the main one, or the only one."""
    main = hub / "refs" / "main"
    named = main.read_text().strip() if main.is_file() and main.stat().st_size < 100 else ""
    folders = sorted(f for f in (hub / "snapshots").iterdir() if f.is_dir())
    for folder in folders:
        if folder.name == named or len(folders) == 1:
            return folder
    raise refused(f"{hub} has {len(folders)} revisions under snapshots, none of them the main one. Name one.")


def _tensors(message: Any) -> Iterator[Any]:
    """Yield every tensor of a model, also those inside of subgraphs, functions and attributes."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.is_repeated else (value,):
            if field.message_type.name == "TensorProto":
                yield one
            else:
                yield from _tensors(one)


def _places(tensor: Any) -> Iterator[str]:
    if tensor.data_location == 1 or tensor.external_data:  # EXTERNAL
        yield next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
