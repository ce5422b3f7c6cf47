"""Static estimates of what a node costs: operations, bytes that it moves, bytes of its outputs.

From op types and static shapes alone; times follow from a device's speed: a node takes the longer of its
operations and its memory traffic. A dimension that isn't known counts as UNKNOWN_DIM, an unknown rank as a
vector of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from thalweg.base.dtypes import DType
from thalweg.graph.operation import Operation, Tensor
from thalweg.kernel.convention import Kind
from thalweg.plan.state import root_variable

#: what an unknown dimension is taken for: mostly it is the size of a batch
UNKNOWN_DIM = 32
#: bytes of an element whose type doesn't tell (strings)
_ELEMENT = 16
#: a core's operations and bytes per second
_FLOPS, _BANDWIDTH = 5e10, 1e10
#: operations per element of functions that are no single instruction
_COSTLY = 10.0
_TRANSCENDENTAL = frozenset(
    "Exp Expm1 Log Log1p Sigmoid Tanh Pow Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Erf Erfc Lgamma Digamma "
    "Rsqrt Sqrt Softplus Elu Selu Softmax LogSoftmax SoftmaxCrossEntropyWithLogits RandomUniform "
    "SparseSoftmaxCrossEntropyWithLogits TruncatedNormal RandomStandardNormal".split()
)
#: they change what an array is called, not what is in it
_FREE = frozenset(
    "Reshape Identity StopGradient PreventGradient ExpandDims Squeeze Shape ShapeN Size Rank NoOp Snapshot "
    "PlaceholderWithDefault ReadVariableOp ControlTrigger Enter Exit Switch Merge NextIteration LoopCond "
    "Placeholder RefEnter RefExit RefSwitch RefMerge RefNextIteration RefIdentity Bitcast _Arg "
    "_Retval".split()
)


def elements(tensor: Tensor) -> float:
    """How many elements a tensor has, unknown dimensions guessed."""
    shape = tensor._shape
    if tensor._handle is not None and not shape:
        shape = tensor._handle[1]
    if shape is None:
        return UNKNOWN_DIM
    return math.prod([UNKNOWN_DIM if d is None else d for d in shape])


def size(tensor: Tensor) -> float:
    """How many bytes a tensor's value has; that of the variable, for a reference or a handle to one."""
    dtype = tensor._dtype
    if tensor._handle is not None and dtype.name == "resource":
        dtype = tensor._handle[0]
    return elements(tensor) * element_size(dtype)


def element_size(dtype: DType) -> int:
    """Bytes of one element."""
    base = dtype.base_dtype
    return base.size or _ELEMENT


def dtype_class(op: Operation) -> str:
    """Which of cluster.DTYPE_CLASSES the node computes in."""
    dtype = op._outputs[0]._dtype.base_dtype if op._outputs else None
    if dtype is None or (dtype.is_integer or not (dtype.is_floating or dtype.is_complex)):
        return "int" if dtype is not None else "float32"
    if dtype.size == 2:
        return "float16"
    return "float64" if dtype.name in ("float64", "complex128") else "float32"


def work(op: Operation) -> tuple[float, float]:
    """(operations, bytes moved) of one run of a node."""
    kind = op.type
    kernel = op._record.kernel
    if kind in _FREE or kernel is None or kernel.kind in (Kind.SOURCE, Kind.NOTHING, Kind.CONTROL):
        return 0.0, 0.0
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(op)
    moved = _traffic(op)
    made = sum(map(elements, op._outputs))
    return made * (_COSTLY if kind in _TRANSCENDENTAL else 1.0), moved


def is_variable_read(op: Operation) -> bool:
    """Whether the node's output is a variable's value as it is: it takes no memory of its own."""
    if op.type == "ReadVariableOp":
        return True
    return op.type == "Identity" and op._inputs[0]._dtype.is_ref_dtype


def _traffic(op: Operation) -> float:
    """All inputs are read, all outputs are written."""
    return sum(map(size, op._inputs)) + sum(map(size, op._outputs))


def _matmul(op: Operation) -> tuple[float, float]:
    attrs = op._attrs
    inner = _dim(op._inputs[0], -2 if attrs.get("transpose_a") or attrs.get("adj_x") else -1)
    return 2.0 * inner * elements(op._outputs[0]), _traffic(op)


def _conv(op: Operation) -> tuple[float, float]:
    window = _filter(op._inputs[1])
    return 2.0 * window * elements(op._outputs[0]), _traffic(op)


def _conv_input_gradient(op: Operation) -> tuple[float, float]:
    return 2.0 * _filter(op._inputs[1]) * elements(op._inputs[2]), _traffic(op)


def _conv_filter_gradient(op: Operation) -> tuple[float, float]:
    return 2.0 * _filter(op._outputs[0]) * elements(op._inputs[2]), _traffic(op)


def _filter(tensor: Tensor) -> float:
    """Multiplications for one output element: all of a filter but its last dimension."""
    return elements(tensor) / max(1.0, _dim(tensor, -1))


def _depthwise(op: Operation) -> tuple[float, float]:
    window = _dim(op._inputs[1], 0) * _dim(op._inputs[1], 1)
    return 2.0 * window * max(elements(op._outputs[0]), elements(op._inputs[-1])), _traffic(op)


def _pool(op: Operation) -> tuple[float, float]:
    window = math.prod(op._attrs.get("ksize", ()))
    return window * elements(op._outputs[0]), _traffic(op)


def _rows(op: Operation) -> tuple[float, float]:
    """Reads some rows of a table: what it makes, not what it takes from."""
    made = sum(map(size, op._outputs))
    return 0.0, 2 * made + sum(map(size, op._inputs[1:]))


def _row_update(op: Operation) -> tuple[float, float]:
    """Changes some rows of a table."""
    moved = sum(map(size, (t for t in op._inputs if not _is_table(t))))
    return moved / 4, 3 * moved


def _update(op: Operation) -> tuple[float, float]:
    """Reads and writes variables: their handles stand for the values."""
    moved = sum(map(size, op._inputs))
    written = sum(size(t) for t in op._inputs if _is_table(t))
    return (moved + written) / 4, moved + written


def _assign(op: Operation) -> tuple[float, float]:
    value = size(op._inputs[1])
    return 0.0, 2 * value


def _is_table(tensor: Tensor) -> bool:
    return tensor._dtype.is_ref_dtype or tensor._dtype.name == "resource"


def _aggregate(op: Operation) -> tuple[float, float]:
    return float(sum(map(elements, op._inputs))), _traffic(op)


def _dim(tensor: Tensor, axis: int) -> float:
    shape = tensor._shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return UNKNOWN_DIM
    dim = shape[axis]
    return UNKNOWN_DIM if dim is None else dim


_RULES: dict[str, Callable[[Operation], tuple[float, float]]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "SparseMatMul"), _matmul),
    **dict.fromkeys(("Conv2D", "Conv3D"), _conv),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _conv_input_gradient),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _conv_filter_gradient),
    **dict.fromkeys(("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput"), _depthwise),
    "DepthwiseConv2dNativeBackpropFilter": lambda op: (_conv_filter_gradient(op)[0] / 2, _traffic(op)),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "MaxPool3D", "AvgPool3D"), _pool),
    **dict.fromkeys(("Gather", "GatherV2", "GatherNd", "ResourceGather", "StridedSlice", "Slice"), _rows),
    **dict.fromkeys(
        "ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterNdUpdate ScatterNdAdd ScatterNdSub "
        "ResourceScatterUpdate ResourceScatterAdd ResourceScatterSub SparseApplyGradientDescent "
        "SparseApplyMomentum SparseApplyAdagrad SparseApplyFtrl SparseApplyRMSProp "
        "ResourceSparseApplyMomentum ResourceSparseApplyAdagrad ResourceSparseApplyFtrl "
        "ResourceSparseApplyRMSProp".split(),
        _row_update,
    ),
    **dict.fromkeys(("Assign", "AssignVariableOp"), _assign),
    **dict.fromkeys(("AddN", "ConcatV2", "Pack", "Sum", "Mean", "Prod", "Max", "Min"), _aggregate),
}


def estimate(op: Operation) -> tuple[float, float]:
    """As `work`; updates of variables count what is behind their references and handles."""
    kernel = op._record.kernel
    if op.type not in _RULES and kernel is not None and kernel.writes:
        return _update(op)
    return work(op)


def state_size(op: Operation) -> float:
    """Bytes that a node's variable holds; 0 where it is none."""
    return size(op._outputs[0]) if op._outputs and root_variable(op._outputs[0]) is op else 0.0


def seconds(op: Operation) -> float:
    """About how long a node takes on one core, without starting it: to compare nodes with each other."""
    flops, moved = estimate(op)
    return max(flops / _FLOPS, moved / _BANDWIDTH)
