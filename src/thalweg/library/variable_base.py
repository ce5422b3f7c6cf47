"""Variable: what both kinds of variable promise, and the chain of creators that tf.Variable(...) calls.

A variable is three nodes: the stateful node, its initial value, and the assignment that initialises it. The
Python object only remembers them.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tensorboard.compat.proto import variable_pb2

from thalweg.base import dtypes
from thalweg.base.dtypes import DType
from thalweg.base.errors import UnimplementedError
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph import scope_stacks
from thalweg.graph.composite import IndexedSlices
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Reference, Tensor
from thalweg.library import framework
from thalweg.library.graph_keys import GraphKeys
from thalweg.library.proto_functions import in_scope, prepend_name_scope, strip_name_scope


class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable meet. Kept for programs that pass it."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the copies of a distributed variable become one. Kept for programs that pass it."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


class SaveSliceInfo:
    """Which part of a larger variable this one holds: what a checkpoint needs to put the parts together."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Sequence[int] | None = None,
        var_offset: Sequence[int] | None = None,
        var_shape: Sequence[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            full_name = prepend_name_scope(save_slice_info_def.full_name, import_scope)
            full_shape = list(save_slice_info_def.full_shape)
            var_offset = list(save_slice_info_def.var_offset)
            var_shape = list(save_slice_info_def.var_shape)
        self.full_name = full_name
        self.full_shape = full_shape
        self.var_offset = var_offset
        self.var_shape = var_shape

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaveSliceInfoDef; None for a variable outside of export_scope."""
        if not in_scope(self.full_name or "", export_scope):
            return None
        return variable_pb2.SaveSliceInfoDef(
            full_name=strip_name_scope(self.full_name or "", export_scope),
            full_shape=self.full_shape,
            var_offset=self.var_offset,
            var_shape=self.var_shape,
        )

    @property
    def spec(self) -> str:
        """The slice as checkpoints write it: "10 20 0,5:0,20", full shape, offset and length per axis."""
        assert self.full_shape is not None and self.var_offset is not None and self.var_shape is not None
        full = "".join(f"{d} " for d in self.full_shape)
        return full + ":".join(f"{o},{n}" for o, n in zip(self.var_offset, self.var_shape, strict=True))


# ---- creators --------------------------------------------------------------------------------------------

Creator = Callable[..., Any]  # (next_creator, **constructor arguments) -> variable

#: what makes a variable where no creator scope does: set by thalweg.library.variables
_default_creator: list[Callable[..., Any]] = []


#: what makes a message of a variable, and a variable of a message: set by thalweg.library.variable_protos
_proto_functions: list[Callable[..., Any]] = []


class _CreatorScopes(threading.local):
    def __init__(self) -> None:
        self.creators: list[Creator] = []


def _creator_scopes(graph: Graph) -> _CreatorScopes:
    return graph._library_state.setdefault("variable_creators", _CreatorScopes())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Inside, tf.Variable and get_variable call variable_creator(next_creator, **kwargs) for the variable.

    kwargs are those of tf.Variable; next_creator(**kwargs) goes on to the scope around, in the end to the
    class itself.
    """
    scopes = _creator_scopes(get_default_graph())
    scopes.creators.append(variable_creator)
    try:
        yield
    finally:
        scopes.creators.pop()


def create(**kwargs: Any) -> Any:
    """Makes a variable through the creator scopes in force, innermost first."""
    make: Callable[..., Any] = _default_creator[0]
    for creator in _creator_scopes(get_default_graph()).creators:
        make = _bound(creator, make)
    return make(**kwargs)


def _bound(creator: Creator, next_creator: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **kwargs: creator(next_creator, **kwargs)


class _VariableType(type):
    """tf.Variable(...) makes a variable of the kind asked for; its subclasses make themselves."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        if len(args) > len(_ARGUMENTS):
            raise TypeError(f"Variable takes at most {len(_ARGUMENTS)} arguments, got {len(args)}")
        given = dict(zip(_ARGUMENTS, args, strict=False))
        if kwargs.get("variable_def") is not None or given.get("variable_def") is not None:
            return _from_definition({**given, **kwargs})
        for name in kwargs:
            if name in given:
                raise TypeError(f"Variable got multiple values for argument '{name}'")
            if name not in _ARGUMENTS:
                raise TypeError(f"Variable got an unexpected keyword argument '{name}'")
        return create(**{**_DEFAULTS, **given, **kwargs})


def _from_definition(given: dict[str, Any]) -> Any:
    if given.get("initial_value") is not None:
        raise ValueError("variable_def and initial_value are mutually exclusive.")
    return Variable.from_proto(given["variable_def"], given.get("import_scope"))


_ARGUMENTS = (
    "initial_value",
    "trainable",
    "collections",
    "validate_shape",
    "caching_device",
    "name",
    "variable_def",
    "dtype",
    "expected_shape",
    "import_scope",
    "constraint",
    "use_resource",
    "synchronization",
    "aggregation",
    "shape",
)
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_ARGUMENTS),
    "validate_shape": True,
    "synchronization": VariableSynchronization.AUTO,
    "aggregation": VariableAggregation.NONE,
}


class Variable(metaclass=_VariableType):
    """State that survives between runs, and is updated by running nodes.

    Variable(initial_value=None, trainable=None, collections=None, validate_shape=True, caching_device=None,
    name=None, variable_def=None, dtype=None, expected_shape=None, import_scope=None, constraint=None,
    use_resource=None, synchronization=AUTO, aggregation=NONE, shape=None):

    initial_value: a tensor, anything convertible to one, or a function without arguments that returns one
        (its nodes go to the variable's own device). It may depend on other variables.
    trainable: whether optimizers move it; puts it into TRAINABLE_VARIABLES. None: yes.
    collections: where it goes instead of GLOBAL_VARIABLES.
    validate_shape: False: it may be assigned values of other shapes.
    caching_device: readers read a copy there.
    constraint: a function of the value that an optimizer applies after its update.
    use_resource: a resource variable (VarHandleOp) or a reference variable (VariableV2). None: as the
        variable scope says, else as enable_resource_variables says, else a reference.
    shape: the static shape, where it is vaguer than the initial value's.

    Use it wherever a tensor goes: that reads it. Equality is identity.
    Errors: ValueError without an initial value, for one of unknown shape, or for bad arguments.
    """

    SaveSliceInfo = SaveSliceInfo
    is_tensor_like = True
    __array_priority__ = 100  # so that `array + variable` asks the variable

    _trainable: bool = True
    _synchronization = VariableSynchronization.AUTO
    _aggregation = VariableAggregation.NONE
    _constraint: Callable[[Tensor], Tensor] | None = None
    _save_slice_info: Any = None  # a SaveSliceInfo, for a slice of a larger variable
    _initial_value: Tensor | None = None
    _safe_initial_value: Tensor | None = None

    # ---- what a kind must have -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the variable: "op_name:0"."""
        raise NotImplementedError

    @property
    def op(self) -> Operation:
        """The stateful node."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """The element type; a reference type for reference variables."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        raise NotImplementedError

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its initial value."""
        raise NotImplementedError

    def value(self) -> Tensor:
        """The value as a tensor: the cached read."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """The value, read by a new node: under the control dependencies in force."""
        raise NotImplementedError

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A scalar: whether it has a value."""
        raise NotImplementedError

    def set_shape(self, shape: Any) -> None:
        """Merges what the caller knows into the static shape."""
        raise NotImplementedError

    def _initialized_value_node(self, initial_value: Tensor, name: str) -> Tensor:
        """The value where it has one, else initial_value, by a node of that name."""
        raise NotImplementedError

    # ---- what both share -------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph that holds the variable."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device asked for."""
        return self.op.device

    @property
    def initial_value(self) -> Tensor | None:
        """The tensor that it starts from, as the program gave it."""
        return self._initial_value

    @property
    def trainable(self) -> bool:
        """Whether optimizers move it."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """As given to the constructor."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """As given to the constructor."""
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Tensor], Tensor] | None:
        """As given to the constructor."""
        return self._constraint

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def initialized_value(self) -> Tensor:
        """The value, or the initial value where it has none yet: to initialise another variable from."""
        if self._safe_initial_value is None:
            raise ValueError(f"{self.name} has no initial value")
        with framework.init_scope():
            return self._initialized_value_node(self._safe_initial_value, "initialized_value")

    def eval(self, session: Any = None) -> Any:
        """The value, in `session` or the default session."""
        return self._as_graph_element().eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Gives it a value, in `session` or the default session, without adding to the graph."""
        session = session or scope_stacks.default_sessions.top()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be established"
            )
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    def ref(self) -> Reference:
        """A hashable reference, for sets and dicts that must not depend on `==`."""
        return Reference(self)

    experimental_ref = ref

    def _as_graph_element(self) -> Tensor:
        """What a fetch of the variable fetches."""
        raise NotImplementedError

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    def _set_save_slice_info(self, info: Any) -> None:
        self._save_slice_info = info

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The variable as a VariableDef message."""
        return _proto_functions[0](self, export_scope)

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable that a VariableDef message describes, over nodes that exist."""
        return _proto_functions[1](variable_def, import_scope)

    def __iter__(self) -> NoReturn:
        # Python would otherwise try variable[0], variable[1] ... without end.
        raise TypeError("'Variable' object is not iterable.")

    def __getitem__(self, spec: Any) -> Tensor:
        """A slice of the value. Its method assign(value, name=None) makes a node that changes the slice."""
        result = getattr(Tensor, "__getitem__")(self.value(), spec)  # noqa: B009  the library adds it to Tensor
        if result.op.type == "StridedSlice":
            result.assign = lambda value, name=None: self._assign_slice(result.op, value, name)
        return result

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replaces rows along the last axis of the indices, batch by batch."""
        raise UnimplementedError(None, None, f"batch_scatter_update of {self.name}: use scatter_nd_update")

    def _assign_slice(self, read: Operation, value: Any, name: str | None) -> Any:
        raise NotImplementedError

    def _conversion(self, dtype: DType | None, as_ref: bool) -> Tensor:
        """The tensor that the variable is converted to."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __copy__(self) -> Variable:
        return self

    def __deepcopy__(self, memo: Any) -> Variable:
        return self


def _operator(name: str) -> Callable[..., Any]:
    def run(self: Variable, *args: Any) -> Any:
        return getattr(Tensor, name)(self.value(), *args)

    run.__name__ = name
    run.__doc__ = f"As Tensor.{name} of the value."
    return run


for _name in Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__", "__getitem__"}:
    setattr(Variable, _name, _operator(_name))


# ---- shared by the constructors --------------------------------------------------------------------------


def checked_collections(collections: Any, trainable: bool) -> list[Any]:
    """The collections that a new variable goes into. ValueError for what is no list, tuple or set."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, list | tuple | set):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or set. Got "
            f"{collections} of type {type(collections)}"
        )
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in collections:
        return [*collections, GraphKeys.TRAINABLE_VARIABLES]
    return list(collections)


def checked_modes(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: str | None
) -> tuple[VariableSynchronization, VariableAggregation, bool]:
    """The three arguments with their defaults filled in. ValueError for unknown modes."""
    try:
        aggregation = VariableAggregation.NONE if aggregation is None else VariableAggregation(aggregation)
    except ValueError:
        raise ValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {name}") from None
    try:
        synchronization = VariableSynchronization(
            VariableSynchronization.AUTO if synchronization is None else synchronization
        )
    except ValueError:
        raise ValueError(
            f"Invalid variable synchronization mode: {synchronization} for variable: {name}"
        ) from None
    if trainable is None:
        trainable = synchronization is not VariableSynchronization.ON_READ
    return synchronization, aggregation, trainable


def checked_arguments(initial_value: Any, constraint: Any, variable_def: Any) -> None:
    """ValueError where there is nothing to start from, or the constraint is no function."""
    if variable_def is not None:
        raise UnimplementedError(None, None, "a variable from a VariableDef")
    if initial_value is None:
        raise ValueError("initial_value must be specified.")
    if constraint is not None and not callable(constraint):
        raise ValueError("The `constraint` argument must be a callable.")


def check_not_in_control_flow(initial_value: Tensor, name: str) -> None:
    """ValueError for an initial value that only exists inside a loop or a branch."""
    if initial_value.op._get_control_flow_context() is not None:
        raise ValueError(
            f"Initializer for variable {name} is from inside a control-flow construct, such as a loop or "
            "conditional. When creating a variable inside a loop or conditional, use a lambda as the "
            "initializer."
        )


def own_group(scope: str) -> dict[str, Any]:
    """The attribute that colocates nodes with the variable whose name scope is `scope`, before it exists."""
    return {"_class": (b"loc:@" + scope.rstrip("/").encode(),)}


def checked_slices(sparse_delta: Any) -> IndexedSlices:
    """TypeError for what is no IndexedSlices."""
    if not isinstance(sparse_delta, IndexedSlices):
        raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
    return sparse_delta


def check_conversion(variable: Variable, dtype: DType | None) -> None:
    """ValueError where a variable is wanted as another type."""
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(variable.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
            f"'{variable.dtype.name}' ({variable.name})"
        )


def slice_arguments(read: Operation) -> tuple[list[Tensor], dict[str, Any]]:
    """The begin, end and strides of a StridedSlice node, and its masks: to assign to what it reads."""
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return list(read.inputs[1:]), {m: read._attrs[m] for m in masks}
