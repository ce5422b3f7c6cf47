import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.base import shape as shapes
from thalweg.base.shape import Shape
from thalweg.base.tensor_shape import Dimension, TensorShape

sizes = st.integers(0, 4)
known_shapes = st.lists(sizes, max_size=4).map(tuple)
partial_shapes = st.none() | st.lists(st.none() | sizes, max_size=3).map(tuple)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [  # what TensorFlow infers for a + b
        ("[]", "[3]", "[3]"),
        ("[?]", "[1]", "[?]"),
        ("[?]", "[5]", "[5]"),
        ("[?]", "[?]", "[?]"),
        ("[?]", "[0]", "[?]"),
        ("[0]", "[1]", "[0]"),
        ("[2,?]", "[3]", "[2,3]"),
        ("[1]", "[1]", "[1]"),
        ("[2,1,?]", "[5,1]", "[2,5,?]"),
        ("[?]", "[]", "[?]"),
        ("<unknown>", "[2]", "<unknown>"),
        ("[?,3]", "[2,1]", "[2,3]"),
    ],
)
def test_broadcast(a: str, b: str, result: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert shapes.format_shape(shapes.broadcast(shapes.parse(x), shapes.parse(y))) == result


def test_broadcast_mismatch_names_dimensions_in_order() -> None:
    for a, b in (((2, 3), (4,)), ((3,), (2, 4))):
        with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 4: shapes"):
            shapes.broadcast(a, b)
    with pytest.raises(ValueError, match=r"are 0 and 2: shapes \[0\] and \[2\] do not broadcast"):
        shapes.broadcast((0,), (2,))


@given(known_shapes, known_shapes)
def test_broadcast_agrees_with_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            shapes.broadcast(a, b)
    else:
        assert shapes.broadcast(a, b) == expected


@given(partial_shapes, partial_shapes)
def test_merge_is_commutative_and_agrees_with_is_compatible(a: Shape, b: Shape) -> None:
    if shapes.is_compatible(a, b):
        merged = shapes.merge(a, b)
        assert merged == shapes.merge(b, a)
        assert shapes.merge(merged, a) == merged
    else:
        for x, y in ((a, b), (b, a)):
            with pytest.raises(ValueError, match="must be equal"):
                shapes.merge(x, y)


def test_merge() -> None:
    assert shapes.merge((None, 3), (2, None)) == (2, 3)
    assert shapes.merge(None, (1,)) == shapes.merge((1,), None) == (1,)
    assert shapes.merge(None, None) is None
    with pytest.raises(
        ValueError,
        match=r"Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are \[2,3\] and \[2,4\].",
    ):
        shapes.merge((2, 3), (2, 4))
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        shapes.merge((2, 3), (2,))


def test_num_elements_and_is_fully_defined() -> None:
    cases: list[tuple[Shape, int | None]] = [((), 1), ((2, 3), 6), ((0, 3), 0), ((2, None), None), (None, None)]
    for shape, count in cases:
        assert shapes.num_elements(shape) == count
        assert shapes.is_fully_defined(shape) == (count is not None)


@given(partial_shapes)
def test_text_round_trip(shape: Shape) -> None:
    assert shapes.parse(shapes.format_shape(shape)) == shape


def test_text() -> None:
    assert shapes.format_shape((None, 784)) == "[?,784]"
    assert shapes.parse(" [ ?, 3 ] ") == (None, 3)
    assert shapes.parse("?") is None
    for text in ("", "3", "[3", "[a]", "[1,]", "[-1]", "[1.5]"):
        with pytest.raises(ValueError, match="Not a shape"):
            shapes.parse(text)


def test_as_shape() -> None:
    proto = TensorShape([None, 3]).as_proto()
    assert shapes.as_shape(proto) == (None, 3)
    assert shapes.as_shape(TensorShape(None).as_proto()) is None
    assert shapes.as_shape(TensorShape([1, None])) == (1, None)
    assert shapes.as_shape([Dimension(2), Dimension(None), np.int64(4), None, True]) == (2, None, 4, None, 1)
    assert shapes.as_shape(np.array([2, 3])) == (2, 3)
    assert shapes.as_shape(range(2)) == (0, 1)
    assert shapes.as_shape(3) == shapes.as_shape(np.array(3)) == shapes.as_shape(Dimension(3)) == (3,)
    assert shapes.as_shape(None) is None
    shape = shapes.as_shape(np.array([2, 3]))
    assert shape is not None and {type(dim) for dim in shape} == {int}


def test_as_shape_refuses() -> None:
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        shapes.as_shape([-1])
    for value in (["3"], 3.5, [3.0], [[1]], object()):
        with pytest.raises(TypeError, match="Dimension value must be integer or None"):
            shapes.as_shape(value)
    with pytest.raises(TypeError, match="Failed to convert '3' to a shape"):
        shapes.as_shape("3")
