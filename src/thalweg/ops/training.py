"""Optimizers' updates of whole variables. Source: TensorFlow's training_ops.cc (shapes and kernels)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel.convention import update
from thalweg.ops._arrays import is_host
from thalweg.ops._handles import NO_GRADIENT, behind, require_same_shape, require_scalars
from thalweg.ops._types import NUMBER
from thalweg.ops._update_rules import DENSE, DENSE_RESOURCE, Rule


def _shape_function(rule: Rule) -> Callable[[ShapeContext], list[Shape]]:
    variables = 1 + len(rule.slots)

    def shape(c: ShapeContext) -> list[Shape]:
        result = behind(c, 0)[1]
        for i in range(1, variables):
            result = shapes.merge(result, behind(c, i)[1])
        for i, name in enumerate(rule.inputs, variables):
            if name == rule.gradient:
                result = shapes.merge(result, c.shape(i))
            else:
                c.with_rank(i, 0)
        return [result] if c.op._outputs else []

    return shape


def _kernel(rule: Rule) -> Callable[..., tuple[Any, ...]]:
    names = ("var", *rule.slots, *rule.inputs)
    like_var = [i for i, n in enumerate(names) if n == "var" or n in rule.slots or n == rule.gradient]
    scalars = [i for i in range(len(names)) if i not in like_var]

    @functools.wraps(rule.compute)  # the runtime reads the attributes' names off the signature
    def kernel(*values: Any, **attrs: Any) -> tuple[Any, ...]:
        require_same_shape([names[i] for i in like_var], [values[i] for i in like_var])
        require_scalars([names[i] for i in scalars], [values[i] for i in scalars])
        # constants are NumPy arrays; scalars among them serve rules as they are
        return rule.compute(*(jnp.asarray(v) if is_host(v) and np.ndim(v) else v for v in values), **attrs)

    return kernel


def _define(rule: Rule, resource: bool) -> None:
    variables = ("var", *rule.slots)
    kind = "resource" if resource else "Ref(T)"
    inputs = [f"{v}: {kind}" for v in variables]
    inputs += [f"{i}: {'int64' if i == 'global_step' else 'T'}" for i in rule.inputs]
    more = f", {rule.attrs}" if rule.attrs else ""
    define_op(
        f"{'Resource' if resource else ''}Apply{rule.name}",
        inputs=", ".join(inputs),
        outputs="" if resource else "out: Ref(T)",
        attrs=f"T: {NUMBER}, use_locking: bool = False{more}",
        shape=_shape_function(rule),
        kernel=update(_kernel(rule), writes=variables, maskable=True),
        stateful=resource,
        gradient=NO_GRADIENT,
        doc=f"{rule.name} on a {'resource' if resource else 'reference'} variable: {rule.doc}.",
    )


for _rule in DENSE:
    _define(_rule, resource=False)
    _define(_rule, resource=True)
for _rule in DENSE_RESOURCE:
    _define(_rule, resource=True)
