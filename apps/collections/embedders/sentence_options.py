"""How a sentence model wants to be used: read from the files that come with it, or said by whoever installs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from apps.collections.embedders.onnx_files import ModelFolder, refused

POOLINGS = ("mean", "cls", "last", "pooled")
"""What one vector is made of: the mean of the tokens, the first, the last, or what the graph pools itself."""
MAX_DIMENSIONS = 4_000  # what the database's indexes take
MAX_TOKENS = 8_192
_PREFIX_CHARS = 2_000
_USUAL_FILES = ("onnx/model.onnx", "model.onnx")
_USUAL_TOKENS = 512
# Their position numbers begin after the padding token's.
_OFFSET_MODELS = {"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-flash"}
_PLAIN_MODULES = {"Transformer", "Pooling", "Normalize"}
_PROMPTS = {"query_prefix": ("query",), "passage_prefix": ("document", "passage")}


@dataclass(frozen=True, slots=True)
class SentenceOptions:
    """How texts become vectors.

    Attributes:
        file: the ONNX file, by its name in the folder.
        tokenizer: the tokenizer's file, likewise.
        pooling: one of ``POOLINGS``, "" where neither the files nor anybody said it.
        query_prefix, passage_prefix: put before each question and each passage.
        max_tokens: of one text, prefix and special tokens included; the rest is not seen.
        dimensions: numbers of a vector; the first ones of a longer one, 0 for all of them.
        stated: dimensions that the files state, 0 where they state none.
        lowercase: texts are lowered first.
    """

    file: str
    tokenizer: str
    pooling: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = _USUAL_TOKENS
    dimensions: int = 0
    stated: int = 0
    lowercase: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a form for the database."""
        return asdict(self)


def options_read(folder: ModelFolder, said: Mapping[str, Any]) -> SentenceOptions:
    """Return the options of a folder's model: what was said, else what its files say.

    Read are ``modules.json``, ``1_Pooling/config.json``, ``config_sentence_transformers.json``,
    ``sentence_bert_config.json``, ``tokenizer_config.json`` and ``config.json``, each where it is there.

    Args:
        said: fields of ``SentenceOptions`` that win over the files; None where nothing was said.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: there is no model or tokenizer, a value cannot be, or the files ask for
            what is not supported.
    """
    given = {key: value for key, value in said.items() if value is not None}
    file = given.pop("file", "") or _onnx_name(folder)
    pooling, path = given.pop("pooling", ""), _pooling_path(folder)
    settings = folder.settings(f"{path}/config.json")
    sentence = folder.settings("sentence_bert_config.json")
    width = settings.get("word_embedding_dimension") or settings.get("embedding_dimension")
    found: dict[str, Any] = {
        "pooling": pooling or _pooling(settings),
        "max_tokens": _max_tokens(folder, sentence),
        "stated": _whole(width),
        "lowercase": sentence.get("do_lower_case") is True,
        **_prompts(folder),
        **given,
    }
    if settings.get("include_prompt") is False and (found["query_prefix"] or found["passage_prefix"]):
        raise refused(
            "This model leaves its prompt out of the pooling (include_prompt), which isn't supported."
        )
    options = SentenceOptions(file=file, tokenizer=_tokenizer_name(folder, file), **found)
    _check(options)
    return options


def _check(options: SentenceOptions) -> None:
    if options.pooling and options.pooling not in POOLINGS:
        raise refused(f"The pooling {options.pooling!r} isn't supported. Use one of {', '.join(POOLINGS)}.")
    if not 1 <= options.max_tokens <= MAX_TOKENS:
        raise refused(f"The longest text must be 1 to {MAX_TOKENS:,} tokens, not {options.max_tokens:,}.")
    if not 0 <= options.dimensions <= MAX_DIMENSIONS:
        raise refused(f"Dimensions must be from 1 to {MAX_DIMENSIONS:,}.")
    if any(len(p) > _PREFIX_CHARS for p in (options.query_prefix, options.passage_prefix)):
        raise refused(f"A prefix has at most {_PREFIX_CHARS:,} characters.")


def _onnx_name(folder: ModelFolder) -> str:
    names = folder.onnx_names()
    for usual in _USUAL_FILES:
        if usual in names:
            return usual
    if len(names) == 1:
        return names[0]
    if not names:
        raise refused(
            f"{folder.path} has no ONNX file, neither in it nor in its folder onnx. Download or export the model's "
            "ONNX version."
        )
    raise refused(f"{folder.path} has several ONNX files: {', '.join(names[:8])}. Name one with --file.")


def _tokenizer_name(folder: ModelFolder, file: str) -> str:
    beside = f"{file.rpartition('/')[0]}/tokenizer.json".lstrip("/")
    for name in dict.fromkeys(("tokenizer.json", beside)):
        if folder.has(name):
            return name
    raise refused(
        f"{folder.path} has no tokenizer.json. Download it too; a model that comes without one can't be used."
    )


def _pooling_path(folder: ModelFolder) -> str:
    """Return where the pooling is configured, "1_Pooling" by custom.

    Raises:
        EmbeddingError: ``embedder_misconfigured``: the model has layers that its ONNX file may lack.
    """
    path = "1_Pooling"
    for module in folder.json("modules.json") or ():
        if not isinstance(module, dict):
            raise refused(f"modules.json in {folder.path} doesn't hold a list of modules.")
        if str(module.get("type", "")).rpartition(".")[2] == "Pooling":
            path = str(module.get("path") or path)
    return path


def modules_beyond(folder: ModelFolder) -> list[str]:
    """Return the layers that ``modules.json`` has after the transformer, other than pooling and normalisation."""
    modules = folder.json("modules.json") or ()
    kinds = [str(m.get("type", "")).rpartition(".")[2] for m in modules if isinstance(m, dict)]
    return [kind for kind in kinds if kind not in _PLAIN_MODULES]


def _pooling(settings: Mapping[str, Any]) -> str:
    """Return the pooling of a ``1_Pooling/config.json`` of either generation, "" where there is none."""
    names = {
        "mean": "mean",
        "mean_tokens": "mean",
        "cls": "cls",
        "cls_token": "cls",
        "last": "last",
        "lasttoken": "last",
        "last_token": "last",
    }
    mode = settings.get("pooling_mode")
    if isinstance(mode, str):
        modes = [mode]
    elif isinstance(mode, list):
        modes = [str(one) for one in mode]
    else:
        modes = [
            k.removeprefix("pooling_mode_")
            for k, v in settings.items()
            if k.startswith("pooling_mode_") and v is True
        ]
    if not modes:
        return ""
    if len(modes) > 1 or modes[0] not in names:
        raise refused(
            f"Its pooling {'+'.join(modes)} isn't supported. Use a model with mean, cls or last token pooling."
        )
    return names[modes[0]]


def _prompts(folder: ModelFolder) -> dict[str, str]:
    settings = folder.settings("config_sentence_transformers.json")
    prompts = settings.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
        raise refused("The prompts in config_sentence_transformers.json aren't texts by name.")
    usual = prompts.get(str(settings.get("default_prompt_name")), "")
    return {
        field: next((prompts[name] for name in names if name in prompts), usual)
        for field, names in _PROMPTS.items()
    }


def _max_tokens(folder: ModelFolder, sentence: Mapping[str, Any]) -> int:
    config = folder.settings("config.json")
    positions = _whole(config.get("max_position_embeddings"))
    if positions and config.get("model_type") in _OFFSET_MODELS:
        positions -= _whole(config.get("pad_token_id")) + 1
    stated = _whole(sentence.get("max_seq_length"))
    usual = _whole(folder.settings("tokenizer_config.json").get("model_max_length"))
    # Some tokenizers state 10 to the 30th for "no limit".
    limits = [n for n in (stated, usual, positions, MAX_TOKENS) if 0 < n <= MAX_TOKENS]
    return min(limits) if len(limits) > 1 else _USUAL_TOKENS


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def options_stored(stored: Mapping[str, Any]) -> SentenceOptions:
    """Return options from the form that ``SentenceOptions.to_json`` gave."""
    return SentenceOptions(**cast("dict[str, Any]", stored))
