"""`gradients`: walks back from ys to xs and adds what each operation's gradient function builds.

Source: the white paper, section 4.1; TensorFlow's gradients_util. The nodes come out with TensorFlow's
names: everything under "gradients/", what an operation's gradient builds under "gradients/<op>_grad/".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from thalweg.autodiff.aggregate import AggregationMethod, aggregate
from thalweg.autodiff.control_flow import ControlFlowState
from thalweg.autodiff.nodes import Grad
from thalweg.autodiff.zeros import is_trainable, zeros_like
from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import NotDifferentiable
from thalweg.graph.where import is_loop_exit, is_loop_switch, is_switch


class UnconnectedGradients:
    """What the gradient of an x that no y depends on is."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = UnconnectedGradients.NONE,
) -> list[Grad | None]:
    """The symbolic derivatives of sum(ys) with respect to each x in xs.

    ys, xs: a tensor, or a list of them (variables too). grad_ys: initial gradients, ones by default.
    stop_gradients: tensors through which nothing flows. Returns one Tensor or IndexedSlices per x, or None
    where no y depends on it (zeros with unconnected_gradients=ZERO).

    Errors: LookupError where an operation on the way has no gradient; TypeError for integer ys; ValueError
    where a gradient function returns the wrong number of gradients, or for unknown unconnected_gradients.
    """
    if unconnected_gradients not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise ValueError(
            f"Unknown value for unconnected_gradients: {unconnected_gradients!r}: it takes 'none' or 'zero'"
        )
    ys, xs = _as_list(ys), _as_list(xs)
    stops = [] if stop_gradients is None else _as_list(stop_gradients)
    given = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(ys):
        raise ValueError(f"Cannot compute gradients: {len(ys)} ys but {len(given)} grad_ys")
    graph = get_default_graph()
    with graph.name_scope(name or "gradients"):
        ys = [_as_value(y, f"y_{i}") for i, y in enumerate(ys)]
        xs = [_as_tensor(x, f"x_{i}") for i, x in enumerate(xs)]
        stops = [_as_tensor(s, f"stop_{i}") for i, s in enumerate(stops)]
        walk = _Walk(graph, colocate_gradients_with_ops, gate_gradients, aggregation_method)
        for y, grad in zip(ys, _initial_gradients(ys, given, walk), strict=True):
            walk.add(y, grad)
        walk.run(ys, xs, stops)
    return [_result(walk.total.get(x), x, unconnected_gradients) for x in xs]


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [x]


def _as_value(y: Any, name: str) -> Tensor:
    """What y is, also where it is a variable: only as an x does a variable stand for itself."""
    return y.values if isinstance(y, IndexedSlices) else convert_to_tensor(y, name=name)


def _as_tensor(x: Any, name: str) -> Tensor:
    if isinstance(x, IndexedSlices):
        return x.values
    handle = getattr(x, "handle", None)
    if not isinstance(x, Tensor) and isinstance(handle, Tensor) and handle._dtype == dtypes.resource:
        return handle
    return convert_to_tensor(x, name=name, as_ref=True)


def _initial_gradients(ys: Sequence[Tensor], given: Sequence[Any], walk: _Walk) -> list[Grad]:
    result: list[Grad] = []
    for i, (y, grad) in enumerate(zip(ys, given, strict=True)):
        dtype = y._dtype.base_dtype
        if grad is None:
            if dtype.is_complex:
                raise TypeError(
                    f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = {dtype.name})"
                )
            with walk.beside(y._op):
                shape = emit.shape(y)
                one = emit.constant(np.ones((), dtype.as_numpy_dtype), dtype, f"grad_ys_{i}")
                result.append(emit("Fill", shape, one))
            continue
        if not isinstance(grad, IndexedSlices):
            grad = convert_to_tensor(grad, dtype, f"grad_ys_{i}/input")
        _check_grad_type(y, dtype, grad.dtype.base_dtype)
        result.append(_named(grad, f"grad_ys_{i}"))
    return result


def _named(grad: Grad, name: str) -> Grad:
    """The gradient under a name in the gradients' scope, by which TensorArrays tell calls apart."""
    if isinstance(grad, Tensor):
        return emit("Identity", grad, name=name)
    return IndexedSlices(
        emit("Identity", grad.values, name=f"{name}_values"),
        emit("Identity", grad.indices, name=f"{name}_indices"),
        grad.dense_shape,
    )


def _check_grad_type(y: Tensor, dtype: DType, grad: DType) -> None:
    if (dtype.is_floating or dtype.is_integer) and not (grad.is_floating or grad.is_integer):
        raise TypeError(
            f"Gradient type {grad.name} generated for real or integer-valued tensor {y} with type "
            f"{dtype.name} must be real or integer"
        )
    if dtype.is_complex and not grad.is_complex:
        raise TypeError(f"Gradient type {grad.name} generated for complex-valued tensor {y} must be complex")


def _result(grad: Grad | None, x: Tensor, unconnected: str) -> Grad | None:
    if grad is not None or unconnected == UnconnectedGradients.NONE:
        return grad
    if unconnected != UnconnectedGradients.ZERO:
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected!r}")
    return zeros_like(x, optimize=True)


class _Walk:
    """The state of one reverse walk."""

    def __init__(self, graph: Graph, colocate: bool, gate: bool, method: int | None) -> None:
        self.graph = graph
        self.colocate = colocate
        self.gate = bool(gate)
        self.method = AggregationMethod.DEFAULT if method is None else method
        #: gradients that have arrived for each tensor
        self.arrived: dict[Tensor, list[Grad]] = {}
        #: their sum, once the operation's turn has come
        self.total: dict[Tensor, Grad | None] = {}
        self._loops = ControlFlowState(graph)
        #: how many uses of an operation's outputs the walk still comes to
        self._pending: dict[Operation, int] = {}
        self._ready: deque[Operation] = deque()

    def add(self, tensor: Tensor, grad: Grad) -> None:
        """A further gradient for a tensor."""
        self.arrived.setdefault(tensor, []).append(grad)

    def beside(self, op: Operation) -> AbstractContextManager[Any]:
        """Where the nodes of op's gradient go."""
        return self.graph.colocate_with(op) if self.colocate else nullcontext()

    def run(self, ys: Sequence[Tensor], xs: Sequence[Tensor], stops: Sequence[Tensor]) -> None:
        """Visits every operation between xs and ys, each after all operations that consume it."""
        from_ops = [x._op for x in xs]
        between = _between([y._op for y in ys], from_ops)
        starts = [op for op in dict.fromkeys(y._op for y in ys) if op in between]
        for op in [op for op in between if is_loop_exit(op)]:
            with self.beside(op):
                between.update(dict.fromkeys(e for e in self._loops.add(op) if e not in between))
        pending = self._pending = _pending_counts(between)
        starts = [op for op in starts if pending[op] == 0]
        self._ready.extend(starts)
        if self._loops:
            for unused in self._loops.unused_exits(pending, starts):
                if is_trainable(unused):
                    self.add(unused, self._loops.zeros_for_exit(unused))
                    self._ready.append(unused._op)
        stop_ops = {op for op in from_ops if not any(pending.get(t._op, 0) > 0 for t in op._inputs)} | {
            t._op for t in stops
        }
        while self._ready:
            op = self._ready.popleft()
            with self.beside(op):
                self._visit(op, op in stop_ops, from_ops)
            self._release(op)
        self._loops.finish()

    def _visit(self, op: Operation, stop: bool, from_ops: Sequence[Operation]) -> None:
        """Hands the gradients of op's outputs on to its inputs."""
        with self._loops.grad_context(op, outside_exit=True):
            grads = self._sum_up(op)
        with self._loops.grad_context(op):
            if is_switch(op):
                self._check_outside(op, from_ops)
            if stop or all(g is None for g in grads):
                return
            for tensor, grad in zip(op._inputs, self._back(op, grads), strict=False):
                if grad is not None:
                    self._arrive(tensor, grad)

    def _check_outside(self, op: Operation, from_ops: Sequence[Operation]) -> None:
        """ValueError where a gradient that is built inside a loop comes to one of its variables."""
        context = op._control_flow_context
        if context is None or not context.IsWhileContext():
            return
        if context is self.graph._get_control_flow_context():
            target = _nearest(op, from_ops)
            raise ValueError(
                f"Cannot compute gradient inside while loop with respect to op '{target.name}'. We do not "
                "support taking the gradient wrt or through the initial value of a loop variable. Gradients "
                "can be computed through loop invariants or wrt the input parameters to the loop body."
            )

    def _release(self, op: Operation) -> None:
        """Counts op as visited; what has nothing to wait for any more is ready."""
        for tensor in op._inputs:
            source = tensor._op
            if source not in self._pending:
                continue
            self._pending[source] -= 1
            left = self._pending[source]
            if left and not (left > 0 and self._loops and is_loop_switch(source)):
                continue
            if not is_loop_exit(source):
                self._ready.append(source)
                continue
            ready, zero = self._loops.defer(tensor, self.arrived)
            for exited in zero:
                self.add(exited, self._loops.zeros_for_exit(exited))
            self._ready.extend(ready)

    def _arrive(self, tensor: Tensor, grad: Grad) -> None:
        if isinstance(grad, Tensor) and grad._shape != tensor._shape and tensor._dtype != dtypes.resource:
            try:
                grad.set_shape(tensor._shape)
            except ValueError as e:
                raise ValueError(
                    f"Incompatible shapes between the gradient and '{tensor.name}': {e}"
                ) from None
        self.add(tensor, grad)

    def _sum_up(self, op: Operation) -> list[Grad | None]:
        """The gradients of op's outputs; the Switch of a loop variable, visited twice, keeps its first."""
        grads: list[Grad | None] = []
        for tensor in op._outputs:
            arrived = self.arrived.pop(tensor, [])
            if arrived or tensor not in self.total:
                self.total[tensor] = aggregate(arrived, self.method, op._name) if arrived else None
            grads.append(self.total[tensor])
        return grads

    def _back(self, op: Operation, grads: list[Grad | None]) -> Sequence[Grad | None]:
        """The gradients of op's inputs, built by its gradient function."""
        function = _gradient_of(op)
        if function is None:
            return ()
        for i, tensor in enumerate(op._outputs):
            if grads[i] is None and is_trainable(tensor):
                grads[i] = self._loops.zeros_of(op, i)
        with self.graph.name_scope(f"{op._name}_grad"), self.graph._original_op(op):
            result = function(emit, op, *grads)
            inputs = list(result) if isinstance(result, list | tuple) else [result]
            if len(inputs) != len(op._inputs):
                raise ValueError(
                    f"Num gradients {len(inputs)} generated for op {op.node_def} do not match num inputs "
                    f"{len(op._inputs)}"
                )
            if self.gate and sum(g is not None for g in inputs) > 1:
                inputs = _gate(self.graph, inputs)
        return inputs


def _between(to_ops: Sequence[Operation], from_ops: Sequence[Operation]) -> dict[Operation, None]:
    """The operations on a path between from_ops and to_ops that gradients flow through, last first."""
    reached: set[Operation] = set()
    stack = list(from_ops)
    while stack:
        op = stack.pop()
        if op in reached:
            continue
        reached.add(op)
        for tensor in op._outputs:
            if is_trainable(tensor):
                stack.extend(c for c in tensor._consumers if c not in reached)
    between: dict[Operation, None] = {}
    queue = deque(to_ops)
    while queue:
        op = queue.popleft()
        if op in reached and op not in between:
            between.setdefault(op)
            queue.extend(t._op for t in op._inputs)
    return between


def _pending_counts(between: Iterable[Operation]) -> dict[Operation, int]:
    """For each of these operations: how many uses of its outputs by one of them there are."""
    pending = dict.fromkeys(between, 0)
    for op in between:
        for tensor in op._inputs:
            if tensor._op in pending:
                pending[tensor._op] += 1
    return pending


def _nearest(op: Operation, targets: Sequence[Operation]) -> Operation:
    """The first of the targets that is met going back from op."""
    queue, seen = deque([op]), {op}
    while queue:
        op = queue.popleft()
        if op in targets:
            break
        found = [t._op for t in op._inputs if t._op not in seen]
        seen.update(found)
        queue.extend(found)
    return op


def _gradient_of(op: Operation) -> Callable[..., Any] | None:
    """The gradient function of a node; None where the op is declared not to have one."""
    override = op._attrs.get("_gradient_op_type")
    name = override.decode() if override is not None else op.type
    if name.startswith(("PartitionedCall-", "StatefulPartitionedCall-")):
        name, override = op.type, None  # what TensorFlow 2 called it in the process that exported the graph
    try:
        function = registry.gradient_function(name)
    except LookupError:
        called = op._record.gradient  # of a function that is called by its name: it isn't registered
        if called is None or override is not None:
            what = f"No gradient defined for operation '{op._name}' (op type: {op.type})"
            raise LookupError(what) from None
        function = called
    return None if isinstance(function, NotDifferentiable) else function


def _gate(graph: Graph, grads: Sequence[Grad | None]) -> list[Grad | None]:
    """Identities of all gradients of an operation, each after all of them are there (tf.tuple)."""
    present = [g for g in grads if g is not None]
    with graph.device(None), graph.colocate_with(None, ignore_existing=True), graph.name_scope("tuple"):
        gate = _group(graph, [g.op for g in present], "group_deps")
        with graph.control_dependencies([gate]):
            return [None if g is None else _after(graph, g) for g in grads]


def _group(graph: Graph, ops: Sequence[Operation], name: str) -> Operation:
    """A node after all of these: first one on each device, then one of all (tf.group)."""
    by_device: dict[str, list[Operation]] = {}
    for op in ops:
        by_device.setdefault(op.device, []).append(op)
    with graph.name_scope(name) as scope:
        if len(by_device) == 1:
            return _no_op_after(graph, ops, ops[0].device, scope)
        parts = [_no_op_after(graph, by_device[device], device, "NoOp") for device in sorted(by_device)]
        return _no_op_after(graph, parts, "", scope)


def _no_op_after(graph: Graph, ops: Sequence[Operation], device: str, name: str) -> Operation:
    with graph.control_dependencies(ops), graph.device(device):
        return emit.operation("NoOp", name=name)


def _after(graph: Graph, grad: Grad) -> Grad:
    with graph.colocate_with(grad.op):
        if isinstance(grad, Tensor):
            return emit("Identity", grad, name="control_dependency")
        values = emit("Identity", grad.values, name="control_dependency")
        return IndexedSlices(values, grad.indices, grad.dense_shape)
