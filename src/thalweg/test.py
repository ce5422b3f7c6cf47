"""tf.test: test cases and gradient checks."""

from thalweg.library.gradient_checker import compute_gradient, compute_gradient_error
from thalweg.library.test_util import (
    TestCase,
    assert_equal_graph_def,
    get_temp_dir,
    gpu_device_name,
    is_built_with_cuda,
    is_gpu_available,
    main,
)

__all__ = [
    "TestCase",
    "assert_equal_graph_def",
    "compute_gradient",
    "compute_gradient_error",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_gpu_available",
    "main",
]
