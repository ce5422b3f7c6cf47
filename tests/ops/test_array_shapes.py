"""Static shapes of array ops where only part of the shapes and values is known, as TensorFlow infers them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401
from thalweg.autodiff.gradients import gradients
from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.registry import lookup


def of(text: str, dtype: Any = dtypes.float32) -> Any:
    return emit("Placeholder", dtype=dtype, shape=shapes.parse(text))


def ints(text: str) -> Any:
    return of(text, dtypes.int32)


def batch() -> Any:
    """The first size of a tensor, known when it runs."""
    x = of("[?,4]")
    return emit("StridedSlice", emit("Shape", x), [0], [1], [1], shrink_axis_mask=1)


CASES = {
    "Reshape wildcard": (lambda: emit("Reshape", of("[?,4]"), [-1, 2]), "[?,2]"),
    "Reshape known wildcard": (lambda: emit("Reshape", of("[6,4]"), [-1, 8]), "[3,8]"),
    "Reshape of none": (lambda: emit("Reshape", of("[0,3]"), [5, -1]), "[5,0]"),
    "Reshape fed": (lambda: emit("Reshape", of("[2,3]"), ints("[2]")), "[?,?]"),
    "Reshape unknown": (lambda: emit("Reshape", of("[2,3]"), ints("[?]")), "?"),
    "Reshape packed": (lambda: emit("Reshape", of("[?,3,4]"), [batch(), 12]), "[?,12]"),
    "Reshape packed inferred": (lambda: emit("Reshape", of("[6,4]"), [batch(), 3]), "[8,3]"),
    "Reshape like": (lambda: emit("Reshape", of("?"), emit("Shape", of("[?,7]"))), "[?,7]"),
    "Reshape joined": (
        lambda: emit(
            "Reshape",
            of("?"),
            emit("ConcatV2", [emit("StridedSlice", emit("Shape", of("[?,2,3]")), [0], [2], [1]), [9]], 0),
        ),
        "[?,2,9]",
    ),
    "Reshape of ShapeN": (lambda: emit("Reshape", of("?"), emit("ShapeN", [of("[2]"), of("[?,5]")])[1]), "[?,5]"),
    "ExpandDims": (lambda: emit("ExpandDims", of("[?,3]"), -1), "[?,3,1]"),
    "ExpandDims fed": (lambda: emit("ExpandDims", of("[2,3]"), ints("[]")), "[?,?,?]"),
    "Squeeze all of unknown": (lambda: emit("Squeeze", of("[1,?]")), "?"),
    "Squeeze one": (lambda: emit("Squeeze", of("[?,?,3]"), squeeze_dims=[0]), "[?,3]"),
    "ConcatV2": (lambda: emit("ConcatV2", [of("[?,2]"), of("[3,?]")], 0), "[?,2]"),
    "ConcatV2 known": (lambda: emit("ConcatV2", [of("[2,?]"), of("[2,4]"), of("?")], 1), "[2,?]"),
    "ConcatV2 axis fed": (lambda: emit("ConcatV2", [of("[2,3]"), of("[2,3]")], ints("[]")), "[?,?]"),
    "Pack": (lambda: emit("Pack", [of("[?,2]"), of("[3,?]")], axis=1), "[3,2,2]"),
    "Unpack": (lambda: emit("Unpack", of("[?,2]"), num=2)[0], "[2]"),
    "Split": (lambda: emit("Split", 1, of("[?,6]"), num_split=3)[0], "[?,2]"),
    "Split unknown size": (lambda: emit("Split", 0, of("[?,6]"), num_split=3)[0], "[?,6]"),
    "SplitV": (lambda: emit("SplitV", of("[7,?]"), np.array([2, -1]), 0, num_split=2)[1], "[5,?]"),
    "Slice fed begin": (lambda: emit("Slice", of("[5,6]"), ints("[2]"), [2, 3]), "[2,3]"),
    "Slice fed begin rest": (lambda: emit("Slice", of("[5,6]"), ints("[2]"), [-1, 3]), "[?,3]"),
    "Slice packed": (lambda: emit("Slice", of("[5,6]"), [0, 0], [batch(), 3]), "[?,3]"),
    "StridedSlice": (lambda: emit("StridedSlice", of("[?,6]"), [0, 1], [2, 5], [1, 2]), "[?,2]"),
    "StridedSlice index fed": (
        lambda: emit("StridedSlice", of("[?,6]"), ints("[1]"), ints("[1]"), [1], shrink_axis_mask=1),
        "[6]",
    ),
    "StridedSlice range fed": (lambda: emit("StridedSlice", of("[5,6]"), ints("[1]"), ints("[1]"), [1]), "[?,6]"),
    "StridedSlice masked": (
        lambda: emit(
            "StridedSlice",
            of("[5,6]"),
            ints("[2]"),
            ints("[2]"),
            [1, 1],
            begin_mask=1,
            end_mask=1,
            shrink_axis_mask=2,
        ),
        "[5]",
    ),
    "StridedSlice strides fed": (lambda: emit("StridedSlice", of("[5]"), [0], [2], ints("[1]")), "?"),
    "StridedSlice unknown": (lambda: emit("StridedSlice", of("?"), [0], [2], [1]), "?"),
    "GatherV2": (lambda: emit("GatherV2", of("[?,3]"), ints("[2,?]"), 0), "[2,?,3]"),
    "GatherV2 batch": (lambda: emit("GatherV2", of("[?,3,4]"), ints("[2,5]"), 1, batch_dims=1), "[2,5,4]"),
    "GatherV2 axis fed": (lambda: emit("GatherV2", of("[2,3]"), ints("[4]"), ints("[]")), "[?,?]"),
    "GatherNd": (lambda: emit("GatherNd", of("[?,3]"), ints("[?,1]")), "[?,3]"),
    "ScatterNd": (lambda: emit("ScatterNd", ints("[?,1]"), of("[?,3]"), [batch(), 3]), "[?,3]"),
    "Pad": (lambda: emit("Pad", of("[?,3]"), [[1, 1], [0, 2]]), "[?,5]"),
    "Pad fed": (lambda: emit("Pad", of("[2,3]"), ints("[2,2]")), "[?,?]"),
    "Tile": (lambda: emit("Tile", of("[?,3]"), [2, 2]), "[?,6]"),
    "Tile packed": (lambda: emit("Tile", of("[1,3]"), [batch(), 1]), "[?,3]"),
    "Transpose": (lambda: emit("Transpose", of("[?,3]"), [1, 0]), "[3,?]"),
    "Transpose fed": (lambda: emit("Transpose", of("[2,3]"), ints("[2]")), "[?,?]"),
    "Fill": (lambda: emit("Fill", [batch(), 3], 0.0), "[?,3]"),
    "OneHot": (lambda: emit("OneHot", ints("[?]"), 5, 1.0, 0.0), "[?,5]"),
    "OneHot depth fed": (lambda: emit("OneHot", ints("[2]"), ints("[]"), 1.0, 0.0), "[2,?]"),
    "Range fed": (lambda: emit("Range", 0, batch(), 1), "[?]"),
    "Where": (lambda: emit("Where", of("[?,3]", dtypes.bool)), "[?,2]"),
    "DynamicPartition": (lambda: emit("DynamicPartition", of("[?,3]"), ints("[?]"), num_partitions=2)[0], "[?,3]"),
    "DynamicStitch": (lambda: emit("DynamicStitch", [ints("[2]")], [of("[2,3]")]), "[?,3]"),
    "DynamicStitch known": (lambda: emit("DynamicStitch", [[0, 4]], [of("[2,3]")]), "[5,3]"),
    "TopKV2": (lambda: emit("TopKV2", of("[?,6]"), 2)[0], "[?,2]"),
    "MatrixDiagPart": (lambda: emit("MatrixDiagPart", of("[?,4,3]")), "[?,3]"),
    "SpaceToBatchND": (lambda: emit("SpaceToBatchND", of("[?,4]"), [2], [[1, 1]]), "[?,3]"),
    "DepthToSpace": (lambda: emit("DepthToSpace", of("[?,2,?,8]"), block_size=2), "[?,4,?,2]"),
    "BroadcastTo": (lambda: emit("BroadcastTo", of("[3]"), [batch(), 3]), "[?,3]"),
    "SparseToDense": (lambda: emit("SparseToDense", ints("[?,2]"), [batch(), 3], of("[?]"), 0.0), "[?,3]"),
}


@pytest.mark.parametrize("name", CASES)
def test_partial_shape(name: str) -> None:
    make, want = CASES[name]
    with Graph().as_default():
        assert shapes.format_shape(make()._shape) == shapes.format_shape(shapes.parse(want))


def test_index_of_the_step_is_not_static() -> None:
    """x[i] and x[:, i] compile once, whatever i is; x[i:] can't."""
    kernel = lookup("StridedSlice").kernel
    with Graph().as_default():
        x, i = of("[5,6]"), ints("[1]")
        index = emit("StridedSlice", x, i, i, [1], shrink_axis_mask=1)
        assert kernel.static_names(index.op) == ("strides",)
        assert kernel.may_fail(index.op)
        rest = emit("StridedSlice", x, i, [0], [1], end_mask=1)
        assert kernel.static_names(rest.op) == ("strides", "begin")
        assert not kernel.may_fail(rest.op)
        size = emit("Slice", x, ints("[2]"), [1, 6])
        assert lookup("Slice").kernel.static_names(size.op) == ("size",)


def test_known_indices_cannot_fail() -> None:
    kernel = lookup("GatherV2").kernel
    with Graph().as_default():
        assert not kernel.may_fail(emit("GatherV2", of("[3,2]"), [0, 2], 0).op)
        assert kernel.may_fail(emit("GatherV2", of("[3,2]"), [0, 3], 0).op)
        assert kernel.may_fail(emit("GatherV2", of("[?,2]"), [0, 2], 0).op)
        assert not kernel.may_fail(emit("GatherV2", of("[?,2]"), [0, 1], 1).op)


def test_stitch_compiles_for_shapes_only() -> None:
    kernel = lookup("DynamicStitch").kernel
    with Graph().as_default():
        assert kernel.compiles(emit("DynamicStitch", [ints("[2]")], [ints("[2]")]).op)
        assert kernel.compiles(emit("DynamicStitch", [[1, 0]], [of("[2]")]).op)
        assert not kernel.compiles(emit("DynamicStitch", [ints("[2]")], [of("[2]")]).op)


def test_prevented_gradient_says_why() -> None:
    with Graph().as_default():
        x = of("[2]")
        y = emit("PreventGradient", x, message="not here")
        with pytest.raises(LookupError, match=r"Gradient explicitly disabled\. Reason: not here"):
            gradients(y, x)
