"""Sparse tensors and dense ones: SparseToDense, SparseTensorDenseMatMul.

Source: TensorFlow's sparse_to_dense_op.cc, sparse_tensor_dense_matmul_op.cc, sparse_grad.py.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.base.shape import Dim, Shape
from thalweg.graph.emitter import Emitter
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.registry import define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import traceable
from thalweg.ops import _arrays as arrays
from thalweg.ops._arrays import fail_unless, ints, is_host, shape_text
from thalweg.ops._emitting import column
from thalweg.ops._types import INDEX
from thalweg.ops.scattering import scatter
