"""State that lives for one step behind a resource tensor: TensorArrays, stacks."""

from __future__ import annotations


class StepResource:
    """What the resource tensor holds while the step runs: the object itself, handed from node to node.

    So each node that makes one makes its own each time it runs, in each iteration of a loop. It is dropped
    with the last tensor that holds it.
    """

    __slots__ = ()
