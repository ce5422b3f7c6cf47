"""Numbers and rows in text: StringToNumber, DecodeCSV.

Source: TensorFlow's string_to_number_op.cc, decode_csv_op.cc.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from thalweg.base.errors import InvalidArgumentError
from thalweg.base.shape import Shape
from thalweg.graph.registry import NotDifferentiable, define_op
from thalweg.graph.shape_context import ShapeContext
from thalweg.kernel import checks
from thalweg.kernel.convention import host
from thalweg.ops._text_numbers import as_array, number

_NO_GRADIENT = NotDifferentiable("text has no gradient")
_SPECIAL = re.compile(rb'["\n\r]')
_LINE_END = re.compile(rb"[\n\r]")
_TYPE_NAMES = {"float32": "float", "float64": "double"}


def _fail(message: str) -> InvalidArgumentError:
    op = checks.current_op()
    return InvalidArgumentError(None, op, message if op is None else f"{op.type} '{op.name}': {message}")


def _show(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _string_to_number(texts: Any, *, out_type: np.dtype) -> np.ndarray:
    texts = np.asarray(texts, object)
    values = []
    for text in texts.ravel():
        value = number(text, out_type)
        if value is None:
            raise _fail(f"StringToNumberOp could not correctly convert string: {_show(text)}")
        values.append(value)
    return as_array(values, out_type).reshape(texts.shape)


define_op(
    "StringToNumber",
    inputs="string_tensor: string",
    outputs="output: out_type",
    attrs="out_type: {float, double, int32, int64, uint32, uint64} = float",
    shape=lambda c: [c.shape(0)],
    kernel=host(_string_to_number),
    gradient=_NO_GRADIENT,
    doc="The numbers that strings spell. InvalidArgumentError for what is no number of the type.",
)


class _Rows:
    """How rows are cut into fields. columns: the positions of the fields wanted, all where it is empty."""

    def __init__(self, delimiter: bytes, quotes: bool, columns: tuple[int, ...]) -> None:
        self.delimiter = delimiter
        self.columns = columns
        self._quotes = quotes
        self._special = _SPECIAL if quotes else _LINE_END
        self._stop = re.compile(rb"[%s]" % re.escape(delimiter))

    def fields(self, row: bytes) -> list[bytes]:
        """The fields wanted of a row; fewer where it ends early."""
        fields = self._cut(row) if self._special.search(row) else row.split(self.delimiter) if row else []
        return [fields[c] for c in self.columns if c < len(fields)] if self.columns else fields

    def _cut(self, row: bytes) -> list[bytes]:
        """The fields of a row with quotes or line ends in it."""
        fields: list[bytes] = []
        at, size = 0, len(row)
        wanted = self.columns[-1] + 1 if self.columns else size + 1
        while at < size and len(fields) < wanted:
            if row[at] in b"\r\n":
                at += 1
            elif self._quotes and row[at] == 0x22:
                field, at = self._quoted(row, at + 1)
                fields.append(field)
            else:
                end = row.find(self.delimiter, at)
                field = row[at : end if end >= 0 else size]
                if self._special.search(field):
                    raise _fail("Unquoted fields cannot have quotes/CRLFs inside")
                fields.append(field)
                at += len(field) + 1
        if row.endswith(self.delimiter) and len(fields) < wanted:
            fields.append(b"")
        return fields

    def _quoted(self, row: bytes, at: int) -> tuple[bytes, int]:
        """A quoted field from behind its first quote on, and where the next one starts."""
        parts = []
        while True:
            quote = row.find(b'"', at)
            if quote < 0:
                raise _fail("Quoted field has to end with quote followed by delim or end")
            parts.append(row[at:quote])
            follows = row[quote + 1 : quote + 2]
            if follows in (b"", self.delimiter):
                return b"".join(parts), quote + 2
            if follows != b'"':
                raise _fail("Quote inside a string has to be escaped by another quote")
            parts.append(b'"')
            at = quote + 2


def _decode_csv(
    records: Any,
    defaults: list[Any],
    *,
    OUT_TYPE: tuple[np.dtype, ...],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: tuple[int, ...],
) -> list[np.ndarray]:
    if len(field_delim.encode()) != 1:
        raise _fail("field_delim should be only 1 char")
    _check_columns(select_cols, len(OUT_TYPE))
    for i, default in enumerate(defaults):
        if np.size(default) > 1:
            raise _fail(f"There should only be 1 default per field but field {i} has {np.size(default)}")
    rows = _Rows(field_delim.encode(), use_quote_delim, tuple(select_cols))
    records = np.asarray(records, object)
    columns: list[list[bytes]] = [[] for _ in OUT_TYPE]
    for r, record in enumerate(records.ravel()):
        fields = rows.fields(record)
        if len(fields) != len(OUT_TYPE):
            raise _fail(f"Expect {len(OUT_TYPE)} fields but have {len(fields)} in record {r}")
        for column, field in zip(columns, fields, strict=True):
            column.append(field)
    na = na_value.encode()
    return [
        _column(f, column, np.asarray(default), dtype, na).reshape(records.shape)
        for f, (column, default, dtype) in enumerate(zip(columns, defaults, OUT_TYPE, strict=True))
    ]


def _column(f: int, fields: list[bytes], default: np.ndarray, dtype: np.dtype, na: bytes) -> np.ndarray:
    missing = default.reshape(-1)[0] if default.size else None
    values: list[Any] = []
    for r, field in enumerate(fields):
        if field == b"" or field == na:
            if missing is None:
                raise _fail(f"Field {f} is required but missing in record {r}!")
            values.append(missing)
        elif dtype.kind == "O":
            values.append(field)
        else:
            value = number(field, dtype)
            if value is None:
                name = _TYPE_NAMES.get(dtype.name, dtype.name)
                raise _fail(f"Field {f} in record {r} is not a valid {name}: {_show(field)}")
            values.append(value)
    if dtype.kind == "O":
        result = np.empty(len(values), object)
        result[:] = values
        return result
    return as_array(values, dtype)


def _check_columns(columns: tuple[int, ...], n: int) -> None:
    if not columns:
        return
    if len(columns) != n:
        raise _fail(f"select_cols should match output size: {len(columns)} columns, {n} outputs")
    if columns[0] < 0:
        raise _fail("select_cols should be non-negative indices")
    if any(a >= b for a, b in itertools.pairwise(columns)):
        raise _fail("select_cols should be strictly increasing indices")


def _csv_shape(c: ShapeContext) -> list[Shape]:
    for i in range(1, len(c)):
        shape = c.shape(i)
        if shape is not None and len(shape) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(shape)} for input {i}")
        if shape and shape[0] is not None and shape[0] > 1:
            raise ValueError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
    return [c.shape(0)] * (len(c) - 1)


define_op(
    "DecodeCSV",
    inputs="records: string, record_defaults: OUT_TYPE",
    outputs="output: OUT_TYPE",
    attrs="OUT_TYPE: list({float, double, int32, int64, string}) >= 1, field_delim: string = ',', "
    "use_quote_delim: bool = True, na_value: string = '', select_cols: list(int) = []",
    shape=_csv_shape,
    kernel=host(_decode_csv, foldable=False),
    gradient=_NO_GRADIENT,
    doc="The fields of rows of comma-separated values (RFC 4180), one tensor per column.",
)
