"""The nodes of control flow around gradients, which are tensors or IndexedSlices; contexts for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from thalweg.base import dtypes
from thalweg.graph import control_flow
from thalweg.graph.composite import IndexedSlices, vector_slice
from thalweg.graph.control_flow import ControlFlowContext
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Tensor

Grad = Tensor | IndexedSlices


@contextmanager
def inside(graph: Graph, context: ControlFlowContext | None) -> Iterator[None]:
    """Puts a context in force, whichever is so before, and that one afterwards."""
    before = graph._get_control_flow_context()
    graph._set_control_flow_context(context)
    try:
        yield
    finally:
        graph._set_control_flow_context(before)


def parts(grad: Grad) -> tuple[Tensor, ...]:
    """The tensors of a gradient."""
    return (grad,) if isinstance(grad, Tensor) else grad._nest_components()


def rebuild(like: Grad, tensors: Sequence[Tensor]) -> Grad:
    """A gradient like another of other tensors: undoes `parts`."""
    return tensors[0] if isinstance(like, Tensor) else like._nest_rebuild(tensors)


def on_parts(function: Callable[..., Tensor], grad: Grad, *args: Any, name: str | None = None) -> Grad:
    """function of each tensor of a gradient; the name goes to a dense one only, as in TensorFlow."""
    if isinstance(grad, Tensor):
        return function(grad, *args, name=name)
    return rebuild(grad, [function(t, *args) for t in parts(grad)])


def exit(grad: Grad) -> Grad:
    """A gradient in the parent frame."""
    return on_parts(control_flow.exit, grad)


def next_iteration(grad: Grad) -> Grad:
    """A gradient in the next iteration."""
    return on_parts(control_flow.next_iteration, grad)


def switch(grad: Grad, pred: Tensor, name: str = "Switch", colocate: bool = True) -> tuple[Grad, Grad]:
    """(a gradient where pred is false, where it is true); colocate: beside the gradient."""
    graph = get_default_graph()
    if colocate:
        with graph.colocate_with(grad.op, ignore_existing=True):
            return switch(grad, pred, name, colocate=False)
    if isinstance(grad, Tensor):
        return control_flow.switch(grad, pred, name)
    with graph.name_scope(name):
        sides = [emit("Switch", t, pred) for t in parts(grad)]
    return rebuild(grad, [s[0] for s in sides]), rebuild(grad, [s[1] for s in sides])


def merge(grads: Sequence[Grad], name: str | None = None) -> Grad:
    """The gradient that is alive; IndexedSlices where one of them is."""
    dense = [g for g in grads if isinstance(g, Tensor)]
    if len(dense) == len(grads):
        return control_flow.merge(dense, name)[0]
    with get_default_graph().name_scope(name or "Merge"):
        slices = _of_one_form([as_slices(g) for g in grads])
        merged = [emit("Merge", list(same))[0] for same in zip(*map(parts, slices), strict=True)]
    return rebuild(slices[0], merged)


def _of_one_form(grads: list[IndexedSlices]) -> list[IndexedSlices]:
    """With indices of one type; without the dense shapes where not all have one."""
    wide = any(g.indices._dtype == dtypes.int64 for g in grads)
    shaped = all(g.dense_shape is not None for g in grads)
    result = []
    for g in grads:
        indices = g.indices
        if wide and indices._dtype != dtypes.int64:
            indices = emit("Cast", indices, DstT=dtypes.int64)
        result.append(IndexedSlices(g.values, indices, g.dense_shape if shaped else None))
    return result


def as_slices(grad: Grad, optimize: bool = False) -> IndexedSlices:
    """A dense gradient as slices of all its rows; optimize: its shape is a constant where it is known."""
    if isinstance(grad, IndexedSlices):
        return grad
    shape = emit.shape(grad) if optimize else emit("Shape", grad)
    rows = vector_slice(shape, 0, 1, shrink_axis_mask=1)
    return IndexedSlices(grad, emit("Range", 0, rows, 1, name="range"), shape)
