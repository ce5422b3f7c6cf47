"""Initializers: functions of (shape, dtype) that make a variable's initial value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.base import shape as shapes
from thalweg.base.dtypes import DType
from thalweg.base.errors import UnimplementedError
from thalweg.graph import registry
from thalweg.graph.convert import constant
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.fill_ops import ones, zeros
from thalweg.library.framework import name_scope
from thalweg.library.random_ops import random_normal, random_uniform, truncated_normal


class Initializer:
    """Makes a tensor of a shape. Subclasses say which."""

    dtype: DType = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value. partition_info: which slice of a whole is asked for (full_shape, var_offset)."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer that get_config describes."""
        return cls(**config)

    def _type(self, dtype: Any) -> DType:
        return self.dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype


class zeros_initializer(Initializer):
    """Zeros (False, and "" for strings)."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Zeros of that shape."""
        return zeros(shape, self._type(dtype))

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"dtype": self.dtype.name}


class ones_initializer(Initializer):
    """Ones."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Ones of that shape."""
        return ones(shape, self._type(dtype))

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"dtype": self.dtype.name}


class constant_initializer(Initializer):
    """A scalar everywhere, or a list or array of values; its last one goes on where there are too few.

    verify_shape: TypeError where the value hasn't the variable's shape.
    """

    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value: {value!r} of {type(value)} (expected Python scalar, list "
                "or tuple of values, or numpy.ndarray)."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Tensor:
        """The constant in that shape."""
        verify = self._verify_shape if verify_shape is None else verify_shape
        return constant(self.value, self._type(dtype), shape=shape, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"value": self.value, "dtype": self.dtype.name}


class random_uniform_initializer(Initializer):
    """Uniform in [minval, maxval); maxval None: 1 (floats only)."""

    def __init__(
        self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random numbers of that shape."""
        return random_uniform(shape, self.minval, self.maxval, self._type(dtype), self.seed)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed, "dtype": self.dtype.name}


class random_normal_initializer(Initializer):
    """Normal with this mean and standard deviation."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random numbers of that shape."""
        return random_normal(shape, self.mean, self.stddev, self._type(dtype), self.seed)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


class truncated_normal_initializer(Initializer):
    """Normal, drawn again where further than two standard deviations from the mean."""

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random numbers of that shape."""
        return truncated_normal(shape, self.mean, self.stddev, self._type(dtype), self.seed)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


class uniform_unit_scaling_initializer(Initializer):
    """Uniform in +-sqrt(3 / inputs) * factor, which keeps the scale of what a linear layer gets."""

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random numbers of that shape."""
        inputs = math.prod(_scale_shape(shape, partition_info)[:-1])
        limit = math.sqrt(3 / max(1.0, inputs)) * self.factor
        return random_uniform(shape, -limit, limit, self._type(dtype), self.seed)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


class variance_scaling_initializer(Initializer):
    """Random numbers of variance scale / n, where n is the number of inputs, of outputs, or their mean.

    mode: "fan_in", "fan_out", "fan_avg"; distribution: "truncated_normal" ("normal" is its old name),
    "untruncated_normal", "uniform".
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"`scale` must be positive float, got {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Random numbers of that shape."""
        fan_in, fan_out = _fans(_scale_shape(shape, partition_info))
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        variance = self.scale / max(1.0, n)
        wanted = self._type(dtype)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random_uniform(shape, -limit, limit, wanted, self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(variance), wanted, self.seed)
        # the standard deviation of a normal distribution cut off at two of them
        stddev = math.sqrt(variance) / 0.87962566103423978
        return truncated_normal(shape, 0.0, stddev, wanted, self.seed)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class glorot_uniform_initializer(variance_scaling_initializer):
    """Uniform with variance 2 / (inputs + outputs): get_variable's default."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class glorot_normal_initializer(variance_scaling_initializer):
    """Truncated normal with variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"seed": self.seed, "dtype": self.dtype.name}


def he_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normal with variance 2 / inputs."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Uniform with variance 2 / inputs."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Truncated normal with variance 1 / inputs."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Uniform with variance 1 / inputs."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


class identity_initializer(Initializer):
    """gain times the identity matrix."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The matrix, or the slice of it that partition_info names. ValueError for other ranks than 2."""
        full = _scale_shape(shape, partition_info)
        if len(full) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices, got {full}")
        wanted = self._type(dtype)
        matrix = emit.constant(np.eye(*full, dtype=wanted.as_numpy_dtype), wanted, name="eye")
        if partition_info is not None:
            matrix = emit("Slice", matrix, partition_info.var_offset, _dims(shape))
        return emit("Mul", self.gain, matrix, name="mul")

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"gain": self.gain, "dtype": self.dtype.name}


class orthogonal_initializer(Initializer):
    """gain times an orthogonal matrix: the Q of a random normal matrix; more axes are flattened into rows."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The matrix. ValueError for fewer than two axes."""
        dims = _dims(shape)
        if len(dims) < 2:
            raise ValueError(f"The tensor to initialize must be at least two-dimensional, got shape {dims}")
        if registry.find("Qr") is None:
            raise UnimplementedError(None, None, "orthogonal_initializer needs the op Qr")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        flat = (max(rows, columns), min(rows, columns))
        a = random_normal(flat, 0.0, 1.0, self._type(dtype), self.seed)
        q, r = emit("Qr", a, full_matrices=False)
        # signs that make Q uniformly distributed
        q = emit("Mul", q, emit("Sign", emit("DiagPart", r)), name="mul")
        if rows < columns:
            with name_scope("matrix_transpose"):
                q = emit("Transpose", q, [1, 0], name="transpose")
        return emit("Mul", self.gain, emit("Reshape", q, dims), name="mul")

    def get_config(self) -> dict[str, Any]:
        """What from_config takes."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


# ---- shapes ----------------------------------------------------------------------------------------------


def _dims(shape: Any) -> list[int]:
    """A shape as a list. ValueError where it isn't known in full."""
    dims = shapes.as_shape(shape)
    if dims is None or None in dims:
        raise ValueError(f"an initializer needs a fully known shape, got {shapes.format_shape(dims)}")
    return [d for d in dims if d is not None]


def _scale_shape(shape: Any, partition_info: Any) -> list[int]:
    """The shape that decides the scale: of the whole variable."""
    return _dims(shape if partition_info is None else partition_info.full_shape)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """The number of inputs and of outputs of a layer with weights of that shape."""
    if len(shape) < 1:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


def _floating(dtype: Any) -> DType:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {dtype.name}.")
    return dtype
