"""Graph: nodes by name and in order of creation, scopes, collections, devices.

A graph may be extended while sessions use it; adding a node never changes what existing nodes mean. What
does change them (control inputs added later, inputs replaced, attributes set) counts in `mutations`, which
sessions look at before they reuse a plan.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from thalweg.base import device_name, origin
from thalweg.base.dtypes import DType
from thalweg.graph import registry
from thalweg.graph.operation import Operation, Tensor, _hooks
from thalweg.graph.scope_stacks import ControlScope, Scopes, ScopeState
from thalweg.graph.shape_context import infer_shapes
from thalweg.graph.where import check_input_contexts

_VALID_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")

#: what version of TensorFlow's graph semantics the graphs are written in
PRODUCER_VERSION = 1882
MIN_CONSUMER = 0


class Graph:
    """A dataflow graph. Thread-safe for adding nodes; scopes are per thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names_in_use: dict[str, int] = {}
        self._scopes = ScopeState()
        self._collections: dict[Any, list[Any]] = {}
        self._seed: int | None = None
        self._finalized = False
        self._mutations = 0
        self._next_id = 0
        self._removed: set[Operation] = set()  # by passes; see subgraph.sweep
        self._targets: list[Operation] = []  # of a plan: what must run, beside _Retval nodes
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._functions: dict[str, Any] = {}
        self._graph_def_versions = (PRODUCER_VERSION, MIN_CONSUMER)
        self._collection_lock = threading.RLock()
        #: state that library code keeps with the graph (variable scopes, layer names ...), by key
        self._library_state: dict[Any, Any] = {}

    # ---- nodes -------------------------------------------------------------------------------------

    def add_node(
        self,
        record: registry.OpRecord,
        inputs: list[Tensor],
        attrs: dict[str, Any],
        name: str,
        output_dtypes: Sequence[DType] | None = None,
        control_inputs: Sequence[Operation] = (),
        frames: origin.Origin | None = None,
    ) -> Operation:
        """Adds a node under the scopes in force, infers its shapes, and returns it.

        name: a base name, made unique; or one that ends in "/", taken as it is (TensorFlow's rule).
        attrs: complete and canonical (see Operation); kept, not copied.
        Errors: ValueError where the shapes don't fit, an input is from another graph, or the name is bad;
        RuntimeError on a finalized graph.
        """
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        scopes = self._scopes.get()
        from_inside = False
        for tensor in inputs:
            if tensor._op._graph is not self:
                raise ValueError(
                    f"Tensor {tensor} is not from the graph that '{name}' ({record.name}) is added to"
                )
            if tensor._op._control_flow_context is not None:
                from_inside = True
        if scopes.control_stack:
            control_inputs = [*control_inputs, *self._control_inputs_for(inputs, scopes)]
        if output_dtypes is None:
            output_dtypes = record.definition.output_dtypes(attrs)
        if frames is None:
            frames = origin.capture()
        with self._lock:
            unique = self._node_name(name, scopes)
            controls = list(dict.fromkeys(control_inputs)) if control_inputs else []
            op = Operation(
                self, self._next_id, unique, record, inputs, controls, attrs, output_dtypes, "", frames
            )
            op._control_flow_context = scopes.control_flow_context
            try:
                if from_inside:
                    check_input_contexts(op)
                infer_shapes(op)
            except Exception:
                self._forget(op)
                raise
            self._next_id += 1
            self._ops.append(op)
            self._by_name[unique] = op
        self._apply_scopes(op, scopes)
        return op

    def _node_name(self, name: str, scopes: Scopes) -> str:
        """The name of a new node, marked as used; see add_node."""
        if not name.endswith("/"):
            if not (_VALID_SCOPE if scopes.name else _VALID_NAME).match(name):
                raise _bad_name(name, "node")
            return self.unique_name(name)
        name = name[:-1]
        if not _VALID_NAME.match(name) and not name.startswith("_"):
            raise _bad_name(name, "node")
        if name in self._by_name:
            raise ValueError(f"Duplicate node name in graph: '{name}'")
        self._names_in_use.setdefault(name.lower(), 1)
        return name

    def _forget(self, op: Operation) -> None:
        """Undoes the links of an operation that could not be added."""
        for tensor in op._inputs:
            tensor._consumers.remove(op)
        for other in op._control_inputs:
            other._control_outputs.remove(op)

    def _take_back(self, ops: Sequence[Operation]) -> None:
        """Removes nodes that were just added, of which no others know."""
        gone = set(ops)
        with self._lock:
            self._ops = [op for op in self._ops if op not in gone]
            for op in ops:
                self._forget(op)
                del self._by_name[op._name]

    def _apply_scopes(self, op: Operation, scopes: Scopes) -> None:
        """Device, colocation, attribute scopes, container, control-flow context, control scopes."""
        if scopes.attr_scope:
            for key, value in scopes.attr_scope.items():
                if key not in op._attrs and value is not None:
                    op._attrs[key] = value(op) if callable(value) else value
        override = scopes.gradient_override.get(op.type) if scopes.gradient_override else None
        if override is not None:
            op._attrs.setdefault("_gradient_op_type", override.encode())
        if scopes.kernel_labels and op.type in scopes.kernel_labels:
            op._attrs.setdefault("_kernel", scopes.kernel_labels[op.type].encode())
        if scopes.container and op._record.definition.is_stateful and op._attrs.get("container") == b"":
            op._attrs["container"] = scopes.container.encode()
        op._original_op = scopes.original_op
        try:
            for function in scopes.devices:
                merged = function(op)
                if merged is not None:
                    op._device = merged
        except Exception:
            self._take_back([op])
            raise
        if scopes.colocation:
            groups: set[bytes] = set()  # an attribute scope's are replaced, as in TensorFlow
            for other in scopes.colocation:
                groups.update(other.colocation_groups())
                if other._device:
                    op._device = other._device
            op._attrs["_class"] = tuple(sorted(groups))
        self._record_control(op)
        if op._control_flow_context is not None:
            with self._scoped("name", scopes.name if op.type == "Const" else op._name):
                op._control_flow_context.AddOp(op)

    def _record_control(self, op: Operation) -> None:
        """Tells the control scopes in force that op comes after what they wait for."""
        for control in self._scopes.get().control_stack:
            control.seen.add(op)

    def _control_inputs_for(self, inputs: Sequence[Tensor], scopes: Scopes) -> list[Operation]:
        """The control inputs that the scopes in force add to a node with these inputs.

        A scope is left out where one of the inputs was itself made inside it: the order follows already.
        """
        producers = {t._op for t in inputs}
        result: list[Operation] = []
        for scope in scopes.control_stack:
            if not producers.isdisjoint(scope.seen):
                continue
            result.extend(c for c in scope.ops if c not in producers)
        return result

    def _mutated(self) -> None:
        self._mutations += 1

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a GraphDef message.

        from_version: only nodes added since then. add_shapes: with the attribute `_output_shapes`.
        """
        return _hooks["graph_def"](self, from_version, add_shapes)

    @property
    def graph_def_versions(self) -> Any:
        """The VersionDef of the graph: who wrote it, and who can read it."""
        return _hooks["versions"](self)

    @property
    def version(self) -> int:
        """Rises with every node added."""
        return self._next_id

    def get_operations(self) -> list[Operation]:
        """Every operation, in order of creation."""
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name. KeyError where there is none, ValueError for a tensor's name."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        found: Operation = self.as_graph_element(name, allow_tensor=False, allow_operation=True)
        return found

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor "op:index". KeyError where there is none, ValueError for a bad name."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        found: Tensor = self.as_graph_element(name, allow_tensor=True, allow_operation=False)
        return found

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation that obj is, names, or stands for.

        ValueError: it is not an element of this graph; KeyError: no such name; TypeError: another type.
        """
        kinds = " or ".join(k for k, ok in (("Tensor", allow_tensor), ("Operation", allow_operation)) if ok)
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation, kinds)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj.name} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    def _element_by_name(self, name: str, tensors: bool, operations: bool, kinds: str) -> Any:
        base, colon, index = name.rpartition(":")
        if colon and tensors:
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names "
                    'must be of the form "<op_name>:<output_index>".'
                )
            op = self._by_name.get(base)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {base!r}, "
                    f"does not exist in the graph.{self._near(base)}"
                )
            if int(index) >= len(op._outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, {base!r}, "
                    f"exists but only has {len(op._outputs)} outputs."
                )
            return op._outputs[int(index)]
        if colon:
            raise ValueError(f"The name {name!r} appears to refer to a Tensor, not a {kinds}.")
        op = self._by_name.get(name)
        if op is not None and operations:
            return op
        if op is not None:
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a {kinds}. Tensor names must be of the form "
                '"<op_name>:<output_index>".'
            )
        if not operations:
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a {kinds}. Tensor names "
                'must be of the form "<op_name>:<output_index>".'
            )
        raise KeyError(
            f"The name {name!r} refers to an Operation not in the graph.{self._near(name)}"
        )

    def _near(self, name: str) -> str:
        tail = name.rsplit("/", 1)[-1].lower()
        close = [n for n in self._by_name if n.rsplit("/", 1)[-1].lower() == tail][:3]
        return f" Near matches: {', '.join(close)}." if close else ""

    # ---- names -------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the current name scope, with "_1", "_2" ... where it is taken.

        Case does not distinguish names, as in TensorFlow.
        """
        stack = self._scopes.get().name
        if stack:
            name = f"{stack}/{name}"
        key = name.lower()
        with self._lock:
            i = self._names_in_use.get(key, 0)
            if mark_as_used:
                self._names_in_use[key] = i + 1
            if i > 0:
                base = key
                while key in self._names_in_use:
                    key = f"{base}_{i}"
                    i += 1
                if mark_as_used:
                    self._names_in_use[key] = 1
                name = f"{name}_{i - 1}"
        return name

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Nodes made inside get names under `name`. Yields the scope with its "/"; "" resets it."""
        scopes = self._scopes.get()
        old = scopes.name
        scopes.name = self.enter_name(name)
        try:
            yield scopes.name + "/" if scopes.name else ""
        finally:
            scopes.name = old

    def enter_name(self, name: str | None) -> str:
        """What the name scope becomes on entering `name` (see name_scope); marks it as used."""
        if isinstance(name, bytes):
            name = name.decode()
        if not name:
            return ""
        stack = self._scopes.get().name
        if not (_VALID_SCOPE if stack else _VALID_NAME).match(name):
            raise _bad_name(name, "scope")
        return name[:-1] if name.endswith("/") else self.unique_name(name)

    def get_name_scope(self) -> str:
        """The current name scope, without its "/"."""
        return self._scopes.get().name

    # ---- scopes ------------------------------------------------------------------------------------

    def as_default(self) -> Any:
        """A context manager that makes this the default graph of the thread."""
        from_stack = self._scopes
        return from_stack.default_context(self)

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Nodes made inside run after `control_inputs`; None clears the scopes in force."""
        scopes = self._scopes.get()
        old, context = scopes.control_stack, scopes.control_flow_context
        if control_inputs is None:
            scopes.control_stack = []
            scopes.control_flow_context = None
        else:
            ops: list[Operation] = []
            for c in control_inputs:
                c = getattr(c, "_control_dependency", c)
                c = self.as_graph_element(getattr(c, "op", c) if hasattr(c, "handle") else c)
                op = c._op if isinstance(c, Tensor) else c
                if op not in ops:
                    ops.append(op)
            scopes.control_stack = [*old, ControlScope(ops)]
        try:
            yield
        finally:
            scopes.control_stack = old
            scopes.control_flow_context = context

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Nodes made inside ask for this (partial) device: a string, DeviceSpec, function of the node, None.

        Where scopes are nested, the inner ones come first; an outer one fills in what they leave open. A
        function gets the node with what the inner scopes asked for, and its result replaces that (None:
        leaves it). None in place of a device drops the outer scopes.
        Errors: ValueError on a malformed name, at once (of a function: when a node is made); TypeError on
        what is no name.
        """
        scopes = self._scopes.get()
        old = scopes.devices
        scopes.devices = (
            () if device_name_or_function is None else (_device_function(device_name_or_function), *old)
        )
        try:
            yield
        finally:
            scopes.devices = old

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Nodes made inside go where `op` goes (attribute `_class`). None with ignore_existing: nowhere.

        The devices of scopes outside don't hold inside.
        """
        scopes = self._scopes.get()
        old, old_devices = scopes.colocation, scopes.devices
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        if op is not None:
            op = self.as_graph_element(getattr(op, "op", op))
            op = op._op if isinstance(op, Tensor) else op
        scopes.devices = ()
        base = () if ignore_existing else old
        scopes.colocation = base if op is None else (*base, op)
        try:
            yield
        finally:
            scopes.colocation, scopes.devices = old, old_devices

    @contextmanager
    def container(self, name: str) -> Iterator[str]:
        """Stateful nodes made inside keep their state in this container."""
        with self._scoped("container", name):
            yield name

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Nodes of these op types made inside get another registered gradient."""
        if not isinstance(op_type_map, dict):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        for key, value in op_type_map.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        merged = {**self._scopes.get().gradient_override, **op_type_map}
        with self._scoped("gradient_override", merged):
            yield

    @contextmanager
    def _attr_scope(self, attr_map: dict[str, Any]) -> Iterator[None]:
        """Nodes made inside get these attributes: canonical values or AttrValues, None to drop one."""
        given = {
            key: _hooks["attr_from_proto"](value) if hasattr(value, "WhichOneof") else value
            for key, value in attr_map.items()
        }
        merged = {**self._scopes.get().attr_scope, **given}
        with self._scoped("attr_scope", {k: v for k, v in merged.items() if v is not None}):
            yield

    @contextmanager
    def _kernel_label_map(self, labels: dict[str, str]) -> Iterator[None]:
        with self._scoped("kernel_labels", {**self._scopes.get().kernel_labels, **labels}):
            yield

    @contextmanager
    def _original_op(self, op: Operation) -> Iterator[None]:
        """Nodes made inside come from `op` (its gradient, say)."""
        with self._scoped("original_op", op):
            yield

    @contextmanager
    def _scoped(self, field: str, value: Any) -> Iterator[None]:
        scopes = self._scopes.get()
        old = getattr(scopes, field)
        setattr(scopes, field, value)
        try:
            yield
        finally:
            setattr(scopes, field, old)

    def _get_control_flow_context(self) -> Any:
        return self._scopes.get().control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._scopes.get().control_flow_context = context

    # ---- collections, seeds, finalize --------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends value to a collection."""
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        with self._collection_lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends value to each of the collections (a name or names)."""
        names = (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in names:
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with `scope`, the values whose name matches that regular expression."""
        with self._collection_lock:
            values = list(self._collections.get(name, ()))
        if scope is None:
            return values
        regex = re.compile(scope)
        return [v for v in values if hasattr(v, "name") and regex.match(v.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself, made where it doesn't exist: changes to it last."""
        with self._collection_lock:
            return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """The names of the collections."""
        with self._collection_lock:
            return [k for k in self._collections if isinstance(k, str)]

    @property
    def collections(self) -> list[Any]:
        """The names of the collections."""
        return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        with self._collection_lock:
            self._collections.pop(name, None)

    @property
    def seed(self) -> int | None:
        """The graph-level random seed."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self._finalized

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    @property
    def building_function(self) -> bool:
        """Whether the graph is a function's body: never, in graph mode."""
        return False

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Marks a tensor that may not be fed."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether the tensor may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Operation) -> None:
        """Marks an operation that may not be fetched."""
        self._unfetchable.add(op)

    def is_fetchable(self, element: Any) -> bool:
        """Whether the tensor or operation may be fetched."""
        return getattr(element, "_op", element) not in self._unfetchable


def _bad_name(name: str, what: str) -> ValueError:
    return ValueError(
        f"'{name}' is not a valid {what} name: it takes letters, digits and . _ / > - \\, and begins with a "
        "letter, a digit or '.' (inside a name scope, with any of them)"
    )


def _device_function(device: Any) -> Callable[[Operation], str | None]:
    """What a device scope does to a node: returns the node's new device string; None leaves it."""
    if callable(device) and not isinstance(device, device_name.DeviceSpec):
        return lambda op: _device_text(device(op), "a device function must return")
    outer = device_name.canonical(_device_text(device, "tf.device takes") or "")
    return lambda op: device_name.merge(outer, op._device) if op._device else outer


def _device_text(device: Any, what: str) -> str | None:
    """The name that a program gave, as it wrote it. ValueError where it is malformed."""
    if device is None:
        return None
    text = device if isinstance(device, str) else getattr(device, "to_string", None)
    if callable(text):
        text = text()
    if not isinstance(text, str):
        raise TypeError(f"{what} a device name, a tf.DeviceSpec or None, but got {device!r}")
    device_name.parse(text)
    return text
