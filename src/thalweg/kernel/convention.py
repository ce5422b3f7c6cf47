"""What a kernel is: a function of arrays, and what it needs beyond them, declared and never discovered.

Kinds, each the least power that serves:

- TRACEABLE: pure. `fn(*arrays, **attrs)` over JAX arrays (or tracers), in terms of jax.lax / jax.numpy.
- UPDATE: pure too; some inputs are variables. `fn` gets their old values in place of the references and
  returns their new values. The runtime stores them, under the variables' locks.
- HOST: pure, over NumPy arrays on the CPU: strings, and outputs whose shape depends on data.
- STATEFUL: over NumPy arrays, with the step's context as first argument: the only other door to state.
- ASYNC: as STATEFUL, and returns a concurrent.futures.Future.
- CONTROL: decides which values live and in which iteration; the executor itself knows what it does.
- SEND, RECV: bring a tensor to another device; the runtime knows how (runtime.sendrecv).
- CALL: a function's call, or a branch or loop of functions: gone once a plan is made (plan.inline).
- SOURCE (constants, variables, arguments, results), NOTHING (NoOp), CLUSTER: nodes that the runtime knows.

Arrays come by position, one per input argument (a list for a list argument). Attributes come by keyword:
those that fn names after `*`. dtype attributes arrive as numpy.dtype, strings as str, shapes as tuples.
fn returns one array where the op has one output that is not a list, else a flat sequence of arrays.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.base.dtypes import DType
from thalweg.graph.opdef import OpDef
from thalweg.graph.operation import Operation


class Kind(enum.Enum):
    """How a kernel runs."""

    TRACEABLE = "traceable"
    UPDATE = "update"
    HOST = "host"
    STATEFUL = "stateful"
    ASYNC = "async"
    CONTROL = "control"
    SEND = "send"
    RECV = "recv"
    SOURCE = "source"
    NOTHING = "nothing"
    CLUSTER = "cluster"
    CALL = "call"


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One implementation of an op. Made by the functions below."""

    kind: Kind
    fn: Callable[..., Any]
    #: the same function on NumPy arrays, for values known without running (shape arithmetic, folding)
    host: Callable[..., Any] | None = None
    #: names of inputs whose values must be known when tracing (shapes, axes, paddings ...), or what tells
    #: them of a node
    static: tuple[str, ...] | Callable[[Operation], tuple[str, ...]] = ()
    #: names of resource or reference inputs that fn gets the current value of
    reads: tuple[str, ...] = ()
    #: names of resource or reference inputs that fn gets the old value of and returns the new value of
    writes: tuple[str, ...] = ()
    #: an update that doesn't look at the old value (Assign): fn does not get it
    overwrites: bool = False
    #: an update that may be undone where a condition fails, at no cost: its new value is an element-wise
    #: function of the old one (or doesn't look at it), so choosing between them is part of the same loop
    maskable: bool = False
    #: whether a node may call checks.require with a condition that can fail
    may_fail: Callable[[Operation], bool] | None = None
    #: state of the node's own (a random counter): its initial value. fn gets it first, returns it last
    own_state: Callable[[Operation], np.ndarray] | None = None
    #: the output depends on input shapes only
    shape_only: bool = False
    #: nodes that run `host` rather than being compiled: what runs once and compiles slowly
    on_host: Callable[[Operation], bool] | None = None
    #: where an input is a variable, fn gets it itself and not a copy of its value: context.lent(it) looks at
    #: the value in place, while fn runs
    lends: bool = False
    #: whether fn serves a node; None: always
    compiles: Callable[[Operation], bool] | None = None
    fn_attrs: tuple[str, ...] = ()
    host_attrs: tuple[str, ...] = ()

    def static_names(self, op: Operation) -> tuple[str, ...]:
        """The names of the inputs of this node whose values must be known when tracing."""
        return self.static(op) if callable(self.static) else self.static

    def fold(
        self, definition: OpDef, inputs: Sequence[np.ndarray], attrs: dict[str, Any]
    ) -> Sequence[np.ndarray] | None:
        """The outputs computed on the host, or None where this kernel can't, as a pure function."""
        if self.host is None or self.writes or self.reads or self.own_state is not None:
            return None
        result = self.host(*group_inputs(definition, attrs, inputs), **kernel_attrs(self.host_attrs, attrs))
        return [as_array(v) for v in (result if isinstance(result, list | tuple) else [result])]


def as_array(value: Any) -> np.ndarray:
    """What a kernel puts out as an array. A string becomes an object: NumPy's own strings lose zero bytes at
    the end."""
    return np.asarray(value, object) if isinstance(value, bytes | str) else np.asarray(value)


def group_inputs(definition: OpDef, attrs: dict[str, Any], values: Sequence[Any]) -> list[Any]:
    """Flat input values as one per argument, lists gathered."""
    result: list[Any] = []
    at = 0
    for arg in definition.inputs:
        if arg.number_attr is not None:
            n = attrs[arg.number_attr]
        elif arg.type_list_attr is not None:
            n = len(attrs[arg.type_list_attr])
        else:
            result.append(values[at])
            at += 1
            continue
        result.append(list(values[at : at + n]))
        at += n
    return result


def kernel_attrs(names: Sequence[str], attrs: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a kernel asks for, in the form in which kernels take them."""
    return {name: attr_value(attrs[name]) for name in names}


def attr_value(value: Any) -> Any:
    """A canonical attribute value (see Operation) as kernels take it."""
    if isinstance(value, DType):
        return np.dtype(value.as_numpy_dtype)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, tuple) and value and isinstance(value[0], DType | bytes):
        return tuple(attr_value(v) for v in value)
    return value


def _keyword_names(fn: Callable[..., Any] | None) -> tuple[str, ...]:
    if fn is None:
        return ()
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # builtins and ufuncs take arrays only
        return ()
    return tuple(
        p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    )


def _may_fail(value: bool | Callable[[Operation], bool]) -> Callable[[Operation], bool] | None:
    if value is True:
        return lambda op: True
    return value or None


def traceable(
    fn: Callable[..., Any],
    *,
    host: Callable[..., Any] | None = None,
    static: Sequence[str] | Callable[[Operation], tuple[str, ...]] = (),
    reads: Sequence[str] = (),
    may_fail: bool | Callable[[Operation], bool] = False,
    shape_only: bool = False,
    compiles: Callable[[Operation], bool] | None = None,
) -> Kernel:
    """A pure kernel over JAX arrays.

    host: the same on NumPy, where it is cheap and exact: gives constant folding, static shape inference,
        shape arithmetic inside clusters, and strings.
    static: inputs that fn gets as NumPy arrays always; or a function that names them for a node.
    may_fail: whether fn may call `require`; or a function that tells it of a node (a constant divisor).
    shape_only: fn looks at shapes only and returns NumPy arrays (Shape, Size, Rank).
    compiles: tells of a node whether fn serves it; where not, it runs its host form, outside of clusters
        (the result's shape depends on data).
    """
    return Kernel(
        Kind.TRACEABLE,
        fn,
        host=host,
        static=static if callable(static) else tuple(static),
        reads=tuple(reads),
        may_fail=_may_fail(may_fail),
        shape_only=shape_only,
        compiles=compiles,
        fn_attrs=_keyword_names(fn),
        host_attrs=_keyword_names(host),
    )


def update(
    fn: Callable[..., Any],
    *,
    writes: Sequence[str],
    overwrites: bool = False,
    maskable: bool = False,
    static: Sequence[str] = (),
    may_fail: bool | Callable[[Operation], bool] = False,
) -> Kernel:
    """A pure kernel that gives variables new values.

    maskable: see Kernel; without it a cluster ends before the update where something in it may fail.

    fn gets old values where the op takes references or resources named in `writes` (not those, with
    `overwrites`) and returns a new value for each of them, in that order, as one array or a tuple.
    """
    return Kernel(
        Kind.UPDATE,
        fn,
        static=tuple(static),
        writes=tuple(writes),
        overwrites=overwrites,
        maskable=maskable,
        may_fail=_may_fail(may_fail),
        fn_attrs=_keyword_names(fn),
    )


def random(
    fn: Callable[..., Any],
    *,
    state: Callable[[Operation], np.ndarray],
    static: Sequence[str] = (),
    may_fail: bool | Callable[[Operation], bool] = False,
    host: Callable[..., Any] | None = None,
    on_host: Callable[[Operation], bool] | None = None,
) -> Kernel:
    """A kernel with a state of its own, kept per session: fn(state, *arrays, **attrs) -> (output, new state).

    host, on_host: the same on NumPy, and for which nodes it is used instead of compiling fn.
    """
    return Kernel(
        Kind.UPDATE,
        fn,
        host=host,
        static=tuple(static),
        own_state=state,
        may_fail=_may_fail(may_fail),
        on_host=on_host,
        fn_attrs=_keyword_names(fn),
        host_attrs=_keyword_names(host),
    )


def host(fn: Callable[..., Any], *, foldable: bool = True) -> Kernel:
    """A pure kernel over NumPy arrays. foldable: may run at graph construction when inputs are known."""
    names = _keyword_names(fn)
    return Kernel(Kind.HOST, fn, host=fn if foldable else None, fn_attrs=names, host_attrs=names)


def stateful(fn: Callable[..., Any], *, reads: Sequence[str] = (), lends: bool = False) -> Kernel:
    """fn(context, *arrays, **attrs): the context is a runtime.step.KernelContext.

    lends: variables come as they are, to be looked at one after the other by context.lent, without copies.
    """
    return Kernel(Kind.STATEFUL, fn, reads=tuple(reads), lends=lends, fn_attrs=_keyword_names(fn))


def asynchronous(fn: Callable[..., Any]) -> Kernel:
    """fn(context, *arrays, **attrs) -> Future of what a stateful kernel would return (or just that).

    A future may `describe` what it waits for; its `cancel` must leave nothing behind.
    """
    return Kernel(Kind.ASYNC, fn, fn_attrs=_keyword_names(fn))


def control() -> Kernel:
    """A node of control flow (Switch, Merge, Enter ...): the executor itself knows what it does."""
    return Kernel(Kind.CONTROL, lambda: None)


def source() -> Kernel:
    """A node that the runtime knows: a variable, a constant, an argument."""
    return Kernel(Kind.SOURCE, lambda: None)


def call() -> Kernel:
    """A node that calls functions: a plan has their bodies in its place."""
    return Kernel(Kind.CALL, lambda: None)


def nothing() -> Kernel:
    """A node that does nothing: NoOp."""
    return Kernel(Kind.NOTHING, lambda: ())
