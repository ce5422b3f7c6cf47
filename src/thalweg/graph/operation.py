"""Operation (a node) and Tensor (a symbolic handle on one of its outputs)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.base import origin
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import TensorShape

if TYPE_CHECKING:
    from thalweg.graph.graph import Graph
    from thalweg.graph.registry import OpRecord

#: what node_def, eval, run ... call: each set by the module (here or above) that can do it
_hooks: dict[str, Callable[..., Any]] = {}


class Tensor:
    """A symbolic handle on one output of an operation: dtype and static shape, never the data.

    Equality is identity, as in TensorFlow 1.x. Arithmetic operators are added by thalweg.library.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_consumers",
        "_dtype",
        "_handle",
        "_index",
        "_op",
        "_shape",
        "_value",
    )

    __array_priority__ = 100

    OVERLOADABLE_OPERATORS = frozenset(
        "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __div__ __rdiv__ __truediv__ __rtruediv__ "
        "__floordiv__ __rfloordiv__ __mod__ __rmod__ __lt__ __le__ __gt__ __ge__ __ne__ __eq__ __and__ "
        "__rand__ __or__ __ror__ __xor__ __rxor__ __getitem__ __pow__ __rpow__ __invert__ __neg__ __abs__ "
        "__matmul__ __rmatmul__".split()
    )

    def __init__(self, op: Operation, index: int, dtype: DType, shape: Shape = None) -> None:
        self._op = op
        self._index = index
        self._dtype = dtype
        self._shape = shape
        self._consumers: list[Operation] = []
        #: for resource tensors: (dtype, shape) of the variable behind the handle, where known
        self._handle: tuple[DType, Shape] | None = None
        #: cache of the statically known value; see shape_context.constant_value
        self._value: Any = _UNKNOWN

    @property
    def op(self) -> Operation:
        """The operation that produces this tensor."""
        return self._op

    @property
    def value_index(self) -> int:
        """Which output of the operation this is."""
        return self._index

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The graph that holds the tensor."""
        return self._op._graph

    @property
    def name(self) -> str:
        """ "op_name:index"."""
        return f"{self._op._name}:{self._index}"

    @property
    def device(self) -> str:
        """The device of the operation."""
        return self._op._device

    @property
    def shape(self) -> TensorShape:
        """The static shape, as far as it is known."""
        return TensorShape.of(self._shape)

    def get_shape(self) -> TensorShape:
        """The static shape, as far as it is known."""
        return TensorShape.of(self._shape)

    @property
    def ndim(self) -> int | None:
        """The rank, where known."""
        return None if self._shape is None else len(self._shape)

    def set_shape(self, shape: Any) -> None:
        """Merges what the caller knows into the static shape. ValueError where they contradict."""
        try:
            self._shape = shapes.merge(self._shape, shapes.as_shape(shape))
        except ValueError as e:
            raise ValueError(f"set_shape of tensor '{self.name}': {e}") from None

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(dict.fromkeys(self._consumers))

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """The value, computed by `session` or the default session."""
        return _hooks["eval"](self, feed_dict, self.graph, session)

    def ref(self) -> Reference:
        """A hashable reference, for sets and dicts that must not depend on `==`."""
        return Reference(self)

    experimental_ref = ref

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={_show(self._shape)} dtype={self._dtype.name}>"

    def __str__(self) -> str:
        shape = f", shape={_show(self._shape)}" if self._shape is not None else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name})'

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def __iter__(self) -> Any:
        """In graph mode a tensor can be taken apart only where its first dimension is known."""
        if not self._shape or self._shape[0] is None:
            raise TypeError(
                f"Tensor objects are only iterable when their first dimension is known: "
                f"{self.name} {shapes.format_shape(self._shape)}; use tf.map_fn or tf.unstack."
            )
        return (self[i] for i in range(self._shape[0]))

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}). Use `x.shape[0]`.")

    def __bool__(self) -> bool:
        raise TypeError(
            "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` instead of "
            "`if t:` to test if a tensor is defined, and use ops such as tf.cond to execute subgraphs "
            "conditioned on the value of a tensor."
        )

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array: run it in a session, "
            "or use a tf function instead of the NumPy one."
        )

    if TYPE_CHECKING:  # what thalweg.library.operators installs

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

    @staticmethod
    def _override_operator(operator: str, func: Callable[..., Any]) -> None:
        """Installs an arithmetic operator; the library's door."""
        if operator not in Tensor.OVERLOADABLE_OPERATORS:
            raise ValueError(f"Overriding {operator} is disallowed")
        setattr(Tensor, operator, func)


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


_UNKNOWN = _Unknown()


class Reference:
    """A hashable wrapper with identity equality."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        """What was wrapped."""
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._wrapped is self._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


def _show(shape: Shape) -> str:
    if shape is None:
        return "<unknown>"
    inner = ", ".join("?" if d is None else str(d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


class Operation:
    """A node of the graph. Made by Graph only.

    Attribute values are kept in one canonical Python form each: DType, int, float, bool, bytes, Shape
    (a tuple or None), np.ndarray for tensors, FunctionRef for functions, tuples for lists.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_attrs",
        "_control_flow_context",
        "_control_inputs",
        "_control_outputs",
        "_device",
        "_graph",
        "_id",
        "_inputs",
        "_name",
        "_origin",
        "_original_op",
        "_outputs",
        "_record",
    )

    def __init__(
        self,
        graph: Graph,
        id_: int,
        name: str,
        record: OpRecord,
        inputs: list[Tensor],
        control_inputs: list[Operation],
        attrs: dict[str, Any],
        output_dtypes: Sequence[DType],
        device: str,
        origin_: origin.Origin,
    ) -> None:
        self._graph = graph
        self._id = id_
        self._name = name
        self._record = record
        self._inputs = inputs
        self._control_inputs = control_inputs
        self._control_outputs: list[Operation] = []
        self._attrs = attrs
        self._device = device
        self._origin = origin_
        self._original_op: Operation | None = None
        self._control_flow_context: Any = None
        self._outputs = tuple(Tensor(self, i, d) for i, d in enumerate(output_dtypes))
        for tensor in inputs:
            tensor._consumers.append(self)
        for op in control_inputs:
            op._control_outputs.append(self)

    @property
    def name(self) -> str:
        """The full name of the operation."""
        return self._name

    @property
    def type(self) -> str:
        """The name of the op, such as "MatMul"."""
        return self._record.definition.name

    @property
    def graph(self) -> Graph:
        """The graph that holds the operation."""
        return self._graph

    @property
    def device(self) -> str:
        """The (partial) device asked for, or ""."""
        return self._device

    @property
    def inputs(self) -> InputList:
        """The data inputs, in order."""
        return InputList(self._inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs, in order."""
        return list(self._outputs)

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that must have run before this one."""
        return list(self._control_inputs)

    @property
    def origin(self) -> origin.Origin:
        """Where in the user's program the operation was made."""
        return self._origin

    @property
    def traceback(self) -> list[Any]:
        """The user's stack at construction, outermost first."""
        return origin.traceback(self._origin)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return self._outputs

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Runs the operation in `session` or the default session."""
        _hooks["run"](self, feed_dict, self._graph, session)

    def colocation_groups(self) -> list[bytes]:
        """The colocation groups ("loc:@name") this operation belongs to; its own where it has none."""
        groups = [g for g in self._attrs.get("_class", ()) if g.startswith(b"loc:@")]
        return groups or [b"loc:@" + self._name.encode()]

    def get_attr(self, name: str) -> Any:
        """The value of an attribute, in TensorFlow's Python form. ValueError where there is none."""
        if name not in self._attrs:
            raise ValueError(f"Operation '{self._name}' has no attr named '{name}'.")
        return _hooks["get_attr"](self, name)

    @property
    def node_def(self) -> Any:
        """The node as a NodeDef message."""
        return _hooks["node_def"](self)

    @property
    def op_def(self) -> Any:
        """The op's definition as an OpDef message."""
        return _hooks["op_def"](self._record.definition)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op._graph is not self._graph:
                raise ValueError(f"control input {op._name} of {self._name} is from another graph")
            if op not in self._control_inputs:
                self._control_inputs.append(op)
                op._control_outputs.append(self)
                self._graph._mutated()

    def _remove_control_input(self, op: Operation) -> None:
        self._control_inputs.remove(op)
        op._control_outputs.remove(self)
        self._graph._mutated()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Puts another tensor in place of an input. The caller keeps types right."""
        if tensor.graph is not self._graph:
            raise ValueError(f"input {tensor.name} of {self._name} is from another graph")
        self._inputs[index]._consumers.remove(self)
        self._inputs[index] = tensor
        tensor._consumers.append(self)
        self._graph._mutated()

    def _set_attr(self, name: str, value: Any) -> None:
        """Sets an attribute, given in canonical form (see the class) or as an AttrValue message."""
        if hasattr(value, "WhichOneof"):
            value = _hooks["attr_from_proto"](value)
        self._attrs[name] = value
        self._graph._mutated()

    def _set_device(self, device: Any) -> None:
        self._device = device if isinstance(device, str) else device.to_string()
        self._graph._mutated()

    def _get_control_flow_context(self) -> Any:
        return self._control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        self._control_flow_context = context

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)

    def __copy__(self) -> Operation:
        return self

    def __deepcopy__(self, memo: Any) -> Operation:
        return self


class InputList(Sequence[Tensor]):
    """A read-only view of an operation's inputs, which prints as TensorFlow's does."""

    __slots__ = ("_inputs",)

    def __init__(self, inputs: list[Tensor]) -> None:
        self._inputs = inputs

    def __getitem__(self, i: Any) -> Any:
        return self._inputs[i]

    def __len__(self) -> int:
        return len(self._inputs)

    def __iter__(self) -> Any:
        return iter(self._inputs)

    def __bool__(self) -> bool:
        return bool(self._inputs)

    def __add__(self, other: Iterable[Tensor]) -> list[Tensor]:
        return list(self) + list(other)

    def __radd__(self, other: Iterable[Tensor]) -> list[Tensor]:
        return list(other) + list(self)

    def __repr__(self) -> str:
        return repr(self._inputs)
