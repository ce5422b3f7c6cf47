"""Clusters that only pick rows out of variables and constants, run on the host: what input pipelines do
for every single example.

A compiled gather of one row costs some 12 us, most of it the way into XLA and back; here it is an indexing
of NumPy memory, some 2 us. It also keeps the interpreter's lock: threads that let go of it for each tiny
call spend their time waiting to get it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from thalweg.base import shape as shapes
from thalweg.graph import registry
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import Body
from thalweg.runtime.arrays import Array, memory_of

#: elements of a result at most
_SMALL = 1 << 14

#: (slot of the rows, slot of the index, slot of the result)
_Pick = tuple[int, int, int]


class Picks:
    """A cluster of picks: `run` gives its results, or None where the compiled cluster should say why not."""

    def __init__(self, template: list[Any], n_inputs: int, picks: list[_Pick], results: list[int]) -> None:
        self._template = template
        self._n_inputs = n_inputs
        self._picks = picks
        self._results = results
        self._seen: list[tuple[Any, np.ndarray | None]] = [(None, None)] * n_inputs

    def for_each(self, n_args: int) -> bool:
        """Whether every pick's index depends on the arguments (the first n_args inputs), and no rows do."""
        varies = set(range(n_args))
        for rows_at, index_at, to in self._picks:
            if rows_at in varies or index_at not in varies:
                return False
            varies.add(to)
        return True

    def run(self, inputs: Sequence[Any], each: bool = False) -> list[np.ndarray] | None:
        """inputs: the arguments and the values of the variables, which nobody may write meanwhile.

        each: the arguments are batches, and so are the results: one run for each of their elements.
        """
        values = self._template.copy()
        for i, value in enumerate(inputs):
            values[i] = self._view(i, value) if type(value) is Array else value
        for rows_at, index_at, to in self._picks:
            rows, index = values[rows_at], values[index_at]
            if each or index.ndim:
                if not index.size or (index.min() < 0 or index.max() >= len(rows)):
                    return None
                row = rows[index]
            else:
                i = int(index)
                if not 0 <= i < len(rows):
                    return None
                row = np.array(rows[i])
            row.flags.writeable = False
            values[to] = row
        return [values[i] for i in self._results]

    def _view(self, i: int, value: Any) -> np.ndarray:
        """The memory of an array on the CPU. Remembered as long as the same array comes."""
        seen, view = self._seen[i]
        if seen is not value or view is None:
            view = memory_of(value)
            self._seen[i] = (value, view)
        return view


def picks_of(body: Body, device: jax.Device) -> Picks | None:
    """The picks that a body consists of, or None where there is something else in it."""
    if device.platform != "cpu" or body.static_args or body.writes or not body.results:
        return None
    slots: dict[Tensor, int] = {t: i for i, t in enumerate(body.args)}
    variables = {key: len(slots) + i for i, key in enumerate(body.reads)}
    n = len(slots) + len(variables)
    template: list[Any] = [None] * n
    for op in body.constants:
        slots[op._outputs[0]] = len(template)
        template.append(op._attrs["value"])
    picks: list[_Pick] = []
    for op in body.nodes:
        keys = body.state_of.get(op, {})

        def slot(i: int, name: str, keys: Any = keys, op: Operation = op) -> int | None:
            return variables.get(keys[name]) if name in keys else slots.get(op._inputs[i])

        kind = op.type
        output = op._outputs[0] if op._outputs else None
        if registry.is_variant(op):
            return None
        if kind in ("Identity", "ReadVariableOp"):
            found = slot(0, "input" if kind == "Identity" else "resource")
            if found is None or output is None:
                return None
            slots[output] = found
        elif kind in _GATHERS and output is not None and _is_small(op):
            rows, index = slot(0, _GATHERS[kind]), slot(1, "indices")
            if rows is None or index is None:
                return None
            slots[output] = len(template)
            picks.append((rows, index, len(template)))
            template.append(None)
        else:
            return None
    results = [slots[t] for t in body.results]
    made = {to for _, _, to in picks}
    if not picks or any(i not in made for i in results):
        return None  # the value of a whole variable must not leave without a copy
    return Picks(template, n, picks, results)


#: the name of the rows among the inputs
_GATHERS = {"Gather": "params", "GatherV2": "params", "ResourceGather": "resource"}


def _is_small(op: Operation) -> bool:
    """Whether a gather takes few rows of a first axis; all shapes known."""
    shape = op._outputs[0]._shape
    index = op._inputs[1]
    if shape is None or None in shape or index._shape is None or len(index._shape) > 1:
        return False
    if not index._dtype.is_integer or op._attrs.get("batch_dims", 0):
        return False
    if op.type == "GatherV2":
        axis = op._inputs[2]._op
        if axis.type != "Const" or axis._attrs["value"].tolist() != 0:
            return False
    return (shapes.num_elements(shape) or 0) <= _SMALL
