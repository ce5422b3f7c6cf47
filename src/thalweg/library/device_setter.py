"""replica_device_setter: variables go to parameter servers, everything else to the worker."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.cluster_spec import ClusterSpec
from thalweg.base.device_name import DeviceSpec
from thalweg.base.dtypes import as_dtype
from thalweg.graph.operation import Operation

_log = logging.getLogger("thalweg")

#: the ops that hold state, which parameter servers keep
STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator", "DecisionTreeResource",
)  # fmt: skip


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """A function for tf.device that puts variables on parameter servers and other nodes on the worker.

    ps_tasks: how many parameter servers there are; counted in `cluster` (a ClusterSpec, or what makes one)
        where that is given. None of them: the result is None, which sets nothing.
    ps_device, worker_device: (partial) device names. ps_ops: types of nodes that go to parameter servers; by
        default those that hold state.
    merge_devices: what scopes inside ask for is kept, and completed. Without it, a node that asks for
        anything keeps just that.
    ps_strategy: the task index for a node; by default each server in turn.
    Errors: TypeError for another cluster or a strategy that can't be called, ValueError for a malformed name.
    """
    servers, worker = DeviceSpec.from_string(ps_device), DeviceSpec.from_string(worker_device)
    if cluster is not None:
        spec = ClusterSpec(cluster)
        if servers.job not in spec.jobs:
            return None
        ps_tasks = spec.num_tasks(servers.job)
    if ps_tasks == 0:
        return None
    if not merge_devices:
        _log.warning("replica_device_setter: merge_devices=True is recommended")
    strategy = _RoundRobin(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError(f"ps_strategy must be callable, but is {strategy!r}")
    held = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)

    def choose(op: Operation) -> str:
        if not merge_devices and op.device:
            return op.device
        asked = DeviceSpec.from_string(op.device)
        if not ps_device or op.type not in held:
            return worker.make_merged_spec(asked).to_string()
        server = servers
        if servers.job and asked.job in (None, servers.job):  # else it goes to another job
            server = servers.replace(task=strategy(op))
        return server.make_merged_spec(asked).to_string()

    return choose


class _RoundRobin:
    """Each server in turn."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks = num_tasks
        self._next = 0

    def __call__(self, op: Operation) -> int:
        task = self._next
        self._next = (task + 1) % self._num_tasks
        return task


class RandomStrategy:
    """A server at random for each node; the same ones for the same seed."""

    def __init__(self, num_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_tasks
        self._random = random.Random(seed)

    def __call__(self, op: Operation) -> int:
        return self._random.randrange(self._num_tasks)


class GreedyLoadBalancingStrategy:
    """The server with the least load so far, the first of equals.

    load_fn: the load that a node is; byte_size_load_fn for its size.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        self._load_fn = load_fn
        self._loads = np.zeros(num_tasks)

    def __call__(self, op: Operation) -> int:
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Operation) -> int:
    """The bytes of a node's value: of the variable, where it is a handle of one.

    ValueError for a node that hasn't just one output, or whose shape isn't known.
    """
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output, but has {len(op.outputs)}")
    dtype, shape = op.outputs[0].dtype, op.outputs[0]._shape
    if "shape" in op._attrs:  # a variable: as it was declared
        dtype, shape = op._attrs["dtype"], op._attrs["shape"]
    count = shapes.num_elements(shape)
    if count is None:
        known = shapes.format_shape(shape)
        raise ValueError(f"the shape of '{op.name}' must be fully defined, but is {known}")
    return count * int(as_dtype(dtype).size)
