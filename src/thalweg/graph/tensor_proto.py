"""TensorProto: NumPy arrays as messages and back (tf.make_tensor_proto, tf.make_ndarray)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tensorboard.compat.proto import tensor_pb2

from thalweg.base import dtypes
from thalweg.base.tensor_shape import TensorShape
from thalweg.graph.convert import to_array

#: what a protocol buffer can hold
MAX_BYTES = 1 << 31

#: arrays of one value, of more elements than this, share its memory
SHARED_ABOVE = 1 << 22

#: the repeated field of TensorProto that holds values of each type, where they are not in tensor_content
_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "uint8": "int_val",
    "int16": "int_val",
    "uint16": "int_val",
    "int8": "int_val",
    "qint8": "int_val",
    "quint8": "int_val",
    "qint16": "int_val",
    "quint16": "int_val",
    "qint32": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "string": "string_val",
}


def array_to_proto(array: np.ndarray, dtype: dtypes.DType | None = None) -> Any:
    """A TensorProto, in the form that TensorFlow's Python writes: single values typed, the rest as bytes."""
    if dtype is None:
        dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
    proto = tensor_pb2.TensorProto(dtype=dtype.base_dtype.as_datatype_enum)
    proto.tensor_shape.CopyFrom(TensorShape.of(array.shape).as_proto())
    if dtype == dtypes.string:
        proto.string_val.extend(array.ravel().tolist())
        return proto
    if array.size > 1:
        proto.tensor_content = array.tobytes()
        return proto
    flat = array.ravel()
    name = dtype.base_dtype.name
    if name in ("float16", "bfloat16"):
        proto.half_val.extend(flat.view(np.uint16).tolist())
    elif name in ("complex64", "complex128"):
        field = getattr(proto, _FIELDS[name])
        for v in flat.tolist():
            field.extend([v.real, v.imag])
    else:
        getattr(proto, _FIELDS[name]).extend(flat.tolist())
    return proto


def proto_to_array(proto: Any) -> np.ndarray:
    """The array of a TensorProto; a short list of values is filled up with its last one.

    ValueError where the message's shape and contents don't agree.
    """
    dtype = dtypes.as_dtype(proto.dtype).base_dtype
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    if any(d < 0 for d in shape) or proto.tensor_shape.unknown_rank:
        raise ValueError(f"TensorProto has no full shape: {shape}")
    count = math.prod(shape)
    numpy_type = np.dtype(dtype.as_numpy_dtype)
    if count * numpy_type.itemsize >= MAX_BYTES and not proto.tensor_content:
        raise ValueError(f"TensorProto of shape {list(shape)} stands for {count * numpy_type.itemsize} bytes")
    if proto.tensor_content:
        if len(proto.tensor_content) != count * numpy_type.itemsize:
            raise ValueError(
                f"TensorProto of shape {list(shape)} needs {count * numpy_type.itemsize} bytes of content, "
                f"has {len(proto.tensor_content)}"
            )
        return np.frombuffer(proto.tensor_content, numpy_type).reshape(shape).copy()
    name = dtype.name
    if name not in _FIELDS:
        raise ValueError(f"TensorProto of type {name} can't be read")
    values = list(getattr(proto, _FIELDS[name]))
    if name in ("complex64", "complex128"):
        flat = np.array([complex(a, b) for a, b in zip(values[::2], values[1::2], strict=True)], numpy_type)
    elif name in ("float16", "bfloat16"):
        flat = np.array(values, np.uint16).view(numpy_type)
    elif name == "string":
        flat = np.empty(len(values), object)
        flat[:] = values
    elif _FIELDS[name] == "int_val":
        flat = np.array(values, np.int64).astype(numpy_type)  # wraps round, as TensorFlow
    else:
        flat = np.array(values, numpy_type)
    if flat.size > count:
        raise ValueError(f"TensorProto of shape {list(shape)} has {flat.size} values")
    if flat.size < count:
        fill = np.array(flat[-1] if flat.size else (b"" if name == "string" else 0), numpy_type)
        if flat.size <= 1 and count > SHARED_ABOVE:
            return np.broadcast_to(fill, shape)  # a few bytes may stand for gigabytes
        whole = np.full(count, fill, numpy_type)
        whole[: flat.size] = flat
        flat = whole
    return flat.reshape(shape)


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A TensorProto of Python or NumPy values (tf.make_tensor_proto)."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    array = to_array(values, wanted)
    if shape is None:
        return array_to_proto(array, wanted)
    if array.size != 1:
        return array_to_proto(array.reshape(tuple(shape)), wanted)
    proto = array_to_proto(array, wanted)  # one value stands for all
    proto.tensor_shape.CopyFrom(TensorShape.of(tuple(shape)).as_proto())
    return proto


def make_ndarray(tensor: Any) -> np.ndarray:
    """The array of a TensorProto (tf.make_ndarray)."""
    return proto_to_array(tensor)
