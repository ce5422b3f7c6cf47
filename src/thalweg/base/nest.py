"""Nested structures: flatten, rebuild, map (tf.nest and TensorFlow 1.x's tensorflow.python.util.nest).

A nest is a list, tuple, namedtuple or other sequence, a mapping (its keys sorted), a view of a mapping, or an
attrs object; strings and bytes are atoms, and so is everything else, NumPy arrays and tensors among them. A
*composite* (a sparse tensor) is an atom too, unless `expand_composites` is set: then its components are seen.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, MappingView, MutableMapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, Self, runtime_checkable

_ATOM, _SEQUENCE, _NAMEDTUPLE, _MAPPING, _VIEW, _ATTRS, _COMPOSITE = range(7)


@runtime_checkable
class Composite(Protocol):
    """An object made of tensors, which `expand_composites` looks into."""

    def _nest_components(self) -> tuple[Any, ...]:
        """Returns the parts in a fixed order."""
        ...

    def _nest_rebuild(self, components: Sequence[Any]) -> Self:
        """Returns an object like this one made of other parts, as many as `_nest_components` gave."""
        ...


def _classify(cls: type, expand_composites: bool) -> int:
    if issubclass(cls, (str, bytes, bytearray, memoryview)):
        return _ATOM
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _NAMEDTUPLE
    if issubclass(cls, Sequence):
        return _SEQUENCE
    if issubclass(cls, Mapping):
        return _MAPPING
    if issubclass(cls, MappingView):
        return _VIEW
    if hasattr(cls, "__attrs_attrs__"):
        return _ATTRS
    if expand_composites and issubclass(cls, Composite):
        return _COMPOSITE
    return _ATOM


# Bounded: a program may make classes without end.
_kind_of: Callable[[type, bool], int] = lru_cache(maxsize=4096)(_classify)


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError(f"nest only supports dicts with sortable keys, got {list(mapping)}.") from None


def _children(structure: Any, kind: int) -> Sequence[Any]:
    if kind in (_SEQUENCE, _NAMEDTUPLE):
        children: Sequence[Any] = structure
        return children
    if kind == _MAPPING:
        return [structure[key] for key in _sorted_keys(structure)]
    if kind == _VIEW:
        return list(structure)
    if kind == _ATTRS:
        return [getattr(structure, field.name) for field in type(structure).__attrs_attrs__]
    return [structure._nest_components()]


def _items(structure: Any, kind: int) -> list[tuple[Any, Any]]:
    """The children with what names each in a path: index, key, field or, for a composite, its class."""
    if kind == _MAPPING:
        return [(key, structure[key]) for key in _sorted_keys(structure)]
    if kind == _NAMEDTUPLE:
        return list(zip(structure._fields, structure, strict=True))
    if kind == _ATTRS:
        return [(field.name, getattr(structure, field.name)) for field in type(structure).__attrs_attrs__]
    if kind == _COMPOSITE:
        return [(type(structure).__name__, structure._nest_components())]
    return list(enumerate(structure))


def _rebuild(structure: Any, kind: int, children: list[Any]) -> Any:
    """Returns something like `structure` with other children, given in the order of `_children`."""
    cls: Any = type(structure)
    if kind == _MAPPING:
        values = dict(zip(_sorted_keys(structure), children, strict=True))
        ordered = [(key, values[key]) for key in structure]
        if isinstance(structure, MutableMapping):
            if isinstance(structure, collections.defaultdict):
                return cls(structure.default_factory, ordered)
            result = cls()
            for key, value in ordered:
                result[key] = value
            return result
        return cls(dict(ordered))
    if kind in (_NAMEDTUPLE, _ATTRS):
        return cls(*children)
    if kind == _COMPOSITE:
        return structure._nest_rebuild(children[0])
    if kind == _VIEW or cls is list or cls is range:
        return list(children)
    return cls(children)


def is_nested(seq: object) -> bool:
    """Returns whether `seq` is a nest rather than an atom."""
    return _kind_of(type(seq), False) != _ATOM


is_sequence = is_nested


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Returns the atoms in order, mappings in the order of their sorted keys. An atom gives [atom].

    Raises:
      TypeError: if a mapping's keys can't be sorted.
    """
    result: list[Any] = []
    _flatten_into(structure, expand_composites, result)
    return result


def _flatten_into(structure: Any, expand_composites: bool, result: list[Any]) -> None:
    kind = _kind_of(type(structure), expand_composites)
    if kind == _ATOM:
        result.append(structure)
    else:
        for child in _children(structure, kind):
            _flatten_into(child, expand_composites, result)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Returns a nest like `structure` with the items of `flat_sequence` as atoms: the inverse of `flatten`.

    Mappings keep the order of keys that `structure` has.

    Raises:
      TypeError: if `flat_sequence` is not a sequence.
      ValueError: if it has not as many items as `structure` has atoms.
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value:\n  {_cut(flat_sequence)}\ninto a structure, "
            f"but found incompatible type `{type(flat_sequence)}` instead."
        )
    items = list(flat_sequence)
    if _kind_of(type(structure), expand_composites) == _ATOM and len(items) != 1:
        raise ValueError(
            f"The target structure is of type `{type(structure)}`\n  {_cut(structure)}\n"
            f"However the input is a sequence ({type(flat_sequence)}) of length {len(items)}.\n"
            f"  {_cut(flat_sequence)}\n"
            "nest cannot guarantee that it is safe to map one to the other."
        )
    remaining = iter(items)
    try:
        packed = _pack(structure, remaining, expand_composites)
        complete = next(remaining, remaining) is remaining
    except StopIteration:
        complete = False
    if not complete:
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure, expand_composites))} atoms, but "
            f"flat_sequence had {len(items)} items.  Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return packed


def _pack(structure: Any, remaining: Iterator[Any], expand_composites: bool) -> Any:
    kind = _kind_of(type(structure), expand_composites)
    if kind == _ATOM:
        return next(remaining)
    # A list, not a generator expression, which would turn StopIteration into RuntimeError.
    children = [_pack(child, remaining, expand_composites) for child in _children(structure, kind)]
    return _rebuild(structure, kind, children)


def _cut(value: object) -> str:
    return f"{str(value)[:100]}..."


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Returns a nest like the first `structure`, with `func(x, y, ...)` of all structures' atoms as atoms.

    Args:
      func: takes as many arguments as there are structures.
      structure: one nest or several of the same structure.
      kwargs: `check_types` (True) and `expand_composites` (False), as in `assert_same_structure`.

    Raises:
      TypeError: if `func` can't be called, or the types of two structures differ.
      ValueError: if no structure is given, the structures differ, or for another keyword argument.
    """
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, "
            f"not: `{'`, `'.join(kwargs)}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    entries = zip(*(flatten(nest, expand_composites) for nest in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*entry) for entry in entries], expand_composites)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that two nests have the same structure, whatever their atoms.

    Args:
      nest1: a nest.
      nest2: another.
      check_types: whether lists, tuples and so on must be the same types, and mappings have the same keys.
        Two namedtuples of the same name and fields always count as one type, and so do all mappings.
      expand_composites: whether to look into composites.

    Raises:
      ValueError: if the structures differ.
      TypeError: if only types differ.
    """
    try:
        _assert_same(nest1, nest2, check_types, expand_composites)
    except (ValueError, TypeError) as error:
        raise type(error)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {_show(nest1)}\n\nSecond structure: {_show(nest2)}\n\n"
            f"More specifically: {error}\n"
            f"Entire first structure:\n{_outline(nest1)}\nEntire second structure:\n{_outline(nest2)}"
        ) from None


class _Dot:
    def __repr__(self) -> str:
        return "."


def _outline(structure: Any) -> Any:
    return map_structure(lambda _: _Dot(), structure)


def _show(value: object) -> str:
    return f"type={type(value).__name__} str={value}"


def _assert_same(first: Any, second: Any, check_types: bool, expand_composites: bool) -> None:
    kind1 = _kind_of(type(first), expand_composites)
    kind2 = _kind_of(type(second), expand_composites)
    if (kind1 == _ATOM) != (kind2 == _ATOM):
        nested, atom = (second, first) if kind1 == _ATOM else (first, second)
        raise ValueError(
            f'Substructure "{_show(nested)}" is a sequence, while substructure "{_show(atom)}" is not'
        )
    if kind1 == _ATOM:
        return
    if check_types:
        _assert_same_types(first, kind1, second, kind2)
    children1, children2 = _children(first, kind1), _children(second, kind2)
    if len(children1) != len(children2):
        raise ValueError(
            "The two structures don't have the same number of elements. "
            f"First structure: {_show(first)}. Second structure: {_show(second)}"
        )
    for child1, child2 in zip(children1, children2, strict=True):
        _assert_same(child1, child2, check_types, expand_composites)


def _assert_same_types(first: Any, kind1: int, second: Any, kind2: int) -> None:
    if kind1 == kind2 == _MAPPING:
        if set(first) != set(second):
            raise ValueError(
                "The two dictionaries don't have the same set of keys. First structure has keys "
                f"{_show(list(first))}, while second structure has keys {_show(list(second))}"
            )
        return
    if not _counts_as_same_type(first, kind1, second, kind2):
        raise TypeError(
            "The two structures don't have the same sequence type. "
            f"First structure {_show(first)} has type {type(first).__name__}, "
            f"while second structure {_show(second)} has type {type(second).__name__}"
        )


def _counts_as_same_type(first: Any, kind1: int, second: Any, kind2: int) -> bool:
    if type(first) is type(second) or (isinstance(first, list) and isinstance(second, list)):
        return True
    return (
        kind1 == kind2 == _NAMEDTUPLE
        and type(first).__name__ == type(second).__name__
        and first._fields == second._fields
    )


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that `shallow_tree` is the upper part of `input_tree`: the same structure as far as it goes.

    Raises:
      TypeError: if types differ (with `check_types`), or `input_tree` has an atom where the other goes on.
      ValueError: if lengths or keys differ.
    """
    kind = _kind_of(type(shallow_tree), expand_composites)
    if kind == _ATOM:
        return
    input_kind = _kind_of(type(input_tree), expand_composites)
    if input_kind == _ATOM:
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. "
            f"Input has type: {type(input_tree)}."
        )
    if (
        check_types
        and not isinstance(input_tree, type(shallow_tree))
        and not (kind == input_kind == _MAPPING)
        and not _counts_as_same_type(shallow_tree, kind, input_tree, input_kind)
    ):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    children, input_children = _children(shallow_tree, kind), _children(input_tree, input_kind)
    if len(children) != len(input_children):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_children)}, while shallow structure has length {len(children)}."
        )
    if kind == input_kind == _MAPPING and (absent := set(shallow_tree) - set(input_tree)):
        raise ValueError(
            "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the "
            f"following keys that are not in the input_tree: {sorted(absent)}."
        )
    for child, input_child in zip(children, input_children, strict=True):
        assert_shallow_structure(child, input_child, check_types, expand_composites)


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """Returns the parts of `input_tree` that stand where `shallow_tree` has its atoms, in order.

    Raises as `assert_shallow_structure`.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites)
    result: list[Any] = []
    _flatten_up_to_into(shallow_tree, input_tree, expand_composites, result)
    return result


def _flatten_up_to_into(shallow: Any, tree: Any, expand_composites: bool, result: list[Any]) -> None:
    kind = _kind_of(type(shallow), expand_composites)
    if kind == _ATOM:
        result.append(tree)
        return
    tree_children = _children(tree, _kind_of(type(tree), expand_composites))
    for child, tree_child in zip(_children(shallow, kind), tree_children, strict=True):
        _flatten_up_to_into(child, tree_child, expand_composites, result)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """Returns a nest like `shallow_tree`, its atoms `func` of the parts of the inputs that stand there.

    Args:
      shallow_tree: says how deep to go.
      func: takes as many arguments as there are inputs, and the keyword arguments that are left.
      inputs: nests that start like `shallow_tree`.
      kwargs: `check_types` and `expand_composites` as in `assert_shallow_structure`; others go to `func`.

    Raises:
      ValueError: if no input is given; else as `assert_shallow_structure`.
    """
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    flat = [flatten_up_to(shallow_tree, tree, check_types, expand_composites) for tree in inputs]
    results = [func(*entry, **kwargs) for entry in zip(*flat, strict=True)]
    return pack_sequence_as(shallow_tree, results, expand_composites)


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """Returns the upper part of `structure` that `traverse_fn` asks for, with bools as atoms.

    Args:
      traverse_fn: is asked of each nest and atom on the way down: True to go on into it (or take it, an
        atom), False not to, or a nest of bools that says so for the parts below.
      structure: a nest.
      expand_composites: whether to look into composites.

    Raises:
      TypeError: if `traverse_fn` returns something else.
    """
    answer = traverse_fn(structure)
    kind = _kind_of(type(structure), expand_composites)
    if kind == _ATOM:
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned structure: {answer} for an atom, where a bool is needed")
        return answer
    parts = _children(structure, kind)
    if isinstance(answer, bool):
        if not answer:
            return False
        answers: Sequence[Any] = [True] * len(parts)
    else:
        assert_shallow_structure(answer, structure, expand_composites=expand_composites)
        answers = _children(answer, _kind_of(type(answer), expand_composites))
    chosen = []
    for wanted, part in zip(answers, parts, strict=True):
        if not isinstance(wanted, bool):
            raise TypeError(f"traverse_fn didn't return a depth=1 structure of bools, but {answer}")
        chosen.append(
            get_traverse_shallow_structure(traverse_fn, part, expand_composites) if wanted else False
        )
    return _rebuild(structure, kind, chosen)


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yields for each atom, in the order of `flatten`, the indices, keys and field names that lead to it."""
    kind = _kind_of(type(nest), expand_composites)
    if kind == _ATOM:
        yield ()
        return
    for key, child in _items(nest, kind):
        for path in yield_flat_paths(child, expand_composites):
            yield (key, *path)


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Any, Any]]:
    """Returns pairs of path (see `yield_flat_paths`) and atom."""
    paths = yield_flat_paths(structure, expand_composites)
    return list(zip(paths, flatten(structure, expand_composites), strict=True))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """Returns pairs of path, written as "a/0/b", and atom."""
    pairs = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(str(key) for key in path), atom) for path, atom in pairs]


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns a flat dictionary of one whose keys are nests, each with a value of the same structure.

    `{(4, (6, 8)): ("a", ("c", "d"))}` becomes `{4: "a", 6: "c", 8: "d"}`.

    Raises:
      TypeError: if `dictionary` is not a mapping.
      ValueError: if a value has not the structure of its key, or a flat key comes twice.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError(f"'dictionary' must be a mapping, instead of '{type(dictionary).__name__}'.")
    result: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value]) if not is_nested(key) else (flatten(key), flatten(value))
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, "
                f"but value had {len(values)} elements. Key: {keys}, value: {values}."
            )
        for flat_key, flat_value in zip(keys, values, strict=True):
            if flat_key in result:
                raise ValueError(f"Cannot flatten dict because this key is not unique: {flat_key}")
            result[flat_key] = flat_value
    return result
