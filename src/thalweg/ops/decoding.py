"""Tensors out of bytes and text, and back. Source: TensorFlow's decode_raw_op.cc, decode_padded_raw_op.cc,
parse_tensor_op.cc, serialize_tensor, base64_ops.cc, decode_compressed_op.cc, example_parsing_ops.cc."""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import tensor_pb2

from thalweg.base import dtypes
from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.formats.protos import example_pb2
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.graph.tensor_proto import array_to_proto, proto_to_array
from thalweg.kernel import checks
from thalweg.kernel.convention import host

_NO_GRADIENT = NotDifferentiable("bytes have no gradient")
#: of a message that says less than its tensor holds (one value for all), and of what decompresses
_MOST_BYTES = 1 << 31


def _fail(message: str) -> InvalidArgumentError:
    op = checks.current_op()
    return InvalidArgumentError(None, op, message if op is None else f"{op.type} '{op.name}': {message}")


def _each(fn: Callable[[bytes], bytes], strings: Any) -> np.ndarray:
    """fn of every string of a tensor."""
    strings = np.asarray(strings, object)
    result = np.empty(strings.shape, object)
    out = result.reshape(-1)
    for i, text in enumerate(strings.ravel()):
        out[i] = fn(text)
    return result


def _numbers(data: bytes, dtype: np.dtype, little_endian: bool) -> np.ndarray:
    if dtype == np.bool_:
        return np.frombuffer(data, np.uint8) != 0
    array = np.frombuffer(data, dtype)
    if little_endian or dtype.itemsize == 1:
        return array.copy()
    if dtype.kind == "c":
        return array.view(np.dtype(f"f{dtype.itemsize // 2}")).byteswap().view(dtype)
    bits = np.dtype(f"u{dtype.itemsize}")  # bfloat16 can't be swapped as such
    return array.view(bits).byteswap().view(dtype)


def _decode_raw(strings: Any, *, out_type: np.dtype, little_endian: bool) -> np.ndarray:
    strings = np.asarray(strings, object)
    if strings.size == 0:
        return np.empty((*strings.shape, 0), out_type)
    flat = strings.reshape(-1).tolist()
    size = len(flat[0])
    for i, text in enumerate(flat):
        if len(text) != size:
            raise _fail(
                "DecodeRaw requires input strings to all be the same size, but "
                f"element {i} has size {size} != {len(text)}"
            )
    if size % out_type.itemsize:
        raise _fail(
            f"Input to DecodeRaw has length {size} that is not a multiple of {out_type.itemsize}, the size "
            f"of {out_type.name}"
        )
    array = _numbers(b"".join(flat), out_type, little_endian)
    return array.reshape((*strings.shape, size // out_type.itemsize))


define_op(
    "DecodeRaw",
    inputs="bytes: string",
    outputs="output: out_type",
    attrs="out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, "
    "bool, bfloat16}, little_endian: bool = True",
    shape=lambda c: [None if (s := c.shape(0)) is None else (*s, None)],
    kernel=host(_decode_raw),
    gradient=_NO_GRADIENT,
    doc="The numbers that the bytes of strings are, along a new last dimension. All are equally long.",
)


def _decode_padded_raw(
    strings: Any, fixed_length: Any, *, out_type: np.dtype, little_endian: bool
) -> np.ndarray:
    if np.ndim(fixed_length):
        raise _fail(f"k`fixed_length` must be a scalar, but has shape {np.shape(fixed_length)}")
    length = int(fixed_length)
    if length <= 0:
        raise _fail(f"fixed_length ({length}) must be greater than zero.")
    if length % out_type.itemsize:
        raise _fail(
            f"fixed_length ({length}) must be a multiple of the size of out_type ({out_type.itemsize})"
        )
    strings = np.asarray(strings, object)
    if length * max(1, strings.size) > max(_MOST_BYTES, 1024 * sum(map(len, strings.ravel()))):
        raise _fail(f"fixed_length ({length}) for {strings.size} strings is more than 2 GiB of padding")
    data = b"".join([text[:length].ljust(length, b"\0") for text in strings.ravel()])
    return _numbers(data, out_type, little_endian).reshape((*strings.shape, length // out_type.itemsize))


def _decode_padded_raw_shape(c: ShapeContext) -> list[Shape]:
    c.with_rank(1, 0)
    strings, length = c.shape(0), c.value(1)
    if length is None or strings is None:
        return [None if strings is None else (*strings, None)]
    size = c.attr("out_type").size
    if int(length) % size:
        raise ValueError(f"Dimension size must be evenly divisible by {size} but is {int(length)}")
    return [(*strings, int(length) // size)]


define_op(
    "DecodePaddedRaw",
    inputs="input_bytes: string, fixed_length: int32",
    outputs="output: out_type",
    attrs="out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}, "
    "little_endian: bool = True",
    shape=_decode_padded_raw_shape,
    kernel=host(_decode_padded_raw),
    gradient=_NO_GRADIENT,
    doc="The numbers that the bytes of strings are, each cut or padded with zeros to fixed_length bytes.",
)


def _serialize_tensor(tensor: Any) -> np.ndarray:
    array = np.asarray(tensor)
    dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
    proto = array_to_proto(array[:0] if array.ndim else array, dtype)
    if dtype == dtypes.string:
        proto.string_val[:] = array.ravel().tolist()
    else:
        proto.Clear()
        proto.dtype = dtype.as_datatype_enum
        proto.tensor_content = array.tobytes()
    del proto.tensor_shape.dim[:]
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    return np.array(proto.SerializeToString(), object)


define_op(
    "SerializeTensor",
    inputs="tensor: T",
    outputs="serialized: string",
    attrs="T: type",
    shape=lambda c: [()],
    kernel=host(_serialize_tensor, foldable=False),
    gradient=_NO_GRADIENT,
    doc="A tensor as a serialised TensorProto.",
)


def _parse_tensor(serialized: Any, *, out_type: np.dtype) -> np.ndarray:
    if np.ndim(serialized):
        raise _fail(
            f"Expected `serialized` to be a scalar, got shape: [{','.join(map(str, serialized.shape))}]"
        )
    data = np.asarray(serialized, object).item()
    proto = tensor_pb2.TensorProto()
    try:
        proto.ParseFromString(data)
        dtype = dtypes.as_dtype(proto.dtype)
    except (DecodeError, TypeError) as e:
        raise _fail(
            f"Could not parse `serialized` as TensorProto: {e or 'damaged'}, {len(data)} bytes"
        ) from None
    wanted = dtypes.string if out_type.kind == "O" else dtypes.as_dtype(out_type)
    if dtype != wanted:
        raise _fail(f"Type mismatch between parsed tensor ({dtype.name}) and dtype ({wanted.name})")
    count = math.prod(d.size for d in proto.tensor_shape.dim)
    if count * max(1, out_type.itemsize) > max(_MOST_BYTES, 64 * len(data)):
        raise _fail(f"a TensorProto of {len(data)} bytes stands for a tensor of {count} elements")
    try:
        return proto_to_array(proto)
    except ValueError as e:
        raise _fail(f"Cannot parse tensor from proto: {e}") from None


define_op(
    "ParseTensor",
    inputs="serialized: string",
    outputs="output: out_type",
    attrs="out_type: type",
    shape=lambda c: [None],
    kernel=host(_parse_tensor, foldable=False),
    gradient=_NO_GRADIENT,
    doc="The tensor of a serialised TensorProto.",
)


def _json_example(text: bytes) -> bytes:
    try:
        return json_format.Parse(text, example_pb2.Example()).SerializeToString()
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as e:
        raise _fail(f"Error while parsing JSON: {e}") from None


define_op(
    "DecodeJSONExample",
    inputs="json_examples: string",
    outputs="binary_examples: string",
    shape=lambda c: [c.shape(0)],
    kernel=host(lambda texts: _each(_json_example, texts), foldable=False),
    gradient=_NO_GRADIENT,
    doc="Examples as JSON (protobuf's mapping), serialised.",
)

_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9_-]")


def _from_base64(text: bytes) -> bytes:
    body = text.rstrip(b"=") if len(text) % 4 == 0 else text
    if _NOT_BASE64.search(body) or len(text) - len(body) > 2:
        raise _fail("Invalid character found in base64.")
    if len(body) % 4 == 1:
        raise _fail("Base64 string length cannot be 1 modulo 4")
    return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))


def _encode_base64(strings: Any, *, pad: bool) -> np.ndarray:
    def encode(data: bytes) -> bytes:
        text = base64.urlsafe_b64encode(data)
        return text if pad else text.rstrip(b"=")

    return _each(encode, strings)


define_op(
    "EncodeBase64",
    inputs="input: string",
    outputs="output: string",
    attrs="pad: bool = False",
    shape=lambda c: [c.shape(0)],
    kernel=host(_encode_base64),
    gradient=_NO_GRADIENT,
    doc="Strings as web-safe base64, with or without padding at the end.",
)

define_op(
    "DecodeBase64",
    inputs="input: string",
    outputs="output: string",
    shape=lambda c: [c.shape(0)],
    kernel=host(lambda texts: _each(_from_base64, texts)),
    gradient=_NO_GRADIENT,
    doc="The strings that web-safe base64 stands for, with or without padding.",
)


def _decode_compressed(strings: Any, *, compression_type: str) -> np.ndarray:
    if compression_type not in ("", "ZLIB", "GZIP"):
        raise _fail(f"Only ZLIB, GZIP or NONE are supported compressions: '{compression_type}'")
    if not compression_type:
        return np.asarray(strings, object)
    bits = zlib.MAX_WBITS + (16 if compression_type == "GZIP" else 0)

    def inflate(data: bytes) -> bytes:
        stream = zlib.decompressobj(bits)
        try:
            result = stream.decompress(data, _MOST_BYTES)
        except zlib.error as e:
            raise _fail(f"damaged compressed data: {e}") from None
        if stream.unconsumed_tail:
            raise _fail(f"{len(data)} bytes decompress to more than 2 GiB")
        if not stream.eof:
            raise _fail(f"the compressed data ends early, after {len(data)} bytes")
        return result

    return _each(inflate, strings)


define_op(
    "DecodeCompressed",
    inputs="bytes: string",
    outputs="output: string",
    attrs="compression_type: string = ''",
    shape=lambda c: [c.shape(0)],
    kernel=host(_decode_compressed, foldable=False),
    gradient=_NO_GRADIENT,
    doc="Strings decompressed: zlib, gzip, or as they are.",
)
