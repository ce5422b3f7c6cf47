"""Rows of ops/examples.py and ops/sequence_examples.py: messages written by hand, so that odd ones are among them."""

import numpy as np
from row import Row

F32, I64 = np.float32, np.int64


def piece(number: int, content: bytes) -> bytes:
    """A field of a message that is bytes, a string or a message."""
    return bytes([number << 3 | 2, len(content)]) + content


def ints(*values: int) -> bytes:
    """A Feature of small integers."""
    return piece(3, piece(1, bytes(values)) if values else b"")


def reals(*values: float) -> bytes:
    """A Feature of floats."""
    return piece(2, piece(1, np.array(values, "<f4").tobytes()) if values else b"")


def texts(*values: bytes) -> bytes:
    """A Feature of strings."""
    return piece(1, b"".join(piece(1, v) for v in values))


def entries(**features: bytes) -> bytes:
    """The map of Features."""
    return b"".join(piece(1, piece(1, k.encode()) + piece(2, v)) for k, v in features.items())


def example(**features: bytes) -> bytes:
    """An Example."""
    return piece(1, entries(**features))


def sequence(context: dict[str, bytes], **lists: list[bytes]) -> bytes:
    """A SequenceExample."""
    found = {k: b"".join(piece(1, step) for step in v) for k, v in lists.items()}
    return piece(1, entries(**context)) + piece(2, entries(**found))


def strings(*values: bytes) -> np.ndarray:
    """A vector of strings."""
    result = np.empty(len(values), object)
    result[:] = values
    return result


def scalar(value: bytes) -> np.ndarray:
    """A string."""
    return np.array(value, object)


NONE = strings()
A = example(a=ints(1, 2), b=texts(b"x"), c=reals(1.5, 2.5), d=ints(5))
B = example(c=reals(3.5), a=ints(3, 4), b=texts(b"y"))
C = example(b=texts(b"z"), d=ints(6, 7, 8), a=ints(9, 10), e=texts(b"nobody", b"asked"))
D = example(a=ints(1, 2), b=texts(b"x"), c=b"", d=ints())
MANY = strings(*[A, B, C, D] * 20)

#: a: two integers, b: a string, c: rows of floats, d: any number of integers
V2 = {
    "num_sparse": 1,
    "sparse_types": ["int64"],
    "ragged_value_types": [],
    "ragged_split_types": [],
    "dense_shapes": [[2], [], [None]],
}
DEFAULTS = [np.zeros(0, I64), NONE, F32(-1)]


def parse(serialized: np.ndarray, defaults: list = DEFAULTS, names: np.ndarray = NONE, **more: object) -> Row:
    """A row of ParseExampleV2."""
    attrs = {k: v for k, v in more.items() if k not in ("id", "error")}
    inputs = [serialized, names, strings(b"d"), strings(b"a", b"b", b"c"), NONE, defaults]
    return Row("ParseExampleV2", inputs, {**V2, **attrs}, const=(2, 3, 4), grad=(), **{k: more[k] for k in ("id", "error") if k in more})


def lone(feature: bytes, id: str, error: str | None = None, dtype: str = "int64") -> Row:
    """A row with one sparse key "a", of one example with one feature, many times over."""
    attrs = {"num_sparse": 1, "sparse_types": [dtype], "ragged_value_types": [], "ragged_split_types": [], "dense_shapes": []}
    return Row(
        "ParseExampleV2",
        [strings(*[feature] * 70), NONE, strings(b"a"), NONE, NONE, []],
        attrs,
        id=id,
        const=(2, 3, 4),
        grad=(),
        error=error,
    )


RAGGED = {
    "num_sparse": 0,
    "sparse_types": [],
    "ragged_value_types": ["int64", "float32"],
    "ragged_split_types": ["int32", "int64"],
    "dense_shapes": [],
}

S = sequence({"l": ints(1), "t": texts(b"p", b"q")}, x=[reals(1, 2), reals(3, 4)], y=[ints(1), ints(), ints(2, 3)])
T = sequence({"l": ints(2)}, x=[reals(5, 6)], y=[])
U = sequence({"l": ints(3), "t": texts()}, y=[ints(7)])
SEQUENCE = {
    "Ncontext_sparse": 1,
    "context_sparse_types": ["string"],
    "context_dense_shapes": [[]],
    "Nfeature_list_sparse": 1,
    "Nfeature_list_dense": 1,
    "feature_list_dense_types": ["float32"],
    "feature_list_sparse_types": ["int64"],
    "feature_list_dense_shapes": [[2]],
}
PLAIN = {k: v for k, v in SEQUENCE.items() if k[0] != "N"}
KEYS = {
    "feature_list_dense_missing_assumed_empty": ["x"],
    "context_sparse_keys": ["t"],
    "context_dense_keys": ["l"],
    "feature_list_sparse_keys": ["y"],
    "feature_list_dense_keys": ["x"],
}


def sequences(serialized: np.ndarray, may_miss: bool = True, names: np.ndarray = NONE, **more: object) -> Row:
    """A row of ParseSequenceExampleV2."""
    inputs = [serialized, names, strings(b"t"), strings(b"l"), NONE, strings(b"y"), strings(b"x"), NONE, np.array([may_miss]), [np.zeros(0, I64)]]
    return Row("ParseSequenceExampleV2", inputs, SEQUENCE, const=tuple(range(2, 9)), grad=(), **more)


ROWS = [
    parse(strings(A, B, C)),
    parse(MANY, id="many"),
    parse(scalar(C), id="single"),
    parse(NONE, id="none"),
    parse(strings(A, example(b=texts(b"x"))), id="missing", error="InvalidArgumentError"),
    parse(strings(A, example(b=texts(b"x"))), [np.array([7, 8], I64), NONE, F32(-1)], id="default"),
    parse(strings(A, example(a=ints(1), b=texts(b"x"))), id="size", error="InvalidArgumentError"),
    parse(strings(A, example(a=reals(1, 2), b=texts(b"x"))), id="type", error="InvalidArgumentError"),
    parse(strings(A, b"\x0a\x05ab"), id="junk", error="InvalidArgumentError"),
    parse(strings(A), names=strings(b"n", b"m"), id="names", error="InvalidArgumentError"),
    parse(strings(A + example(d=ints(1))), id="two examples"),
    parse(strings(b"\x12\x01x" + A), id="unknown field"),
    lone(example(a=piece(3, b"\x08\x01\x08\x02")), "unpacked"),
    lone(example(a=piece(3, piece(1, b"\x01" + b"\xff" * 9 + b"\x01\x80\x01"))), "long"),
    lone(piece(1, piece(1, piece(2, ints(4)) + piece(1, b"a"))), "value first"),
    lone(piece(1, entries(a=ints(1)) + entries(a=ints(2, 3))), "twice"),
    lone(piece(1, entries(a=ints(1)) + entries(a=b"")), "twice, then empty"),
    lone(example(a=ints(1), b=b"\xff\xff"), "damage nobody asked for"),
    lone(example(a=b"\x1a\x05\x0a"), "damaged", "InvalidArgumentError"),
    lone(example(a=piece(3, piece(1, b"\x01\x82"))), "cut", "InvalidArgumentError"),
    lone(example(a=piece(3, piece(1, b"\xff" * 11))), "endless", "InvalidArgumentError"),
    lone(example(a=texts(b"", b"x" * 100, b"y")), "strings", dtype="string"),
    lone(example(a=reals(*range(25))), "floats", dtype="float32"),
    Row("ParseExampleV2", [strings(A, B, C), NONE, NONE, NONE, strings(b"d", b"c"), []], RAGGED, id="ragged", const=(2, 3, 4), grad=()),
    Row("ParseExampleV2", [scalar(C), NONE, NONE, NONE, strings(b"d", b"c"), []], RAGGED, id="ragged single", const=(2, 3, 4), grad=()),
    Row(
        "ParseExample",
        [strings(A, B, C), NONE, [scalar(b"d")], [scalar(b"a"), scalar(b"b")], [np.zeros(0, I64), NONE]],
        {"sparse_types": ["int64"], "dense_shapes": [[2], [1]]},
        grad=(),
    ),
    Row(
        "ParseSingleExample",
        [scalar(C), [np.zeros(0, I64), F32(0)]],
        {"num_sparse": 1, "sparse_keys": ["d"], "dense_keys": ["a", "c"], "sparse_types": ["int64"], "dense_shapes": [[2], [None]]},
        grad=(),
    ),
    Row(
        "ParseSingleExample",
        [scalar(B), [np.zeros(0, I64)]],
        {"num_sparse": 0, "sparse_keys": [], "dense_keys": ["d"], "sparse_types": [], "dense_shapes": [[1]]},
        id="missing",
        grad=(),
        error="InvalidArgumentError",
    ),
    sequences(strings(S, T, U)),
    sequences(scalar(S), id="single"),
    sequences(strings(S, T, U), may_miss=False, id="missing", error="InvalidArgumentError"),
    sequences(strings(S, sequence({"l": ints(1)}, x=[reals(1)], y=[])), id="size", error="InvalidArgumentError"),
    sequences(strings(S, sequence({"l": ints(1)}, x=[ints(1, 2)], y=[])), id="type", error="InvalidArgumentError"),
    sequences(strings(b"junk"), id="junk", error="InvalidArgumentError"),
    Row("ParseSequenceExample", [strings(S, T, U), NONE, [np.zeros(0, I64)]], {**SEQUENCE, "Ncontext_dense": 1, **KEYS}, grad=()),
    Row(
        "ParseSingleSequenceExample",
        [scalar(S), strings(b"x"), [scalar(b"t")], [scalar(b"l")], [scalar(b"y")], [scalar(b"x")], [np.zeros(0, I64)], scalar(b"name")],
        PLAIN,
        grad=(),
    ),
    Row(
        "ParseSingleSequenceExample",
        [scalar(U), NONE, [scalar(b"t")], [scalar(b"l")], [scalar(b"y")], [scalar(b"x")], [np.zeros(0, I64)], scalar(b"name")],
        PLAIN,
        id="missing",
        grad=(),
        error="InvalidArgumentError",
    ),
]
