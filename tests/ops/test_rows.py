"""Every op row, five ways: values in clusters, values op by op, static shapes, gradients, GraphDef round trip.

The expected numbers are TensorFlow's (tests/golden/record_ops.py).
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import rows
import thalweg.ops  # noqa: F401
from thalweg.autodiff.gradients import gradients
from thalweg.base import dtypes, errors
from thalweg.client.session import Session, config_pb2
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import graph_def
from thalweg.graph.importer import import_graph_def
from thalweg.graph.registry import all_records, lookup

ALL = [(f, *r) for f in rows.families() for r in rows.load(f)]
IDS = [f"{f}:{r.name}" for f, r, *_ in ALL]
OP_BY_OP = config_pb2.ConfigProto()
OP_BY_OP.graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF


class Built:
    """A row as a graph: its node, what is fed, and gradients."""

    def __init__(self, row: Any) -> None:
        self.graph = Graph()
        self.feeds: dict[Any, Any] = {}
        with self.graph.as_default():
            flat: list[Any] = []
            arguments = []
            for i, value in enumerate(row.inputs):
                tensors = [self._input(np.asarray(v), i in row.const) for v in (value if isinstance(value, list) else [value])]
                flat.extend(tensors)
                arguments.append(tensors if isinstance(value, list) else tensors[0])
            record = lookup(row.op)
            names = [a.name for a in record.definition.inputs]
            self.op = emit.operation(row.op, **dict(zip(names, arguments, strict=True)), **row.attrs)
            self.gradients = self._gradients(row, flat)

    def _input(self, value: np.ndarray, constant: bool) -> Any:
        dtype = dtypes.string if value.dtype == object else dtypes.as_dtype(value.dtype)
        if constant:
            return emit.constant(value, dtype)
        tensor = emit("Placeholder", dtype=dtype, shape=value.shape)
        self.feeds[tensor] = value
        return tensor

    def _gradients(self, row: Any, flat: list[Any]) -> list[Any]:
        real = [t for t in self.op.outputs if t.dtype.is_floating or t.dtype.is_complex]
        positions = row.grad
        if positions is None:
            positions = tuple(i for i, t in enumerate(flat) if t.dtype.is_floating or t.dtype.is_complex)
        if not real or not positions or row.error:
            return []
        from row import weights

        ys = [
            emit.constant(weights(t._shape).astype(t.dtype.as_numpy_dtype), t.dtype)
            if t.shape.is_fully_defined()
            else emit("OnesLike", t)
            for t in real
        ]
        grads = gradients(real, [flat[i] for i in positions], grad_ys=ys)
        return [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in grads]


def close(got: Any, want: np.ndarray, row: Any, scale: float = 1.0) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype or want.dtype.kind == "S", (got.dtype, want.dtype)
    assert got.shape == want.shape, (got.shape, want.shape)
    if want.dtype == object or want.dtype.kind in "biuS":
        np.testing.assert_array_equal(got, want)
        return
    tolerance = {np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 2e-2}.get(want.dtype, 0.0)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=scale * max(row.rtol, tolerance), atol=scale * max(row.atol, tolerance)
    )


@pytest.mark.parametrize("mode", ["cluster", "op_by_op"])
@pytest.mark.parametrize(("family", "row", "description", "stored"), ALL, ids=IDS)
def test_row(family: str, row: Any, description: dict[str, Any], stored: list[np.ndarray], mode: str) -> None:
    assert "missing" not in description, f"record {family} again: python tests/golden/record_ops.py {family}"
    if row.error is not None:
        check_error(row, mode)
        return
    built = Built(row)
    outputs = list(built.op.outputs)
    n = description["outputs"]
    assert len(outputs) == n
    for tensor, shape in zip(outputs, description["shapes"], strict=True):
        check_static_shape(tensor._shape, shape)
    present = [g is not None for g in built.gradients]
    assert present == description["gradients"]
    grads = [g for g in built.gradients if g is not None]
    with Session(graph=built.graph, config=OP_BY_OP if mode == "op_by_op" else None) as session:
        values = session.run([outputs, grads] if outputs else [[built.op], grads], built.feeds)
    for i, (got, want) in enumerate(zip(values[0], stored[:n], strict=bool(outputs))):
        if row.outputs is None or i in row.outputs:
            close(got, want, row)
    for got, want in zip(values[1], stored[n:], strict=True):
        close(got, want, row, 10.0)


def check_static_shape(got: Any, want: Any) -> None:
    """As much is known as in TensorFlow, and nothing else."""
    if want is None:
        return
    assert got is not None and len(got) == len(want), (got, want)
    for g, w in zip(got, want, strict=True):
        assert w is None or g == w, (got, want)


def check_error(row: Any, mode: str) -> None:
    kinds = (ValueError, TypeError, errors.OpError)
    with pytest.raises(kinds) as caught:
        built = Built(row)
        with Session(graph=built.graph, config=OP_BY_OP if mode == "op_by_op" else None) as session:
            session.run(list(built.op.outputs) or built.op, built.feeds)
    assert type(caught.value).__name__ == row.error, caught.value
    assert row.op in str(caught.value), caught.value


@pytest.mark.parametrize(("family", "row", "description", "stored"), ALL, ids=IDS)
def test_graphdef_round_trip(family: str, row: Any, description: dict[str, Any], stored: list[np.ndarray]) -> None:
    if row.error is not None:
        return
    first = graph_def(Built(row).graph)
    with Graph().as_default() as graph:
        import_graph_def(first, name="")
        assert graph_def(graph) == first


#: ops that rows can't hold (a row has no variables, no state, no side effects), and where they are tested
ELSEWHERE = {
    "tests/ops/test_training_ops.py": r"(Resource)?(Sparse)?Apply\w+",
    "tests/ops/test_state_ops.py": r"(Resource)?Scatter(?!Nd$)\w+|(Resource)?StridedSliceAssign|Assign\w*|VariableV2|Variable|VarHandleOp"
    r"|ReadVariableOp|VariableShape|IsVariableInitialized|VarIsInitializedOp|DestroyResourceOp|(Resource)?CountUpTo|ResourceGather(Nd)?",
    "tests/ops/test_checkpoint_ops.py": r"(Save|Restore)(V2|Slices?)?|MergeV2Checkpoints|Sharded(Filename|Filespec)",
    "tests/ops/test_random_ops.py": r"Random\w+|TruncatedNormal|Multinomial",
    "tests/ops/test_debugging_ops.py": r"Assert|Print(V2)?|StringFormat|Timestamp|PyFunc(Stateless)?",
    "tests/ops/test_scan.py": r"_LinearRecurrence|_Shift",
    "tests/library/test_variables.py": r"_Initialized(Resource)?Value",
    "tests/library/test_control_flow_programs.py": r"(Ref)?(Switch|Merge|Enter|Exit|NextIteration)|LoopCond|ControlTrigger|Abort"
    r"|RefIdentity|TensorArray\w+|Stack(Push|Pop|Close)?(V2)?",
    "tests/library/test_queue_programs.py": r"\w*Queue\w*|\w*Accumulator\w*|Barrier\w*|Stage\w*|Unstage|\w*Mutex\w*",
    "tests/plan/test_partition.py": r"_(Host)?(Send|Recv)",
    "tests/library/test_event_files.py": r"AudioSummary",
    "tests/files/test_functions.py": r"(Stateful)?PartitionedCall|(Stateless)?(If|While|Case)|SymbolicGradient|ToBool|FakeParam"
    r"|TensorList\w+|EmptyTensorList|DisableCopyOnRead|StringJoin|(Static)?RegexFullMatch",
    "tests/library/test_record_files.py": r"Decode(Jpeg|AndCropJpeg|Png|Gif|Bmp|Image)|ExtractJpegShape",
    "tests/library/test_pictures.py": r"Encode(Jpeg(VariableQuality)?|Png)",
    "tests/library/test_readers.py": r"\w*Reader\w*",
    "tests/library/test_file_ops.py": r"ReadFile|WriteFile|MatchingFiles",
    "tests/plan/test_loops.py": r"_Compiled(Loop|Cond)|_Array\w+",
    "tests/plan": r"_Arg|_Retval|_Cluster|NoOp|Const|Placeholder(WithDefault)?",
    "TensorFlow refuses to make it, or has no CPU kernel for it": r"TopK|MaxPoolGradGradWithArgmax|MaxPool3DGradGrad",
}


def test_every_op_has_a_row_or_a_place() -> None:
    have = {row.op for _, row, *_ in ALL}
    missing = {n for n in all_records() if n not in have}
    unexplained = {n for n in missing if not any(re.fullmatch(p, n) for p in ELSEWHERE.values())}
    assert unexplained == set()
    root = pathlib.Path(__file__).resolve().parents[2]
    assert all((root / place).exists() for place in ELSEWHERE if place.startswith("tests/"))
