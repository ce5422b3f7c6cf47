"""tf.debugging. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.elementwise_ops import is_finite, is_inf, is_nan

__getattr__ = missing(__name__)

__all__ = [
    "is_finite",
    "is_inf",
    "is_nan",
]
