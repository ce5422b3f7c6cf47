"""Einstein's summation, by transposes and (batched) matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from thalweg.base import dtypes
from thalweg.graph.convert import convert_to_tensor
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Tensor
from thalweg.library.arguments import scope
from thalweg.library.array_ops import shape
from thalweg.library.matrix_ops import matmul
from thalweg.library.reduction_ops import reduce_sum


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Tensor:
    """The sum of products that the equation says: "ij,jk->ik" is a matrix product.

    "..." stands for axes that broadcast. Without "->" the letters that occur once are kept, in
    alphabetical order.
    More than two tensors are multiplied pair by pair, those first whose product is smallest beside them.
    Errors: ValueError for a malformed equation, one that doesn't fit the tensors, or a letter twice in one
    term.
    """
    with scope(name, "einsum") as named:
        left, arrow, output = equation.replace(" ", "").partition("->")
        terms = left.split(",")
        if len(terms) != len(inputs):
            raise ValueError(f'einsum "{equation}" is of {len(terms)} tensors, got {len(inputs)}')
        tensors = [convert_to_tensor(x, name="input") for x in inputs]
        if not arrow:
            letters = left.replace(",", "").replace(".", "")
            once = sorted(c for c in set(letters) if letters.count(c) == 1)
            output = ("..." if "..." in left else "") + "".join(once)
        terms, output = _without_ellipsis(equation, terms, output, tensors)
        _check(equation, terms, output, tensors)
        while len(tensors) > 1:
            i, j = _cheapest_pair(terms, tensors, output)
            rest = [k for k in range(len(terms)) if k not in (i, j)]
            middle = output if not rest else _joint(terms[i], terms[j], [terms[k] for k in rest], output)
            product = _product(tensors[i], terms[i], tensors[j], terms[j], middle)
            tensors = [*(tensors[k] for k in rest), product]
            terms = [*(terms[k] for k in rest), middle]
        result = _arranged(_summed(tensors[0], terms[0], output), _kept(terms[0], output), output)
        return emit("Identity", result, name=named)


# ---- the equation --------------------------------------------------------------------------------------


def _without_ellipsis(
    equation: str, terms: list[str], output: str, tensors: list[Tensor]
) -> tuple[list[str], str]:
    """Every "..." as letters of its own, aligned at the right."""
    if "..." not in equation:
        return terms, output
    used = set(equation)
    spare = [c for c in map(chr, range(ord("A"), ord("Z") + 1)) if c not in used][::-1]
    longest = 0
    result = []
    for term, tensor in zip(terms, tensors, strict=True):
        if "..." not in term:
            result.append(term)
            continue
        if tensor._shape is None:
            raise ValueError(f"einsum \"{equation}\": '...' needs a known rank, '{tensor.name}' has none")
        n = len(tensor._shape) - len(term) + 3
        if n < 0:
            raise ValueError(f'einsum "{equation}": \'{tensor.name}\' has too few axes for "{term}"')
        longest = max(longest, n)
        result.append(term.replace("...", "".join(spare[:n][::-1])))
    return result, output.replace("...", "".join(spare[:longest][::-1]))


def _check(equation: str, terms: list[str], output: str, tensors: list[Tensor]) -> None:
    for term in [*terms, output]:
        if not all(c.isalpha() for c in term):
            raise ValueError(f'einsum "{equation}": "{term}" is not made of letters and one "..."')
        if len(set(term)) != len(term):
            raise ValueError(f'einsum "{equation}": an axis appears more than once in "{term}"')
    unknown = set(output) - set("".join(terms))
    if unknown:
        raise ValueError(f'einsum "{equation}": the output has axes that no input has: {sorted(unknown)}')
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        static = tensor._shape
        if static is None:
            continue
        if len(static) != len(term):
            raise ValueError(
                f'einsum "{equation}": "{term}" has {len(term)} axes, \'{tensor.name}\' has {len(static)}'
            )
        for c, d in zip(term, static, strict=True):
            if d is None or d == 1:
                continue
            if sizes.setdefault(c, d) != d:
                raise ValueError(
                    f'einsum "{equation}": axis {c} is {sizes[c]} in one tensor and {d} in another'
                )


def _joint(a: str, b: str, others: list[str], output: str) -> str:
    """The axes of the product of two terms that something else still needs."""
    needed = set("".join(others) + output)
    return "".join(c for c in dict.fromkeys(a + b) if c in needed)


def _cheapest_pair(terms: list[str], tensors: list[Tensor], output: str) -> tuple[int, int]:
    """The pair whose product is smallest beside what it replaces; unknown dimensions count as 1."""
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        if tensor._shape is not None:
            sizes.update((c, d) for c, d in zip(term, tensor._shape, strict=True) if d is not None)

    def size(term: str) -> int:
        return int(np.prod([sizes.get(c, 1) for c in term], dtype=np.int64))

    def growth(pair: tuple[int, int]) -> int:
        i, j = pair
        others = [t for k, t in enumerate(terms) if k not in pair]
        return size(_joint(terms[i], terms[j], others, output)) - size(terms[i]) - size(terms[j])

    n = len(terms)
    return min(((i, j) for i in range(n) for j in range(i + 1, n)), key=growth)


# ---- the nodes -----------------------------------------------------------------------------------------


def _kept(term: str, needed: str) -> str:
    return "".join(c for c in term if c in needed)


def _summed(x: Tensor, term: str, needed: str) -> Tensor:
    """x without the axes that nothing needs."""
    axes = [i for i, c in enumerate(term) if c not in needed]
    return reduce_sum(x, axes) if axes else x


def _arranged(x: Tensor, term: str, order: str) -> Tensor:
    """x with its axes in another order."""
    if term == order:
        return x
    return emit("Transpose", x, np.array([term.index(c) for c in order], np.int32), name="transpose")


def _product(a: Tensor, a_term: str, b: Tensor, b_term: str, output: str) -> Tensor:
    """Two tensors multiplied and summed to the axes `output`."""
    a, a_term = _summed(a, a_term, b_term + output), _kept(a_term, b_term + output)
    b, b_term = _summed(b, b_term, a_term + output), _kept(b_term, a_term + output)
    batch = "".join(c for c in output if c in a_term and c in b_term)
    inner = "".join(c for c in a_term if c in b_term and c not in output)
    rows = "".join(c for c in output if c in a_term and c not in b_term)
    columns = "".join(c for c in output if c in b_term and c not in a_term)
    if not inner:
        return emit("Mul", _spread(a, a_term, output), _spread(b, b_term, output), name="mul")
    a = _arranged(a, a_term, batch + rows + inner)
    b = _arranged(b, b_term, batch + inner + columns)
    a_sizes, b_sizes = _sizes(a, len(batch + rows + inner)), _sizes(b, len(batch + inner + columns))
    n = len(batch)
    product = matmul(
        _grouped(a, a_sizes, n, [len(rows), len(inner)]), _grouped(b, b_sizes, n, [len(inner), len(columns)])
    )
    if len(rows) != 1 or len(columns) != 1:
        lead = _sizes(product, n + 2)[:n]
        column_sizes = b_sizes[n + len(inner) :]
        product = _reshaped(product, [*lead, *a_sizes[n : n + len(rows)], *column_sizes])
    return _arranged(product, batch + rows + columns, output)


def _spread(x: Tensor, term: str, output: str) -> Tensor:
    """x with its axes in the order of output, and new ones of length 1 where it has none."""
    kept = "".join(c for c in output if c in term)
    x = _arranged(x, term, kept)
    if kept == output or not kept:
        return x
    sizes = iter(_sizes(x, len(kept)))
    return _reshaped(x, [next(sizes) if c in kept else 1 for c in output])


def _sizes(x: Tensor, n: int) -> list[Any]:
    """The dimensions: numbers where they are known, else scalar tensors."""
    static = x._shape
    if static is not None and None not in static:
        return list(static)
    dims = shape(x)
    return [dims[i] if static is None or static[i] is None else static[i] for i in range(n)]


def _grouped(x: Tensor, sizes: list[Any], batch: int, groups: list[int]) -> Tensor:
    """x with the axes after the batch multiplied together in groups of these lengths."""
    if groups == [1, 1]:
        return x
    new = sizes[:batch]
    at = batch
    for n in groups:
        new.append(_multiplied(sizes[at : at + n]))
        at += n
    return _reshaped(x, new)


def _multiplied(sizes: list[Any]) -> Any:
    result: Any = 1
    for size in sizes:
        result = size if isinstance(result, int) and result == 1 else result * size
    return result


def _reshaped(x: Tensor, sizes: list[Any]) -> Tensor:
    if not sizes:
        return emit("Reshape", x, np.zeros(0, np.int32))
    return emit("Reshape", x, convert_to_tensor(sizes, dtypes.int32, name="shape"))
