"""Looking into a running graph: check_numerics, Print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library.arguments import renamed, scope
from thalweg.library.grouping import group, with_dependencies


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """tensor. Error when run: InvalidArgumentError with the message where an element is infinite or NaN."""
    return emit("CheckNumerics", tensor, message=message, name=name)


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """t. Error when run: InvalidArgumentError with the message where an element is infinite or NaN."""
    x = renamed("x", x, "t", t)
    message = renamed("message", message, "msg", msg)
    with scope(name, "VerifyFinite"):
        x = convert_to_tensor(x, name="x")
        with get_default_graph().colocate_with(x):
            checked = emit("CheckNumerics", x, message=message)
            return with_dependencies([checked], x)


assert_all_finite = verify_tensor_all_finite


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating-point tensor made so far, in order. ValueError inside loops."""
    graph = get_default_graph()
    check: list[Tensor] = []
    for op in graph.get_operations():
        for output in op.outputs:
            if output.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
                continue
            if op._get_control_flow_context() is not None:
                raise ValueError(
                    "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow "
                    "operations such as "
                    f"`tf.cond()` or `tf.while_loop()`: '{op.name}' is inside one."
                )
            with graph.control_dependencies(check):
                check = [emit("CheckNumerics", output, message=output.name)]
    return group(*check)


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """input_; prints message and data to standard error when it runs (the first first_n times).

    summarize: how many elements of each tensor to print (3 where None).
    """
    return emit("Print", input_, list(data), message=message, first_n=first_n, summarize=summarize, name=name)
