"""Python functions as operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.base import dtypes
from thalweg.graph.convert import get_default_graph
from thalweg.graph.emitter import emit
from thalweg.graph.operation import Operation
from thalweg.ops.py_func import register


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """func of the values of inp (NumPy arrays) as a node; it runs in this process only, and has no gradient.

    Tout: the element types of what it returns: one type gives a tensor, a list gives a list of tensors.
    stateful:
    without it, nodes with the same inputs may be merged or left out. The graph keeps func alive.
    """
    return _python_node("PyFunc" if stateful else "PyFuncStateless", func, inp, Tout, name)


numpy_function = py_func


def _python_node(op: str, func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None) -> Any:
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func={func!r} of type {type(func)}.")
    several = isinstance(Tout, list | tuple)
    kinds = [dtypes.as_dtype(t) for t in (Tout if several else [Tout])]
    # a registry that holds functions weakly must not lose a lambda or a bound method
    kept = get_default_graph()._library_state.setdefault("py_funcs", [])
    kept.append(func)
    result = emit(op, list(inp), token=register(func), Tout=kinds, name=name)
    if several or isinstance(result, Operation):
        return result
    return result[0]
