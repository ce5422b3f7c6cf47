"""tf.bitwise. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.bitwise_ops import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__getattr__ = missing(__name__)

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]
