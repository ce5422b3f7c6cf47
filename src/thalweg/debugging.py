"""tf.debugging. Names from thalweg.library; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.check_ops import Assert, assert_equal, assert_greater, assert_greater_equal, assert_integer, assert_less, assert_less_equal, assert_near, assert_negative, assert_non_negative, assert_non_positive, assert_none_equal, assert_positive, assert_proper_iterable, assert_rank, assert_rank_at_least, assert_rank_in, assert_same_float_dtype, assert_scalar, assert_shapes, assert_type, is_non_decreasing, is_numeric_tensor, is_strictly_increasing
from thalweg.library.debug_ops import assert_all_finite, check_numerics
from thalweg.library.elementwise_ops import is_finite, is_inf, is_nan

__getattr__ = missing(__name__)

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
]
