"""Compiled loops and branches: the kernels of _CompiledLoop and _CompiledCond, over bodies that are traced.

A condition (kernel.checks) that fails inside a loop can't leave it by itself: the loop carries a flag for
each condition and the values that its message needs, ends where one fails, and hands them on at its end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from thalweg.kernel import checks
from thalweg.kernel.body import Body
from thalweg.kernel.trace import interpret

#: up to this many elements both sides of a branch of cheap nodes are computed
SELECT_ELEMENTS = 4096


class LoopChanges(NotImplementedError):
    """A loop variable changes its shape between iterations, or the sides of a branch return different shapes,
    or one of them doesn't fit the shapes of a run in which the other is taken.

    Compiled code can't do that: the cluster runs `eagerly` instead.
    """


class _Mode(threading.local):
    eager = False


_mode = _Mode()


class eagerly:
    """While entered, loops and branches in this thread run step by step, over arrays that are there."""

    def __enter__(self) -> None:
        self._old = _mode.eager
        _mode.eager = True

    def __exit__(self, *_: Any) -> None:
        _mode.eager = self._old


class _Section:
    """One body of a loop or branch, its captured values bound."""

    def __init__(self, body: Body, known: Sequence[Any]) -> None:
        self.body = body
        self.known = [np.asarray(k) for k in known]

    def __call__(self, arrays: Sequence[Any]) -> tuple[list[Any], list[checks.Check]]:
        """(results, conditions)."""
        with checks.collecting() as found:
            return interpret(self.body, self.known, arrays), found


def run_while(
    variables: Sequence[Any],
    captured: Sequence[Any],
    popped: Sequence[Any],
    count: Sequence[Any],
    known: Sequence[Any],
    *,
    cond: Body,
    body: Body,
    finish: Body,
    fixed: Body,
    arrays: tuple[int, ...],
    counters: tuple[int, ...],
    pushes: int,
    trips: tuple[int, ...],
) -> list[Any]:
    """Runs a loop.

    Every body takes variables, captured, one element of each of `popped`, and the known values. cond returns
    the condition; body the next variables, then `pushes` values to keep; finish what leaves the loop.
    popped: what another loop kept, `count` iterations of it; taken from the last to the first.
    arrays: variables that are buffers of TensorArrays, whose first value may not have its shape yet.
    fixed: values of the body that follow from shapes, the same in all iterations.
    counters: variables that change by one in each iteration.
    trips: (limit, first, step, inclusive): where in `known` the bounds of the iterations are; see bound.
    Returns the results of finish, then what was kept, stacked, then (where anything was) the iterations run,
    then the results of fixed, as NumPy arrays.
    """
    loop = _Loop(captured, popped, count, known[: len(body.static_args)], cond, body, finish)
    states = [v if i in counters else _hidden(v) for i, v in enumerate(variables)]
    if _mode.eager:
        if fixed.results:
            raise NotImplementedError(
                f"the loop round '{body.result_names[0]}' changes shapes that its gradient takes as fixed: "
                "set rewrite_options.loop_optimization to OFF in the session's config"
            )
        return loop.step_by_step(states, pushes)
    length = max(1, bound(known, trips)) if pushes else 0
    results, states = loop.compiled(states, arrays, pushes, length)
    return results + (loop.fixed(fixed, states) if fixed.results else [])


def bound(known: Sequence[Any], trips: tuple[int, ...]) -> int:
    """How many iterations there are at most: of a counter from `first` by `step` while < (or <=) limit."""
    limit, first, step, inclusive = trips
    span = int(known[limit]) - int(known[first]) + inclusive
    return max(0, -(-span // step))


class _Loop:
    def __init__(
        self,
        captured: Sequence[Any],
        popped: Sequence[Any],
        count: Sequence[Any],
        known: Sequence[Any],
        cond: Body,
        body: Body,
        finish: Body,
    ) -> None:
        self.captured = list(captured)
        self.popped = list(popped)
        self.count = count[0] if count else None
        self.cond, self.body, self.finish = (_Section(b, known) for b in (cond, body, finish))

    def _arrays(self, states: Sequence[Any], k: Any) -> list[Any]:
        """What the body takes in iteration k."""
        elements = []
        for kept in self.popped:
            at = lax.sub(lax.sub(jnp.asarray(self.count, np.int32), jnp.asarray(k, np.int32)), np.int32(1))
            elements.append(lax.dynamic_index_in_dim(kept, at, keepdims=False))
        return [*states, *self.captured, *elements]

    def _outer(self, states: Sequence[Any]) -> list[Any]:
        """What cond and finish take: they use nothing that is popped."""
        return [*states, *self.captured, *(None for _ in self.popped)]

    def _finish(self, states: Sequence[Any]) -> list[Any]:
        results, found = self.finish(self._outer(states))
        _hand_on(found, [c.ok for c in found], [c.values for c in found])
        return results

    def step_by_step(self, states: list[Any], pushes: int) -> list[Any]:
        rows: list[list[Any]] = [[] for _ in range(pushes)]
        k = 0
        while bool(self.cond(self._outer(states))[0][0]):
            results, found = self.body(self._arrays(states, k))
            bad = [c for c in found if not bool(c.ok)]
            if bad:
                _hand_on(bad, [c.ok for c in bad], [c.values for c in bad])
                break
            n = len(states)
            states = results[:n]
            for row, value in zip(rows, results[n:], strict=True):
                row.append(value)
            k += 1
        kept = [jnp.stack(row) if row else jnp.zeros((0,)) for row in rows]
        return [*self._finish(states), *kept, *([jnp.asarray(k, np.int32)] if pushes else [])]

    def compiled(
        self, states: list[Any], arrays: tuple[int, ...], pushes: int, length: int
    ) -> tuple[list[Any], list[Any]]:
        """What run_while returns, and the first values of the variables in the shapes that they have."""
        n = len(states)
        states = [jnp.asarray(s) for s in states]
        counts = bool(self.popped) or pushes > 0
        kept: list[Any] = []
        oks: list[Any] = []
        values: list[list[Any]] = []
        found: list[checks.Check] = []
        if arrays or pushes or self.body.body.may_fail:
            specs, found, value_specs = self._settle(states, arrays)
            kept = [jnp.zeros((length, *s.shape), s.dtype) for s in specs[n:]]
            oks = [jnp.asarray(True) for _ in found]
            values = [[jnp.zeros(v.shape, v.dtype) for v in vs] for vs in value_specs]

        def goes_on(carry: Any) -> Any:
            states, _, _, oks, _ = carry
            (pred,), _ = self.cond(self._outer(states))
            pred = jnp.asarray(pred).reshape(())
            for ok in oks:
                pred = lax.bitwise_and(pred, ok)
            return pred

        def step(carry: Any) -> Any:
            states, kept, k, oks, values = carry
            results, now = self.body(self._arrays(states, k))
            following = [jnp.asarray(r) for r in results[:n]]
            self._same_shapes(states, following)
            kept = [
                lax.dynamic_update_index_in_dim(b, jnp.asarray(v), k, 0)
                for b, v in zip(kept, results[n:], strict=True)
            ]
            fresh = [jnp.asarray(c.ok).reshape(()) for c in now]
            values = [
                [_choose(ok, jnp.asarray(new), v) for v, new in zip(vs, c.values, strict=True)]
                for ok, c, vs in zip(oks, now, values, strict=True)
            ]
            oks = [lax.bitwise_and(a, b) for a, b in zip(oks, fresh, strict=True)]
            k = lax.add(k, np.int32(1)) if counts else k
            return following, kept, k, oks, values

        first = states
        carry = (states, kept, jnp.asarray(0, np.int32), oks, values)
        states, kept, k, oks, values = lax.while_loop(goes_on, step, carry)
        _hand_on(found, oks, values)
        return [*self._finish(states), *kept, *([k] if pushes else [])], first

    def fixed(self, body: Body, states: list[Any]) -> list[Any]:
        """The values of a body that follow from shapes."""
        found: list[Any] = []

        def once(states: list[Any]) -> None:
            with checks.collecting():
                arrays = self._arrays(states, np.int32(0))
                found[:] = interpret(body, self.body.known, arrays, as_known=True)

        jax.eval_shape(once, states)
        return found

    def _settle(
        self, states: list[Any], arrays: tuple[int, ...]
    ) -> tuple[list[Any], list[checks.Check], list[list[Any]]]:
        """Gives buffers the shapes that they get in the loop; traces the body once without compiling.

        Returns the shapes of its results, its conditions, and the shapes of their values.
        """
        found: list[checks.Check] = []

        def once(states: list[Any]) -> Any:
            results, now = self.body(self._arrays(states, np.int32(0)))
            found[:] = now
            return [jnp.asarray(r) for r in results], [[jnp.asarray(v) for v in c.values] for c in now]

        for _ in range(len(arrays) + 1):
            specs, value_specs = jax.eval_shape(once, states)
            late = [i for i in arrays if specs[i].shape != states[i].shape and is_unshaped(states[i])]
            if not late:
                break
            for i in late:
                states[i] = jnp.zeros(specs[i].shape, specs[i].dtype)
        return specs, found, value_specs

    def _same_shapes(self, states: list[Any], following: list[Any]) -> None:
        for name, old, new in zip(self.body.body.result_names, states, following, strict=False):
            if old.shape != new.shape or old.dtype != new.dtype:
                raise LoopChanges(
                    f"'{name}' has shape {list(new.shape)} after an iteration, and had {list(old.shape)}"
                )


def _choose(pred: Any, true: Any, false: Any) -> Any:
    return lax.select(lax.broadcast(pred, true.shape), true, false)


def _hidden(value: Any) -> Any:
    """The first value of a variable, an integer that is known hidden from XLA.

    XLA works out how often a loop runs, and is wrong where a counter doesn't change by one: 0 instead of 1
    times for `i = 0; while i < 1: i += 2` (jaxlib 0.10.2).
    """
    if np.ndim(value) or not jnp.issubdtype(value.dtype, jnp.integer):
        return value
    return lax.optimization_barrier(jnp.asarray(value))  # type: ignore[no-untyped-call]


def is_unshaped(buffer: Any) -> bool:
    """Whether a buffer of a TensorArray has no place for elements yet: a size at most."""
    return np.ndim(buffer) == 0 or (np.ndim(buffer) == 2 and buffer.shape[1] == 0)


def _hand_on(found: Sequence[checks.Check], oks: Sequence[Any], values: Sequence[Sequence[Any]]) -> None:
    """Makes conditions of an inner trace conditions of the one round it."""
    outer = checks.current_op()
    for check, ok, vs in zip(found, oks, values, strict=True):
        checks.set_op(check.op)
        checks.require(ok, check.message, *vs, error=check.error)
    checks.set_op(outer)


def run_cond(
    pred: Any,
    captured: Sequence[Any],
    known: Sequence[Any],
    *,
    then: Body,
    otherwise: Body,
    cheap: bool,
) -> list[Any]:
    """Runs the side of a branch that pred chooses. cheap: both sides may be computed where they are small."""
    sides = _Section(otherwise, known), _Section(then, known)
    arrays = list(captured)
    if isinstance(pred, np.ndarray | np.generic) or _mode.eager:
        results, found = sides[bool(pred)](arrays)
        _hand_on(found, [c.ok for c in found], [c.values for c in found])
        return results
    pred = jnp.asarray(pred).reshape(())
    if cheap:
        chosen = _select(pred, sides, arrays)
        if chosen is not None:
            return chosen
    return _branch(pred, sides, arrays)


def _select(pred: Any, sides: tuple[_Section, _Section], arrays: list[Any]) -> list[Any] | None:
    try:
        false, true = ([jnp.asarray(r) for r in side(arrays)[0]] for side in sides)
    except Exception:  # see _branch
        return None
    if any(a.shape != b.shape for a, b in zip(false, true, strict=True)):
        return None
    if sum(a.size for a in false) > SELECT_ELEMENTS:
        return None
    return [_choose(pred, b, a) for a, b in zip(false, true, strict=True)]


def _branch(pred: Any, sides: tuple[_Section, _Section], arrays: list[Any]) -> list[Any]:
    found: list[list[checks.Check]] = [[], []]
    shapes: list[Any] = [None, None]

    def outputs(i: int) -> Any:
        results, now = sides[i](arrays)
        found[i] = now
        return [jnp.asarray(r) for r in results], [
            (jnp.asarray(c.ok).reshape(()), [jnp.asarray(v) for v in c.values]) for c in now
        ]

    for i in (0, 1):
        try:
            shapes[i] = jax.eval_shape(lambda i=i: outputs(i))
        except LoopChanges:
            raise
        except Exception as e:  # the other side is meant, with these shapes: eagerly only one runs
            raise LoopChanges(f"a side of the branch doesn't fit: {e}") from e
    for name, a, b in zip(sides[0].body.result_names, shapes[0][0], shapes[1][0], strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise LoopChanges(f"'{name}' has shape {list(a.shape)} or {list(b.shape)}")
    idle = [
        [(np.True_, [np.zeros(v.shape, v.dtype) for v in vs]) for _, vs in shapes[i][1]] for i in (0, 1)
    ]

    def side(i: int) -> Any:
        def run() -> Any:
            results, flags = outputs(i)
            both = [flags if i == j else idle[j] for j in (0, 1)]
            return results, jax.tree.map(jnp.asarray, both)

        return run

    results, flags = lax.cond(pred, side(1), side(0))
    for i in (0, 1):
        _hand_on(found[i], [ok for ok, _ in flags[i]], [vs for _, vs in flags[i]])
    return list(results)
