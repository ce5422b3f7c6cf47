"""Initializers: the nodes that TensorFlow makes, and their parameters."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import thalweg.ops  # noqa: F401  fills the registry
from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.library import initializers, operators, random_seed  # noqa: F401  `*` on tensors
from thalweg.library.variable_scope import get_variable
from thalweg.library.variable_store import PartitionInfo


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def nodes(graph: Graph) -> list[str]:
    """The nodes of an initial value: "name Type input input"."""
    return [
        " ".join([op.name, op.type, *(t.op.name.rsplit("/", 1)[-1] for t in op.inputs)])
        for op in graph.get_operations()
        if "/Initializer/" in op.name
    ]


def known(name: str, graph: Graph) -> Any:
    return emit.known_value(graph.get_tensor_by_name(name + ":0"))


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (
            initializers.glorot_uniform_initializer(),
            [
                "w/Initializer/random_uniform/shape Const",
                "w/Initializer/random_uniform/min Const",
                "w/Initializer/random_uniform/max Const",
                "w/Initializer/random_uniform/RandomUniform RandomUniform shape",
                "w/Initializer/random_uniform/sub Sub max min",
                "w/Initializer/random_uniform/mul Mul RandomUniform sub",
                "w/Initializer/random_uniform AddV2 mul min",
            ],
        ),
        (
            initializers.random_normal_initializer(),
            [
                "w/Initializer/random_normal/shape Const",
                "w/Initializer/random_normal/mean Const",
                "w/Initializer/random_normal/stddev Const",
                "w/Initializer/random_normal/RandomStandardNormal RandomStandardNormal shape",
                "w/Initializer/random_normal/mul Mul RandomStandardNormal stddev",
                "w/Initializer/random_normal AddV2 mul mean",
            ],
        ),
        (
            initializers.truncated_normal_initializer(stddev=0.1),
            [
                "w/Initializer/truncated_normal/shape Const",
                "w/Initializer/truncated_normal/mean Const",
                "w/Initializer/truncated_normal/stddev Const",
                "w/Initializer/truncated_normal/TruncatedNormal TruncatedNormal shape",
                "w/Initializer/truncated_normal/mul Mul TruncatedNormal stddev",
                "w/Initializer/truncated_normal AddV2 mul mean",
            ],
        ),
        (initializers.zeros_initializer(), ["w/Initializer/zeros Const"]),
        (initializers.ones_initializer(), ["w/Initializer/ones Const"]),
        (initializers.constant_initializer(3.0), ["w/Initializer/Const Const"]),
    ],
)
def test_nodes(graph: Graph, initializer: Any, expected: list[str]) -> None:
    w = get_variable("w", [2, 3], initializer=initializer)
    assert nodes(graph) == expected
    assert w.shape.as_list() == [2, 3]
    assert all(op._attrs["_class"] == (b"loc:@w",) for op in graph.get_operations())


def test_large_constants_are_filled_when_run(graph: Graph) -> None:
    get_variable("w", [100, 10], initializer=initializers.zeros_initializer())
    assert [n.split()[1] for n in nodes(graph)] == ["Const", "Const", "Fill"]


@pytest.mark.parametrize(
    ("initializer", "shape", "limit"),
    [
        (initializers.glorot_uniform_initializer(), [2, 4], math.sqrt(3 / 3)),
        (initializers.he_uniform(), [5, 5, 2, 4], math.sqrt(6 / 50)),
        (initializers.lecun_uniform(), [7], math.sqrt(3 / 7)),
        (initializers.uniform_unit_scaling_initializer(2.0), [3, 4, 5], 2 * math.sqrt(3 / 12)),
        (initializers.variance_scaling_initializer(2.0, "fan_out", "uniform"), [2, 4], math.sqrt(6 / 4)),
        (initializers.random_uniform_initializer(-0.5, 0.5), [1], 0.5),
    ],
)
def test_limits_of_uniform_numbers(graph: Graph, initializer: Any, shape: list[int], limit: float) -> None:
    initializer(shape)
    np.testing.assert_allclose(known("random_uniform/max", graph), limit, rtol=1e-6)
    np.testing.assert_allclose(known("random_uniform/min", graph), -limit, rtol=1e-6)


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [
        (initializers.glorot_normal_initializer(), 1 / 3),
        (initializers.he_normal(), 2 / 2),
        (initializers.lecun_normal(), 1 / 2),
    ],
)
def test_spread_of_truncated_normal_numbers(graph: Graph, initializer: Any, variance: float) -> None:
    initializer([2, 4])
    spread = math.sqrt(variance) / 0.87962566103423978
    np.testing.assert_allclose(known("truncated_normal/stddev", graph), spread, rtol=1e-6)


def test_a_slice_has_the_scale_of_the_whole(graph: Graph) -> None:
    initializers.glorot_uniform_initializer()([1, 4], partition_info=PartitionInfo([2, 4], [1, 0]))
    np.testing.assert_allclose(known("random_uniform/max", graph), 1.0)


def test_seeds(graph: Graph) -> None:
    def attrs(op: str) -> tuple[int, int]:
        node = graph.get_operation_by_name(op)
        return node._attrs["seed"], node._attrs["seed2"]

    initializers.random_uniform_initializer()([2])
    assert attrs("random_uniform/RandomUniform") == (0, 0)
    initializers.random_normal_initializer(seed=7)([2])
    assert attrs("random_normal/RandomStandardNormal") == (87654321, 7)
    random_seed.set_random_seed(11)
    initializers.truncated_normal_initializer()([2])
    initializers.truncated_normal_initializer()([2])
    assert attrs("truncated_normal/TruncatedNormal") == (11, 0)  # how many had no seed of their own before
    assert attrs("truncated_normal_1/TruncatedNormal") == (11, 1)


def test_types(graph: Graph) -> None:
    assert initializers.random_uniform_initializer(0, 5, dtype=dtypes.int32)([2]).op.type == "RandomUniformInt"
    assert initializers.ones_initializer()([2], dtypes.bool).dtype == dtypes.bool
    assert initializers.zeros_initializer(dtypes.string)([2]).dtype == dtypes.string
    assert initializers.random_normal_initializer()([2], dtypes.float64).dtype == dtypes.float64


def test_constants(graph: Graph) -> None:
    assert known(initializers.constant_initializer([1, 2, 3])([2, 2]).op.name, graph).tolist() == [[1, 2], [3, 3]]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        initializers.constant_initializer([1, 2], verify_shape=True)([3])
    assert known(initializers.identity_initializer(2.0)([2, 2]).op.name, graph).tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: initializers.variance_scaling_initializer(0), ValueError, "`scale` must be positive float"),
        (lambda: initializers.variance_scaling_initializer(mode="fan"), ValueError, "Invalid `mode` argument: fan"),
        (lambda: initializers.variance_scaling_initializer(distribution="x"), ValueError, "Invalid `distribution`"),
        (lambda: initializers.random_normal_initializer(dtype=dtypes.int32), ValueError, "floating point type"),
        (lambda: initializers.constant_initializer(object()), TypeError, "Invalid type for initial value"),
        (lambda: initializers.identity_initializer()([2]), ValueError, "can only be used for 2D matrices"),
        (lambda: initializers.orthogonal_initializer()([2]), ValueError, "must be at least two-dimensional"),
        (lambda: initializers.random_uniform_initializer(dtype=dtypes.int32)([2]), ValueError, "Must specify maxval"),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize(
    "initializer",
    [
        initializers.zeros_initializer(dtypes.int32),
        initializers.constant_initializer(2),
        initializers.random_uniform_initializer(1, 2, seed=3),
        initializers.truncated_normal_initializer(1, 2, seed=3),
        initializers.glorot_uniform_initializer(seed=1),
        initializers.variance_scaling_initializer(2.0, "fan_avg", "uniform"),
        initializers.uniform_unit_scaling_initializer(2.0),
        initializers.orthogonal_initializer(2.0),
        initializers.identity_initializer(2.0),
    ],
)
def test_configurations_come_back(initializer: Any) -> None:
    again = type(initializer).from_config(initializer.get_config())
    assert again.get_config() == initializer.get_config()
