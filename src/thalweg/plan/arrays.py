"""TensorArrays of compiled loops as plain tensors: the array's flow becomes its buffer (ops.compiled_loops).

The flow puts reads and writes in order already; as a buffer it says the same, without state. An array's
gradient is a buffer too: the sum of what was added to it. Two writes to one place, an error on the executor,
can't be told any more: an array is converted where no loop writes twice to a place. Nor can two reads of a
place, which is an error where clear_after_read: they read the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, bypass_control, raw_node, replace_uses
from thalweg.plan.places import ENTER, EXIT, MERGE, SWITCH, Frame, frame_of, is_control
from thalweg.plan.regions import CannotCompile, obstacle, take_instead

_STACKS = frozenset(("StackPushV2", "StackPopV2", "StackV2"))
_SUMS = frozenset(("Add", "AddN", "AddV2"))
_PASSING = ENTER | EXIT | NEXT_ITERATION | SWITCH | {"Identity"}
#: what is converted, and where each takes the flow
_FLOW_INPUT = {
    "TensorArrayGatherV3": 2,
    "TensorArrayReadV3": 2,
    "TensorArrayScatterV3": 3,
    "TensorArraySizeV3": 1,
    "TensorArrayWriteV3": 3,
}


def convert_arrays(graph: Graph, known: set[Tensor], report: list[tuple[str, int]]) -> set[Tensor]:
    """Makes the TensorArrays buffers that are used in loops which can be compiled.

    known: tensors whose values are known when a cluster is compiled. Law: the same values are read; reads and
    writes keep the order that the flow gives them. Returns the tensors that are buffers now.
    """
    arrays: list[_Array] = []
    for op in graph._ops:
        if op.type == "TensorArrayV3":
            array = _Array(graph, op)
            try:
                array.analyse(known)
            except CannotCompile as why:
                report.append((f"TensorArray '{op._name}' stays on the host: {why}", 0))
            else:
                arrays.append(array)
    buffers: set[Tensor] = set()
    for array in _possible(graph, arrays):
        if array.frames:
            buffers |= array.convert()
    return buffers


def _possible(graph: Graph, arrays: list[_Array]) -> list[_Array]:
    """The arrays all of whose loops can be compiled, as far as the kinds of their nodes tell."""
    while True:
        ours = {op for a in arrays for op in (*a.users, a.op)}
        blocked: set[Frame] = set()
        devices: dict[Frame, str] = {}
        for op in graph._ops:
            frame = frame_of(op)
            if frame is None:
                continue
            if devices.setdefault(frame, op._device) == op._device and (
                op in ours or is_control(op) or op.type in _STACKS or obstacle(op) is None
            ):
                continue
            while frame is not None:
                blocked.add(frame)
                frame = frame.parent
        left = [a for a in arrays if not a.frames & blocked]
        if len(left) == len(arrays):
            return arrays
        arrays = left


class _Array:
    """One TensorArray, with its gradients."""

    def __init__(self, graph: Graph, op: Operation) -> None:
        self.graph = graph
        self.op = op
        self.dtype: DType = op._attrs["dtype"]
        #: what uses a handle of it, with the source of the gradient whose array that is ("" for its own)
        self.users: dict[Operation, str] = {}
        #: the flows, likewise
        self.flows: dict[Tensor, str] = {}
        #: the zeros that a sum of gradients starts from
        self.zeros: set[Operation] = set()
        self.frames: set[Frame] = set()

    # ---- what it is: changes nothing -----------------------------------------------------------------------

    def analyse(self, known: set[Tensor]) -> None:
        """CannotCompile where it is used in a way that a buffer doesn't serve."""
        attrs = self.op._attrs
        if attrs["dynamic_size"]:
            raise CannotCompile("its size isn't fixed")
        if self.dtype.name in ("string", "resource", "variant"):
            raise CannotCompile(f"it holds {self.dtype.name}")
        if self.op._inputs[0] not in known:
            raise CannotCompile("its size isn't known when compiling")
        self._find_users(self.op._outputs[0], "")
        self._find_flows()
        writes: set[Frame | None] = set()
        for op, source in self.users.items():
            frame = frame_of(op)
            home = frame_of(self.op)
            while frame is not None and frame is not home:
                self.frames.add(frame)
                frame = frame.parent
            if op.type == "TensorArrayWriteV3" and not source:
                if frame_of(op) in writes or not (frame_of(op) is None or _differs(op._inputs[1])):
                    raise CannotCompile(f"'{op._name}' may write to a place twice")
                writes.add(frame_of(op))

    def _find_users(self, handle: Tensor, source: str) -> None:
        stack = [handle]
        while stack:
            for op in dict.fromkeys(stack.pop()._consumers):
                if op.type in ENTER or op.type == "Identity":
                    stack.append(op._outputs[0])
                elif op.type == "TensorArrayGradV3" and not source:
                    self.users[op] = ""
                    self._find_users(op._outputs[0], op._attrs["source"].decode())
                elif op.type in _FLOW_INPUT:
                    self.users[op] = source
                else:
                    raise CannotCompile(f"'{op._name}' ({op.type}) uses it")

    def _find_flows(self) -> None:
        stack = [(self.op._outputs[1], "")]
        while stack:
            flow, source = stack.pop()
            if self.flows.get(flow, source) != source:
                raise CannotCompile(f"'{flow.name}' is the flow of two arrays")
            if flow in self.flows:
                continue
            self.flows[flow] = source
            for op in dict.fromkeys(flow._consumers):
                stack += self._after(op, flow, source)

    def _after(self, op: Operation, flow: Tensor, source: str) -> list[tuple[Tensor, str]]:
        """The flows that a node gives, which takes this one."""
        if op.type in SWITCH:
            return [(t, source) for t in op._outputs]
        if op.type in MERGE or (op.type in _SUMS and source):
            return [(op._outputs[0], source), *self._zeros_behind(op, flow, source)]
        if op.type in _PASSING:
            return [(op._outputs[0], source)]
        if op in self.users and op._inputs[-1] is flow:
            mine = self.users[op]
            if op.type == "TensorArrayGradV3":
                return [(op._outputs[1], source)]
            if op.type in ("TensorArrayWriteV3", "TensorArrayScatterV3"):
                return [(op._outputs[0], mine)]
            return []
        if op.type == "StackPushV2" and not _pops_values(op):
            return []
        raise CannotCompile(f"'{op._name}' ({op.type}) uses its flow")

    def _zeros_behind(self, op: Operation, flow: Tensor, source: str) -> list[tuple[Tensor, str]]:
        """What a sum of gradients starts from, as flows."""
        found: list[tuple[Tensor, str]] = []
        for t in op._inputs:
            path = [t]
            while path[-1]._op.type in ENTER | {"Identity"}:
                path.append(path[-1]._op._inputs[0])
            start = path[-1]._op
            if start.type != "Const" or not source:
                continue
            if start._attrs["value"].any():
                raise CannotCompile(f"'{op._name}' adds a constant to its flow")
            self.zeros.add(start)
            found += [(p, source) for p in path[:-1]]
        return found

    # ---- what it becomes ---------------------------------------------------------------------------------

    def convert(self) -> set[Tensor]:
        """Puts buffers in the place of flows; returns them."""
        buffers = {flow for flow in self.flows if flow._op not in self.users and flow._op is not self.op}
        for flow in buffers:
            op = flow._op
            if "T" in op._attrs:
                op._attrs["T"] = self.dtype
            flow._dtype = self.dtype
            flow._shape = None
        shape = self.op._attrs["element_shape"]
        new = self._node(
            "_ArrayNew", self.op, [self.op._inputs[0]], self.dtype, dtype=self.dtype, element_shape=shape
        )
        self._take_place(self.op, 1, new)
        buffers.add(new._outputs[0])
        for op, source in list(self.users.items()):
            flow = op._inputs[_FLOW_INPUT.get(op.type, 1)]
            if op.type == "TensorArrayGradV3":
                self._take_place(op, 1, flow._op, flow)
                continue
            made = self._user(op, source, flow)
            self._take_place(op, 0, made)
            if op.type in ("TensorArrayWriteV3", "TensorArrayScatterV3"):
                buffers.add(made._outputs[0])
        self._use_zeros(buffers)
        _add_in_place(buffers)
        return buffers

    def _node(
        self, kind: str, like: Operation, inputs: list[Tensor], output: DType, **attrs: Any
    ) -> Operation:
        record = registry.lookup(kind)
        return raw_node(self.graph, record, like._name, inputs, attrs, [output], like._control_inputs, like)

    def _take_place(self, op: Operation, i: int, new: Operation, tensor: Tensor | None = None) -> None:
        tensor = new._outputs[0] if tensor is None else tensor
        if op._outputs[i] in self.flows:
            self.flows[tensor] = self.flows[op._outputs[i]]
        if new._outputs[0]._shape is None and op.type in _FLOW_INPUT and op._outputs[i] not in self.flows:
            new._outputs[0]._shape = op._outputs[i]._shape
        replace_uses(op._outputs[i], tensor)
        bypass_control(op, [new])

    def _user(self, op: Operation, source: str, flow: Tensor) -> Operation:
        kind, inputs, t = op.type, op._inputs, self.dtype
        ours = self.flows[flow] == source
        if source and not ours:
            nothing = self._node("_ArrayNothing", op, [flow], t, T=t)._outputs[0]
        else:
            nothing = flow
        if kind == "TensorArraySizeV3":
            return self._node("_ArraySize", op, [flow], op._outputs[0]._dtype, T=t)
        if kind == "TensorArrayReadV3":
            shape = op._outputs[0]._shape
            return self._node(
                "_ArrayRead", op, [nothing, inputs[1]], t, T=t, checked=not source, element_shape=shape
            )
        if kind == "TensorArrayGatherV3":
            shape = op._outputs[0]._shape
            element = None if shape is None else shape[1:]
            return self._node("_ArrayGather", op, [nothing, inputs[1]], t, T=t, element_shape=element)
        index, value = inputs[1:3]
        if kind == "TensorArrayWriteV3":
            if source:
                return self._node("_ArrayAccumulate", op, [nothing, flow, index, value], t, T=t)
            return self._node("_ArrayWrite", op, [flow, index, value], t, T=t, checked=True)
        if source:
            return self._node("_ArrayAccumulateRows", op, [nothing, flow, index, value], t, T=t)
        return self._node("_ArrayScatter", op, [flow, index, value], t, T=t)

    def _use_zeros(self, buffers: set[Tensor]) -> None:
        """A sum starts from the zero of the array's type; what is only waited for keeps no buffer."""
        const = registry.lookup("Const")
        for tensor in list(buffers):
            for op in dict.fromkeys(tensor._consumers):
                if op.type == "StackPushV2":
                    attrs = {"value": np.zeros((), np.float32), "dtype": op._attrs["T"]}
                    zero = raw_node(self.graph, const, f"{op._name}/flow", [], attrs, [op._attrs["T"]])
                    zero._outputs[0]._shape = ()
                    zero._device = op._device
                    take_instead(op, 1, zero._outputs[0])
                    op._outputs[0]._shape = ()
            op = tensor._op
            for i, t in enumerate(op._inputs):
                if t._op in self.zeros and (op.type in ENTER or op.type in _SUMS or op.type in MERGE):
                    value = np.zeros((), self.dtype.as_numpy_dtype)
                    attrs = {"value": value, "dtype": self.dtype}
                    zero = raw_node(
                        self.graph, const, t._op._name, [], attrs, [self.dtype], t._op._control_inputs, t._op
                    )
                    zero._outputs[0]._shape = ()
                    take_instead(op, i, zero._outputs[0])


def _add_in_place(buffers: set[Tensor]) -> None:
    """sum + (nothing with a row added) is the sum with the row added: no loop may add whole buffers."""
    for tensor in list(buffers):
        op = tensor._op
        if op.type not in _SUMS or len(op._inputs) != 2:
            continue
        for i, t in enumerate(op._inputs):
            made, other = t._op, op._inputs[1 - i]
            if made.type not in ("_ArrayAccumulate", "_ArrayAccumulateRows") or len(t._consumers) != 1:
                continue
            if made._inputs[0]._op.type == "_ArrayNothing":
                take_instead(made, 0, other)
                replace_uses(tensor, t)
                bypass_control(op, [made])
                break


def _pops_values(push: Operation) -> bool:
    """Whether what a push puts on its stack is used as a value anywhere."""
    op = push._inputs[0]._op
    while op.type in ENTER or op.type == "Identity":
        op = op._inputs[0]._op
    stack = [op._outputs[0]]
    while stack:
        for user in stack.pop()._consumers:
            if user.type in ENTER or user.type == "Identity":
                stack.append(user._outputs[0])
            elif user.type == "StackPopV2":
                if _is_used(user._outputs[0]):
                    return True
            elif user is not push:
                return True
    return bool(push._outputs[0]._consumers)


def _is_used(tensor: Tensor) -> bool:
    return any(user.type != "Identity" or _is_used(user._outputs[0]) for user in tensor._consumers)


def _differs(index: Tensor) -> bool:
    """Whether an index is another one in each iteration: a counter, or a counter and something fixed."""
    index = _behind(index)
    op = index._op
    if op.type in ("Add", "AddV2", "Sub"):
        a, b = (_behind(t) for t in op._inputs)
        return (_is_counter(a) and _is_fixed(b)) or (_is_counter(b) and _is_fixed(a))
    return _is_counter(index)


def _behind(tensor: Tensor) -> Tensor:
    while tensor._op.type in SWITCH or tensor._op.type == "Identity":
        tensor = tensor._op._inputs[0]
    return tensor


def _is_fixed(tensor: Tensor) -> bool:
    op = tensor._op
    return op.type == "Const" or (op.type in ENTER and bool(op._attrs["is_constant"]))


def _is_counter(tensor: Tensor) -> bool:
    if tensor._op.type not in MERGE:
        return False
    for following in tensor._op._inputs:
        if following._op.type in NEXT_ITERATION:
            op = _behind(following._op._inputs[0])._op
            if op.type in ("Add", "AddV2", "Sub") and _behind(op._inputs[0]) is tensor:
                step = op._inputs[1]._op
                step = step._inputs[0]._op if step.type in ENTER else step
                return step.type == "Const" and bool(step._attrs["value"].all())
    return False
