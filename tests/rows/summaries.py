"""Rows of summary ops. Pictures are compared in tests/library/test_summaries.py: two PNG writers give other bytes."""

import struct

import ml_dtypes
import numpy as np
from row import Row, floats, ints

_SMALL = [0.0, 1e-13, -1e-13, 1e-12, 1e19, 1e21, -1e30, 1.0, 1.1, 0.9171]


def text(*values: bytes) -> np.ndarray:
    return np.array(values, object) if len(values) != 1 else np.array(values[0], object)


def message(**tags: float) -> np.ndarray:
    """A Summary of scalars, as bytes (the recorder has no protocol buffers of ours)."""
    values = [b"\x0a" + bytes([len(t)]) + t.encode() + b"\x15" + struct.pack("<f", v) for t, v in tags.items()]
    return text(b"".join(b"\x0a" + bytes([len(v)]) + v for v in values))


def histogram(values: np.ndarray, id: str, **rest: object) -> Row:
    return Row("HistogramSummary", [text(b"h"), values], id=id, **rest)


def audio(sound: np.ndarray, rate: float = 8000.0, limit: int = 3, id: str = "", **rest: object) -> Row:
    inputs = [text(b"a"), sound, np.float32(rate)]
    return Row("AudioSummaryV2", inputs, {"max_outputs": limit}, id=id, grad=(), **rest)


#: a SummaryMetadata: the plugin "text", the display name "shown"
METADATA = b"\x0a\x06\x0a\x04text\x12\x05shown"

ROWS = [
    Row("ScalarSummary", [text(b"x"), np.float32(1.5)], grad=()),
    Row("ScalarSummary", [text(b"x", b"y"), floats(2)], id="two", grad=()),
    Row("ScalarSummary", [text(b"x"), np.int64(7)], id="int64"),
    Row("ScalarSummary", [text(b"x"), np.float32(np.nan)], id="nan", grad=()),
    Row("ScalarSummary", [text(b"x"), floats(2)], id="shapes", error="InvalidArgumentError"),
    *(
        histogram(values, kind, grad=())
        for kind, values in {
            "float": floats(100),
            "double": floats(3, 4, dtype=np.float64),
            "half": floats(20, dtype=np.float16),
            "bfloat16": floats(20, dtype=ml_dtypes.bfloat16),
            "int32": ints(50),
            "int64": ints(4, 5, dtype=np.int64),
            "uint8": ints(30, low=0, high=255, dtype=np.uint8),
            "empty": floats(0),
            "scalar": np.float32(0.3),
            "zeros": np.zeros(5, np.float32),
            "ends": np.array(_SMALL),
        }.items()
    ),
    histogram(np.array([1, np.nan], np.float32), "nan", error="InvalidArgumentError"),
    histogram(np.array([1, np.inf], np.float64), "infinite", error="InvalidArgumentError"),
    Row("HistogramSummary", [text(b"a", b"b"), floats(3)], id="two tags", error="InvalidArgumentError"),
    Row("TensorSummary", [floats(2, 3)], grad=()),
    Row("TensorSummary", [text(b"a", b"b")], id="string"),
    Row("TensorSummaryV2", [text(b"t"), ints(2, 3), text(METADATA)]),
    Row("TensorSummaryV2", [text(b"t"), text(b"a", b"b"), text(METADATA)], id="string"),
    Row("TensorSummaryV2", [text(b"t"), np.float32(2), text(b"")], id="scalar", grad=()),
    Row("TensorSummaryV2", [text(b"t"), np.zeros((0, 2), np.int64), text(b"")], id="empty"),
    Row("MergeSummary", [[message(a=1)]], id="one"),
    Row("MergeSummary", [[message(a=1), message(b=2, c=3), message()]], id="three"),
    Row("MergeSummary", [[message(a=1), message(b=2, a=3)]], id="same tag", error="InvalidArgumentError"),
    Row("MergeSummary", [[text(b"no message"), message()]], id="foreign", error="InvalidArgumentError"),
    *(
        Row("ImageSummary", [text(b"i"), image], {"max_images": 2}, id=id, grad=(), outputs=())
        for id, image in {
            "grey": floats(3, 4, 5, 1),
            "half": floats(1, 4, 5, 3, dtype=np.float16),
            "double": floats(1, 4, 5, 3, dtype=np.float64),
            "bytes": ints(2, 4, 5, 4, low=0, high=255, dtype=np.uint8),
            "no images": floats(0, 4, 5, 3),
        }.items()
    ),
    Row("ImageSummary", [text(b"i"), floats(1, 4, 5, 2)], id="two channels", grad=(), error="InvalidArgumentError"),
    Row("ImageSummary", [text(b"i"), floats(1, 0, 5, 3)], id="no pixels", grad=(), error="InvalidArgumentError"),
    Row("ImageSummary", [text(b"i"), floats(4, 5, 3)], id="one image", grad=(), error="ValueError"),
    audio(floats(2, 9)),
    audio(floats(4, 9, 2), 22050.5, id="stereo"),
    audio(np.array([[0, 1, -1, 1.5, -1.5, 0.5 / 32768, -0.5 / 32768, 1.5 / 32768]], np.float32), limit=1, id="one"),
    audio(floats(1, 0), id="no frames"),
    audio(floats(1, 5, 0), id="no channels", error="InvalidArgumentError"),
    audio(floats(1, 5), 0.0, id="no rate", error="InvalidArgumentError"),
    audio(floats(5), id="one dimension", error="ValueError"),
]
