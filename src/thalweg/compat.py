"""tf.compat: strings and bytes, and types by kind."""

import thalweg as v1
from thalweg.library.compat import (
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    bytes_or_text_types,
    complex_types,
    dimension_at_index,
    dimension_value,
    forward_compatible,
    integral_types,
    path_to_str,
    real_types,
)

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
]
