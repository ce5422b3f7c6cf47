"""Where nodes ask to be, against what TensorFlow's nodes ask: see tests/golden/device_programs.py."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg as tf
from thalweg.base.cluster_spec import ClusterSpec
from thalweg.library.device_setter import replica_device_setter

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import device_programs  # noqa: E402
import record_devices  # noqa: E402

RECORDED = json.loads((GOLDEN / "data" / "devices.json").read_text())

#: nodes that only one of the two makes: pattern, why
ONE_SIDED = [
    (r"(^|/)gradients/(Fill|grad_ys_0/Const)$", "TensorFlow 2.21 names what fills in dy otherwise than 1.15"),
    (
        r"(^|/)(initialized_value|IsVariableInitialized|cond/.*)$",
        "an initial value that depends on another variable is one node here, a conditional there",
    ),
    (r"/AssignMovingAvg/read$", "this read is a node of its own here"),
]

#: errors of another class than TensorFlow's: why
OTHER_ERRORS = {
    "number": ("TypeError", "TensorFlow stumbles over a missing attribute"),
    "function_gives_a_bad_name": ("ValueError", "TensorFlow finds out when the graph runs"),
    "function_gives_none": ("", "None says nothing about the node"),
    "colocate_with_a_name": ("KeyError", "TensorFlow finds out when the graph runs"),
}


@pytest.mark.parametrize("name", device_programs.PROGRAMS)
def test_devices_are_tensorflows(name: str) -> None:
    found = {n: rest for n, *rest in record_devices.record(tf, device_programs.PROGRAMS[name])}
    expected: dict[str, Any] = {n: rest for n, *rest in RECORDED[name]}
    assert {n: r for n, r in found.items() if n in expected} == {
        n: r for n, r in expected.items() if n in found
    }
    assert [
        n for n in found.keys() ^ expected.keys() if not any(re.search(pattern, n) for pattern, _ in ONE_SIDED)
    ] == []


@pytest.mark.parametrize("name", device_programs.BROKEN)
def test_errors_are_tensorflows(name: str) -> None:
    expected, _ = OTHER_ERRORS.get(name, (RECORDED["errors"][name], ""))
    assert record_devices.record_error(tf, device_programs.BROKEN[name]) == expected


def test_what_a_device_function_raises_leaves_no_node() -> None:
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match="'/bad:1'"), tf.device(lambda op: "/bad:1"):
            tf.no_op(name="n")
        with pytest.raises(TypeError, match="but got 3"), tf.device(lambda op: 3):
            tf.no_op(name="n")
        assert graph.get_operations() == []
        tf.no_op(name="m")
        assert [op.name for op in graph.get_operations()] == ["m"]


def test_a_device_function_may_say_nothing() -> None:
    with tf.Graph().as_default(), tf.device("/job:a"), tf.device(lambda op: None), tf.device("/gpu:1"):
        assert tf.no_op().device == "/job:a/device:GPU:1"


@pytest.mark.parametrize("bad", ["/jobb:a", "/gpu:one", "gpu0", "/cpu:0/gpu:0"])
def test_malformed_names_are_refused_at_once(bad: str) -> None:
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match=re.escape(bad)), graph.device(bad):
            pass
        with pytest.raises(ValueError, match=re.escape(bad)):
            replica_device_setter(ps_tasks=1, worker_device=bad)


@pytest.mark.parametrize("use_resource", [False, True])
def test_greedy_load_balancing(use_resource: bool) -> None:
    """Each variable goes to the server that holds least; a scalar is four bytes."""
    training = tf.contrib.training
    strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    found = []
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)):
        for name, shape in (("a", [10]), ("b", [4]), ("c", [4]), ("d", []), ("e", [100])):
            v = tf.get_variable(name, shape, initializer=tf.zeros_initializer(), use_resource=use_resource)
            found.append(v.device)
    assert found == [f"/job:ps/task:{i}" for i in (0, 1, 1, 1, 1)]


def test_byte_size_of_what_has_none() -> None:
    load = tf.contrib.training.byte_size_load_fn
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="must have a single output"):
            load(tf.no_op())
        with pytest.raises(ValueError, match="fully defined"):
            load(tf.placeholder(tf.float32, [None]).op)


def test_random_strategy_is_the_same_for_the_same_seed() -> None:
    draws = []
    for seed in (1, 1, 2):
        strategy = tf.contrib.training.RandomStrategy(5, seed)
        draws.append([strategy(None) for _ in range(20)])
    assert draws[0] == draws[1] != draws[2]
    assert set(draws[0]) <= set(range(5))


def test_what_else_contrib_has_is_told() -> None:
    with pytest.raises(AttributeError, match=r"tf\.contrib\.slim of TensorFlow 1\.x is not part"):
        tf.contrib.slim  # noqa: B018
    with pytest.raises(AttributeError, match=r"tf\.contrib\.training\.HParams of TensorFlow 1\.x is not part"):
        tf.contrib.training.HParams  # noqa: B018


def test_cluster_spec() -> None:
    spec = tf.train.ClusterSpec({"ps": ["p0:1", "p1:1"], "worker": {1: "w1:1", "3": "w3:1"}})
    assert spec.as_dict() == {"ps": ["p0:1", "p1:1"], "worker": {1: "w1:1", 3: "w3:1"}}
    assert spec.jobs == ["ps", "worker"] and spec.num_tasks("ps") == 2 and spec.task_indices("worker") == [1, 3]
    assert spec.task_address("worker", 3) == "w3:1" and spec.job_tasks("worker") == [None, "w1:1", None, "w3:1"]
    assert ClusterSpec(spec.as_cluster_def()) == spec == ClusterSpec(spec) and hash(ClusterSpec(spec)) == hash(spec)
    assert repr(tf.train.ClusterSpec({"a": ["h:1"]})) == "ClusterSpec({'a': ['h:1']})"
    assert not tf.train.ClusterSpec({}) and spec
    with pytest.raises(ValueError, match="No task with index 0 in job 'worker'"):
        spec.task_address("worker", 0)
    with pytest.raises(ValueError, match="No such job in cluster: 'x'; the jobs are ps, worker"):
        spec.job_tasks("x")
    for bad in (7, {"ps": "p0:1"}, {"ps": [1]}, {3: ["a:1"]}):
        with pytest.raises(TypeError):
            tf.train.ClusterSpec(bad)
