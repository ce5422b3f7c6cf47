"""Tensors out of bytes and text, and back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import renamed


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The numbers that the bytes of strings are, along a new last dimension. All strings are equally long."""
    input_bytes = renamed("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw() missing 1 positional argument: 'out_type'")
    return emit("DecodeRaw", input_bytes, out_type=out_type, little_endian=little_endian, name=name)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of rows of comma-separated values (RFC 4180), one tensor per column.

    record_defaults: one per column, whose type the column has; an empty list where the field is required.
    na_value: what else stands for a missing field. select_cols: positions of the columns wanted, rising.
    """
    if select_cols is not None and any(a >= b for a, b in itertools.pairwise(select_cols)):
        raise ValueError("select_cols is not strictly increasing.")
    if select_cols is not None and select_cols and select_cols[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if select_cols is not None and len(select_cols) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    return emit(
        "DecodeCSV",
        records,
        record_defaults,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=list(select_cols or ()),
        name=name,
    )


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Examples as JSON (protobuf's mapping), serialised."""
    return emit("DecodeJSONExample", json_examples, name=name)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of a serialised TensorProto, which must be of type out_type."""
    return emit("ParseTensor", serialized, out_type=out_type, name=name)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialised TensorProto."""
    return emit("SerializeTensor", tensor, name=name)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings as web-safe base64, with or without padding at the end."""
    return emit("EncodeBase64", input, pad=pad, name=name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The strings that web-safe base64 stands for, with or without padding."""
    return emit("DecodeBase64", input, name=name)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Strings decompressed. compression_type: "", "ZLIB" or "GZIP"."""
    return emit("DecodeCompressed", bytes, compression_type=compression_type, name=name)


def string_to_number(
    string_tensor: Any = None, out_type: Any = dtypes.float32, name: str | None = None, input: Any = None
) -> Tensor:
    """The numbers that strings spell. InvalidArgumentError for what is no number of the type."""
    text = renamed("input", input, "string_tensor", string_tensor)
    return emit("StringToNumber", text, out_type=out_type, name=name)
