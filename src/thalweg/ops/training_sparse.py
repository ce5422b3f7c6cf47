"""Optimizers' updates of some rows of a variable. Source: TensorFlow's training_ops.cc (shapes and kernels).

A row that is named twice is updated twice, one after the other. Where an index is bad no row is changed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.operation import Operation
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext, constant_value
from thalweg.kernel.convention import update
from thalweg.ops._arrays import fail_unless, shape_text
from thalweg.ops._handles import (
    NO_GRADIENT,
    behind,
    require_same_shape,
    require_scalars,
    variable_shape,
)
from thalweg.ops._rows import all_or_nowhere, change_rows
from thalweg.ops._types import INDEX, NUMBER
from thalweg.ops._update_rules import DENSE, DENSE_RESOURCE, Rule


def _input_names(rule: Rule) -> list[str]:
    """The names of inputs: the rule's, with the indices after the gradient."""
    names = ["var", *rule.slots, *rule.inputs]
    names.insert(names.index(rule.gradient) + 1, "indices")
    return names


def _shape_function(rule: Rule) -> Callable[[ShapeContext], list[Shape]]:
    variables = 1 + len(rule.slots)
    names = _input_names(rule)
    at = names.index(rule.gradient)

    def shape(c: ShapeContext) -> list[Shape]:
        result = behind(c, 0)[1]
        for i in range(1, variables):
            result = shapes.merge(result, behind(c, i)[1])
        grad, indices = c.shape(at), c.with_rank(at + 1, 1)
        if grad is not None:
            if not grad:
                raise ValueError("Shape must be at least rank 1 but is rank 0: the gradient")
            result = shapes.merge(result, (None, *grad[1:]))
            shapes.merge(indices, grad[:1])
        for i in range(variables, len(names)):
            if i not in (at, at + 1):
                c.with_rank(i, 0)
        return [result] if c.op._outputs else []

    return shape


def _kernel(rule: Rule) -> Callable[..., list[Any]]:
    variables = 1 + len(rule.slots)
    names = _input_names(rule)
    at = names.index(rule.gradient)

    @functools.wraps(rule.compute)  # the runtime reads the attributes' names off the signature
    def kernel(*values: Any, **attrs: Any) -> list[Any]:
        _check(names, values, variables, at)
        rows = all_or_nowhere(values[at + 1], np.shape(values[0])[0])
        before, after = values[variables:at], values[at + 2 :]

        def change(*parts: Any) -> tuple[Any, ...]:
            return rule.compute(*parts[:variables], *before, parts[variables], *after, **attrs)

        return change_rows(values[:variables], rows, change, values[at])

    return kernel


def _check(names: list[str], values: tuple[Any, ...], variables: int, at: int) -> None:
    """InvalidArgumentError for shapes that don't fit."""
    shape, grad, indices = (np.shape(values[i]) for i in (0, at, at + 1))
    fail_unless(len(shape) > 0, lambda: "var must be at least 1 dimensional")
    fail_unless(len(indices) == 1, lambda: "indices must be one-dimensional")
    fail_unless(
        grad[:1] == indices,
        lambda: "grad must be the same size as indices in the first dimension: "
        f"{shape_text(grad)} and {shape_text(indices)}",
    )
    fail_unless(
        grad[1:] == shape[1:],
        lambda: "var and grad must match but for the first dimension: "
        f"{shape_text(shape)} and {shape_text(grad)}",
    )
    require_same_shape(names[:variables], values[:variables])
    scalars = [i for i in range(variables, len(names)) if i not in (at, at + 1)]
    require_scalars([names[i] for i in scalars], [values[i] for i in scalars])


def _may_fail(at: int) -> Callable[[Operation], bool]:
    def may_fail(op: Operation) -> bool:
        """False where the indices are constants inside of a known dimension."""
        indices, table = constant_value(op._inputs[at]), variable_shape(op._inputs[0])
        if indices is None or not table or table[0] is None:
            return True
        return bool(((indices < 0) | (indices >= table[0])).any())

    return may_fail


def _define(rule: Rule, resource: bool) -> None:
    variables = ("var", *rule.slots)
    names = _input_names(rule)
    kinds = {v: "resource" if resource else "Ref(T)" for v in variables}
    kinds |= {"indices": "Tindices", "global_step": "int64"}
    more = f", {rule.attrs}" if rule.attrs else ""
    define_op(
        f"{'Resource' if resource else ''}SparseApply{rule.name}",
        inputs=", ".join(f"{n}: {kinds.get(n, 'T')}" for n in names),
        outputs="" if resource else "out: Ref(T)",
        attrs=f"T: {NUMBER}, Tindices: {INDEX}, use_locking: bool = False{more}",
        shape=_shape_function(rule),
        kernel=update(_kernel(rule), writes=variables, may_fail=_may_fail(names.index("indices"))),
        stateful=resource,
        gradient=NO_GRADIENT,
        doc=f"{rule.name} on some rows of a {'resource' if resource else 'reference'} variable: {rule.doc}.",
    )


_SPARSE = (
    "ProximalGradientDescent", "Momentum", "Adagrad", "AdagradV2", "ProximalAdagrad", "AdagradDA", "Adadelta",
    "RMSProp", "CenteredRMSProp", "Ftrl", "FtrlV2",
)  # fmt: skip

for _rule in DENSE:
    if _rule.name in _SPARSE:
        # the sparse op calls every gradient "grad"
        _renamed = tuple("grad" if i == _rule.gradient else i for i in _rule.inputs)
        _rule = dataclasses.replace(_rule, inputs=_renamed, gradient="grad")
        _define(_rule, resource=False)
        _define(_rule, resource=True)
for _rule in DENSE_RESOURCE:
    if _rule.name == "KerasMomentum":
        _define(_rule, resource=True)
