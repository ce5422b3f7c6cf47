"""Whether a checkpoint fits what a Saver restores, found out before anything is assigned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.base import errors
from thalweg.base import shape as shapes
from thalweg.formats.checkpoint_reader import Wanted, check_fit, open_checkpoint
from thalweg.formats.tensor_slices import parse_slice_spec
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.shape_context import constant_value

_RESTORES = frozenset(("RestoreV2", "Restore", "RestoreSlice"))


def check_restore(restore_op: Operation, prefix: str) -> None:
    """One error that names all that the checkpoint lacks, or has with another type or shape.

    Looks at the nodes that restore_op runs: what RestoreV2 nodes ask for and which variables take it. Where
    there are several such nodes, the values are read too: damage that one of them would meet when others
    have restored their part. Errors: NotFoundError, InvalidArgumentError (see check_fit); DataLossError.
    """
    nodes = [op for op in _behind(restore_op) if op.type in _RESTORES]
    wanted = [w for op in nodes for w in _wanted(op)]
    if not wanted:
        return
    with open_checkpoint(prefix) as reader:
        check_fit(reader, wanted)
        if len(nodes) > 1:
            for w in wanted:
                reader.read(w.name, parse_slice_spec(w.slice_spec)[1] if w.slice_spec else None)


def _behind(op: Operation) -> list[Operation]:
    """The nodes that run when op does."""
    seen: dict[Operation, None] = {op: None}
    stack = [op]
    while stack:
        at = stack.pop()
        for source in (*(t._op for t in at._inputs), *at._control_inputs):
            if source not in seen:
                seen[source] = None
                stack.append(source)
    return list(seen)


def _wanted(op: Operation) -> Iterator[Wanted]:
    """What a node reads, as far as the graph says it."""
    names = constant_value(op.inputs[1])
    specs = constant_value(op.inputs[2]) if len(op.inputs) > 2 else None
    if names is None or (specs is None and len(op.inputs) > 2):
        return  # a program's own restoring, by names that it computes
    texts = [n.decode("utf-8", "surrogateescape") for n in names.ravel().tolist()]
    slices = [s.decode() for s in specs.ravel().tolist()] if specs is not None else [""] * len(texts)
    for name, spec, output in zip(texts, slices, op.outputs, strict=True):
        shape, elements = _taken_as(output)
        yield Wanted(name, spec, output.dtype, shape, elements)


def _taken_as(tensor: Tensor) -> tuple[Any, int | None]:
    """The shape, and the number of elements, that the variable takes which is assigned the tensor."""
    for user in tensor._consumers:
        if user.type == "Identity":
            return _taken_as(user._outputs[0])
        if user.type == "Reshape":
            return None, shapes.num_elements(user._outputs[0]._shape)
        if user.type == "Assign" and user._inputs[1] is tensor:
            return (user._inputs[0]._shape if user._attrs["validate_shape"] else None), None
        if user.type == "AssignVariableOp" and user._inputs[1] is tensor:
            handle = user._inputs[0]._handle
            return (None if handle is None else handle[1]), None
    return None, None


def explained(error: errors.OpError, what: str) -> errors.OpError:
    """The error of a restore, with what most likely led to it."""
    return type(error)(
        error.node_def,
        error.op,
        f"Restoring from checkpoint failed. This is most likely due to {what} from the checkpoint. Please "
        "ensure that you have not altered the graph expected based on the checkpoint. Original error:\n\n"
        f"{error.message}",
    )
