"""Expected values are what TensorFlow gives in its 1.x mode."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from thalweg.base.tensor_shape import (
    Dimension,
    TensorShape,
    as_dimension,
    as_shape,
    dimension_at_index,
    dimension_value,
    unknown_shape,
)

D, S = Dimension, TensorShape
NAMES = {
    "D": D,
    "S": S,
    "np": np,
    "as_dimension": as_dimension,
    "as_shape": as_shape,
    "dimension_at_index": dimension_at_index,
    "dimension_value": dimension_value,
    "unknown_shape": unknown_shape,
}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("D(3)", "Dimension(3)"),
        ("str(D(3)) + str(D(None))", "'3?'"),
        ("D(D(3))", "Dimension(3)"),
        ("D(np.int64(3))", "Dimension(3)"),
        ("D(None) == None", "None"),
        ("D(None) == 3", "None"),
        ("D(3) == None", "None"),
        ("D(3) == 3", "True"),
        ("D(3) != 4", "True"),
        ("D(None) != 4", "None"),
        ("D(3) == 'a'", "False"),
        ("D(3) != 'a'", "True"),
        ("D(3) == 3.0", "False"),
        ("D(3) + 1", "Dimension(4)"),
        ("1 + D(3)", "Dimension(4)"),
        ("D(3) + np.int64(2)", "Dimension(5)"),
        ("3 - D(1)", "Dimension(2)"),
        ("D(3) - 1", "Dimension(2)"),
        ("5 - D(None)", "Dimension(None)"),
        ("D(3) * 2", "Dimension(6)"),
        ("2 * D(3)", "Dimension(6)"),
        ("D(7) // 2", "Dimension(3)"),
        ("7 // D(2)", "Dimension(3)"),
        ("D(7) % 4", "Dimension(3)"),
        ("7 % D(4)", "Dimension(3)"),
        ("D(3) + D(None)", "Dimension(None)"),
        ("D(None) % 3", "Dimension(None)"),
        ("(D(3) < 4, D(3) <= 2, D(3) > 2, D(3) >= 3)", "(True, False, True, True)"),
        ("(D(3) < D(None), D(None) >= 3)", "(None, None)"),
        ("(int(D(3)), float(D(3)), list(range(D(2))))", "(3, 3.0, [0, 1])"),
        ("np.zeros(D(3)).shape", "(3,)"),
        ("np.zeros(3).reshape([D(1), D(3)]).shape", "(1, 3)"),
        ("(bool(D(0)), bool(D(None)), bool(D(1)))", "(False, False, True)"),
        ("D(None).merge_with(4)", "Dimension(4)"),
        ("D(4).merge_with(None)", "Dimension(4)"),
        ("D(4).is_compatible_with(None)", "True"),
        ("(D(3).value, D(None).value)", "(3, None)"),
        ("as_dimension(3)", "Dimension(3)"),
        ("[dimension_value(x) for x in (D(3), D(None), 3, None)]", "[3, None, 3, None]"),
        ("S([1, None]) == S([1, None])", "True"),
        ("S(None) == S(None)", "True"),
        ("S(None) == S([1])", "False"),
        ("S([1]) == [1]", "True"),
        ("(1,) == S([1])", "True"),
        ("S([1]) == 'a'", "False"),
        ("S([2]) == 2", "True"),
        ("S([2]) == None", "False"),
        ("S(None) == None", "True"),
        ("S([1]) != S([2])", "True"),
        ("S([None]) != S([None])", "False"),
        ("S([1]) == [-1]", "False"),
        ("S([3, 4]).__eq__(object())", "NotImplemented"),
        ("S([1, 2]) + [3]", "TensorShape([Dimension(1), Dimension(2), Dimension(3)])"),
        ("[3] + S([1, 2])", "TensorShape([Dimension(3), Dimension(1), Dimension(2)])"),
        ("S(None) + [3]", "TensorShape(None)"),
        ("S([2]).concatenate([None])", "TensorShape([Dimension(2), Dimension(None)])"),
        ("S([1, 2])[0]", "Dimension(1)"),
        ("S([1, 2])[np.int64(-1)]", "Dimension(2)"),
        ("S([1, 2])[1:]", "TensorShape([Dimension(2)])"),
        ("S(None)[0]", "Dimension(None)"),
        ("S(None)[1:3]", "TensorShape([Dimension(None), Dimension(None)])"),
        ("S(None)[1:]", "TensorShape(None)"),
        ("S(None)[:-1]", "TensorShape(None)"),
        ("list(S([1, None]))", "[Dimension(1), Dimension(None)]"),
        ("S(3)", "TensorShape([Dimension(3)])"),
        ("S(S([1]))", "TensorShape([Dimension(1)])"),
        ("S([])", "TensorShape([])"),
        ("str(S([None, 3])) + str(S([None])) + str(S([])) + str(S(None))", "'(?, 3)(?,)()<unknown>'"),
        ("S(None).with_rank(2)", "TensorShape([Dimension(None), Dimension(None)])"),
        ("S([1, None]).as_list()", "[1, None]"),
        ("(S([1, None]).num_elements(), S([2, 3]).num_elements(), S([]).num_elements())", "(None, 6, 1)"),
        ("S([2, 3]).most_specific_compatible_shape([2, 4])", "TensorShape([Dimension(2), Dimension(None)])"),
        ("S([2, 3]).most_specific_compatible_shape([2])", "TensorShape(None)"),
        ("(bool(S(None)), bool(S([])))", "(False, True)"),
        ("(S([1, 2]).dims, S(None).dims)", "([Dimension(1), Dimension(2)], None)"),
        ("(S([1, 2]).ndims, S(None).rank, len(S([1, 2])))", "(2, None, 2)"),
        ("S([1, 2]).is_compatible_with([None, 2])", "True"),
        ("S([1, 2]).is_compatible_with(None)", "True"),
        ("S([1, 2]).is_compatible_with([1, 2, 3])", "False"),
        ("S([1, None]).merge_with([None, 2])", "TensorShape([Dimension(1), Dimension(2)])"),
        ("unknown_shape(2)", "TensorShape([Dimension(None), Dimension(None)])"),
        ("unknown_shape()", "TensorShape(None)"),
        ("as_shape([1])", "TensorShape([Dimension(1)])"),
        ("(dimension_at_index(S([1, 2]), 1), dimension_at_index(S(None), 1))", "(Dimension(2), Dimension(None))"),
        ("(S([1]).with_rank_at_least(1), S([1]).with_rank_at_most(1))[0]", "TensorShape([Dimension(1)])"),
    ],
)
def test_value(expression: str, text: str) -> None:
    assert repr(eval(expression, NAMES)) == text


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("D(-1)", ValueError, "Dimension -1 must be >= 0"),
        ("D('a')", TypeError, "Dimension value must be integer or None or have an __index__ method"),
        ("D(3) - 5", ValueError, "Dimension -2 must be >= 0"),
        ("D(7) / 2", TypeError, "please use // instead"),
        ("7 / D(2)", TypeError, "unsupported operand type(s) for /: 'int' and 'Dimension', please use //"),
        ("D(4) // 0", ZeroDivisionError, "by zero"),
        ("int(D(None))", TypeError, "unknown dimension is no integer"),
        ("D(3) + 'a'", TypeError, "unsupported operand"),
        ("D(3) * 1.5", TypeError, "unsupported operand"),
        ("-D(3)", TypeError, "bad operand type for unary -"),
        ("D(3) < 'a'", TypeError, "Dimension value must be integer"),
        ("hash(D(3))", TypeError, "unhashable"),
        ("D(3).merge_with(4)", ValueError, "Dimensions 3 and 4 are not compatible"),
        ("D(3).assert_is_compatible_with(4)", ValueError, "Dimensions 3 and 4 are not compatible"),
        ("S(None)[::2]", ValueError, "Steps are not yet handled"),
        ("len(S(None))", ValueError, "Cannot take the length of shape with unknown rank."),
        ("list(S(None))", ValueError, "Cannot iterate over a shape with unknown rank."),
        ("S(None).as_list()", ValueError, "as_list() is not defined on an unknown TensorShape."),
        ("S([1, 2]).merge_with([1, 3])", ValueError, "Shapes (1, 2) and (1, 3) are not compatible"),
        ("S([1, 2]).merge_with([1])", ValueError, "Shapes (1, 2) and (1,) are not compatible"),
        ("S([1]).assert_is_compatible_with([2])", ValueError, "Shapes (1,) and [2] are incompatible"),
        ("S([None]).assert_is_fully_defined()", ValueError, "Shape (?,) is not fully defined"),
        ("S([1]).assert_has_rank(2)", ValueError, "Shape (1,) must have rank 2"),
        ("S([1]).with_rank(2)", ValueError, "Shape (1,) must have rank 2"),
        ("S([1]).assert_same_rank([1, 2])", ValueError, "Shapes (1,) and (1, 2) must have the same rank"),
        ("S([1]).with_rank_at_least(2)", ValueError, "Shape (1,) must have rank at least 2"),
        ("S([1, 2]).with_rank_at_most(1)", ValueError, "Shape (1, 2) must have rank at most 1"),
        ("S([1, 2])[5]", IndexError, "index out of range"),
        ("S([1, 2]) * 2", TypeError, "unsupported operand"),
    ],
)
def test_error(expression: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        eval(expression, NAMES)
    assert message in str(info.value)


def test_proto() -> None:
    assert [dim.size for dim in S([1, None]).as_proto().dim] == [1, -1]
    assert S(None).as_proto().unknown_rank
    for shape in (S([1, None]), S([]), S(None)):
        assert S(shape.as_proto()) == shape


def test_plain_value() -> None:
    for value in ((1, None), (), None):
        assert TensorShape.of(value).as_tuple() == value
        assert TensorShape.of(value) == TensorShape(value)
        assert hash(TensorShape.of(value)) == hash(TensorShape(value))


@pytest.mark.parametrize("value", [S([1, None]), S(None)])
def test_copies(value: Any) -> None:
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(D(3)).value == 3
    assert as_shape(value) is value and as_dimension(dim := D(1)) is dim
