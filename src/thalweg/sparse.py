"""tf.sparse. Names from thalweg.library; what each does is said there."""

from thalweg.graph.composite import SparseTensor
from thalweg.library.activations import softmax
from thalweg.library.array_ops import expand_dims, reshape, transpose
from thalweg.library.data_flow import SparseConditionalAccumulator
from thalweg.library.elementwise_ops import maximum, minimum
from thalweg.library.fill_ops import eye
from thalweg.library.framework import placeholder
from thalweg.library.joining_ops import concat, split
from thalweg.library.linalg_ops import cross
from thalweg.library.math_ops import add
from thalweg.library.matrix_ops import matmul
from thalweg.library.missing import missing
from thalweg.library.reduction_ops import reduce_max, reduce_sum
from thalweg.library.segment_ops import segment_mean, segment_sum
from thalweg.library.slicing import slice
from thalweg.library.sparse_ops import sparse_dense_matmul, to_dense

__getattr__ = missing(__name__)

__all__ = [
    "SparseConditionalAccumulator",
    "SparseTensor",
    "add",
    "concat",
    "cross",
    "expand_dims",
    "eye",
    "matmul",
    "maximum",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_sum",
    "reshape",
    "segment_mean",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "transpose",
]
