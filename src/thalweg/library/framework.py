"""Public functions over the default graph: scopes, collections, conversion, placeholders, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from thalweg.base import dtypes
from thalweg.graph import convert, registry
from thalweg.graph.composite import IndexedSlices, SparseTensor
from thalweg.graph.convert import (
    constant,
    get_default_graph,
    register_tensor_conversion_function,
    reset_default_graph,
)
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation, Tensor

__all__ = [
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "constant",
    "container",
    "control_dependencies",
    "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "device",
    "executing_eagerly",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "graph_of",
    "init_scope",
    "is_tensor",
    "name_scope",
    "op_scope",
    "placeholder",
    "placeholder_with_default",
    "register_tensor_conversion_function",
    "reset_default_graph",
]

# ---- scopes ----------------------------------------------------------------------------------------------


def _element_of(value: Any) -> Tensor | Operation | None:
    """The node or tensor that a value is or stands for."""
    if isinstance(value, Tensor | Operation):
        return value
    convert_to_element = getattr(value, "_as_graph_element", None)
    if convert_to_element is not None:
        return convert_to_element()
    if isinstance(value, IndexedSlices | SparseTensor):
        return value.values
    return None


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph that the values among `values` belong to; the default graph where none belongs to any.

    ValueError where they belong to different ones.
    """
    first: Tensor | Operation | None = None
    for value in values:
        element = _element_of(value)
        if element is None:
            continue
        if first is None:
            first = element
        elif element.graph is not first.graph:
            raise ValueError(f"{element} must be from the same graph as {first}.")
    return get_default_graph() if first is None else first.graph


class name_scope:
    """A context manager for functions that make several nodes: their names start with `name`.

    name: the caller's choice, or None for default_name. A name that ends in "/" is re-entered as it is;
        None (without default_name) and "" go back to the top.
    values: the tensors that the function was given: their graph becomes the default graph inside.
    Yields the scope with its "/", which is also the name to give to the node that is the result.
    """

    __slots__ = ("_name", "_old", "_values")

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Iterable[Any] | None = None
    ) -> None:
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. You likely meant to pass "
                "this into the `values` kwarg."
            )
        self._name = default_name if name is None else name
        if self._name is None and values is not None:
            raise ValueError(
                f"At least one of name ({name}) and default_name ({default_name}) must be provided."
            )
        self._values = values
        # a stack of what to put back: one object may be entered again inside itself
        self._old: list[tuple[Any, str, AbstractContextManager[Any] | None]] = []

    @property
    def name(self) -> str | None:
        """The name asked for."""
        return self._name

    def __enter__(self) -> str:
        graph = default = get_default_graph()
        if self._values:
            graph = graph_of(self._values)
        scopes = graph._scopes.get()
        new = graph.enter_name(self._name)
        context = None
        if graph is not default:
            context = graph.as_default()
            context.__enter__()
        self._old.append((scopes, scopes.name, context))
        scopes.name = new
        return new + "/" if new else ""

    def __exit__(self, *exception: Any) -> None:
        scopes, name, context = self._old.pop()
        scopes.name = name
        if context is not None:
            context.__exit__(*exception)


@contextmanager
def op_scope(values: Sequence[Any], name: str | None, default_name: str | None = None) -> Iterator[str]:
    """name_scope with another order of arguments, as programs of 2015 and 2016 write it."""
    with name_scope(name, default_name, values) as scope:
        yield scope


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """Nodes made inside ask for this (partial) device: a string, DeviceSpec, function of the node, or None.

    None drops the devices of the outer scopes. ValueError on a malformed name.
    """
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Nodes made inside go where `op` (a node, tensor or variable) goes."""
    return get_default_graph().colocate_with(op, ignore_existing)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """Nodes made inside run after `control_inputs`; None clears the scopes in force."""
    return get_default_graph().control_dependencies(control_inputs)


def container(container_name: str) -> AbstractContextManager[str]:
    """Stateful nodes made inside keep their state in this container."""
    return get_default_graph().container(container_name)


def init_scope() -> AbstractContextManager[None]:
    """Nodes made inside depend on no control scope or loop around: what initialises must run by itself."""
    return get_default_graph().control_dependencies(None)


def executing_eagerly() -> bool:
    """Whether operations run as they are called: never, a graph is built and then run."""
    return False


# ---- collections -----------------------------------------------------------------------------------------


def add_to_collection(name: Any, value: Any) -> None:
    """Appends value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Appends value to each of the collections (a name or names) of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection; with `scope`, the values whose name matches that regular expression."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """The collection itself: changes to the list last."""
    return get_default_graph().get_collection_ref(key)


# ---- values ----------------------------------------------------------------------------------------------


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """A tensor for a tensor, a Python or NumPy value, or anything that a conversion is registered for.

    dtype: required element type; preferred_dtype (or dtype_hint): tried first, given up silently.
    Errors: TypeError where no conversion exists, ValueError where the dtype differs.
    """
    hint = preferred_dtype if dtype_hint is None else dtype_hint
    return convert.convert_to_tensor(
        value, dtype, name, preferred_dtype=None if hint is None else dtypes.as_dtype(hint)
    )


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | IndexedSlices | SparseTensor:
    """`value` where it is an IndexedSlices or SparseTensor, else a tensor. ValueError: another dtype."""
    if not isinstance(value, IndexedSlices | SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with dtype "
            f"{value.dtype.name}: {value}"
        )
    return value


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | SparseTensor:
    """A SparseTensor for a SparseTensor or its value, else a tensor. RuntimeError: another dtype."""
    if type(value).__name__ == "SparseTensorValue":
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise RuntimeError(
            f"Sparse dtype mismatch: requested {dtypes.as_dtype(dtype).name}, got {value.dtype.name}"
        )
    return value


def is_tensor(x: Any) -> bool:
    """Whether x is a symbolic value: a Tensor, SparseTensor, IndexedSlices or variable."""
    return isinstance(x, Tensor | SparseTensor | IndexedSlices) or bool(getattr(x, "is_tensor_like", False))


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed; shape: what may be fed (None: any)."""
    return emit("Placeholder", dtype=dtype, shape=shape, name=name)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that may be fed, and is `input` where it is not. `shape` may be vaguer than input's."""
    return emit("PlaceholderWithDefault", input, shape=shape, name=name)


# ---- gradients -------------------------------------------------------------------------------------------


class RegisterGradient:
    """A decorator that registers f(op, *output_gradients) as the gradient of an op type, or under a name
    for Graph.gradient_override_map.

    f returns one gradient (Tensor, IndexedSlices, None) per input, or the only one.
    KeyError where the name has a gradient already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Registers f and returns it."""

        def gradient(_: Any, op: Operation, *output_gradients: Any) -> list[Any]:
            result = f(op, *output_gradients)
            return list(result) if isinstance(result, list | tuple) else [result]

        registry.register_gradient(self._op_type, gradient)
        return f


def NotDifferentiable(op_type: str) -> None:
    """Declares that an op type has no gradient: `gradients` treats its inputs as constants."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    registry.register_gradient(op_type, registry.NotDifferentiable("the program says so"))


NoGradient = NotDifferentiable
