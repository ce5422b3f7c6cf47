"""From Python values to tensors: constants, and the conversions that other types register."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.graph import registry, scope_stacks
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor

ConversionFn = Callable[..., Any]  # (value, dtype=None, name=None, as_ref=False) -> Tensor or NotImplemented

_conversions: list[tuple[int, int, Any, ConversionFn]] = []
_conversion_cache: dict[type, list[ConversionFn]] = {}

_global_default_graph: Graph | None = None
_global_lock = threading.Lock()


def get_default_graph() -> Graph:
    """The thread's default graph: the innermost `as_default`, else the process's global graph."""
    global _global_default_graph
    top = scope_stacks.default_stack.top()
    if top is None:
        top = _global_default_graph
    if top is not None:
        return top  # type: ignore[no-any-return]
    with _global_lock:
        if _global_default_graph is None:
            _global_default_graph = Graph()
        return _global_default_graph


def reset_default_graph() -> None:
    """Replaces the global default graph with an empty one. AssertionError inside `as_default`."""
    global _global_default_graph
    if scope_stacks.default_stack.stack:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit "
            "the nesting and create a new graph."
        )
    with _global_lock:
        _global_default_graph = Graph()


def register_tensor_conversion_function(
    base_type: Any, conversion_func: ConversionFn, priority: int = 100
) -> None:
    """Registers conversion_func(value, dtype, name, as_ref) for a type or tuple of types.

    Lower priorities are asked first; a function may return NotImplemented.
    """
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _conversions.append((priority, len(_conversions), base_type, conversion_func))
    _conversions.sort(key=lambda c: c[:2])
    _conversion_cache.clear()


def _conversions_of(kind: type, value: Any) -> list[ConversionFn]:
    found = _conversion_cache.get(kind)
    if found is None:
        found = _conversion_cache[kind] = [f for _, _, t, f in _conversions if isinstance(value, t)]
    return found


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
) -> Tensor:
    """A tensor for a tensor, a Python or NumPy value, or anything that a conversion is registered for.

    dtype: required element type; preferred_dtype: tried first, given up silently.
    Errors: TypeError where no conversion exists, ValueError where the dtype differs.
    """
    if dtype is not None:
        dtype = dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        if dtype is not None and not dtype.is_compatible_with(value._dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
                f"{value._dtype.name}: {value!r}"
            )
        return value
    for function in _conversions_of(type(value), value):
        made = _converted(function, value, dtype, name, as_ref, preferred_dtype)
        if made is not None:
            return made
    if hasattr(value, "__tf_tensor__"):
        own: Tensor = value.__tf_tensor__(dtype, name)
        return own
    if _contains_tensors(value):
        inferred = _first_dtype(value)
        wanted = dtype or (None if preferred_dtype is None else dtypes.as_dtype(preferred_dtype))
        if wanted is not None and inferred is not None and wanted.base_dtype != inferred:
            value = _cast_elements(value, wanted.base_dtype)
        return _pack(value, wanted, name)
    if dtype is None and preferred_dtype is not None:
        try:
            return constant(value, preferred_dtype, name=name or "Const")
        except (TypeError, ValueError):
            pass
    return constant(value, dtype, name=name or "Const")


def _converted(
    function: ConversionFn, value: Any, dtype: DType | None, name: str | None, as_ref: bool, preferred: Any
) -> Tensor | None:
    """What a registered function makes of a value; None where it declines."""
    result: Any = NotImplemented
    if dtype is None and preferred is not None:
        try:
            result = function(value, dtype=preferred, name=name, as_ref=as_ref)
        except (TypeError, ValueError):
            pass
    if result is NotImplemented:
        result = function(value, dtype=dtype, name=name, as_ref=as_ref)
    if result is NotImplemented:
        return None
    if not isinstance(result, Tensor):
        raise RuntimeError(
            f"{name or value!r}: the conversion function {function} returned {result!r}, not a Tensor"
        )
    if dtype is not None and not dtype.is_compatible_with(result._dtype):
        raise RuntimeError(
            f"{name or value!r}: conversion of type {type(value).__name__} to dtype {dtype.name} "
            f"returned {result._dtype.name}"
        )
    made: Tensor = result
    return made


def _contains_tensors(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return any(
        isinstance(v, Tensor) or _contains_tensors(v) or bool(_conversions_of(type(v), v)) for v in value
    )


def _cast_elements(value: Any, dtype: DType) -> Any:
    """Nested lists with every tensor in them cast to `dtype`: a list of sizes may mix int32 and int64."""
    if isinstance(value, list | tuple):
        return [_cast_elements(v, dtype) for v in value]
    if isinstance(value, Tensor) or _conversions_of(type(value), value):
        tensor = convert_to_tensor(value)
        source = tensor._dtype.base_dtype
        if source == dtype:
            return tensor
        attrs = {"SrcT": source, "DstT": dtype, "Truncate": False}
        return (
            get_default_graph()
            .add_node(registry.lookup("Cast"), [tensor], attrs, "Cast", [dtype])
            ._outputs[0]
        )
    return value


def _pack(value: Sequence[Any], dtype: DType | None, name: str | None) -> Tensor:
    """A list that holds tensors becomes Pack nodes, nested lists inside out (TensorFlow's auto-packing)."""
    graph = get_default_graph()
    with graph.name_scope(name or "packed") as scope:
        if dtype is None:
            dtype = _first_dtype(value)
        items = []
        for i, v in enumerate(value):
            if _contains_tensors(v):
                items.append(_pack(v, dtype, str(i)))
                continue
            if isinstance(v, list | tuple):
                graph.unique_name(str(i))  # TensorFlow enters a scope of that name first: the node is "1_1"
            items.append(convert_to_tensor(v, dtype, str(i)))
        base = items[0]._dtype.base_dtype
        attrs = {"N": len(items), "T": base, "axis": 0}
        return graph.add_node(registry.lookup("Pack"), items, attrs, scope, [base])._outputs[0]


def _first_dtype(value: Any) -> DType | None:
    if isinstance(value, list | tuple):
        for v in value:
            found = _first_dtype(v)
            if found is not None:
                return found
        return None
    if isinstance(value, Tensor) or _conversions_of(type(value), value):
        dtype = getattr(value, "dtype", None)
        return None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    return None


def to_array(value: Any, dtype: DType | None = None) -> np.ndarray:
    """A NumPy array of the element type that TensorFlow gives a Python value.

    Python floats become float32 and integers int32 (int64 where they don't fit), NumPy scalars in lists too;
    NumPy arrays keep their type; bytes and str become an object array of bytes.
    Errors: TypeError where the elements are not of `dtype` (floats for an integer type, None in a list),
    ValueError for None, for ragged lists, and for integers that `dtype` can't hold.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if dtype is not None and dtype.base_dtype == dtypes.string:
        return _string_array(value)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind in "USO":
            return _string_array(value) if dtype is None else _object_array(value, array, dtype)
        if dtype is not None and array.dtype != dtype.as_numpy_dtype:
            _check_cast(array, dtype, value)
            return array.astype(dtype.as_numpy_dtype)
        if dtype is None:
            dtypes.as_dtype(array.dtype)  # TypeError where TensorFlow has no such type
        return array
    try:
        array = np.array(value)
    except UnicodeDecodeError:  # bytes beside text
        array = np.array(value, dtype=object)
    except ValueError as e:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {value!r}") from e
    if array.dtype.kind in "US":
        if dtype is not None:
            raise TypeError(f"Expected {dtype.name}, but got {value!r} of type 'str'.")
        return _string_array(value)
    if array.dtype.kind == "O":
        return _object_array(value, array, dtype)
    if dtype is None:
        return _default_type(value, array)
    _check_cast(array, dtype, value)
    return array.astype(dtype.as_numpy_dtype, copy=False)


def _object_array(value: Any, array: np.ndarray, dtype: DType | None) -> np.ndarray:
    if dtype is None and array.size and all(isinstance(v, bytes | str) for v in array.flat):
        return _string_array(value)
    if array.size and any(v is None for v in array.flat):
        raise TypeError(f"None values not supported: {value!r}")
    inexact = dtype is not None and (dtype.is_floating or dtype.is_complex)
    if dtype is not None and inexact and all(type(v) is int for v in array.flat):
        return array.astype(np.float64).astype(dtype.as_numpy_dtype)  # integers beyond 64 bits
    try:
        flat = np.array([np.asarray(v) for v in array.flat])
    except ValueError:
        flat = array
    if flat.dtype.kind in "OUS" or flat.shape[1:]:
        kinds = sorted({type(v).__name__ for v in array.flat})
        raise TypeError(
            f"Failed to convert elements of {value!r} to Tensor: elements of type {', '.join(kinds)}. "
            "Consider casting elements to a supported type."
        )
    return to_array(flat.reshape(array.shape), dtype)


def _default_type(value: Any, array: np.ndarray) -> np.ndarray:
    """NumPy's guess for Python values, turned into TensorFlow's."""
    if _holds_numpy(value):
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
            return array
        return array.astype(np.int32)
    return array


def _holds_numpy(value: Any) -> bool:
    """Whether a value is a NumPy scalar, or lists of NumPy arrays (scalars in lists count as Python's)."""
    if isinstance(value, np.generic):
        return True
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray)


_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


def _check_cast(array: np.ndarray, dtype: DType, value: Any) -> None:
    """TypeError where a value would lose its nature: floats as integers, numbers as booleans.

    Booleans are 0 and 1 where numbers are wanted.
    """
    target = np.dtype(dtype.as_numpy_dtype)
    if array.dtype == target or array.size == 0:
        return
    source_rank = _KIND_RANK.get(array.dtype.kind, 2)
    target_kind = "f" if dtype.is_floating else target.kind
    target_rank = _KIND_RANK.get(target_kind, 2)
    numpy_given = isinstance(value, np.ndarray | np.generic)
    bad = source_rank > target_rank
    if bad and not numpy_given:
        shown = value if np.ndim(value) == 0 else list(np.ravel(np.asarray(value))[:3])
        raise TypeError(f"Expected {dtype.name}, but got {shown!r} of type '{type(value).__name__}'.")
    if not numpy_given and target.kind in "ui" and array.dtype.kind in "ui":
        info = np.iinfo(target)
        if array.max() > info.max or array.min() < info.min:
            raise ValueError(f"{value!r} is out of the range of {dtype.name}")


def _string_array(value: Any) -> np.ndarray:
    array = np.array(value, dtype=object)

    def encode(v: Any) -> bytes:
        if isinstance(v, str):
            return v.encode()
        if isinstance(v, bytes | bytearray | np.bytes_):
            return bytes(v)
        raise TypeError(f"Expected string, but got {v!r} of type '{type(v).__name__}'.")

    flat = [encode(v) for v in array.flat]
    result = np.empty(len(flat), object)
    result[:] = flat
    return result.reshape(array.shape)


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A Const node. A value of one element (or, as in TF 1.x, fewer than asked) fills `shape`."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    array = to_array(value, wanted)
    if shape is not None:
        array = _fill_shape(array, shapes.as_shape(shape), verify_shape)
    return constant_node(array, wanted, name)


def constant_node(array: np.ndarray, dtype: DType | None = None, name: str = "Const") -> Tensor:
    """A Const node that holds a copy of `array` (as it is, where nobody else can change it)."""
    if dtype is None:
        dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
    dtype = dtype.base_dtype
    array = np.array(array)
    array.flags.writeable = False
    attrs = {"value": array, "dtype": dtype}
    return get_default_graph().add_node(registry.lookup("Const"), [], attrs, name, [dtype])._outputs[0]


def _fill_shape(array: np.ndarray, wanted: shapes.Shape, verify: bool) -> np.ndarray:
    if wanted is None or None in wanted:
        raise ValueError(f"constant needs a fully known shape, got {shapes.format_shape(wanted)}")
    shape = tuple(d for d in wanted if d is not None)
    if array.shape == shape:
        return array
    if verify:
        raise TypeError(f"Expected Tensor's shape: {shape}, got {array.shape}.")
    count = shapes.num_elements(shape)
    if count is not None and array.size > count:
        raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
    if array.size == count:
        return array.reshape(shape)
    if array.size == 0:
        raise ValueError(f"Cannot fill the shape {shape} from no elements")
    flat = np.empty(count, array.dtype)  # type: ignore[arg-type]
    flat[: array.size] = array.ravel()
    flat[array.size :] = array.ravel()[-1]
    return flat.reshape(shape)
