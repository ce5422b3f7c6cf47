"""What needn't cross between devices: nodes that cost nothing go to who needs them.

Placement decides where work is done. Here the nodes that do no work follow it: arguments, constants and
arithmetic on shapes are copied to each device that uses them, what control flow hands on goes along with
what it hands it to.
"""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.base import device_name
from thalweg.base import shape as shapes
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, raw_node, topological_order
from thalweg.kernel.convention import Kind
from thalweg.plan.places import ENTER, EXIT, SWITCH, frame_of
from thalweg.plan.regions import take_instead
from thalweg.plan.rewrite.fold import remove_unused

#: elements of what arithmetic on shapes gives, at most
_SMALL = 64
#: nodes of such arithmetic that are copied for one user, at most
_CHAIN = 32


def localize(graph: Graph) -> int:
    """Makes edges between devices fewer and smaller. Returns how many nodes were copied or moved.

    Law: the same values. What is fed, constants, and arithmetic on shapes whose operands are at hand are
    copied to every device where they are used, and so are Enters and NextIterations: a Merge has its own on
    its device. Who uses a resource or a reference is where that is, an Exit and a Switch where their value
    is, a result where it is computed.
    Errors: InvalidArgumentError where a node uses resources of two devices.
    """
    if len({op._device for op in graph._ops}) < 2:
        return 0
    count = _follow_handles(graph) + _follow_values(graph)
    count += _copy_ends(graph)
    for op in graph._ops:
        if op.type == "_Retval":
            op._device = op._inputs[0]._op._device
    for op in graph._ops:
        if op.type in ("Const", "_Arg") and not op._control_inputs:
            count += _follow_users(op)
    copies = _Copies(graph)
    for op in list(graph._ops):
        for i, tensor in enumerate(op._inputs):
            if tensor._op._device != op._device:
                copies.bring(op, i)
    count += copies.count
    if count:
        remove_unused(graph)
    return count


def _is_handle(tensor: Tensor) -> bool:
    return tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource"


def _follow_handles(graph: Graph) -> int:
    """Who uses a resource is where it is; who only reads a variable elsewhere gets its value."""
    count = 0
    for op in topological_order(graph):
        where: dict[str, Tensor] = {}
        for i, tensor in enumerate(op._inputs):
            if not _is_handle(tensor) or tensor._op.type in NEXT_ITERATION or op.type == "_Retval":
                continue
            if tensor._dtype.is_ref_dtype and not _updates(op, i):
                if tensor._op._device != op._device:
                    take_instead(op, i, _read(graph, tensor, op))
                    count += 1
                continue
            where.setdefault(tensor._op._device, tensor)
        if len(where) > 1:
            uses = " and ".join(f"'{t._op._name}' on {device}" for device, t in where.items())
            raise InvalidArgumentError(
                None, op, f"{op.type} '{op._name}' uses resources of several devices: {uses}. Put them on one"
            )
        for device in where:
            count += op._device != device
            op._device = device
    return count


def _updates(op: Operation, i: int) -> bool:
    """Whether a node takes its i-th input, a reference, as such: all others take the value behind it."""
    definition = op._record.definition
    name = definition.input_names(op._attrs)[i].partition(".")[0]
    return any(arg.name == name and arg.is_ref for arg in definition.inputs)


def _read(graph: Graph, reference: Tensor, user: Operation) -> Tensor:
    """The value behind a reference, read where the variable is, when the user would have read it."""
    base, source = reference._dtype.base_dtype, reference._op
    record, name = registry.lookup("Identity"), f"_read_{source._name}"
    read = raw_node(graph, record, name, [reference], {"T": base}, [base], user._control_inputs, user)
    read._device = source._device
    read._outputs[0]._shape = reference._shape
    return read._outputs[0]


def _follow_values(graph: Graph) -> int:
    """Nodes of control flow go where the values are that they hand on."""
    moved = 0

    def move(op: Operation, to: Operation) -> None:
        nonlocal moved
        if op._device != to._device and not any(_is_handle(t) for t in op._inputs):
            op._device = to._device
            moved += 1

    order = topological_order(graph)
    for op in order:
        if op.type in SWITCH or op.type in EXIT:
            source = op._inputs[0]._op
            if source._record.kernel.kind is not Kind.SOURCE:
                move(op, source)
    return moved


def _follow_users(op: Operation) -> bool:
    """Puts a node on a device where it is used."""
    devices = [user._device for user in (*op._outputs[0]._consumers, *op._control_outputs)]
    if not devices or op._device in devices:
        return False
    op._device = devices[0]
    return True


def _copy_ends(graph: Graph) -> int:
    """What enters a loop, or goes to its next iteration, does so on each device where it is taken.

    So what stays the same in a loop crosses once, not in each iteration; and a Merge gets its tokens there.
    """
    count = 0
    for op in list(graph._ops):
        if (op.type not in ENTER and op.type not in NEXT_ITERATION) or _is_handle(op._inputs[0]):
            continue
        output = op._outputs[0]
        by_device: dict[str, list[Operation]] = {}
        for user in output._consumers:
            by_device.setdefault(user._device, []).append(user)
        if not by_device or list(by_device) == [op._device]:
            continue
        if op._device not in by_device and not op._control_outputs:
            op._device = next(iter(by_device))
            count += 1
        for device, users in by_device.items():
            if device == op._device:
                continue
            copy = _copy(graph, op, op._inputs, device)
            frame = frame_of(users[0])
            if frame is not None and op in frame.enters:
                frame.enters.append(copy)
            _give(users, output, copy._outputs[0])
            count += 1
    return count


def _copy(graph: Graph, op: Operation, inputs: Iterable[Tensor], device: str) -> Operation:
    outputs = [t._dtype for t in op._outputs]
    copy = raw_node(
        graph, op._record, op._name, list(inputs), dict(op._attrs), outputs, op._control_inputs, op
    )
    copy._device = device
    for new, old in zip(copy._outputs, op._outputs, strict=True):
        new._shape = old._shape
    return copy


def _give(users: Iterable[Operation], old: Tensor, new: Tensor) -> None:
    for user in dict.fromkeys(users):
        for i, tensor in enumerate(user._inputs):
            if tensor is old:
                take_instead(user, i, new)


class _Copies:
    """The copies of nodes on other devices than their own."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made: dict[tuple[Operation, str], Operation] = {}
        self.count = 0

    def bring(self, op: Operation, i: int) -> None:
        """Lets a node take its i-th input from its own device, where that costs nothing."""
        tensor, device = op._inputs[i], op._device
        if self._nodes(tensor, device, op) <= _CHAIN:
            take_instead(op, i, self._copy(tensor, device))

    def _nodes(self, tensor: Tensor, device: str, user: Operation) -> int:
        """How many nodes must be copied to have a tensor on a device; more than _CHAIN where it can't be."""
        op = tensor._op
        if op._device == device or (op, device) in self._made:
            return 0
        if op._control_inputs or _has_own_kernel(op, device):
            return _CHAIN + 1
        if op.type in ("Const", "_Arg"):
            return 1
        kernel = op._record.kernel
        if kernel is None or kernel.kind is not Kind.TRACEABLE or op._control_flow_context is not None:
            return _CHAIN + 1
        if kernel.shape_only:
            source = op._inputs[0]
            at_hand = source._op._device == device or any(
                c is not user and c._device == device and not _shape_only(c) for c in source._consumers
            )
            return 1 if at_hand else 1 + self._nodes(source, device, op)
        if kernel.host is None or not op._inputs:
            return _CHAIN + 1
        if not all(_is_small(t) for t in (*op._inputs, *op._outputs)):
            return _CHAIN + 1
        count = 1
        for t in op._inputs:
            count += self._nodes(t, device, op)
            if count > _CHAIN:
                break
        return count

    def _copy(self, tensor: Tensor, device: str) -> Tensor:
        op = tensor._op
        if op._device == device:
            return tensor
        copy = self._made.get((op, device))
        if copy is None:
            inputs = list(op._inputs)
            if not _shape_only(op) or self._nodes(inputs[0], device, op) <= 1:
                inputs = [self._copy(t, device) for t in inputs]
            copy = self._made[op, device] = _copy(self._graph, op, inputs, device)
            self.count += 1
        return copy._outputs[tensor._index]


def _has_own_kernel(op: Operation, device: str) -> bool:
    """Whether a type of device that doesn't run XLA's kernel for a node is among where it is and would be."""
    kernels = op._record.device_kernels
    return bool(kernels) and any(device_name.parse(d).device_type in kernels for d in (op._device, device))


def _shape_only(op: Operation) -> bool:
    kernel = op._record.kernel
    return kernel is not None and bool(kernel.shape_only)


def _is_small(tensor: Tensor) -> bool:
    """Whether a tensor can be a part of arithmetic on shapes."""
    shape = tensor._shape
    if shape is None or None in shape or not (tensor._dtype.is_integer or tensor._dtype.is_bool):
        return False
    return not tensor._dtype.is_ref_dtype and (shapes.num_elements(shape) or 0) <= _SMALL
