"""The names that a node's inputs go by in kernels."""

from __future__ import annotations

from thalweg.graph.operation import Operation


def input_names(op: Operation) -> list[str]:
    """For every input tensor the argument's name, numbered ("values.0") in lists."""
    names: list[str] = []
    for arg in op._record.definition.inputs:
        if arg.number_attr is not None:
            names.extend(f"{arg.name}.{i}" for i in range(op._attrs[arg.number_attr]))
        elif arg.type_list_attr is not None:
            names.extend(f"{arg.name}.{i}" for i in range(len(op._attrs[arg.type_list_attr])))
        else:
            names.append(arg.name)
    return names
