"""`tf` for the cases: the public names of the library's modules, found by name."""

from __future__ import annotations

import importlib
import types
from typing import Any

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import convert
from thalweg.graph.composite import IndexedSlices, SparseTensor

TOP = ["framework", "grouping", "math_ops", "elementwise_ops", "casting", "reduction_ops", "sequence_ops", "segment_ops", "matrix_ops", "einsum_ops", "clip_ops", "array_ops", "fill_ops", "joining_ops", "gathering_ops", "slicing", "random_ops", "random_seed", "check_ops", "linalg_ops", "debug_ops", "script_ops", "sparse_ops", "variables", "counting_ops"]
NN = ["activations", "nn_ops", "convolution_ops", "pooling_ops", "normalization_ops", "cross_entropy", "embedding_ops", "candidate_sampling", "math_ops", "clip_ops", "array_ops", "reduction_ops", "dropout_ops"]


class Namespace:
    """Attributes found in modules, the first that has the name."""

    def __init__(self, modules: list[str], **more: Any) -> None:
        self._modules = modules
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            try:
                found = importlib.import_module(f"thalweg.library.{module}")
            except ModuleNotFoundError:
                continue
            if hasattr(found, name) and not isinstance(getattr(found, name), types.ModuleType):
                return getattr(found, name)
        raise AttributeError(f"no module of the library has {name}")


importlib.import_module("thalweg.library.operators")

tf = Namespace(
    TOP,
    nn=Namespace(NN),
    losses=Namespace(["losses"]),
    math=Namespace([*TOP, *NN]),
    random=Namespace(["random_ops", "candidate_sampling"]),
    debugging=Namespace(["check_ops", "debug_ops"]),
    bitwise=Namespace(["bitwise_ops"]),
    linalg=Namespace(["linalg_ops", "matrix_ops", "clip_ops", "array_ops", "fill_ops"]),
    errors=types.SimpleNamespace(InvalidArgumentError=InvalidArgumentError),
    constant=convert.constant,
    newaxis=None,
    IndexedSlices=IndexedSlices,
    SparseTensor=SparseTensor,
    **{name: getattr(dtypes, name) for name in ["float32", "float64", "int32", "int64", "bool", "string", "uint8", "int8", "complex64", "bfloat16", "float16", "int16", "complex128", "uint32"]},
)
