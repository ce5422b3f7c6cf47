"""while_loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.base import nest
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.graph.while_context import WhileContext
from thalweg.library import framework, loop_values
from thalweg.library.framework import name_scope
from thalweg.library.graph_keys import GraphKeys


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats body while cond holds: the loop variables when it no longer does.

    cond(*loop_vars) returns a boolean scalar; body(*loop_vars) returns the next values of the loop variables,
    in the same structure. Each is called once, to make its nodes.
    loop_vars: a list or tuple of nests of tensors, TensorArrays, SparseTensors, IndexedSlices.
    shape_invariants: a nest like loop_vars of TensorShapes (or None), for variables whose shape changes.
    parallel_iterations: how many iterations may run at once. back_prop: whether gradients are wanted.
    maximum_iterations: an integer scalar: stop after so many.
    return_same_structure: a list of one even where there is one loop variable.
    Errors: TypeError for functions that can't be called, ValueError without loop variables, and where the
    body returns another structure or vaguer shapes than the invariants say.
    """
    _check_arguments(cond, body, parallel_iterations)
    with name_scope(name, "while", loop_values.known(loop_vars)):
        if not loop_vars:
            raise ValueError("'loop_vars' must be provided.")
        variables = loop_vars
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, name="maximum_iterations")
            if maximum_iterations._shape not in (None, ()):
                raise ValueError(
                    f"'maximum_iterations' must be a scalar. Received shape: {maximum_iterations.shape}"
                )
            cond, body, variables = _counted(
                cond, body, loop_vars, maximum_iterations, len(loop_vars) == 1 and not return_same_structure
            )
            if shape_invariants is not None:
                shape_invariants = (TensorShape([]), shape_invariants)
        context = WhileContext(maximum_iterations, parallel_iterations, back_prop, swap_memory)
        if context.outer_context is None:  # nested ones are found through their outer contexts
            framework.add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = _build(context, cond, body, variables, shape_invariants)
        if maximum_iterations is not None:
            return result[1]
        return result[0] if len(result) == 1 and not return_same_structure else result


def _check_arguments(cond: Any, body: Any, parallel_iterations: int) -> None:
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")


def _counted(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, limit: Tensor, single: bool
) -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """A loop with a counter in front, that stops at `limit`. single: there is one loop variable."""
    counter = framework.constant(0, limit._dtype, name="iteration_counter")

    def counted_cond(i: Tensor, values: Any) -> Tensor:
        below = i < limit
        return emit("LogicalAnd", below, cond(values) if single else cond(*values))

    def counted_body(i: Tensor, values: Any) -> tuple[Tensor, Any]:
        following = i + 1
        return following, body(values) if single else body(*values)

    return counted_cond, counted_body, (counter, loop_vars[0] if single else loop_vars)


def _build(
    context: WhileContext,
    cond: Callable[..., Any],
    body: Callable[..., Any],
    variables: Any,
    shape_invariants: Any,
) -> Any:
    """Makes the loop's nodes. Returns the results in the structure that the body returned."""
    originals = loop_values.flatten(variables)
    converted = nest.map_structure(loop_values.convert, variables)
    flat = [loop_values.to_flow(v) for v in loop_values.flatten(converted)]
    returned: Any = None

    def inner_cond(values: list[Tensor]) -> Tensor:
        packed = loop_values.pack(converted, loop_values.from_flows(originals, values))
        return convert_to_tensor(cond(*packed))

    def inner_body(values: list[Tensor]) -> list[Tensor]:
        nonlocal returned
        packed = loop_values.pack(converted, loop_values.from_flows(originals, values))
        returned = body(*packed)
        if not nest.is_nested(returned):
            returned = [returned]
        loop_values.check_same_structure(list(packed), list(returned))
        return [loop_values.tensor(v) for v in loop_values.flatten(returned)]

    invariants = _flat_invariants(converted, shape_invariants)
    context.Enter()
    try:
        exits = context.BuildLoop(inner_cond, inner_body, flat, invariants)
    finally:
        context.Exit()
    return loop_values.pack(returned, loop_values.from_flows(loop_values.flatten(returned), exits))


def _flat_invariants(variables: Any, invariants: Any) -> list[Shape]:
    """The shape of each tensor that goes round, as far as it must not change."""
    values = nest.flatten(variables)
    if invariants is None:
        return [s for v in values for s in loop_values.shapes_of(v)]
    nest.assert_same_structure(variables, invariants)
    given = nest.flatten(invariants)
    return [
        s for v, i in zip(values, given, strict=True) for s in loop_values.invariant_shapes(v, i)
    ]
