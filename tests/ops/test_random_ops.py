"""Random ops through the Session: recorded numbers, run after run, and where initial values are made."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from thalweg.base import dtypes, errors
from thalweg.client.session import Session, config_pb2
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.registry import lookup
from thalweg.kernel.initializing import initializes
from thalweg.ops import variables  # noqa: F401
from thalweg.plan.pipeline import PlanOptions, make_plan

DATA = pathlib.Path(__file__).parents[1] / "golden" / "data" / "random.npz"
OP_BY_OP = config_pb2.ConfigProto()
OP_BY_OP.graph_options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
CONFIGS = {"cluster": None, "op_by_op": OP_BY_OP}
DRAWS = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
#: per op the shapes that go through the Session; tests/kernel/test_philox.py has the others
SHAPES = {
    "RandomUniformInt": ([7],),
    "RandomShuffle": ([0, 3], [1], [6], [5, 3]),
    "Multinomial": ([1, 5], [3, 7], [2, 9], [2, 0]),
}


def _cases() -> dict[str, list[tuple[dict[str, Any], list[np.ndarray]]]]:
    """For each op some recorded cases, each with what three runs gave (its ends, where there is much)."""
    with np.load(DATA) as stored:
        arrays = dict(stored)
    at = dict.fromkeys(arrays, 0)
    result: dict[str, list[Any]] = {}
    for case in json.loads(arrays["index"].tobytes()):
        size = int(np.prod(case["shape"]))
        count, runs = (size if size <= 16 else 12), []
        for _ in case["runs"]:
            name = case["stored"]
            runs.append(arrays[name][at[name] : at[name] + count])
            at[name] += count
        if case["shape"] in SHAPES.get(case["op"], ([9],)):
            result.setdefault(case["op"], []).append((case, runs))
    return result


CASES = _cases()


def _node(case: dict[str, Any]) -> Any:
    op, shape, dtype = case["op"], case["shape"], dtypes.as_dtype(case["dtype"])
    numpy_type = dtype.as_numpy_dtype
    seeds = {"seed": case["seed"], "seed2": case["seed2"]}
    if op == "RandomShuffle":
        rows = np.arange(int(np.prod(shape)), dtype=numpy_type).reshape(shape)
        return emit(op, emit.constant(rows), **seeds)
    if op == "Multinomial":
        logits = np.array(case["logits"], numpy_type).reshape(shape[0], -1)
        return emit(op, emit.constant(logits), np.int32(shape[1]), **seeds)
    if op == "RandomUniformInt":
        bounds = [np.array(case[name], numpy_type) for name in ("lo", "hi")]
        return emit(op, np.array(shape, np.int32), *bounds, **seeds)
    return emit(op, np.array(shape, np.int32), dtype=dtype, **seeds)


def _compare(case: dict[str, Any], kept: np.ndarray, got: np.ndarray) -> None:
    assert got.shape == tuple(case["shape"])
    flat = got.reshape(-1)
    ends = flat if flat.size <= 16 else np.concatenate([flat[:6], flat[-6:]])
    want = kept.view(got.dtype) if kept.dtype == np.uint16 else kept
    if case["op"] in ("RandomStandardNormal", "TruncatedNormal"):
        wide = np.float64
        np.testing.assert_allclose(ends.astype(wide), want.astype(wide), rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(ends, want, strict=True)


@pytest.mark.parametrize("mode", CONFIGS)
@pytest.mark.parametrize("op", CASES)
def test_recorded_runs(op: str, mode: str) -> None:
    cases = CASES[op]
    with Graph().as_default() as graph:
        tensors = [_node(case) for case, _ in cases]
    for tensor, (case, _) in zip(tensors, cases, strict=True):
        assert tensor._shape == tuple(case["shape"])
    for _ in range(2):  # a new session starts again
        with Session(graph=graph, config=CONFIGS[mode]) as session:
            for number in range(3):
                values = session.run(tensors)
                for (case, runs), got in zip(cases, values, strict=True):
                    _compare(case, runs[number], np.asarray(got))


def test_only_nodes_that_run_move_on() -> None:
    with Graph().as_default() as graph:
        a, b = (emit("RandomUniform", np.array([4], np.int32), dtype=dtypes.float32, seed=s, seed2=9) for s in (1, 2))
        same = emit("RandomUniform", np.array([4], np.int32), dtype=dtypes.float32, seed=1, seed2=9)
    with Session(graph=graph) as session:
        first = [session.run(a) for _ in range(3)]
        both = session.run([a, b, same])
    np.testing.assert_array_equal(both[2], first[0])  # nodes of equal seeds are apart
    assert len({v.tobytes() for v in (*first, both[0], both[1])}) == 5


def test_no_seed_draws_one() -> None:
    with Graph().as_default() as graph:
        nodes = [emit(op, np.array([4], np.int32), dtype=dtypes.float32) for op in DRAWS for _ in range(2)]
    values = []
    for _ in range(2):
        with Session(graph=graph) as session:
            values.extend(session.run(nodes))
    assert len({v.tobytes() for v in values}) == len(values)


def test_a_shape_that_is_fed() -> None:
    with Graph().as_default() as graph:
        shape = emit("Placeholder", dtype=dtypes.int32, shape=(2,))
        nodes = [emit(op, shape, dtype=dtypes.float32, seed=1, seed2=2) for op in DRAWS]
        assert nodes[0]._shape == (None, None)
    with Session(graph=graph) as session:
        for fed in ([2, 3], [3, 2], [0, 3]):
            assert [v.shape for v in session.run(nodes, {shape: fed})] == [tuple(fed)] * 3


@pytest.mark.parametrize("op", DRAWS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_host_and_traced_forms_agree(op: str, dtype: Any) -> None:
    kernel = lookup(op).kernel
    state, shape = np.array([2**32 - 3, 0, 0, 1, 5, 6], np.uint32), np.array([3, 17], np.int32)
    with jax.enable_x64(True):
        quick = {"xla_backend_optimization_level": "0"}
        traced = jax.jit(lambda s: kernel.fn(s, shape, dtype=np.dtype(dtype)), compiler_options=quick)(state)
    host = kernel.host(state, shape, dtype=np.dtype(dtype))
    assert np.asarray(traced[0]).dtype == host[0].dtype == dtype
    wide = np.float64
    np.testing.assert_allclose(np.asarray(traced[0]).astype(wide), host[0].astype(wide), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(traced[1], host[1])


@pytest.mark.parametrize("mode", CONFIGS)
@pytest.mark.parametrize(
    ("op", "arguments", "error", "text"),
    [
        ("RandomUniformInt", ([3], 5, 5), errors.InvalidArgumentError, "Need minval < maxval, got 5 >= 5"),
        ("RandomUniformInt", ([3], 0, [1]), ValueError, "rank 0"),
        ("RandomUniform", ([-2],), ValueError, "must be >= 0"),
        ("RandomUniform", (3,), ValueError, "rank 1"),
        ("Multinomial", (np.zeros((2, 0), np.float32), 1), errors.InvalidArgumentError, "num_classes should be positive"),
        ("Multinomial", (np.zeros((2, 3), np.float32), -1), errors.InvalidArgumentError, "nonnegative"),
    ],
)
def test_bad_arguments(op: str, arguments: Any, error: Any, text: str, mode: str) -> None:
    attrs = {"dtype": dtypes.float32} if op == "RandomUniform" else {}
    with Graph().as_default() as graph, pytest.raises(error, match=text):
        node = emit(op, *(np.asarray(a) if isinstance(a, np.ndarray) else np.array(a, np.int32) for a in arguments), **attrs)
        with Session(graph=graph, config=CONFIGS[mode]) as session:
            session.run(node)


def test_bounds_that_are_fed_are_checked() -> None:
    with Graph().as_default() as graph:
        low = emit("Placeholder", dtype=dtypes.int32, shape=())
        node = emit("RandomUniformInt", np.array([3], np.int32), low, np.int32(4), seed=1)
    with Session(graph=graph) as session:
        assert session.run(node, {low: 3}).tolist() == [3, 3, 3]
        with pytest.raises(errors.InvalidArgumentError, match="got 4 >= 4"):
            session.run(node, {low: 4})
        assert session.run(emit_empty(graph, low), {low: 9}).shape == (0,)


def emit_empty(graph: Graph, low: Any) -> Any:
    """A draw of nothing, whose bounds don't matter."""
    with graph.as_default():
        return emit("RandomUniformInt", np.array([0], np.int32), low, np.int32(4))


def test_shuffling_strings_and_scalars() -> None:
    words = np.array([b"a", b"bc", b"", b"d"], object)
    with Graph().as_default() as graph:
        nodes = [emit("RandomShuffle", emit.constant(v), seed=1) for v in (words, np.float32(3))]
    with Session(graph=graph) as session:
        shuffled, scalar = session.run(nodes)
    assert sorted(shuffled.tolist()) == sorted(words.tolist()) and scalar == 3


def test_asking_for_a_shuffle_s_gradient_fails() -> None:
    record = lookup("RandomShuffle")
    with Graph().as_default():
        node = emit("RandomShuffle", emit.constant(np.zeros(3, np.float32)))
        with pytest.raises(LookupError, match="RandomShuffle"):
            record.gradient(emit, node.op, node)


# -- initial values are made on the host --------------------------------------------------------------------


def _variable(name: str, draw: str, scale: float = 0.5) -> tuple[Any, Any, Any]:
    """(variable, draw, assignment) of draw * scale + 1."""
    variable = emit("VariableV2", shape=(3, 5), dtype=dtypes.float32, name=name)
    drawn = emit(draw, np.array([3, 5], np.int32), dtype=dtypes.float32, seed=3, seed2=4)
    value = emit("AddV2", emit("Mul", drawn, np.float32(scale)), np.float32(1))
    return variable, drawn, emit("Assign", variable, value)


@pytest.mark.parametrize("draw", DRAWS)
def test_an_initial_value_compiles_nothing(draw: str) -> None:
    with Graph().as_default() as graph:
        variable, drawn, assign = _variable("v", draw)
    plan = make_plan(graph, [], [], [assign.op], PlanOptions(check=True))
    assert not any(op.type == "_Cluster" for op in plan.graph._ops)
    with Session(graph=graph) as session:
        alone = session.run(drawn)
    with Session(graph=graph) as session:
        session.run(assign.op)
        np.testing.assert_allclose(session.run(variable), alone * 0.5 + 1, rtol=1e-6)


def test_what_initializes() -> None:
    with Graph().as_default():
        _, only, _ = _variable("a", "RandomUniform")
        _, shared, _ = _variable("b", "RandomUniform")
        emit("Exp", shared)
        unused = emit("RandomUniform", np.array([2], np.int32), dtype=dtypes.float32)
    assert initializes(only.op)
    assert not initializes(shared.op)
    assert not initializes(unused.op)


def test_a_draw_with_another_use_is_compiled() -> None:
    with Graph().as_default() as graph:
        _, drawn, assign = _variable("v", "RandomUniform")
    plan = make_plan(graph, [], [emit_exp(graph, drawn)], [assign.op], PlanOptions(check=True))
    clusters = [op for op in plan.graph._ops if op.type == "_Cluster"]
    assert any(node.type == "RandomUniform" for op in clusters for node in op._attrs["body"].nodes)


def emit_exp(graph: Graph, x: Any) -> Any:
    """exp(x)."""
    with graph.as_default():
        return emit("Exp", x)
