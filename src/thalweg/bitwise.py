"""tf.bitwise. Names from thalweg.library; what each does is said there."""

from thalweg.library.bitwise_ops import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift
from thalweg.library.missing import missing

__getattr__ = missing(__name__)

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]
