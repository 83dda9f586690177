"""An entailment model from the operator's folder that says whether a passage supports a statement. Nothing is downloaded.

The folder holds ``model.onnx``, ``tokenizer.json`` and ``config.json``, whose ``id2label`` names the three labels.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.collections.search.rerank.onnx import pair_logits, pair_model_load
from apps.conversations.support.verdicts import CONTRADICTED, NOT_SAID, SUPPORTED
from basics.errors import DomainError

_BEGINNINGS = {"entail": SUPPORTED, "contradict": CONTRADICTED, "neutral": NOT_SAID}


class Entailment:
    """Labels pairs of passage and statement; loads its files at first use and is shared by all threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any, list[str]] | None = None

    @property
    def name(self) -> str:
        """Return what people read."""
        return f"the local model {self._folder.name}"

    def verdicts(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return for each passage and statement whether the statement is supported, contradicted or not said.

        Raises:
            DomainError: ``support_misconfigured``: the files cannot be used together.
        """
        try:
            tokenizer, session, labels = self._ready()
            rows = pair_logits(tokenizer, session, pairs)
            if any(len(row) != len(labels) for row in rows):
                raise ValueError(f"it gives {len(rows[0])} numbers for {len(labels)} labels")
        except Exception as error:  # the runtime's own errors have no common class
            raise DomainError(
                "support_misconfigured",
                f"The model in {self._folder.name} cannot check answers ({error}). Put model.onnx, tokenizer.json and "
                "config.json of an entailment model with three labels into GROUNDWORK_SUPPORT_NLI, or unset it.",
                status=500,
            ) from error
        return [labels[row.index(max(row))] for row in rows]

    def _ready(self) -> tuple[Any, Any, list[str]]:
        with self._lock:
            if self._loaded is None:
                labels = _labels(self._folder / "config.json")
                self._loaded = (*pair_model_load(self._folder / "model.onnx"), labels)
            return self._loaded


def entailment_configured() -> Entailment | None:
    """Return the model that the operator has set, None for none."""
    return _entailment(Path(settings.SUPPORT_NLI)) if settings.SUPPORT_NLI else None


@lru_cache(maxsize=2)
def _entailment(folder: Path) -> Entailment:
    return Entailment(folder)


def _labels(file: Path) -> list[str]:
    """Return what each logit means, in order. Raises ValueError, OSError."""
    config = json.loads(file.read_text("utf-8"))
    named = config.get("id2label") if isinstance(config, dict) else None
    if not isinstance(named, dict) or set(named) != {"0", "1", "2"}:
        raise ValueError("id2label in config.json must name the labels 0, 1 and 2")
    found = [
        next(
            (verdict for start, verdict in _BEGINNINGS.items() if str(named[key]).lower().startswith(start)),
            "",
        )
        for key in ("0", "1", "2")
    ]
    if set(found) != set(_BEGINNINGS.values()):
        raise ValueError("id2label in config.json must name entailment, neutral and contradiction")
    return found


__all__ = ["Entailment", "entailment_configured"]
