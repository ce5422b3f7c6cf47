"""Partition: the graph of a plan is cut into one graph for each device, joined by Sends and Recvs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph import registry
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.subgraph import NEXT_ITERATION, copy_op, raw_node, relink, topological_order
from thalweg.kernel.body import StateKey
from thalweg.kernel.convention import Kind
from thalweg.plan.control_loops import Triggers, add_control_loops, empty_constant
from thalweg.plan.places import ENTER, SWITCH, Place, frame_of, is_control

#: types whose values are never in a device's memory
_HOST_TYPES = frozenset((dtypes.string, dtypes.variant, dtypes.resource))

State = dict[Operation, dict[str, StateKey]]


@dataclass
class Partition:
    """What one device does of a plan: a graph by itself, but for its Sends and Recvs."""

    device: str
    graph: Graph
    state: State = field(default_factory=dict)
    #: whether there is control flow in it, or dead values may come
    dynamic: bool = False


def partition(
    graph: Graph,
    state: State,
    dynamic: bool,
    incarnations: Mapping[str, int] | None = None,
    compress: Callable[[str, str], bool] | None = None,
) -> list[Partition]:
    """One partition for each device of the graph's nodes; the one that starts first comes first.

    state: what nodes touch, by node. dynamic: whether the graph has control flow; places must be up to date.
    incarnations: by device, for the keys of messages. compress: whether float32 crosses from one device to
    another as bfloat16: the low half of the mantissa is cut, and zeros come in its place.

    Law: every edge between devices becomes a _Send and a _Recv (_HostSend, _HostRecv for values that stay in
    the host's memory); of a tensor there is one pair for each receiving device, whoever takes it there. A
    control edge crosses with a value of the same node, or with an empty constant. Nodes of a partition are in
    an order in which a Send comes right after its value. A device with nothing to do has no partition; a
    graph on one device is its partition.
    Errors: InvalidArgumentError for a Send without a Recv, or the other way.
    """
    if len({op._device for op in graph._ops}) < 2:
        check_pairs([graph])
        device = graph._ops[0]._device if graph._ops else ""
        return [Partition(device, graph, state, dynamic)]
    triggers = add_control_loops(graph) if dynamic else {}
    cut = _Cut(graph, state, triggers, incarnations or {}, compress or (lambda source, target: False))
    cut.run()
    parts = [part for part in cut.parts.values() if any(map(_does_something, part.graph._ops))]
    check_pairs(part.graph for part in parts)
    return parts


class _Cut:
    """Copies the nodes of a graph to the partitions of their devices."""

    def __init__(
        self,
        graph: Graph,
        state: State,
        triggers: Triggers,
        incarnations: Mapping[str, int],
        compress: Callable[[str, str], bool],
    ) -> None:
        self.order = topological_order(graph)
        self.parts: dict[str, Partition] = {}
        self._graph = graph
        self._state = state
        self._triggers = triggers
        self._incarnations = incarnations
        self._compress = compress
        self._copies: dict[Operation, Operation] = {}
        #: by what crosses and the device where it goes: the value there, or who stands for a node's end
        self._values: dict[tuple[Tensor, str], Tensor] = {}
        self._ends: dict[tuple[Operation, str], Operation] = {}
        #: by node and device: the value that crosses and so tells there that the node has ended
        self._tells: dict[tuple[Operation, str], _Crossing] = {}
        self._sends: dict[Operation, list[_Crossing]] = {}
        self._receives: dict[Operation, list[_Crossing]] = {}
        self._number = 0
        self._names = 0

    def run(self) -> None:
        """Fills `parts`."""
        for op in sorted(self.order, key=lambda op: not _does_something(op)):
            if op._device not in self.parts:
                self.parts[op._device] = Partition(op._device, Graph())
        self._find_crossings()
        for op in self.order:
            self._add(op)
        for op in self.order:
            if any(t._op.type in NEXT_ITERATION for t in op._inputs):  # a loop's back edge
                self._copies[op]._inputs[:] = [self._value(t, op._device) for t in op._inputs]
        for part in self.parts.values():
            relink(part.graph)
        for target in self._graph._targets:
            self.parts[target._device].graph._targets.append(self._copies[target])

    def _find_crossings(self) -> None:
        """What must be sent when a node has run: its values, and its end where no value tells it."""
        found: dict[Any, _Crossing] = {}
        for op in self.order:
            for tensor in op._inputs:
                if tensor._op._device != op._device:
                    new = _Crossing(tensor._op, tensor, op._device)
                    found.setdefault((tensor, op._device), new).users.append(op)
        for (tensor, device), crossing in found.items():
            if tensor._op.type not in SWITCH:
                self._tells.setdefault((tensor._op, device), crossing)
            for user in tensor._consumers:
                if _is_pivot(user):
                    self._tells.setdefault((user, device), crossing)
        for op in self.order:
            for control in op._control_inputs:
                key = (control, op._device)
                if control._device != op._device and not _is_there(control) and key not in self._tells:
                    found.setdefault(key, _Crossing(control, None, op._device)).users.append(op)
        for crossing in found.values():
            self._sends.setdefault(crossing.source, []).append(crossing)
            for user in crossing.users:
                self._receives.setdefault(user, []).append(crossing)

    def _add(self, op: Operation) -> None:
        if op in self._copies:
            return
        device = op._device
        part = self.parts[device]
        for crossing in self._receives.get(op, ()):
            if crossing.received is None:
                self._receive(crossing)
        inputs = [self._value(t, device) for t in op._inputs if t._op in self._copies]
        controls = [
            self._end(c, device) for c in op._control_inputs if c._device == device or not _is_there(c)
        ]
        copy = self._copies[op] = copy_op(part.graph, op, inputs, controls)
        if op in self._state:
            part.state[copy] = self._state[op]
        if op._control_flow_context is not None or is_control(op):
            part.dynamic = True
        for crossing in self._sends.get(op, ()):
            self._send(crossing)

    def _value(self, tensor: Tensor, device: str) -> Tensor:
        if tensor._op._device != device:
            return self._values[tensor, device]
        return self._copies[tensor._op]._outputs[tensor._index]

    def _end(self, op: Operation, device: str) -> Operation:
        if op._device == device:
            return self._copies[op]
        end = self._ends.get((op, device))
        if end is None:
            crossing = self._tells[op, device]
            end = crossing.received or self._receive(crossing)
        return end

    def _send(self, crossing: _Crossing) -> None:
        source, tensor, user = crossing.source, crossing.tensor, crossing.users[0]
        self._number += 1
        frame = frame_of(user)
        goes_round = frame is not None and self._triggers[frame, crossing.device].type == "Merge"
        _require_sendable(crossing, user, goes_round)
        crossing.host = _stays_on_host(crossing)
        crossing.place = None if frame is None else Place(frame, frozenset())
        crossing.attrs = {
            "tensor_name": f"edge_{self._number}_{_name(crossing)}".encode(),
            "send_device": source._device.encode(),
            "send_device_incarnation": self._incarnations.get(source._device, 1),
            "recv_device": crossing.device.encode(),
            "client_terminated": False,
        }
        copy = self._copies[source]
        graph = self.parts[source._device].graph
        if tensor is not None:
            value = copy._outputs[tensor._index]
        else:
            empty = empty_constant(graph, f"{_name(crossing)}/ctrl/_{self._number}", source._device, copy)
            empty._control_inputs.append(copy)
            empty._control_flow_context = crossing.place
            value = empty._outputs[0]
        if self._is_compressed(crossing):
            value = self._cast(graph, crossing, value, dtypes.bfloat16, source._device)
        attrs = {"T": value._dtype.base_dtype, **crossing.attrs}
        send = raw_node(
            graph, registry.lookup("_HostSend" if crossing.host else "_Send"),
            self._free_name(crossing), [value], attrs, [], (), copy,
        )  # fmt: skip
        send._control_flow_context = crossing.place

    def _receive(self, crossing: _Crossing) -> Operation:
        source, tensor = crossing.source, crossing.tensor
        dtype = dtypes.float32 if tensor is None else tensor._dtype.base_dtype
        compressed = self._is_compressed(crossing)
        if compressed:
            dtype = dtypes.bfloat16
        controls: list[Operation] = []
        if crossing.place is not None:
            assert crossing.place.frame is not None
            trigger = self._triggers[crossing.place.frame, crossing.device]
            self._add_with_inputs(trigger)
            controls = [self._copies[trigger]]
        recv = crossing.received = raw_node(
            self.parts[crossing.device].graph, registry.lookup("_HostRecv" if crossing.host else "_Recv"),
            self._free_name(crossing), [], {"tensor_type": dtype, **crossing.attrs}, [dtype],
            controls, source,
        )  # fmt: skip
        recv._device = crossing.device
        recv._control_flow_context = crossing.place
        if tensor is None:
            recv._outputs[0]._shape = (0,)
            self._ends[source, crossing.device] = recv
        else:
            value = recv._outputs[0]
            value._shape = tensor._shape
            if compressed:
                graph = self.parts[crossing.device].graph
                value = self._cast(graph, crossing, value, dtypes.float32, crossing.device)
            self._values[tensor, crossing.device] = value
        return recv

    def _is_compressed(self, crossing: _Crossing) -> bool:
        if crossing.tensor is None or crossing.tensor._dtype.base_dtype != dtypes.float32:
            return False
        return self._compress(crossing.source._device, crossing.device)

    def _cast(self, graph: Graph, crossing: _Crossing, value: Tensor, dtype: DType, device: str) -> Tensor:
        """The value as another type; cut, not rounded."""
        attrs = {"SrcT": value._dtype.base_dtype, "DstT": dtype, "Truncate": True}
        cast = raw_node(
            graph,
            registry.lookup("Cast"),
            self._free_name(crossing),
            [value],
            attrs,
            [dtype],
            (),
            crossing.source,
        )
        cast._device = device
        cast._control_flow_context = crossing.place
        cast._outputs[0]._shape = value._shape
        return cast._outputs[0]

    def _free_name(self, crossing: _Crossing) -> str:
        """A name as in TensorFlow's partitions that no node has: nodes keep theirs when they are copied."""
        while True:
            self._names += 1
            name = f"{_name(crossing)}/_{self._names}"
            if name not in self._graph._by_name:
                return name

    def _add_with_inputs(self, op: Operation) -> None:
        """Adds a node of a control loop before its turn."""
        if op not in self._copies:
            for tensor in op._inputs:
                if tensor._op.type not in NEXT_ITERATION:
                    self._add_with_inputs(tensor._op)
            self._add(op)


@dataclass
class _Crossing:
    """A value (or None: just the end of a node) that goes to another device, where users take it."""

    source: Operation
    tensor: Tensor | None
    device: str
    users: list[Operation] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    place: Place | None = None
    host: bool = False
    received: Operation | None = None


def _name(crossing: _Crossing) -> str:
    """The name of the node whose value crosses, also of one in a cluster."""
    source, tensor = crossing.source, crossing.tensor
    if tensor is not None and source.type == "_Cluster":
        name: str = source._attrs["body"].results[tensor._index]._op._name
        return name
    return source._name


def _is_there(op: Operation) -> bool:
    """Whether a node is there when the step starts, so that nobody waits for it."""
    return op._record.kernel is not None and op._record.kernel.kind is Kind.SOURCE and not op._control_inputs


def _is_pivot(op: Operation) -> bool:
    """Whether a node is no more than its input: it ends, or is dead, when that is there, or dead."""
    return op.type == "Identity" and not op._control_inputs and not op._inputs[0]._dtype.is_ref_dtype


def _is_there_once(op: Operation) -> bool:
    """Whether a node's token isn't there in each iteration of the loop that it enters."""
    return op.type in NEXT_ITERATION or (op.type in ENTER and not op._attrs["is_constant"])


def _require_sendable(crossing: _Crossing, user: Operation, goes_round: bool) -> None:
    """InvalidArgumentError for resources, and in a loop for what isn't there in each iteration."""
    source, tensor = crossing.source, crossing.tensor
    uses = f"{user.type} '{user._name}' on {user._device}"
    if tensor is not None and (tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource"):
        raise InvalidArgumentError(
            None, user, f"{uses} uses '{tensor.name}', a resource on {source._device}: what uses a resource "
            "must be on its device",
        )  # fmt: skip
    if goes_round and _is_there_once(source):
        raise InvalidArgumentError(
            None, user, f"{uses} waits in each iteration of a loop for {source.type} '{source._name}' on "
            f"{source._device}, which isn't there in each. Put them on one device",
        )  # fmt: skip


def _does_something(op: Operation) -> bool:
    kernel = op._record.kernel
    return op.type == "_Retval" or (kernel is not None and kernel.kind is not Kind.SOURCE)


def _stays_on_host(crossing: _Crossing) -> bool:
    """Whether nobody takes the value from a device's memory."""
    if crossing.tensor is None or crossing.tensor._dtype.base_dtype in _HOST_TYPES:
        return True
    return not any(_takes_from_device(user) for user in crossing.users)


def _takes_from_device(user: Operation) -> bool:
    if user.type == "_Cluster":
        return not user._attrs["body"].scalar
    return is_control(user)


def check_pairs(graphs: Iterable[Graph]) -> None:
    """InvalidArgumentError where a Send has no Recv of the same key and type, a Recv no Send, or two one key.

    Those that TensorFlow calls client-terminated are their own caller's affair.
    """
    ends: dict[tuple[Any, ...], dict[Kind, Operation]] = {}
    for graph in graphs:
        for op in graph._ops:
            kind = op._record.kernel.kind if op._record.kernel is not None else None
            if kind not in (Kind.SEND, Kind.RECV) or op._attrs["client_terminated"]:
                continue
            pair = ends.setdefault(tuple(op._attrs[name] for name in _KEY), {})
            if kind in pair:
                raise InvalidArgumentError(
                    None, op, f"'{op._name}' and '{pair[kind]._name}' are two {op.type} nodes of one key: "
                    f"tensor_name '{op._attrs['tensor_name'].decode()}' must differ",
                )  # fmt: skip
            pair[kind] = op
    for pair in ends.values():
        if len(pair) == 2:
            send, recv = pair[Kind.SEND], pair[Kind.RECV]
            sent, received = send._attrs["T"], recv._attrs["tensor_type"]
            if sent != received:
                raise InvalidArgumentError(
                    None, recv, f"{recv.type} '{recv._name}' receives {received.name}, but {send.type} "
                    f"'{send._name}' sends {sent.name}",
                )  # fmt: skip
        else:
            ((kind, op),) = pair.items()
            other = "receives" if kind is Kind.SEND else "sends"
            raise InvalidArgumentError(
                None, op, f"{op.type} '{op._name}': nothing in this step {other} "
                f"'{op._attrs['tensor_name'].decode()}' from {op._attrs['send_device'].decode()} to "
                f"{op._attrs['recv_device'].decode()}. Fetch both ends in one step",
            )  # fmt: skip


_KEY = ("tensor_name", "send_device", "send_device_incarnation", "recv_device")
