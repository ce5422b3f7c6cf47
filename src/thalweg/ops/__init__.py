"""Op families. Importing this package registers every op; each file holds whole ops (definition, shape
function, kernel, gradient)."""

from thalweg.ops import (
    aggregate,
    comparison,
    complex_parts,
    conversion,
    elementwise_binary,
    elementwise_unary,
    matmul,
    reductions,
    runtime_ops,
    scan,
    segments,
)

__all__ = [
    "aggregate",
    "comparison",
    "complex_parts",
    "conversion",
    "elementwise_binary",
    "elementwise_unary",
    "matmul",
    "reductions",
    "runtime_ops",
    "scan",
    "segments",
]
