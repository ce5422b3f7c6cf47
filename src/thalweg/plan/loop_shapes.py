"""Static shapes round the back edges of loops.

A GraphDef doesn't say them, and inference node by node can't see them: a Merge is made before what comes
back to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.graph.graph import Graph
from thalweg.graph.operation import _UNKNOWN, Operation, Tensor
from thalweg.graph.shape_context import ShapeContext
from thalweg.graph.subgraph import NEXT_ITERATION, topological_order
from thalweg.plan.places import MERGE

#: after so many rounds what still changes is taken as unknown
_ROUNDS = 8


def infer_loop_shapes(graph: Graph) -> int:
    """Finds the shapes of loop variables of which nothing is known, and of what is computed from them.

    Law: a shape is one that holds in iteration 0 and, if it holds in one iteration, in the next. Shapes that
    were known stay. Returns how many loop variables got one.
    """
    merges = [op for op in graph._ops if _is_open(op)]
    if not merges:
        return 0
    order = topological_order(graph)
    given = {t: t._shape for op in order for t in op._outputs}
    open_ones = set(merges)
    assumed: dict[Operation, Shape] = {}
    for _ in range(_ROUNDS):
        _propagate(order, given, open_ones, assumed)
        found = {op: _common(assumed[op], op._inputs) for op in merges}
        if found == assumed:
            return sum(s is not None for s in assumed.values())
        assumed = found
    _propagate(order, given, open_ones, dict.fromkeys(merges))
    return 0


def _is_open(op: Operation) -> bool:
    """Whether a node is the Merge of a loop variable of unknown shape."""
    if op.type not in MERGE or op._outputs[0]._shape is not None or len(op._inputs) != 2:
        return False
    return op._inputs[1]._op.type in NEXT_ITERATION


def _propagate(
    order: Sequence[Operation],
    given: dict[Tensor, Shape],
    merges: set[Operation],
    assumed: dict[Operation, Shape],
) -> None:
    """Infers again, from the assumed shapes of loop variables, whatever follows from them.

    Of a variable for which none is assumed yet it is that of the value at the start.
    """
    changed: set[Tensor] = set()
    for op in order:
        if op in merges:
            inferred: Sequence[Shape] = (assumed.setdefault(op, op._inputs[0]._shape), ())
        elif any(t in changed for t in op._inputs):
            inferred = _infer(op)
        else:
            continue
        for tensor, shape in zip(op._outputs, inferred, strict=True):
            tensor._shape = _merged(given[tensor], shape)
            tensor._value = _UNKNOWN
            changed.add(tensor)


def _infer(op: Operation) -> Sequence[Shape]:
    try:
        inferred: Sequence[Shape] = op._record.shape(ShapeContext(op))
    except ValueError:  # the assumption is wrong, or the program: that is found when it runs
        return [None] * len(op._outputs)
    return inferred


def _merged(a: Shape, b: Shape) -> Shape:
    try:
        return shapes.merge(a, b)
    except ValueError:
        return a


def _common(assumed: Shape, coming: Sequence[Tensor]) -> Shape:
    """What the shape at the start of an iteration has in common with those that come back."""
    result = assumed
    for tensor in coming:
        other = tensor._shape
        if result is None or other is None or len(other) != len(result):
            return None
        result = tuple(a if a == b else None for a, b in zip(result, other, strict=True))
    return result
