"""tf.linalg. Names from thalweg.library; what each does is said there."""

from thalweg.library.array_ops import matrix_transpose, transpose
from thalweg.library.clip_ops import global_norm, l2_normalize, norm
from thalweg.library.einsum_ops import einsum
from thalweg.library.fill_ops import diag, diag_part, eye
from thalweg.library.linalg_ops import cholesky, cross, qr
from thalweg.library.matrix_ops import matmul, matvec, tensordot, trace
from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = [
    "cholesky",
    "cross",
    "diag",
    "diag_part",
    "einsum",
    "eye",
    "global_norm",
    "l2_normalize",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "qr",
    "tensordot",
    "trace",
    "transpose",
]
