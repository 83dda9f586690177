"""Sentence models from folders of the operator: checked and described once, then loaded only as they were described."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apps.collections.embedders.base import EmbeddingError, EmbeddingSpace
from apps.collections.embedders.onnx_files import (
    MODEL_BYTES,
    TOKENIZER_BYTES,
    ModelFolder,
    first_line,
    refused,
    session_load,
    tokenizer_load,
)
from apps.collections.embedders.sentence import OnnxEmbedder, SentenceModel
from apps.collections.embedders.sentence_options import (
    MAX_DIMENSIONS,
    SentenceOptions,
    modules_beyond,
    options_read,
)

# Raise it with any change here that moves vectors: old and new ones must not share a space.
VERSION = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
ALIKE = ("The invoice must be paid within thirty days.", "Payment of the bill is due in a month.")
APART = "Penguins live on the ice of Antarctica."
_SAME = 0.9999  # cosine above which a model tells nothing apart
_TIMED = 5


@dataclass(frozen=True, slots=True)
class FolderModel:
    """A checked model in a folder.

    Attributes:
        name: by which it is chosen, as in ``local/<name>``.
        path: its folder, the same on every machine.
        options: how texts become vectors.
        dimensions: of a vector.
        digests: SHA-256 in hexadecimal of each file that makes the vectors, by its name in the folder.
    """

    name: str
    path: Path
    options: SentenceOptions
    dimensions: int
    digests: Mapping[str, str]

    @property
    def space(self) -> EmbeddingSpace:
        """Identity of the vectors: the files and everything that says how they are used."""
        return EmbeddingSpace("local", self.name, self.dimensions, self.fingerprint)

    @property
    def fingerprint(self) -> str:
        """Hash of all that moves vectors; the folder's place is not among it."""
        facts = self.options.to_json() | {"stated": 0, "dimensions": self.dimensions}
        text = json.dumps([VERSION, facts, sorted(self.digests.items())], sort_keys=True)
        return f"onnx-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a folder has found.

    Attributes:
        model: as it can be installed.
        alike, apart: cosine similarities of two sentences that say the same, and of two that do not.
        per_second: texts of about 100 words embedded in a second on this machine, one after the other.
    """

    model: FolderModel
    alike: float
    apart: float
    per_second: float


class FolderEmbedder(OnnxEmbedder):
    """Embeds with a model of a folder that was checked before; see ``folder_check``.

    Args:
        loaded: the model itself, where it is at hand.
    """

    def __init__(self, model: FolderModel, *, loaded: SentenceModel | None = None) -> None:
        super().__init__(
            model.space,
            lambda: loaded or _load(model_verify(model), model.options),
            query_prefix=model.options.query_prefix,
            passage_prefix=model.options.passage_prefix,
        )


def folder_check(path: Path, *, name: str = "", said: Mapping[str, Any] | None = None) -> Checked:
    """Load a folder's model, embed sentences with it, and describe it.

    Args:
        path: see ``ModelFolder``.
        name: by which it will be chosen, "" for that of the folder.
        said: options that win over the folder's files; see ``options_read``.

    Raises:
        EmbeddingError: ``embedder_misconfigured``, in one line: what is missing, cannot be used or makes no sense.
    """
    folder = ModelFolder(path)
    name = name or _usual_name(folder)
    if not NAME.fullmatch(name) or name.startswith("all-MiniLM-L6-v2"):
        raise refused(
            f"“{name[:80]}” can't be its name. Choose one with --name: letters, digits, dots, dashes and "
            f"underscores, at most "
            "60, and not the name of the built-in model."
        )
    options = options_read(folder, said or {})
    names = {options.file, options.tokenizer, *folder.external_names(options.file)}
    model = _load(folder, options, is_firm=bool((said or {}).get("pooling")))
    options = replace(options, pooling=model.pooling)
    beyond = modules_beyond(folder)
    if beyond and options.pooling != "pooled":
        raise refused(
            f"After pooling the model has the layers {', '.join(beyond)}, which its ONNX file doesn't hold. Export it "
            "with the output sentence_embedding."
        )
    dimensions = _dimensions(model, options)
    described = FolderModel(
        name, folder.path, options, dimensions, {one: folder.digest(one) for one in sorted(names)}
    )
    return _measured(described, model)


def _measured(described: FolderModel, model: SentenceModel) -> Checked:
    embedder = FolderEmbedder(described, loaded=model)
    first, second, other = embedder.embed_documents([*ALIKE, APART])
    alike, apart = float(first @ second), float(first @ other)
    if min(alike, apart) > _SAME:
        raise refused(
            "The model gives the same vector for different sentences. Check --pooling and the ONNX file."
        )
    embedder.embed_query(ALIKE[0])
    text = " ".join((*ALIKE, APART) * 5)
    begun = time.perf_counter()
    embedder.embed_documents([text] * _TIMED)
    return Checked(described, alike, apart, _TIMED / (time.perf_counter() - begun))


def _dimensions(model: SentenceModel, options: SentenceOptions) -> int:
    found = len(model.vector(model.encode([ALIKE[0]])[0]))
    if not options.dimensions and options.stated and found != options.stated:
        raise refused(f"The model's vectors have {found:,} numbers, but its files state {options.stated:,}.")
    if found > MAX_DIMENSIONS:
        raise refused(
            f"The model's vectors have {found:,} numbers; at most {MAX_DIMENSIONS:,} can be searched. If "
            f"it was trained for shorter ones, set --dimensions."
        )
    return found


def _load(folder: ModelFolder, options: SentenceOptions, *, is_firm: bool = True) -> SentenceModel:
    # Their sizes and places are judged before anything reads them.
    tokenizer_file = folder.file(options.tokenizer, most_bytes=TOKENIZER_BYTES)
    file = folder.file(options.file, most_bytes=MODEL_BYTES)
    try:
        tokenizer = tokenizer_load(tokenizer_file, max_tokens=options.max_tokens)
    except Exception as error:  # the library's own errors have no common class
        raise refused(f"{options.tokenizer} in {folder.path} can't be read ({first_line(error)}).") from error
    try:
        session = session_load(file)
    except Exception as error:  # likewise
        raise refused(f"{options.file} in {folder.path} can't be loaded ({first_line(error)}).") from error
    return SentenceModel(
        tokenizer,
        session,
        pooling=options.pooling,
        is_firm=is_firm,
        dimensions=options.dimensions,
        lowercase=options.lowercase,
    )


def model_verify(model: FolderModel) -> ModelFolder:
    """Return a described model's folder, if this machine has the very files it was described from.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: which machine lacks which files, and what to do.
    """
    try:
        folder = ModelFolder(model.path)
        changed = [name for name, digest in model.digests.items() if folder.digest(name) != digest]
    except EmbeddingError as error:
        raise refused(
            f"The embedder local/{model.name} isn't on the machine {socket.gethostname()}: {error.message} Copy its "
            "folder to the same place on every machine that serves pages or runs workers."
        ) from error
    if changed:
        raise refused(
            f"The embedder local/{model.name} has other files on the machine {socket.gethostname()} than when it was "
            f"installed: {', '.join(changed)}. Copy the original folder there, or install it under another name."
        )
    return folder


def _usual_name(folder: ModelFolder) -> str:
    hub = folder.path.parent.parent.name
    if folder.path.parent.name == "snapshots" and hub.startswith("models--"):
        return hub.rpartition("--")[2]
    return folder.path.name
