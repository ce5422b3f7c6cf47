"""Element types of tensors: `tf.DType` and the `tf.float32`, `tf.int32`, ... objects.

There is one DType object per type, so graph code compares and looks up types at the speed of identity.
Numbers and names are TensorFlow's (`DataType` in types.proto; a reference type is its base type plus 100).
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

_REF_OFFSET = 100


class _Facts(NamedTuple):
    name: str
    def_name: str  # as op definitions write it; "DT_" and its upper case is the proto's enum name
    numpy: Any  # None: values never leave the runtime
    size: int
    kind: str  # f: floating, i: signed, u: unsigned integer, c: complex, b: bool, q: quantized, "": none


_QINT8 = np.dtype([("qint8", np.int8)])
_QUINT8 = np.dtype([("quint8", np.uint8)])
_QINT32 = np.dtype([("qint32", np.int32)])
_QINT16 = np.dtype([("qint16", np.int16)])
_QUINT16 = np.dtype([("quint16", np.uint16)])

_FACTS = {
    1: _Facts("float32", "float", np.float32, 4, "f"),
    2: _Facts("float64", "double", np.float64, 8, "f"),
    3: _Facts("int32", "int32", np.int32, 4, "i"),
    4: _Facts("uint8", "uint8", np.uint8, 1, "u"),
    5: _Facts("int16", "int16", np.int16, 2, "i"),
    6: _Facts("int8", "int8", np.int8, 1, "i"),
    7: _Facts("string", "string", object, 0, ""),
    8: _Facts("complex64", "complex64", np.complex64, 8, "c"),
    9: _Facts("int64", "int64", np.int64, 8, "i"),
    10: _Facts("bool", "bool", np.bool_, 1, "b"),
    11: _Facts("qint8", "qint8", _QINT8, 1, "q"),
    12: _Facts("quint8", "quint8", _QUINT8, 1, "q"),
    13: _Facts("qint32", "qint32", _QINT32, 4, "q"),
    14: _Facts("bfloat16", "bfloat16", ml_dtypes.bfloat16, 2, "f"),
    15: _Facts("qint16", "qint16", _QINT16, 2, "q"),
    16: _Facts("quint16", "quint16", _QUINT16, 2, "q"),
    17: _Facts("uint16", "uint16", np.uint16, 2, "u"),
    18: _Facts("complex128", "complex128", np.complex128, 16, "c"),
    19: _Facts("float16", "half", np.float16, 2, "f"),
    20: _Facts("resource", "resource", None, 0, ""),
    21: _Facts("variant", "variant", None, 0, ""),
    22: _Facts("uint32", "uint32", np.uint32, 4, "u"),
    23: _Facts("uint64", "uint64", np.uint64, 8, "u"),
}

# Intensity limits of image types, as TensorFlow gives them.
_LIMITS: dict[str, tuple[Any, Any]] = {
    "bool": (0, True),
    "float32": (0, 1),
    "float64": (0, 1),
    **{f"int{bits}": (0, 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}

_by_enum: dict[int, DType] = {}


class DType:
    """The type of a tensor's elements, immutable. `DType(enum)` returns the one object of that type.

    Equality accepts what `as_dtype` accepts: `tf.float32 == "float32"` and `tf.float32 == np.float32` hold.
    The hash is by identity, so use `as_dtype(x)` before looking a type up.
    """

    __slots__ = (
        "_as_ref",
        "_numpy",
        "as_datatype_enum",
        "base_dtype",
        "def_name",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numpy_compatible",
        "is_quantized",
        "is_ref_dtype",
        "is_unsigned",
        "name",
        "proto_name",
        "size",
    )

    name: str
    """TensorFlow's Python name: "float32", "string", "float32_ref"."""
    def_name: str
    """The name used in op definitions: "float", "half", "double", "int32", "float_ref"."""
    proto_name: str
    """The name of the proto enum value: "DT_FLOAT", "DT_FLOAT_REF"."""
    as_datatype_enum: int
    """The number of the proto enum value."""
    base_dtype: DType
    """The type without reference: itself for all but reference types."""
    size: int
    """Bytes of one element; 0 for string, resource and variant."""
    is_floating: builtins.bool
    is_integer: builtins.bool
    """Whether it is a signed or unsigned integer type that is not quantized."""
    is_unsigned: builtins.bool
    is_complex: builtins.bool
    is_bool: builtins.bool
    is_quantized: builtins.bool
    is_numpy_compatible: builtins.bool
    """Whether NumPy arrays can hold it: all but resource and variant."""
    is_ref_dtype: builtins.bool
    """Whether it is the type of a reference to a variable's state."""
    _as_ref: DType
    """The reference type of this type: itself for reference types."""
    _numpy: Any

    def __new__(cls, type_enum: int) -> DType:
        """Raises TypeError if no type has the number `type_enum`."""
        try:
            return _by_enum[type_enum]
        except (KeyError, TypeError):
            raise TypeError(f"{type_enum!r} does not correspond to a valid tensorflow::DataType") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} can't be changed")

    @property
    def _is_ref_dtype(self) -> builtins.bool:
        """The name by which TensorFlow programs know `is_ref_dtype`."""
        return self.is_ref_dtype

    @property
    def as_numpy_dtype(self) -> Any:
        """What NumPy takes as dtype: `np.float32`, `object` for string. TypeError for resource, variant."""
        if self._numpy is None:
            raise TypeError(f"tf.{self.name} has no NumPy type: its values stay inside the runtime")
        return self._numpy

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: float32 for complex64, float64 for complex128, else itself."""
        if self.is_complex:
            return float32 if self.base_dtype is complex64 else float64
        return self

    @property
    def min(self) -> Any:
        """The least finite value. TypeError for types without order or with a scale of their own."""
        return self._finite("min", "minimum")

    @property
    def max(self) -> Any:
        """The greatest finite value. TypeError for types without order or with a scale of their own."""
        return self._finite("max", "maximum")

    def _finite(self, end: str, word: str) -> Any:
        if self.is_floating:
            return getattr(ml_dtypes.finfo(self._numpy), end)  # type: ignore[no-untyped-call]
        if self.is_integer:
            return getattr(np.iinfo(self._numpy), end)
        raise TypeError(f"Cannot find {word} value of {self}.")

    @property
    def limits(self) -> tuple[Any, Any]:
        """Intensity limits (0, greatest) of an image of this type. ValueError if it has none."""
        limits = _LIMITS.get(self.base_dtype.name)
        if limits is None:
            raise ValueError(f"{self} does not have defined limits.")
        return limits

    def is_compatible_with(self, other: object) -> builtins.bool:
        """Returns whether a tensor of type `other` can be used where this type is wanted.

        A reference can be used as its base type, not the other way round.
        """
        dtype = as_dtype(other)
        return self is dtype or self is dtype.base_dtype

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if type(other) is DType or other is None:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    __hash__ = object.__hash__  # there is one object per type

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.as_datatype_enum,)


def _make(enum: int, facts: _Facts, base: DType | None) -> DType:
    """Makes the one object for `enum` and puts it into the table; `base` is given for a reference type."""
    dtype = object.__new__(DType)
    suffix = "" if base is None else "_ref"
    for name, value in {
        "name": facts.name + suffix,
        "def_name": facts.def_name + suffix,
        "proto_name": f"DT_{facts.def_name}{suffix}".upper(),
        "as_datatype_enum": enum,
        "base_dtype": base or dtype,
        "size": facts.size,
        "is_floating": facts.kind == "f",
        "is_integer": facts.kind in ("i", "u"),
        "is_unsigned": facts.kind == "u",
        "is_complex": facts.kind == "c",
        "is_bool": facts.kind == "b",
        "is_quantized": facts.kind == "q",
        "is_numpy_compatible": facts.numpy is not None,
        "is_ref_dtype": base is not None,
        "_numpy": facts.numpy,
    }.items():
        object.__setattr__(dtype, name, value)
    object.__setattr__(dtype, "_as_ref", dtype)
    if base is not None:
        object.__setattr__(base, "_as_ref", dtype)
    _by_enum[enum] = dtype
    return dtype


for _enum, _facts in _FACTS.items():
    _make(_enum + _REF_OFFSET, _facts, _make(_enum, _facts, None))

float16 = half = DType(19)
float32 = DType(1)
float64 = double = DType(2)
bfloat16 = DType(14)
int8 = DType(6)
int16 = DType(5)
int32 = DType(3)
int64 = DType(9)
uint8 = DType(4)
uint16 = DType(17)
uint32 = DType(22)
uint64 = DType(23)
complex64 = DType(8)
complex128 = DType(18)
bool = DType(10)
string = DType(7)
qint8 = DType(11)
quint8 = DType(12)
qint16 = DType(15)
quint16 = DType(16)
qint32 = DType(13)
resource = DType(20)
variant = DType(21)

float16_ref = half_ref = DType(119)
float32_ref = DType(101)
float64_ref = double_ref = DType(102)
bfloat16_ref = DType(114)
int8_ref = DType(106)
int16_ref = DType(105)
int32_ref = DType(103)
int64_ref = DType(109)
uint8_ref = DType(104)
uint16_ref = DType(117)
uint32_ref = DType(122)
uint64_ref = DType(123)
complex64_ref = DType(108)
complex128_ref = DType(118)
bool_ref = DType(110)
string_ref = DType(107)
qint8_ref = DType(111)
quint8_ref = DType(112)
qint16_ref = DType(115)
quint16_ref = DType(116)
qint32_ref = DType(113)
resource_ref = DType(120)
variant_ref = DType(121)

QUANTIZED_DTYPES = frozenset(_dtype for _dtype in _by_enum.values() if _dtype.is_quantized)
"""The quantized types and their reference types."""

TYPE_NAMES: dict[str, DType] = {_dtype.def_name: _dtype for _dtype in _by_enum.values()}
"""The type of each name that op definitions use."""

_from_def_name = TYPE_NAMES | {_dtype.proto_name: _dtype for _dtype in _by_enum.values()}
_from_name = TYPE_NAMES | {_dtype.name: _dtype for _dtype in _by_enum.values()}

_from_type: dict[Any, DType] = {
    builtins.float: float32,
    builtins.bool: bool,
    builtins.object: string,
    np.object_: string,
    np.bytes_: string,
    np.str_: string,
    np.longlong: int64,
    np.ulonglong: uint64,
    **{_dtype._numpy: _dtype.base_dtype for _dtype in _by_enum.values() if isinstance(_dtype._numpy, type)},
}
_from_struct = {_dtype._numpy: _dtype for _dtype in QUANTIZED_DTYPES if not _dtype.is_ref_dtype}


def from_def_name(name: str) -> DType:
    """Returns the type with that name in op definitions and protos: "half", "int32", "DT_FLOAT".

    Raises KeyError for any other name, the Python names "float16", "float32" and "float64" among them.
    """
    return _from_def_name[name]


def as_dtype(type_value: object) -> DType:
    """Returns the type that `type_value` names.

    Args:
      type_value: a DType, a name ("float32", "float", "float32_ref"), a NumPy dtype or scalar type, one of
        Python's `float` (float32), `bool` and `object` (string), a proto enum number, or anything that has a
        NumPy `dtype`. Byte order is not looked at.

    Raises:
      TypeError: for anything else; `int`, `str` and `complex` too, as in TensorFlow.
    """
    kind = type(type_value)
    if kind is DType:
        return type_value  # type: ignore[return-value]
    found: DType | None = None
    if kind is str:
        found = _from_name.get(type_value)  # type: ignore[call-overload]
    elif isinstance(type_value, type):
        found = _from_type.get(type_value)
    elif isinstance(type_value, np.dtype):
        found = _from_numpy(type_value)
    elif kind is int:
        found = _by_enum.get(type_value)  # type: ignore[call-overload]
    else:
        dtype = getattr(type_value, "dtype", None)
        if isinstance(dtype, np.dtype):
            found = _from_numpy(dtype)
    if found is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return found


def _from_numpy(dtype: np.dtype[Any]) -> DType | None:
    if dtype.kind == "T":  # NumPy's variable-width strings
        return string
    return _from_type.get(dtype.type) or _from_struct.get(dtype)
