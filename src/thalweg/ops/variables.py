"""Variables: their nodes, reading, assigning, counting.

A variable's node is a handle on storage that the runtime keeps. Kernels that read it get its value; kernels
that update it return the new one (see kernel.convention). Source: TensorFlow's state_ops.cc,
resource_variable_ops.cc, count_up_to_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import NotFoundError, OutOfRangeError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import source, stateful, traceable, update
from thalweg.ops._arrays import fail_unless, is_host, shape_text
from thalweg.ops._handles import NO_GRADIENT, behind
from thalweg.ops._types import INDEX, NUMBER

_REF_ATTRS = "shape: shape, dtype: type, container: string = '', shared_name: string = ''"
_NO_INPUTS = NotDifferentiable("no inputs")


def _legacy_shape(c: ShapeContext) -> list[Shape]:
    declared: Shape = c.attr("shape")
    return [declared or None]  # [] has stood for an unknown shape, before shapes could say so


define_op(
    "VariableV2",
    outputs="ref: Ref(dtype)",
    attrs=_REF_ATTRS,
    shape=lambda c: [c.attr("shape")],
    kernel=source(),
    stateful=True,
    gradient=_NO_INPUTS,
    doc="A variable; its output is a reference to it.",
)

define_op(
    "Variable",
    outputs="ref: Ref(dtype)",
    attrs=_REF_ATTRS,
    shape=_legacy_shape,
    kernel=source(),
    stateful=True,
    gradient=_NO_INPUTS,
    doc="VariableV2 as the first graphs wrote it; the shape [] means unknown.",
)


def _handle_shape(c: ShapeContext) -> list[Shape]:
    c.handles[0] = (c.attr("dtype"), c.attr("shape"))
    return [()]


define_op(
    "VarHandleOp",
    outputs="resource: resource",
    attrs="container: string = '', shared_name: string = '', debug_name: string = '', dtype: type, "
    "shape: shape, allowed_devices: list(string) = []",
    shape=_handle_shape,
    kernel=source(),
    stateful=True,
    gradient=_NO_INPUTS,
    doc="A resource variable; its output is a handle to it.",
)


def _read_shape(c: ShapeContext) -> list[Shape]:
    dtype, shape = behind(c, 0)
    wanted: DType = c.attr("dtype")
    if dtype is not None and dtype != wanted:
        raise ValueError(
            f"Trying to read variable with wrong dtype. Expected {dtype.name} got {wanted.name}"
        )
    return [shape]


define_op(
    "ReadVariableOp",
    inputs="resource: resource",
    outputs="value: dtype",
    attrs="dtype: type",
    shape=_read_shape,
    kernel=traceable(lambda value: value, reads=("resource",)),
    stateful=True,
    gradient=lambda emit, op, dy: [dy],
    doc="The value of a resource variable, as it is when this node runs.",
)

define_op(
    "VariableShape",
    inputs="input: resource",
    outputs="output: out_type",
    attrs=f"out_type: {INDEX} = int32",
    shape=lambda c: [(None if (s := behind(c, 0)[1]) is None else len(s),)],
    shape_value=lambda op: None if op._inputs[0]._handle is None else op._inputs[0]._handle[1],
    kernel=traceable(
        lambda value, *, out_type: np.array(np.shape(value), out_type), reads=("input",), shape_only=True
    ),
    stateful=True,
    gradient=NotDifferentiable("shapes do not depend on values"),
    doc="The shape of a resource variable.",
)


# --- assigning ---


def _assign_shape(c: ShapeContext) -> list[Shape]:
    if not c.attr("validate_shape"):
        return [c.shape(1)]
    return [shapes.merge(c.shape(0), c.shape(1))]


def _assign_kernel(value: Any, *, validate_shape: bool) -> Any:
    op = checks.current_op()
    if validate_shape and op is not None:
        declared, given = op._inputs[0]._shape, tuple(np.shape(value))
        fail_unless(
            shapes.is_compatible(declared, given),
            lambda: "Assign requires shapes of both tensors to match. "
            f"lhs shape= {shapes.format_shape(declared)} rhs shape= {shape_text(given)}",
        )
    return value


define_op(
    "Assign",
    inputs="ref: Ref(T), value: T",
    outputs="output_ref: Ref(T)",
    attrs="T: type, validate_shape: bool = True, use_locking: bool = True",
    shape=_assign_shape,
    kernel=update(_assign_kernel, writes=("ref",), overwrites=True, maskable=True),
    allows_uninitialized_input=True,
    gradient=NO_GRADIENT,
    doc="Gives a reference variable a value. validate_shape: of the shape that the variable has.",
)


def _assign_resource_shape(c: ShapeContext) -> list[Shape]:
    dtype, declared = behind(c, 0)
    wanted: DType = c.attr("dtype")
    if dtype is not None and dtype != wanted:
        raise ValueError(
            f"Trying to assign to a variable with another dtype. Expected {dtype.name} got {wanted.name}"
        )
    shapes.merge(declared, c.shape(1))
    return []


def _assign_resource_kernel(value: Any, *, validate_shape: bool) -> Any:
    op = checks.current_op()
    handle = op._inputs[0]._handle if op is not None else None
    if validate_shape and handle is not None:
        given = tuple(np.shape(value))
        fail_unless(
            shapes.is_compatible(handle[1], given),
            lambda: "Trying to assign to variable with tensor with wrong shape. "
            f"Expected {shapes.format_shape(handle[1])} got {shape_text(given)}",
        )
    return value


define_op(
    "AssignVariableOp",
    inputs="resource: resource, value: dtype",
    attrs="dtype: type, validate_shape: bool = False",
    shape=_assign_resource_shape,
    kernel=update(_assign_resource_kernel, writes=("resource",), overwrites=True, maskable=True),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Gives a resource variable a value.",
)


def _in_step(do: Callable[[Any, Any], Any], text: str) -> Callable[[Any, Any], Any]:
    """An update by a value of exactly the variable's shape. text: the error's, with {old} and {value}."""

    def kernel(old: Any, value: Any) -> Any:
        fail_unless(
            np.shape(old) == np.shape(value),
            lambda: text.format(old=shape_text(np.shape(old)), value=shape_text(np.shape(value))),
        )
        return do(old, value)

    return kernel


def _define_in_step(name: str, do: Callable[[Any, Any], Any], doc: str) -> None:
    """The update for both kinds of variable."""
    define_op(
        f"Assign{name}",
        inputs="ref: Ref(T), value: T",
        outputs="output_ref: Ref(T)",
        attrs=f"T: {NUMBER}, use_locking: bool = False",
        shape=lambda c: [shapes.merge(c.shape(0), c.shape(1))],
        kernel=update(
            _in_step(do, "Parameters and update must be the same size, got {old} and {value}"),
            writes=("ref",),
            maskable=True,
        ),
        gradient=NO_GRADIENT,
        doc=doc.format("reference"),
    )
    define_op(
        f"Assign{name}VariableOp",
        inputs="resource: resource, value: dtype",
        attrs="dtype: type",
        shape=_assign_resource_shape,
        kernel=update(
            _in_step(
                do,
                "Cannot update variable with shape {old} using a Tensor with shape {value}, "
                "shapes must be equal.",
            ),
            writes=("resource",),
            maskable=True,
        ),
        stateful=True,
        gradient=NO_GRADIENT,
        doc=doc.format("resource"),
    )


_define_in_step("Add", lax.add, "Adds to a {} variable.")
_define_in_step("Sub", lax.sub, "Subtracts from a {} variable.")


# --- whether there is a value ---


def _is_initialized_kernel(context: Any, variable: Any) -> np.bool_:
    return np.bool_(variable.value is not None)


define_op(
    "IsVariableInitialized",
    inputs="ref: Ref(dtype)",
    outputs="is_initialized: bool",
    attrs="dtype: type",
    shape=lambda c: [()],
    kernel=stateful(_is_initialized_kernel),
    allows_uninitialized_input=True,
    gradient=NO_GRADIENT,
    doc="Whether a reference variable has a value.",
)

define_op(
    "VarIsInitializedOp",
    inputs="resource: resource",
    outputs="is_initialized: bool",
    shape=lambda c: [()],
    kernel=stateful(_is_initialized_kernel),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Whether a resource variable has a value.",
)


def _destroy_kernel(context: Any, variable: Any, *, ignore_lookup_error: bool) -> None:
    """The storage stays, empty: programs hold it, and a later assignment fills it."""
    if variable.value is None and not ignore_lookup_error:
        raise context.fail(NotFoundError, f"Resource {variable.name} does not exist.")
    variable.value = None


define_op(
    "DestroyResourceOp",
    inputs="resource: resource",
    attrs="ignore_lookup_error: bool = True",
    shape=lambda c: [],
    kernel=stateful(_destroy_kernel),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Takes a resource variable's value away; it counts as uninitialised then.",
)


# --- counting ---


def _count_kernel(old: Any, *, limit: int) -> tuple[Any, Any]:
    ok = old < limit
    checks.require(
        np.bool_(ok) if is_host(old) else ok, lambda: f"Reached limit of {limit}", error=OutOfRangeError
    )
    if is_host(old):
        return np.asarray(old + old.dtype.type(ok)), old
    return lax.add(old, lax.convert_element_type(ok, old.dtype)), old


def _count_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(0, 0)
    return [()]


def _count_resource_shape(c: ShapeContext) -> list[Shape]:
    shape = behind(c, 0)[1]
    if shape is not None and shape != ():
        raise ValueError(f"Shape must be rank 0 but is rank {len(shape)}: {shapes.format_shape(shape)}")
    return [()]



define_op(
    "CountUpTo",
    inputs="ref: Ref(T)",
    outputs="output: T",
    attrs=f"limit: int, T: {INDEX}",
    shape=_count_shape,
    kernel=update(_count_kernel, writes=("ref",), may_fail=True),
    gradient=NO_GRADIENT,
    doc="The value of a counter, which it raises by one; OutOfRangeError where it has reached the limit.",
)

define_op(
    "ResourceCountUpTo",
    inputs="resource: resource",
    outputs="output: T",
    attrs=f"limit: int, T: {INDEX}",
    shape=_count_resource_shape,
    kernel=update(_count_kernel, writes=("resource",), may_fail=True),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="CountUpTo for a resource variable.",
)

define_op(
    "DisableCopyOnRead",
    inputs="resource: resource",
    shape=lambda c: [],
    kernel=stateful(lambda context, resource: None),
    stateful=True,
    gradient=NO_GRADIENT,
    doc="Nothing: reads never copy a variable here.",
)
