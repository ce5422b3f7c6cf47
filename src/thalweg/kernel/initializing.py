"""Which nodes only make initial values of variables: they run once, so compiling them does not pay."""

from __future__ import annotations

from thalweg.graph.operation import Operation

#: what may lie between a random draw and the assignment: scale and offset
BETWEEN = frozenset(("Add", "AddV2", "Identity", "Mul", "Sub"))
_ASSIGNMENTS = frozenset(("Assign", "AssignVariableOp"))


def initializes(op: Operation) -> bool:
    """Whether all that is made of op's outputs is assigned to variables, after simple arithmetic at most."""
    assigned = False
    stack, seen = [op], {op}
    while stack:
        for tensor in stack.pop()._outputs:
            for user in tensor._consumers:
                if user.type in _ASSIGNMENTS:
                    assigned = True
                elif user.type not in BETWEEN:
                    return False
                elif user not in seen:
                    seen.add(user)
                    stack.append(user)
    return assigned
