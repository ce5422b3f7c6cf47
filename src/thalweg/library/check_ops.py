"""Checks of values, shapes and types: at once where the answer is known, else when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import InvalidArgumentError
from thalweg.graph.composite import SparseTensor
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import rank as rank_of
from thalweg.library.array_ops import shape as shape_of
from thalweg.library.grouping import group, no_op, with_dependencies
from thalweg.library.reduction_ops import reduce_all


def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails with InvalidArgumentError, showing `data`, where condition is false.

    data: tensors and strings. summarize: how many elements of each to show (3 where None). The operation
    has to
    run: fetch it, or make what depends on the check wait for it (control_dependencies).
    """
    with scope(name, "Assert"):
        condition = convert_to_tensor(condition, name="Condition")
        return emit("Assert", condition, list(data), summarize=summarize, name="Assert")


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


# ---- comparisons ---------------------------------------------------------------------------------------


def _compare(
    sign: str,
    default: str,
    op: str,
    static: Callable[..., Any],
    x: Any,
    y: Any,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with scope(name, default):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y")
        if data is None:
            data = [
                f"Condition x {sign} y did not hold element-wise:",
                f"x ({x.name}) = ",
                x,
                f"y ({y.name}) = ",
                y,
            ]
        if message is not None:
            data = [message, *data]
        condition = reduce_all(emit(op, x, y))
        known_x, known_y = emit.known_value(x), emit.known_value(y)
        if known_x is not None and known_y is not None and not np.all(static(known_x, known_y)):
            raise InvalidArgumentError(None, None, "\n".join(_shown(d) for d in data))
        return Assert(condition, data, summarize=summarize)


def _shown(value: Any) -> str:
    known = emit.known_value(value) if isinstance(value, Tensor) else value
    return str(value if known is None else known)


def assert_equal(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x == y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    with scope(name, "assert_equal"):  # TensorFlow enters it twice: the nodes are under "assert_equal_1"
        if x is y:
            return no_op()
    return _compare("==", "assert_equal", "Equal", np.equal, x, y, data, summarize, message, name)


def assert_none_equal(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x != y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    return _compare("!=", "assert_none_equal", "NotEqual", np.not_equal, x, y, data, summarize, message, name)


def assert_less(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x < y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    return _compare("<", "assert_less", "Less", np.less, x, y, data, summarize, message, name)


def assert_less_equal(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x <= y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    return _compare(
        "<=", "assert_less_equal", "LessEqual", np.less_equal, x, y, data, summarize, message, name
    )


def assert_greater(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x > y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    return _compare(">", "assert_greater", "Greater", np.greater, x, y, data, summarize, message, name)


def assert_greater_equal(
    x: Any,
    y: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x >= y for all elements, broadcast. InvalidArgumentError: at once where both are known."""
    return _compare(
        ">=", "assert_greater_equal", "GreaterEqual", np.greater_equal, x, y, data, summarize, message, name
    )


def _against_zero(
    relation: str, default: str, check: Callable[..., Operation], zero_first: bool
) -> Callable[..., Operation]:
    def function(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with scope(name, default):
            x = convert_to_tensor(x, name="x")
            if data is None:
                data = [
                    _prefix(message),
                    f"Condition x {relation} 0 did not hold element-wise:",
                    f"x ({x.name}) = ",
                    x,
                ]
            zero = convert_to_tensor(0, x.dtype.base_dtype)
            pair = (zero, x) if zero_first else (x, zero)
            return check(*pair, data=data, summarize=summarize)

    function.__name__ = function.__qualname__ = default
    function.__doc__ = (
        f"Checks x {relation} 0 for all elements. InvalidArgumentError: at once where x is known."
    )
    return function


assert_negative = _against_zero("<", "assert_negative", assert_less, zero_first=False)
assert_positive = _against_zero(">", "assert_positive", assert_less, zero_first=True)
assert_non_negative = _against_zero(">=", "assert_non_negative", assert_less_equal, zero_first=True)
assert_non_positive = _against_zero("<=", "assert_non_positive", assert_less_equal, zero_first=False)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks |x - y| < atol + rtol |y| for all elements; both tolerances are ten times the type's epsilon."""
    with scope(name, "assert_near"):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        kind = x.dtype.real_dtype
        epsilon = float(dtypes_epsilon(kind))
        rtol = convert_to_tensor(10 * epsilon if rtol is None else rtol, kind, name="rtol")
        atol = convert_to_tensor(10 * epsilon if atol is None else atol, kind, name="atol")
        if data is None:
            data = [
                _prefix(message),
                f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}",
                f"x ({x.name}) = ",
                x,
                f"y ({y.name}) = ",
                y,
            ]
        absolute = "ComplexAbs" if x.dtype.is_complex else "Abs"
        tolerance = atol + rtol * emit(absolute, y)
        condition = reduce_all(emit("Less", emit(absolute, x - y), tolerance))
        return Assert(condition, data, summarize=summarize)


def dtypes_epsilon(kind: DType) -> float:
    """The distance from 1 to the next number of a floating-point type. TypeError for others."""
    if not kind.is_floating:
        raise TypeError(f"assert_near takes floating-point numbers, got {kind.name}")
    numpy = kind.as_numpy_dtype
    one = numpy(1)
    return float(np.nextafter(one, numpy(2), dtype=numpy) - one)


# ---- ranks, types --------------------------------------------------------------------------------------


def assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks x's rank. ValueError at once where it is known, else InvalidArgumentError when run."""
    return _check_rank("assert_rank", "rank", "Equal", x, rank, data, summarize, message, name)


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks that x has this rank or more. ValueError at once where it is known, else when run."""
    return _check_rank(
        "assert_rank_at_least", "rank at least", "GreaterEqual", x, rank, data, summarize, message, name
    )


def _named(x: Any) -> tuple[Any, str]:
    if isinstance(x, SparseTensor):
        return x, ""
    tensor = convert_to_tensor(x, name="x")
    return tensor, tensor.name


def _check_rank(
    default: str,
    wanted: str,
    op: str,
    x: Any,
    rank: Any,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with scope(name, default):
        x, of = _named(x)
        rank = convert_to_tensor(rank, name="rank")
        if data is None:
            data = [
                _prefix(message),
                f"Tensor {of} must have {wanted}",
                rank,
                "Received shape: ",
                shape_of(x),
            ]
        assert_type(rank, dtypes.int32)
        known = emit.known_value(rank)
        actual = x.get_shape().ndims
        if known is not None and known.ndim != 0:
            raise ValueError("Rank must be a scalar.")
        if known is not None and actual is not None:
            if actual != known if op == "Equal" else actual < known:
                raise ValueError(
                    f"{_prefix(message)}Tensor {of} must have {wanted} {known}.  Received rank {actual}, "
                    "shape "
                    f"{x.get_shape()}"
                )
            return no_op(name="static_checks_determined_all_ok")
        condition = emit(op, rank_of(x), rank)
        if known is None:
            check = assert_rank(rank, 0, data=["Rank must be a scalar. Received rank: ", rank])
            condition = with_dependencies([check], condition)
        return Assert(condition, data, summarize=summarize)


def assert_rank_in(
    x: Any,
    ranks: Iterable[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks that x's rank is one of these. ValueError at once where it is known, else when run."""
    with scope(name, "assert_rank_in"):
        x, of = _named(x)
        tensors = [convert_to_tensor(r, name="rank") for r in ranks]
        if data is None:
            data = [
                _prefix(message),
                f"Tensor {of} must have rank in",
                *tensors,
                "Received shape: ",
                shape_of(x),
            ]
        for r in tensors:
            assert_type(r, dtypes.int32)
        known: list[Any] = [emit.known_value(r) for r in tensors]
        actual = x.get_shape().ndims
        if any(k is not None and k.ndim != 0 for k in known):
            raise ValueError("Rank must be a scalar.")
        if actual is not None and all(k is not None for k in known):
            allowed = tuple(int(k) for k in known)
            if actual not in allowed:
                raise ValueError(
                    f"{_prefix(message)}Tensor {of} must have rank in {allowed}.  Received rank {actual}, "
                    "shape "
                    f"{x.get_shape()}"
                )
            return no_op(name="static_checks_determined_all_ok")
        if not tensors:
            return Assert(convert_to_tensor(False), data, summarize=summarize)
        actual_rank = rank_of(x)
        condition = emit("Equal", tensors[0], actual_rank)
        for r in tensors[1:]:
            condition = emit("LogicalOr", condition, emit("Equal", r, actual_rank))
        return Assert(condition, data, summarize=summarize)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """tensor itself. ValueError where its static shape is not a scalar's."""
    with scope(name, "assert_scalar"):
        tensor = convert_to_tensor(tensor, name="tensor")
        if tensor._shape != ():
            raise ValueError(
                f"{_prefix(message)}Expected scalar shape for {tensor.name}, saw shape: "
                f"{shapes.format_shape(tensor._shape)}."
            )
        return tensor


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Checks that x is of an integer type. TypeError at once."""
    with scope(name, "assert_integer"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(
                f'{_prefix(message)}Expected "x" to be integer type.  Found: {x.name} of dtype {x.dtype!r}'
            )
        return no_op(name="statically_determined_was_integer")


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Checks the element type. TypeError at once."""
    kind = dtypes.as_dtype(tf_type)
    with scope(name, "assert_type"):
        if not isinstance(tensor, SparseTensor):
            tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype != kind:
            raise TypeError(f"{_prefix(message)}{tensor.name} must be of type {kind!r}, got {tensor.dtype!r}")
        return no_op(name="statically_determined_correct_type")


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """The one floating-point type of all tensors and `dtype`; float32 without any. ValueError otherwise."""
    expected = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for t in tensors or ():
        if t is None:
            continue
        kind = t.dtype.base_dtype
        if expected is None:
            expected = kind
        elif kind != expected:
            raise ValueError(
                f"Tensor type mismatch: {getattr(t, 'name', t)} is {kind!r}, expected {expected!r}"
            )
    if expected is None:
        return dtypes.float32
    if not expected.is_floating:
        raise ValueError(f"Expected floating point type, got {expected!r}.")
    return expected


def assert_proper_iterable(values: Any) -> None:
    """Checks that values is a list or the like: no tensor, array or string. TypeError at once."""
    if isinstance(values, Tensor | SparseTensor | np.ndarray | str | bytes) or not hasattr(
        values, "__iter__"
    ):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    if not isinstance(tensor, Tensor):
        return False
    kind = tensor.dtype.base_dtype
    return kind.is_floating or kind.is_integer or kind.is_complex or kind.is_quantized


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element is at least as great as the one before it, in the order of the flat tensor."""
    with scope(name, "is_non_decreasing"):
        return reduce_all(_steps(x, "GreaterEqual"))


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element is greater than the one before it, in the order of the flat tensor."""
    with scope(name, "is_strictly_increasing"):
        return reduce_all(_steps(x, "Greater"))


def _steps(x: Any, op: str) -> Tensor:
    x = emit("Reshape", convert_to_tensor(x, name="x"), [-1])
    if not is_numeric_tensor(x):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    return emit(op, x[1:], x[:-1])


def assert_shapes(
    shapes: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks shapes given as (tensor, pattern) pairs or a dict: numbers, None for any, names that must agree.

    A leading "..." or "*" stands for any axes. ValueError at once where shapes are known, else when run.
    """
    pairs = shapes.items() if isinstance(shapes, dict) else shapes
    checks: list[Operation] = []
    sizes: dict[Any, Any] = {}
    with scope(name, "assert_shapes"):
        for tensor, pattern in pairs:
            x, of = _named(tensor)
            wanted = list(pattern)
            inner = bool(wanted) and wanted[0] in (Ellipsis, "*")
            wanted = wanted[1:] if inner else wanted
            check = assert_rank_at_least if inner else assert_rank
            checks.append(check(x, len(wanted), data=data, summarize=summarize, message=message))
            actual = x.get_shape().as_list() if x.get_shape().ndims is not None else None
            dynamic = shape_of(x)
            for i, symbol in enumerate(wanted):
                if symbol in (None, "."):
                    continue
                at = i - len(wanted) if inner else i
                size: Any = dynamic[at] if actual is None or actual[at] is None else actual[at]
                expected = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size)
                if isinstance(size, int) and isinstance(expected, int):
                    if size != expected:
                        raise ValueError(
                            f"{_prefix(message)}Tensor {of} dimension {at} must have size {expected}.  "
                            "Received "
                            f"size {size}, shape {x.get_shape()}"
                        )
                elif size is not expected:
                    what = data or [
                        f"{_prefix(message)}Tensor {of} dimension {at} must have size ",
                        expected,
                        size,
                    ]
                    checks.append(Assert(emit("Equal", size, expected), what, summarize=summarize))
        return group(*checks)
