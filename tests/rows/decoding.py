"""Rows of ops/decoding.py, ops/text_records.py and ops/sparse_order.py."""

import numpy as np
from row import Row

I32, F32, I64 = np.int32, np.float32, np.int64


def text(*values: bytes) -> np.ndarray:
    """A vector of strings."""
    result = np.empty(len(values), object)
    result[:] = values
    return result


def scalar(value: bytes) -> np.ndarray:
    """A string."""
    return np.array(value, object)


NONE = np.empty(0, object)
DEFAULTS = [np.array([1], F32), np.array([2], I32), text(b"none")]
CELLS = np.array([[2, 1], [0, 3], [2, 0], [0, 1]], I64)

ROWS = [
    *(
        Row("DecodeRaw", [text(bytes(range(16)), b"\x00\x3c\x80\x40" * 4)], {"out_type": t, "little_endian": e}, id=f"{t}.{e}", grad=())
        for t in ("float16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64", "complex64", "complex128", "bfloat16")
        for e in (True, False)
    ),
    Row("DecodeRaw", [text(b"\x00\x01", b"\x01\x00")], {"out_type": "bool"}, id="bool"),
    Row("DecodeRaw", [np.empty((0, 2), object)], {"out_type": "int16"}, id="nothing"),
    Row("DecodeRaw", [scalar(b"")], {"out_type": "int16"}, id="empty"),
    Row("DecodeRaw", [text(b"ab", b"abc")], {"out_type": "uint8"}, id="uneven", error="InvalidArgumentError"),
    Row("DecodeRaw", [text(b"abc")], {"out_type": "int16"}, id="odd", error="InvalidArgumentError"),
    Row("DecodePaddedRaw", [text(b"\x01\x02\x03", b"12345", b""), I32(4)], {"out_type": "int16"}, const=(1,)),
    Row("DecodePaddedRaw", [text(b"\x01\x02\x03\x04", b"12345678"), I32(4)], {"out_type": "int32", "little_endian": False}, id="big"),
    Row("DecodePaddedRaw", [text(b"a"), I32(3)], {"out_type": "int16"}, const=(1,), id="odd", error="ValueError"),
    Row("DecodePaddedRaw", [text(b"a"), I32(0)], {"out_type": "int16"}, id="zero", error="InvalidArgumentError"),
    Row("SerializeTensor", [F32(3)], id="scalar", grad=()),
    Row("SerializeTensor", [np.arange(3, dtype=I64)], id="int64"),
    Row("SerializeTensor", [text(b"a", b"bc")], id="strings"),
    Row("SerializeTensor", [np.zeros((0, 2), np.float16)], id="empty", grad=()),
    Row("ParseTensor", [scalar(b'\x08\x01\x12\x00"\x04\x00\x00@@')], {"out_type": "float32"}, grad=()),
    Row("ParseTensor", [scalar(b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc")], {"out_type": "string"}, id="strings"),
    Row("ParseTensor", [scalar(b"\x08\x03\x12\x04\x12\x02\x08\x04:\x01\x05")], {"out_type": "int32"}, id="filled"),
    Row("ParseTensor", [scalar(b"\x08\x03\x12\x04\x12\x02\x08\x04:\x01\x05")], {"out_type": "int64"}, id="type", error="InvalidArgumentError"),
    Row("ParseTensor", [scalar(b"xxxx")], {"out_type": "int32"}, id="junk", error="InvalidArgumentError"),
    Row("EncodeBase64", [text(b"\xff\xfe\xfd?", b"", b"abcd")], {"pad": False}),
    Row("EncodeBase64", [text(b"\xff\xfe\xfd?", b"", b"abcd")], {"pad": True}, id="padded"),
    Row("DecodeBase64", [text(b"__79Pw", b"", b"YWJjZA==", b"_w")]),
    Row("DecodeBase64", [text(b"!!")], id="bad", error="InvalidArgumentError"),
    Row("DecodeBase64", [text(b"a")], id="short", error="InvalidArgumentError"),
    Row("DecodeCompressed", [text(b"x", b"")], {"compression_type": ""}),
    Row("DecodeCompressed", [scalar(b"x\x9cKLJN\x01\x00\x03\xd8\x01\x8b")], {"compression_type": "ZLIB"}, id="zlib"),
    Row("DecodeJSONExample", [text(b'{"features": {"feature": {"a": {"bytesList": {"value": ["eA=="]}}}}}', b"{}")]),
    Row("DecodeJSONExample", [text(b'{"features":')], id="bad", error="InvalidArgumentError"),
    Row("StringToNumber", [text(b"1.5", b" 7 ", b"nan", b"0x1p3", b"1e400", b"-.5", b"inf")], {"out_type": "float32"}, grad=()),
    Row("StringToNumber", [text(b"1.5", b"1e-320")], {"out_type": "float64"}, id="double", grad=()),
    *(Row("StringToNumber", [text(b"12", b" 7 ", b"+5")], {"out_type": t}, id=t) for t in ("int32", "int64")),
    Row("StringToNumber", [text(b"x")], {"out_type": "float32"}, id="bad", error="InvalidArgumentError"),
    Row("StringToNumber", [text(b"3000000000")], {"out_type": "int32"}, id="large", error="InvalidArgumentError"),
    Row("DecodeCSV", [text(b"1,2,abc", b",,", b' 3 , 4 , b ', b'5,6,"a""b"', b'7,8,"a\nb"', b"\n9,\r\n10,x"), DEFAULTS], grad=()),
    Row("DecodeCSV", [scalar(b"inf,-2,nan"), DEFAULTS], id="scalar", grad=()),
    Row("DecodeCSV", [text(b"NA|3", b"2|NA"), [F32(5), I32(1)]], {"field_delim": "|", "na_value": "NA"}, id="na", grad=()),
    Row("DecodeCSV", [text(b"1,2,3", b"4,5,6"), [F32(5), np.zeros(0, I64)]], {"select_cols": [0, 2]}, id="columns", grad=()),
    Row("DecodeCSV", [text(b'1,"a"'), [np.float64(5), text(b"s")]], {"use_quote_delim": False}, id="no_quotes", grad=()),
    *(
        Row("DecodeCSV", [text(row), DEFAULTS], id=f"bad{i}", grad=(), error="InvalidArgumentError")
        for i, row in enumerate((b"1,2", b"1,2,3,4", b"", b'1,2,"a"b', b'1,2,a"b', b"x,2,a", b"1,2.5,a", b"1,2,a\n", b'1,2,"a'))
    ),
    Row("DecodeCSV", [text(b",2"), [np.zeros(0, F32), I32(1)]], id="required", grad=(), error="InvalidArgumentError"),
    Row("SparseReorder", [CELLS, np.array([1, 2, 3, 4], F32), np.array([3, 4], I64)], grad=(1,)),
    Row("SparseReorder", [CELLS, text(b"a", b"b", b"c", b"d"), np.array([3, 4], I64)], id="strings"),
    Row("SparseReorder", [np.zeros((0, 2), I64), np.zeros(0, I32), np.array([3, 4], I64)], id="empty"),
    Row("Substr", [text(b"hello", b"thalweg"), I32(1), I32(3)]),
    Row("Substr", [text(b"hello", b"thalweg"), np.array([-3, 2], I64), np.array([2, 9], I64)], id="each"),
    Row("Substr", [text("höhe".encode(), "änderung".encode()), I32(1), I32(2)], {"unit": "UTF8_CHAR"}, id="characters"),
    Row("Substr", [text(b"abc"), I32(4), I32(1)], id="outside", error="InvalidArgumentError"),
]
