"""Expected values are what TensorFlow gives; messages where programs may look at them."""

import collections
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.base import nest
from thalweg.base.tensor_shape import TensorShape

Point = collections.namedtuple("Point", "x y")
PointAgain = collections.namedtuple("Point", "x y")  # type: ignore[name-match]
Pair = collections.namedtuple("Pair", "x y")
OD = collections.OrderedDict


class SubPoint(Point):
    pass


class MyList(list[Any]):
    pass


class AttrsLike:
    """What the attrs library's decorator leaves on a class."""

    __attrs_attrs__ = (SimpleNamespace(name="b"), SimpleNamespace(name="a"))

    def __init__(self, b: Any, a: Any) -> None:
        self.b, self.a = b, a



class SparseLike:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def _nest_components(self) -> tuple[Any, ...]:
        return self.parts

    def _nest_rebuild(self, components: Any) -> "SparseLike":
        return SparseLike(*components)


nests = st.recursive(
    st.integers() | st.text(max_size=2) | st.none(),
    lambda child: (
        st.lists(child, max_size=3)
        | st.lists(child, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), child, max_size=3)
        | st.builds(Point, child, child)
    ),
    max_leaves=12,
)


@given(nests)
def test_pack_is_the_inverse_of_flatten(structure: Any) -> None:
    flat = nest.flatten(structure)
    packed = nest.pack_sequence_as(structure, flat)
    assert packed == structure and type(packed) is type(structure)
    nest.assert_same_structure(structure, packed)
    assert nest.flatten(nest.map_structure(lambda x: (x,), [structure], check_types=True)) == flat
    assert len(list(nest.yield_flat_paths(structure))) == len(flat)
    assert nest.flatten_up_to(structure, structure) == flat


@pytest.mark.parametrize(
    ("structure", "flat"),
    [
        ({"b": 1, "a": [2, (3,)]}, [2, 3, 1]),
        (5, [5]),
        (None, [None]),
        ([], []),
        ("abc", ["abc"]),
        (b"abc", [b"abc"]),
        ({1}, [{1}]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
        (range(3), [0, 1, 2]),
        (Point(1, [2]), [1, 2]),
        (MappingProxyType({"b": 1, "a": 2}), [2, 1]),
        (collections.deque([1, 2]), [1, 2]),
        (AttrsLike(1, [2]), [1, 2]),
        (SparseLike(1, 2), None),
    ],
)
def test_flatten(structure: Any, flat: Any) -> None:
    assert nest.flatten(structure) == ([structure] if flat is None else flat)


def test_atoms() -> None:
    for atom in (np.ones(2), TensorShape([1]), 1, "a", bytearray(b"a"), {1}, object()):
        assert not nest.is_nested(atom)
    assert nest.is_sequence([1]) and nest.is_sequence({})
    with pytest.raises(TypeError, match="nest only supports dicts with sortable keys"):
        nest.flatten({"a": 1, 2: 3})


def test_pack_keeps_the_kind_and_order_of_mappings() -> None:
    packed = nest.pack_sequence_as({"b": 1, "a": [2, (3,)]}, [10, 20, 30])
    assert list(packed.items()) == [("b", 30), ("a", [10, (20,)])]
    assert nest.pack_sequence_as(OD([("b", 1), ("a", 2)]), [10, 20]) == OD([("b", 20), ("a", 10)])
    default = nest.pack_sequence_as(collections.defaultdict(list, {"b": 1, "a": 2}), [10, 20])
    assert default == {"b": 20, "a": 10} and default["new"] == []
    assert dict(nest.pack_sequence_as(MappingProxyType({"b": 1, "a": 2}), [10, 20])) == {"b": 20, "a": 10}


def test_pack() -> None:
    assert nest.pack_sequence_as(Point(1, 2), [10, 20]) == Point(10, 20)
    assert type(nest.pack_sequence_as(SubPoint(1, 2), [10, 20])) is SubPoint
    assert nest.pack_sequence_as([1, [2]], (10, 20)) == [10, [20]]
    assert nest.pack_sequence_as(1, [10]) == 10
    assert nest.pack_sequence_as(range(2), [1, 2]) == [1, 2]
    assert nest.pack_sequence_as({"b": 1}.values(), [1]) == [1]
    assert type(nest.pack_sequence_as(MyList([1]), [2])) is MyList
    rebuilt = nest.pack_sequence_as(AttrsLike(1, 2), [10, 20])
    assert (rebuilt.b, rebuilt.a) == (10, 20)


@pytest.mark.parametrize(
    ("structure", "flat", "error", "message"),
    [
        ([1, [2]], [10], ValueError, "Could not pack sequence. Structure had 2 atoms, but flat_sequence had 1 items."),
        ([1, [2]], [1, 1, 1], ValueError, "Structure: [1, [2]], flat_sequence: [1, 1, 1]."),
        ([], [1], ValueError, "Structure had 0 atoms"),
        (1, [10, 1, 1], ValueError, "The target structure is of type `<class 'int'>`\n  1...\nHowever the input"),
        ([1], 10, TypeError, "Attempted to pack value:\n  10...\ninto a structure, but found incompatible type"),
    ],
)
def test_pack_refuses(structure: Any, flat: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        nest.pack_sequence_as(structure, flat)
    assert message in str(info.value)


def test_map_structure() -> None:
    assert nest.map_structure(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert nest.map_structure(lambda x: x + 1, {"b": 1, "a": [2]}) == {"b": 2, "a": [3]}
    assert nest.map_structure(lambda x, y: x + y, [1, (2,)], [3, [4]], check_types=False) == [4, (6,)]
    assert nest.map_structure(str, []) == [] and nest.map_structure(str, 3) == "3"
    with pytest.raises(TypeError, match="The two structures don't have the same nested structure"):
        nest.map_structure(lambda x, y: x + y, [1, (2,)], [3, [4]])
    with pytest.raises(TypeError, match="func must be callable, got: 3"):
        nest.map_structure(3, [1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Must provide at least one structure"):
        nest.map_structure(str)
    with pytest.raises(ValueError, match="`expand_composites`, not: `foo`"):
        nest.map_structure(str, [1], foo=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1}, OD(a=1)),
        (Point(1, 2), PointAgain(3, 4)),
        (MyList([1]), [1]),
        ([1], MyList([1])),
        (1, "b"),
    ],
)
def test_same_structure(first: Any, second: Any) -> None:
    nest.assert_same_structure(first, second)


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        ([1, 2], [1], ValueError, "don't have the same number of elements. First structure: type=list str=[1, 2]"),
        ([1, [2]], [1, 2], ValueError, '"type=list str=[2]" is a sequence, while substructure "type=int str=2" is not'),
        (1, [2], ValueError, '"type=list str=[2]" is a sequence, while substructure "type=int str=1" is not'),
        ([1], (1,), TypeError, "First structure type=list str=[1] has type list, while second structure type=tuple"),
        ({"a": 1}, {"b": 1}, ValueError, "First structure has keys type=list str=['a'], while second structure has"),
        ({"a": 1}, {"a": 1, "b": 1}, ValueError, "The two dictionaries don't have the same set of keys."),
        (Point(1, 2), Pair(1, 2), TypeError, "has type Point, while second structure"),
        (Point(1, 2), SubPoint(1, 2), TypeError, "has type SubPoint"),
        (Point(1, 2), (1, 2), TypeError, "has type tuple"),
        ([[1], 2], [(1,), 3], TypeError, "Entire first structure:\n[[.], .]\nEntire second structure:\n[(.,), .]"),
        ({"a": [1]}, {"a": (1,)}, TypeError, "Entire first structure:\n{'a': [.]}"),
        ([[]], [[1]], ValueError, "First structure: type=list str=[]. Second structure: type=list str=[1]"),
    ],
)
def test_different_structure(first: Any, second: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        nest.assert_same_structure(first, second)
    assert message in str(info.value)
    assert str(info.value).startswith("The two structures don't have the same nested structure.\n\nFirst structure: ")


def test_types_need_not_be_checked() -> None:
    nest.assert_same_structure([1], (1,), check_types=False)
    nest.assert_same_structure({"a": 1}, {"b": 1}, check_types=False)
    nest.assert_same_structure({"a": [1]}, [[1]], check_types=False)


def test_flatten_up_to() -> None:
    assert nest.flatten_up_to([True, False], [[1, 2], [3]]) == [[1, 2], [3]]
    assert nest.flatten_up_to({"a": 1}, {"a": [1, 2]}) == [[1, 2]]
    assert nest.flatten_up_to([1, 2], (1, 2), check_types=False) == [1, 2]
    assert nest.flatten_up_to(1, [2, 3]) == [[2, 3]]
    assert nest.flatten_up_to(Point(1, 2), PointAgain(1, [2])) == [1, [2]]
    assert nest.flatten_up_to({"b": 0, "a": 0}, OD([("b", [1]), ("a", 2)])) == [2, [1]]


@pytest.mark.parametrize(
    ("shallow", "tree", "error", "message"),
    [
        ([1, [2]], [1, 2], TypeError, "input must also be a sequence. Input has type: <class 'int'>."),
        ([1, 2], [1, 2, 3], ValueError, "Input structure has length 3, while shallow structure has length 2."),
        ([1, 2], (1, 2), TypeError, "has type <class 'tuple'>, while shallow structure has type <class 'list'>."),
        ({"a": 1}, {"b": 1}, ValueError, "keys that are not in the input_tree: ['a']."),
        (Point(1, 2), Pair(1, 2), TypeError, "don't have the same sequence type"),
        ([[1], 2], [[], 3], ValueError, "Input structure has length 0"),
    ],
)
def test_flatten_up_to_refuses(shallow: Any, tree: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        nest.flatten_up_to(shallow, tree)
    assert message in str(info.value)


def test_map_structure_up_to() -> None:
    pairs = nest.map_structure_up_to([1, 2], lambda a, b: (a, b), [[1], 2], [3, [4, 5]])
    assert pairs == [([1], 3), (2, [4, 5])]
    assert nest.map_structure_up_to((0,), lambda a, k: a + k, (1,), k=3) == (4,)
    with pytest.raises(ValueError, match="Cannot map over no sequences"):
        nest.map_structure_up_to([1], str)


def test_paths() -> None:
    structure = {"b": [1, (2,)], "a": Point(1, [2])}
    paths = [("a", "x"), ("a", "y", 0), ("b", 0), ("b", 1, 0)]
    assert list(nest.yield_flat_paths(structure)) == paths
    assert nest.flatten_with_tuple_paths(structure) == list(zip(paths, [1, 2, 1, 2], strict=True))
    assert nest.flatten_with_joined_string_paths(structure)[1] == ("a/y/0", 2)
    assert nest.flatten_with_joined_string_paths([1, [2]], separator=".") == [("0", 1), ("1.0", 2)]
    assert nest.flatten_with_joined_string_paths(4) == [("", 4)]
    assert list(nest.yield_flat_paths(AttrsLike(1, [2]))) == [("b",), ("a", 0)]


def test_flatten_dict_items() -> None:
    nested = {(4, 5, (6, 8)): ("a", "b", ("c", "d"))}
    assert nest.flatten_dict_items(nested) == {4: "a", 5: "b", 6: "c", 8: "d"}
    assert nest.flatten_dict_items({1: [3], ("b",): (2,)}) == {1: [3], "b": 2}
    with pytest.raises(ValueError, match="this key is not unique: a"):
        nest.flatten_dict_items({"a": 1, ("a",): (2,)})
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 1 elements"):
        nest.flatten_dict_items({(1, 2): 3})
    with pytest.raises(TypeError, match="must be a mapping, instead of 'list'"):
        nest.flatten_dict_items([1])  # type: ignore[arg-type]


def test_composites() -> None:
    structure = [SparseLike(1, 2, 3), 4]
    assert nest.flatten(structure, expand_composites=True) == [1, 2, 3, 4]
    packed = nest.pack_sequence_as(structure, [10, 20, 30, 40], expand_composites=True)
    assert packed[0].parts == (10, 20, 30) and packed[1] == 40
    doubled = nest.map_structure(lambda x: 2 * x, structure, expand_composites=True)
    assert doubled[0].parts == (2, 4, 6)
    paths = list(nest.yield_flat_paths(structure, expand_composites=True))
    assert paths[0] == (0, "SparseLike", 0)
    assert nest.flatten_up_to(structure, structure, expand_composites=True) == [1, 2, 3, 4]
    nest.assert_same_structure(structure, [SparseLike(4, 5, 6), 7], expand_composites=True)
    with pytest.raises(ValueError, match="is a sequence, while"):
        nest.assert_same_structure(structure, [5, 7], expand_composites=True)


def test_get_traverse_shallow_structure() -> None:
    def visit(part: Any) -> Any:
        if isinstance(part, Point):
            return Point(False, True)
        return not isinstance(part, dict)

    nested = (Point([1], [2, 3]), {"a": 4}, [5])
    assert nest.get_traverse_shallow_structure(visit, nested) == (Point(False, [True, True]), False, [True])
    with pytest.raises(TypeError, match="for an atom, where a bool is needed"):
        nest.get_traverse_shallow_structure(lambda _: [True], [1])
    with pytest.raises(TypeError, match="depth=1 structure of bools"):
        nest.get_traverse_shallow_structure(lambda s: [[True]] if s == [[1]] else True, [[1]])
