"""tf.gradients and what is built on it: hessians, functions with gradients of their own."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import thalweg.autodiff.calls  # registers the gradients of calls
from thalweg.autodiff import gradients as autodiff
from thalweg.autodiff.aggregate import AggregationMethod
from thalweg.autodiff.gradients import UnconnectedGradients
from thalweg.autodiff.nodes import Grad
from thalweg.base import nest
from thalweg.graph.convert import convert_to_tensor, get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation, Tensor
from thalweg.library import framework
from thalweg.library.initial_values import variable_of
from thalweg.library.variable_base import Variable

__all__ = ["AggregationMethod", "UnconnectedGradients", "custom_gradient", "gradients", "hessians"]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = UnconnectedGradients.NONE,
) -> list[Grad | None]:
    """The symbolic derivatives of sum(ys) with respect to each x in xs.

    ys, xs: a tensor or variable, or a list of them. grad_ys: the gradients to start from, ones by default.
    colocate_gradients_with_ops: each gradient's nodes go where its operation goes. gate_gradients: the
    gradients of one operation wait for each other. stop_gradients: tensors through which nothing flows.
    Returns one Tensor or IndexedSlices per x; where no y depends on it, None or (unconnected_gradients=ZERO)
    zeros.
    Errors: LookupError where an operation on the way has no gradient; TypeError for integer ys; ValueError
    where a gradient function returns the wrong number of gradients.
    """
    return autodiff.gradients(
        ys,
        xs,
        grad_ys,
        name,
        colocate_gradients_with_ops,
        gate_gradients,
        aggregation_method,
        stop_gradients,
        unconnected_gradients,
    )


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """The second derivatives of sum(ys) by each x: shape(x) + shape(x) each.

    One gradient is built for each element of x, so x must have a known shape, and a small one.
    Errors: ValueError where the shape of an x isn't known.
    """
    xs = list(xs) if isinstance(xs, list | tuple) else [xs]
    arguments: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    return [_hessian(first, x) for first, x in zip(gradients(ys, xs, **arguments), xs, strict=True)]


def _hessian(first: Any, x: Any) -> Tensor:
    shape = x.shape
    if not shape.is_fully_defined():
        raise ValueError(f"hessians: the shape of {x} must be known, got {shape}")
    dims = shape.as_list()
    if first is None:
        raise ValueError(f"hessians: ys do not depend on {x}")
    flat: Any = emit("Reshape", first, [-1])
    rows = [
        gradients(flat[i], x, unconnected_gradients=UnconnectedGradients.ZERO)[0]
        for i in range(shape.num_elements())
    ]
    return emit("Reshape", emit("Pack", rows, name="stack"), dims + dims)


# ---- custom gradients ------------------------------------------------------------------------------------

_serial = itertools.count()


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A decorator for functions that say themselves what their gradient is.

    f(*tensors) returns (result, grad_fn); grad_fn(*gradients of the results) returns the gradients of f's
    arguments, one each or the only one. Where f uses variables, grad_fn takes them as a keyword argument
    `variables` and returns (gradients of arguments, gradients of variables).
    Errors: ValueError for keyword arguments and for a wrong number of gradients; TypeError where f uses
    variables and grad_fn doesn't take them.
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError("The custom_gradient decorator currently supports positional arguments only.")
        return _with_gradient(f, [convert_to_tensor(a) for a in args])

    return decorated


def _with_gradient(f: Callable[..., Any], args: list[Tensor]) -> Any:
    graph = get_default_graph()
    result, grad_fn = f(*args)
    results = [convert_to_tensor(r) for r in nest.flatten(result)]
    variables = _variables_between(args, results)
    keywords = _keywords_for(grad_fn, variables)

    def gradient(_: Operation, *grads: Tensor) -> list[Any]:
        given = grads[: len(results)]
        if not variables:
            inputs, of_variables = grad_fn(*given, **keywords), []
        else:
            inputs, of_variables = grad_fn(*given, **keywords)
            if len(of_variables) != len(variables):
                raise ValueError(
                    "Must return gradient for each variable from @custom_gradient grad_fn: got "
                    f"{len(of_variables)} for {len(variables)}"
                )
        inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        return [None] * len(results) + inputs + list(of_variables)

    name = f"CustomGradient-{next(_serial)}"
    framework.RegisterGradient(name)(gradient)
    # An identity of results, arguments and variables whose gradient is the one given: the results that the
    # program sees depend on the arguments through it alone.
    with graph.gradient_override_map({"IdentityN": name}):
        outputs = emit("IdentityN", [*results, *args, *variables])
    return nest.pack_sequence_as(result, outputs[: len(results)])


def _variables_between(args: Sequence[Tensor], results: Sequence[Tensor]) -> list[Variable]:
    """The trainable variables that results depend on, other than through args, by name."""
    found: dict[Operation, Variable] = {}
    stops = {t.op for t in args}
    seen: set[Operation] = set()
    stack = [t.op for t in results]
    while stack:
        op = stack.pop()
        if op in seen or op in stops:
            continue
        seen.add(op)
        variable = variable_of(op)
        if variable is not None and variable.trainable:
            found[op] = variable
        stack.extend(t.op for t in op.inputs)
    return sorted(found.values(), key=lambda v: v.name)


def _keywords_for(grad_fn: Callable[..., Any], variables: list[Variable]) -> dict[str, Any]:
    """The keyword arguments to call grad_fn with."""
    if not variables:
        return {}
    spec = inspect.getfullargspec(grad_fn)
    if "variables" not in [*spec.args, *spec.kwonlyargs] and spec.varkw is None:
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function uses "
            f"variables: {variables}"
        )
    return {"variables": variables}
