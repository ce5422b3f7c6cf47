"""linear: the matrix product that cells of 2016 are made of."""

from __future__ import annotations

from typing import Any

from thalweg.base import nest
from thalweg.graph.operation import Tensor
from thalweg.library.initializers import constant_initializer
from thalweg.library.joining_ops import concat
from thalweg.library.matrix_ops import matmul
from thalweg.library.nn_ops import bias_add
from thalweg.library.variable_scope import get_variable, get_variable_scope, variable_scope


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Tensor:
    """Matrices side by side times one kernel, and a bias: [batch, output_size].

    args: a matrix or a list of them. Makes the variables "kernel" and (with bias) "bias", which starts at 0
    without bias_initializer, in the scope in force. ValueError for no matrices or unknown lengths of rows.
    """
    if args is None or (nest.is_nested(args) and not args):
        raise ValueError("`args` must be specified")
    matrices = args if nest.is_nested(args) else [args]
    rows = 0
    for matrix in matrices:
        shape = matrix.shape
        if shape.ndims != 2:
            raise ValueError(f"linear is expecting 2D arguments: {[m.shape for m in matrices]}")
        length = shape.as_list()[1]
        if length is None:
            raise ValueError(f"linear expects shape[1] to be provided for shape {shape}, but saw None")
        rows += length
    dtype = matrices[0].dtype
    with variable_scope(get_variable_scope()) as outer:
        kernel = get_variable("kernel", [rows, output_size], dtype=dtype, initializer=kernel_initializer)
        joined = matrices[0] if len(matrices) == 1 else concat(matrices, 1)
        result = matmul(joined, kernel)
        if not bias:
            return result
        with variable_scope(outer) as inner:
            inner.set_partitioner(None)
            start = bias_initializer or constant_initializer(0.0, dtype=dtype)
            return bias_add(result, get_variable("bias", [output_size], dtype=dtype, initializer=start))
