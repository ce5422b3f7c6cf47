"""Expected values are what TensorFlow gives."""

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from thalweg.base import dtypes
from thalweg.base.dtypes import DType, as_dtype

# enum, name, NumPy type, size, and the predicates that hold
TABLE = [
    (1, "float32", np.float32, 4, "floating"),
    (2, "float64", np.float64, 8, "floating"),
    (3, "int32", np.int32, 4, "integer"),
    (4, "uint8", np.uint8, 1, "integer unsigned"),
    (5, "int16", np.int16, 2, "integer"),
    (6, "int8", np.int8, 1, "integer"),
    (7, "string", object, 0, ""),
    (8, "complex64", np.complex64, 8, "complex"),
    (9, "int64", np.int64, 8, "integer"),
    (10, "bool", np.bool_, 1, "bool"),
    (11, "qint8", np.dtype([("qint8", "i1")]), 1, "quantized"),
    (12, "quint8", np.dtype([("quint8", "u1")]), 1, "quantized"),
    (13, "qint32", np.dtype([("qint32", "<i4")]), 4, "quantized"),
    (14, "bfloat16", ml_dtypes.bfloat16, 2, "floating"),
    (15, "qint16", np.dtype([("qint16", "<i2")]), 2, "quantized"),
    (16, "quint16", np.dtype([("quint16", "<u2")]), 2, "quantized"),
    (17, "uint16", np.uint16, 2, "integer unsigned"),
    (18, "complex128", np.complex128, 16, "complex"),
    (19, "float16", np.float16, 2, "floating"),
    (20, "resource", None, 0, ""),
    (21, "variant", None, 0, ""),
    (22, "uint32", np.uint32, 4, "integer unsigned"),
    (23, "uint64", np.uint64, 8, "integer unsigned"),
]
PREDICATES = ("floating", "integer", "complex", "bool", "unsigned", "quantized")


@pytest.mark.parametrize(("enum", "name", "numpy", "size", "holds"), TABLE)
def test_facts(enum: int, name: str, numpy: Any, size: int, holds: str) -> None:
    dtype = getattr(dtypes, name)
    ref = getattr(dtypes, name + "_ref")
    assert (dtype.as_datatype_enum, ref.as_datatype_enum) == (enum, enum + 100)
    assert (int(dtype), dtype.name, ref.name) == (enum, name, name + "_ref")
    assert (repr(dtype), str(dtype)) == (f"tf.{name}", f"<dtype: '{name}'>")
    for each in (dtype, ref):
        assert each.size == size
        assert {p for p in PREDICATES if getattr(each, f"is_{p}")} == set(holds.split())
        assert each.base_dtype is dtype
        assert each._as_ref is ref
        assert each.is_numpy_compatible == (numpy is not None)
        if numpy is None:
            with pytest.raises(TypeError, match=f"tf.{each.name} has no NumPy type"):
                _ = each.as_numpy_dtype
        else:
            assert each.as_numpy_dtype == numpy
    assert (dtype.is_ref_dtype, ref.is_ref_dtype, dtype._is_ref_dtype, ref._is_ref_dtype) == (0, 1, 0, 1)
    assert dtype.is_compatible_with(ref) and not ref.is_compatible_with(dtype)
    assert DType(enum) is dtype and as_dtype(enum) is dtype and as_dtype(name) is dtype
    assert as_dtype(enum + 100) is ref and as_dtype(name + "_ref") is ref


def test_definition_names() -> None:
    names = [(d.def_name, d.proto_name) for d in (dtypes.half, dtypes.double, dtypes.int32, dtypes.float32_ref)]
    assert names == [
        ("half", "DT_HALF"),
        ("double", "DT_DOUBLE"),
        ("int32", "DT_INT32"),
        ("float_ref", "DT_FLOAT_REF"),
    ]
    for def_name, dtype in dtypes.TYPE_NAMES.items():
        assert dtypes.from_def_name(def_name) is dtype
        assert dtypes.from_def_name(dtype.proto_name) is dtype
        assert as_dtype(def_name) is dtype
    assert len(dtypes.TYPE_NAMES) == 46
    with pytest.raises(KeyError):
        dtypes.from_def_name("float32")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (float, "float32"),
        (bool, "bool"),
        (object, "string"),
        (np.dtype("S3"), "string"),
        (np.dtype("U"), "string"),
        (np.dtype("O"), "string"),
        (np.dtypes.StringDType(), "string"),
        (np.str_, "string"),
        (np.bytes_, "string"),
        (np.dtype("int"), "int64"),
        (np.longlong, "int64"),
        (np.dtype(">f4"), "float32"),
        (np.float64(1), "float64"),  # TensorFlow takes the scalar for an enum number
        (np.zeros(2, np.int8), "int8"),
        (np.dtype([("qint8", "i1")]), "qint8"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        ("float", "float32"),
        ("double", "float64"),
        ("half_ref", "float16_ref"),
    ],
)
def test_as_dtype(value: Any, name: str) -> None:
    assert as_dtype(value) is getattr(dtypes, name)


@pytest.mark.parametrize(
    "value",
    [int, str, bytes, complex, list, None, "int", "foo", "f4", "DT_FLOAT", [1], {}, 3.5, 0, 999, -1, True]
    + [np.datetime64, np.dtype("M8[ns]"), np.dtype("float128"), np.dtype([("other", "i1")])],
)
def test_as_dtype_refuses(value: Any) -> None:
    with pytest.raises(TypeError, match="Cannot convert the argument `type_value`"):
        as_dtype(value)


def test_constructor_refuses() -> None:
    for value in (0, 50, [1]):
        with pytest.raises(TypeError, match="does not correspond to a valid tensorflow::DataType"):
            DType(value)  # type: ignore[arg-type]


def test_equality() -> None:
    f = dtypes.float32
    for same in ("float32", "float", np.float32, np.dtype("float32"), 1, float, f):
        assert f == same and (f != same) is False
    for other in (None, "nope", int, np.float64, dtypes.int32, f._as_ref, 2, object()):
        assert f != other and (f == other) is False
    with pytest.raises(TypeError):
        _ = f < dtypes.int32  # type: ignore[operator]


def test_copies_are_the_same_object() -> None:
    for dtype in (dtypes.float32, dtypes.string_ref):
        assert copy.copy(dtype) is copy.deepcopy(dtype) is pickle.loads(pickle.dumps(dtype)) is dtype
    assert {dtypes.float32: 1}[DType(1)] == 1


def test_is_immutable() -> None:
    with pytest.raises(AttributeError, match="can't be changed"):
        dtypes.float32.size = 8


def test_real_dtype() -> None:
    reals = [d.real_dtype for d in (dtypes.complex64, dtypes.complex128_ref, dtypes.int8, dtypes.float16_ref)]
    assert reals == [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.float16_ref]


def test_range() -> None:
    assert (dtypes.int8.min, dtypes.int8.max, dtypes.uint64.max) == (-128, 127, 2**64 - 1)
    assert (dtypes.float32.min, dtypes.float32_ref.max) == (np.finfo(np.float32).min, np.finfo(np.float32).max)
    assert float(dtypes.bfloat16.max) == 3.3895313892515355e38
    assert float(dtypes.half.max) == 65504
    for dtype in (dtypes.bool, dtypes.string, dtypes.complex64, dtypes.qint8, dtypes.resource):
        with pytest.raises(TypeError, match="Cannot find minimum value"):
            _ = dtype.min
        with pytest.raises(TypeError, match="Cannot find maximum value"):
            _ = dtype.max


def test_limits() -> None:
    assert dtypes.uint8.limits == (0, 255)
    assert dtypes.int32.limits == (0, 2**31 - 1)
    assert dtypes.float32.limits == (0, 1)
    assert dtypes.bool.limits == (0, True)
    for dtype in (dtypes.half, dtypes.string, dtypes.complex64):
        with pytest.raises(ValueError, match="does not have defined limits"):
            _ = dtype.limits


def test_quantized_dtypes() -> None:
    names = {dtype.name for dtype in dtypes.QUANTIZED_DTYPES}
    base = {"qint8", "quint8", "qint16", "quint16", "qint32"}
    assert names == base | {f"{name}_ref" for name in base}
