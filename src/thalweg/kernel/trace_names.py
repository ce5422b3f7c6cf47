"""The names that a node's inputs go by in kernels."""

from __future__ import annotations

from thalweg.graph.operation import Operation


def input_names(op: Operation) -> list[str]:
    """For every input tensor the argument's name, numbered ("values.0") in lists. Not to be changed."""
    return op._record.definition.input_names(op._attrs)
