"""The registry of ops: for each type its definition, shape function, kernels and gradient, in one record.

Op families (thalweg.ops) fill it when imported; users extend it through `tf.RegisterGradient` and
`register_kernel`. Import only registers: no device is opened here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from thalweg.base.dtypes import DType
from thalweg.base.errors import UnimplementedError
from thalweg.base.shape import Shape
from thalweg.graph import opdef

if TYPE_CHECKING:
    from thalweg.graph.operation import Operation
    from thalweg.graph.shape_context import ShapeContext

ShapeFn = Callable[["ShapeContext"], Sequence[Shape]]
GradientFn = Callable[..., Any]  # (emit: Emitter, op: Operation, *output_grads) -> grads of the inputs
#: what is known of the output read as a shape; of each output, in a list, where the op has a list of them
ShapeValueFn = Callable[["Operation"], Shape | list[Shape]]


class NotDifferentiable:
    """In place of a gradient: a decision that none exists, with its reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"NotDifferentiable({self.reason!r})"


@dataclass(eq=False, slots=True)
class OpRecord:
    """All that is known of one op."""

    definition: opdef.OpDef
    shape: ShapeFn
    #: a kernel.convention.Kernel: all that this layer knows of it is `fold`, which computes on the host
    kernel: Any = None
    gradient: GradientFn | NotDifferentiable | None = None
    #: for ops that make shapes (Shape, Pack, ...): what is known of the output, as a partial shape
    shape_value: ShapeValueFn | None = None
    #: kernels of other device types, by type
    device_kernels: dict[str, list[tuple[frozenset[DType] | None, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.definition.name


_records: dict[str, OpRecord] = {}
_gradients: dict[str, GradientFn | NotDifferentiable] = {}


def define_op(
    name: str,
    *,
    inputs: str = "",
    outputs: str = "",
    attrs: str = "",
    shape: ShapeFn,
    kernel: Any = None,
    gradient: GradientFn | NotDifferentiable | None = None,
    stateful: bool = False,
    commutative: bool = False,
    allows_uninitialized_input: bool = False,
    shape_value: ShapeValueFn | None = None,
    doc: str = "",
) -> OpRecord:
    """Defines an op and registers it. See thalweg.graph.opdef for the language of the texts.

    kernel: made by thalweg.kernel.convention (traceable, update, host, stateful ...).
    gradient: f(emit, op, *output_gradients) -> one gradient (Tensor, IndexedSlices or None) per input,
        or NotDifferentiable(reason).
    doc: one line that says what the op promises.
    """
    if name in _records:
        raise ValueError(f"op {name} is defined twice")
    definition = opdef.parse(
        name,
        inputs,
        outputs,
        attrs,
        is_stateful=stateful,
        is_commutative=commutative,
        allows_uninitialized_input=allows_uninitialized_input,
        summary=doc or (shape.__doc__ or ""),
    )
    record = OpRecord(definition, shape, kernel, gradient, shape_value)
    _records[name] = record
    return record


def lookup(name: str) -> OpRecord:
    """The record of an op type. UnimplementedError where there is none, naming what comes near."""
    try:
        return _records[name]
    except KeyError:
        text = f"the op {name} is not built in thalweg yet{_near(name)}"
        raise UnimplementedError(None, None, text) from None


def find(name: str) -> OpRecord | None:
    """The record of an op type, or None."""
    return _records.get(name)


def _near(name: str) -> str:
    close = [n for n in _records if n.lower() == name.lower() or n.startswith(name) or name.startswith(n)]
    return f"; near matches: {', '.join(sorted(close)[:5])}" if close else ""


def is_variant(op: Operation) -> bool:
    """Whether a node has another record than its type: then it has the kernel of its device's type."""
    return op._record is not _records.get(op._record.definition.name)


def all_records() -> dict[str, OpRecord]:
    """Every registered op, by name."""
    return dict(_records)


def register_gradient(name: str, function: GradientFn | NotDifferentiable) -> None:
    """Registers a gradient function under a name (an op type, or a name for gradient_override_map).

    KeyError where the name already has one, as TensorFlow's registry raises.
    """
    record = _records.get(name)
    if name in _gradients or (record is not None and record.gradient is not None):
        raise KeyError(f"Registering two gradient with name '{name}'!")
    _gradients[name] = function


def gradient_function(name: str) -> GradientFn | NotDifferentiable:
    """The gradient registered under a name. LookupError where none is."""
    if name in _gradients:
        return _gradients[name]
    record = _records.get(name)
    if record is not None and record.gradient is not None:
        return record.gradient
    raise LookupError(f"gradient registry has no entry for: {name}")


def register_kernel(
    op: str, device_type: str, kernel: Any, dtypes: Sequence[DType] | None = None
) -> None:
    """Registers a kernel of an op for another type of device (and a set of element types).

    kernel: made by thalweg.kernel.convention. dtypes: those of its inputs and outputs; None: any. The first
    registered kernel that fits a node serves it.
    """
    record = lookup(op)
    allowed = None if dtypes is None else frozenset(dtypes)
    record.device_kernels.setdefault(device_type, []).append((allowed, kernel))


__all__ = [
    "NotDifferentiable",
    "OpRecord",
    "all_records",
    "define_op",
    "find",
    "gradient_function",
    "is_variant",
    "lookup",
    "register_gradient",
    "register_kernel",
]
