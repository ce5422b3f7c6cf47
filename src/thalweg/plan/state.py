"""Which state a node touches: variables behind references and resource handles, and state of its own."""

from __future__ import annotations

from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.body import StateKey
from thalweg.kernel.convention import Kernel, Kind
from thalweg.kernel.trace_names import input_names

VARIABLE_OPS = frozenset(("VariableV2", "Variable", "VarHandleOp"))
_PASS_THROUGH = frozenset(
    (
        "Identity", "RefIdentity", "Switch", "RefSwitch", "Enter", "RefEnter", "Exit", "RefExit",
        "NextIteration", "RefNextIteration",
    )
)  # fmt: skip


def variable_key(op: Operation) -> StateKey:
    """The key of the variable that a VariableV2 or VarHandleOp node stands for."""
    attrs = op._attrs
    container = attrs.get("container", b"").decode(errors="backslashreplace")
    name = attrs.get("shared_name", b"").decode(errors="backslashreplace") or op._name
    return ("variable", container, name)


def root_variable(tensor: Tensor) -> Operation | None:
    """The variable node behind a reference or a resource handle, or None where it can't be told."""
    op = tensor._op
    if op.type in VARIABLE_OPS:  # mostly
        return op
    roots: set[Operation | None] = set()
    seen: set[Tensor] = set()
    stack = [tensor]
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        sources = _behind(tensor)
        stack.extend(sources)
        if not sources:
            roots.add(tensor._op if tensor._op.type in VARIABLE_OPS else None)
    return roots.pop() if len(roots) == 1 else None


def _behind(tensor: Tensor) -> list[Tensor]:
    """The tensors that a reference or handle comes from; none where the node makes it."""
    op = tensor._op
    is_ref = tensor._dtype.is_ref_dtype
    if op.type in _PASS_THROUGH and (is_ref or tensor._dtype.name == "resource"):
        return op._inputs[:1]
    if op.type in ("Merge", "RefMerge"):
        return list(op._inputs)
    kernel: Kernel | None = op._record.kernel
    if kernel is None or not kernel.writes or not is_ref:
        return []
    names = input_names(op)
    return [op._inputs[names.index(kernel.writes[min(tensor._index, len(kernel.writes) - 1)])]]


def state_keys(op: Operation) -> dict[str, StateKey]:
    """For each input that a node uses as state (updated, read through a handle, or dereferenced): its key.

    "" stands for the state of the node itself.
    """
    kernel: Kernel | None = op._record.kernel
    if kernel is None or kernel.kind is Kind.SOURCE:
        return {}
    keys: dict[str, StateKey] = {}
    if kernel.own_state is not None:
        keys[""] = ("node", "", op._name)
    if not op._inputs:
        return keys
    names = None
    for i, tensor in enumerate(op._inputs):
        dtype = tensor._dtype
        if not dtype.is_ref_dtype and dtype.name != "resource":
            continue
        if kernel.kind is Kind.CONTROL and op._outputs[0]._dtype == dtype:
            continue  # hands it on, maybe to another frame
        root = root_variable(tensor)
        if root is None:
            continue
        if names is None:
            names = input_names(op)
        keys[names[i]] = variable_key(root)
    return keys


def accesses(op: Operation, keys: dict[str, StateKey]) -> tuple[set[StateKey], set[StateKey]]:
    """What a node reads and what it writes, of the state in `keys`."""
    if not keys:
        return set(), set()
    kernel: Kernel = op._record.kernel
    written = {keys[n] for n in kernel.writes if n in keys}
    if kernel.own_state is not None:
        written.add(keys[""])
    read = {k for n, k in keys.items() if n not in kernel.writes and n}
    if not kernel.overwrites:
        read |= written
    return read, written
