"""TF 1.x programs with branches and loops that run. Each takes the module `tf`: TensorFlow's own, or thalweg.

record_control_flow.py writes down what TensorFlow computes; tests/library/test_control_flow_programs.py compares.
A program builds into the default graph and returns a Case. Errors count too: a run that fails is recorded as the
name of its error's class.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FLOAT = np.float32


@dataclasses.dataclass
class Case:
    """What to run: the fetches, once with each of the feeds."""

    fetches: Sequence[Any]
    feeds: Sequence[dict[Any, Any]] = ({},)


PROGRAMS: dict[str, Callable[[Any], Case]] = {}


def program(build: Callable[[Any], Case]) -> Callable[[Any], Case]:
    """Adds a program under its function's name."""
    assert build.__name__ not in PROGRAMS
    PROGRAMS[build.__name__] = build
    return build


def run(
    tf: Any, name: str, config: Any = None, programs: dict[str, Callable[[Any], Case]] = PROGRAMS
) -> dict[str, np.ndarray]:
    """Builds and runs a program. The values of run r's fetch f under "name/r/f"."""
    result: dict[str, np.ndarray] = {}
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        case = programs[name](tf)
        with tf.Session(graph=graph, config=config) as session:
            session.run(tf.global_variables_initializer())
            for r, feed in enumerate(case.feeds):
                try:
                    values = session.run(list(case.fetches), feed)
                except tf.errors.OpError as e:
                    result[f"{name}/{r}/error"] = np.array([type(e).__name__.encode()], object)
                    continue
                for f, value in enumerate(values):
                    if value is not None:
                        result[f"{name}/{r}/{f}"] = np.asarray(value)
    return result


def grads(tf: Any, ys: Any, xs: Sequence[Any], **kwargs: Any) -> list[Any]:
    """The gradients, dense, zeros where there is none."""
    found = tf.gradients(ys, list(xs), **kwargs)
    return [tf.zeros_like(x) if g is None else tf.convert_to_tensor(g) for g, x in zip(found, xs)]  # noqa: B905


def _floats(tf: Any, *names: str) -> list[Any]:
    return [tf.placeholder(tf.float32, [], name=n) for n in names]


def _matrix(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 / 4 - 0.75).astype(FLOAT)


# ---- branches --------------------------------------------------------------------------------------------


@program
def cond_two_sides(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    z = tf.cond(x < y, lambda: x * x * y, lambda: tf.sin(y) + 3.0)
    return Case([z, *grads(tf, z, [x, y])], [{x: 1.5, y: 2.0}, {x: 2.5, y: 2.0}])


@program
def cond_returns_outside_value(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    z = tf.cond(x < y, lambda: x, lambda: y)
    return Case([z, *grads(tf, z * 2.0, [x, y])], [{x: 1.0, y: 2.0}, {x: 3.0, y: 2.0}])


@program
def cond_nest_of_results(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    r = tf.cond(
        x > 0.0,
        lambda: {"a": x * y, "b": (tf.constant(1), [y])},
        lambda: {"a": y, "b": (tf.constant(2), [x * 3.0])},
    )
    parts = [r["a"], r["b"][0], r["b"][1][0]]
    return Case([*parts, *grads(tf, [parts[0], parts[2]], [x, y])], [{x: 2.0, y: 5.0}, {x: -2.0, y: 5.0}])


@program
def cond_in_cond(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")

    def inner() -> Any:
        z = x + y
        return tf.cond(z > 3.0, lambda: z * x, lambda: tf.cond(y > 0.0, lambda: z * z, lambda: x - y))

    z = tf.cond(x > 0.0, inner, lambda: -x)
    feeds = [{x: 2.0, y: 2.0}, {x: 1.0, y: 1.0}, {x: 1.0, y: -1.0}, {x: -1.0, y: 1.0}]
    return Case([z, *grads(tf, z, [x, y])], feeds)


@program
def cond_shares_value_between_branches(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    shared = tf.exp(x)
    a = tf.cond(y > 0.0, lambda: shared * y, lambda: shared + y)
    b = tf.cond(y < 1.0, lambda: shared * a, lambda: a)
    return Case([a, b, *grads(tf, b, [x, y])], [{x: 0.5, y: 0.5}, {x: 0.5, y: 2.0}, {x: 0.5, y: -2.0}])


@program
def cond_different_shapes(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(_matrix(2, 3))
    z = tf.cond(p, lambda: x, lambda: tf.reshape(x, [6, 1]) * 2.0)
    s = tf.reduce_sum(z * z)
    return Case([z, tf.shape(z), *grads(tf, s, [x])], [{p: True}, {p: False}])


@program
def cond_side_effects(tf: Any) -> Case:
    hits = [tf.Variable(0, name=n) for n in "tfo"]
    outside = tf.assign_add(hits[2], 1)
    p = tf.placeholder(tf.bool, [])

    def true_fn() -> Any:
        with tf.control_dependencies([tf.assign_add(hits[0], 1), outside]):
            return tf.constant(10)

    def false_fn() -> Any:
        with tf.control_dependencies([tf.assign_add(hits[1], 1)]):
            return tf.constant(20)

    out = tf.cond(p, true_fn, false_fn)
    with tf.control_dependencies([out]):
        after = [tf.identity(h.read_value()) for h in hits]
    return Case([out, *after], [{p: v} for v in (True, False, False, True)])


@program
def cond_operations_as_results(tf: Any) -> Case:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    p = tf.placeholder(tf.bool, [])
    ran = tf.cond(p, lambda: tf.group(v.assign_add(2.0)), lambda: tf.group(v.assign(v * 3.0)))
    with tf.control_dependencies([ran]):
        after = v.read_value()
    return Case([ran, after], [{p: True}, {p: False}, {p: True}])


@program
def cond_assigns_reference(tf: Any) -> Case:
    v = tf.Variable([1.0, 2.0])
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: tf.assign_add(v, [1.0, 1.0]), lambda: tf.assign_sub(v, [0.5, 0.5]))
    return Case([tf.identity(out)], [{p: True}, {p: False}, {p: False}])


@program
def cond_gradient_of_variables(tf: Any) -> Case:
    v = tf.Variable(3.0)
    r = tf.get_variable("r", initializer=2.0, use_resource=True)
    p = tf.placeholder(tf.bool, [])
    z = tf.cond(p, lambda: v * v * r, lambda: r * r)
    return Case([z, *grads(tf, z, [v, r])], [{p: True}, {p: False}])


@program
def cond_gradient_of_gather(tf: Any) -> Case:
    v = tf.Variable(_matrix(4, 2))
    p = tf.placeholder(tf.bool, [])
    z = tf.cond(p, lambda: tf.gather(v, [1, 1, 3]), lambda: tf.gather(v, [0]))
    return Case([z, *grads(tf, tf.reduce_sum(z * z), [v])], [{p: True}, {p: False}])


@program
def cond_second_order(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    z = tf.cond(x < y, lambda: x * x * x * y, lambda: y * y * x)
    (dx,) = tf.gradients(z, x)
    return Case([z, dx, *grads(tf, dx, [x, y])], [{x: 1.0, y: 2.0}, {x: 3.0, y: 2.0}])


@program
def cond_sparse_results(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    s = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    r = tf.cond(p, lambda: s, lambda: tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape))
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    q = tf.cond(p, lambda: rows, lambda: tf.IndexedSlices(rows.values + 1.0, rows.indices, rows.dense_shape))
    return Case([r.indices, r.values, r.dense_shape, q.values, q.indices], [{p: True}, {p: False}])


@program
def cond_dead_branch_fails_not(tf: Any) -> Case:
    i = tf.placeholder(tf.int32, [])
    x = tf.constant([1.0, 2.0])
    z = tf.cond(i < 2, lambda: tf.gather(x, i), lambda: tf.constant(-1.0))
    y = tf.cond(i < 2, lambda: tf.constant(7) // (i - 5), lambda: tf.constant(0))
    return Case([z, y], [{i: 0}, {i: 1}, {i: 5}])


@program
def cond_fetches_switch_output(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(2.0)
    _, true = tf.raw_ops.Switch(data=x, pred=p)
    return Case([tf.identity(true) * 2.0], [{p: True}, {p: False}])


@program
def merge_takes_what_lives(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    false, true = tf.raw_ops.Switch(data=tf.constant(2.0), pred=p)
    value, index = tf.raw_ops.Merge(inputs=[false * 3.0, true + 1.0])
    return Case([value, index], [{p: True}, {p: False}])


@program
def case_first_true(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    pairs = [(x < y, lambda: x * y), (x > 10.0, lambda: y * 2.0), (y > 0.0, lambda: x - y)]
    z = tf.case(pairs, default=lambda: tf.constant(-1.0))
    feeds = [{x: 1.0, y: 2.0}, {x: 11.0, y: 2.0}, {x: 5.0, y: 2.0}, {x: 5.0, y: -2.0}]
    return Case([z, *grads(tf, z, [x, y])], feeds)


@program
def case_exclusive(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    pairs = [(x < y, lambda: tf.constant(1)), (x > 10.0, lambda: tf.constant(2))]
    z = tf.case(pairs, default=lambda: tf.constant(3), exclusive=True)
    return Case([z], [{x: 1.0, y: 2.0}, {x: 11.0, y: 2.0}, {x: 5.0, y: 2.0}, {x: 11.0, y: 12.0}])


@program
def case_without_default(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    z = tf.case([(x < 0.0, lambda: tf.constant(1)), (x > 10.0, lambda: tf.constant(2))])
    return Case([z], [{x: -1.0}, {x: 11.0}, {x: 5.0}])


@program
def switch_case_by_index(tf: Any) -> Case:
    i = tf.placeholder(tf.int32, [])
    x = tf.constant(3.0)
    z = tf.switch_case(i, [lambda: x, lambda: x * 2.0, lambda: x * x])
    d = tf.switch_case(i, {0: lambda: x, 1: lambda: -x}, default=lambda: tf.constant(9.0))
    return Case([z, d], [{i: v} for v in (0, 1, 2, 5, -1)])


# ---- loops -----------------------------------------------------------------------------------------------


@program
def while_counts(tf: Any) -> Case:
    n = tf.placeholder(tf.int32, [])
    return Case([tf.while_loop(lambda i: i < n, lambda i: i + 1, [0])], [{n: 10}, {n: 0}, {n: -1}])


@program
def while_power(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    n = tf.placeholder(tf.int32, [])
    i, p = tf.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p * x), [0, 1.0])
    return Case([i, p, *grads(tf, p, [x])], [{x: 1.5, n: 6}, {x: 1.5, n: 0}, {x: 1.5, n: 1}])


@program
def while_doubles_by_adding(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    bodies = [
        lambda i, a: (i + 1, tf.add(a, a)),
        lambda i, a: (i + 1, a * 2.0),
        lambda i, a: (i + 1, tf.add_n([a, a])),
    ]
    ys = [tf.while_loop(lambda i, a: i < 6, b, [0, x])[1] for b in bodies]
    return Case([*ys, *(tf.gradients(y, x)[0] for y in ys)], [{x: 5.0}])


@program
def while_several_variables(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a * b, b + tf.sin(a)

    _, a, b = tf.while_loop(lambda i, a, b: i < 4, body, [0, x, y])
    return Case([a, b, *grads(tf, a, [x, y]), *grads(tf, [a, b], [x, y])], [{x: 0.5, y: 1.2}])


@program
def while_swaps(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    _, a, b = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b, a), [0, x, y])
    return Case([a, b, *grads(tf, a * 3.0, [x, y])], [{x: 1.0, y: 2.0}])


@program
def while_unused_and_constant_variables(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")

    def body(i: Any, a: Any, b: Any, c: Any) -> Any:
        return i + 1, a * b, b, tf.constant(7.0)

    _, a, b, c = tf.while_loop(lambda i, a, b, c: i < 3, body, [0, x, y, x])
    return Case([a, b, c, *grads(tf, a, [x, y]), *grads(tf, b, [x, y])], [{x: 2.0, y: 3.0}])


@program
def while_matrix_invariant(tf: Any) -> Case:
    w = tf.Variable(_matrix(3, 3))
    x = tf.constant(_matrix(2, 3))
    _, h = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    return Case([h, *grads(tf, tf.reduce_sum(h * h), [w, x])])


@program
def while_condition_on_value(tf: Any) -> Case:
    x, limit = _floats(tf, "x", "limit")
    a = tf.while_loop(lambda a: a < limit, lambda a: a * a + 1.0, [x])
    return Case([a, *grads(tf, a, [x, limit])], [{x: 0.5, limit: 100.0}, {x: 3.0, limit: 2.0}])


@program
def while_maximum_iterations(tf: Any) -> Case:
    n = tf.placeholder(tf.int32, [])
    x = tf.constant(2.0)
    i, a = tf.while_loop(lambda i, a: i < 10, lambda i, a: [i + 1, a * x], [0, x], maximum_iterations=n)
    b = tf.while_loop(lambda b: b < 100.0, lambda b: b * 3.0, [x], maximum_iterations=3)
    return Case([i, a, b, *grads(tf, a, [x])], [{n: 3}, {n: 20}, {n: 0}])


@program
def while_one_iteration_at_a_time(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    fetches = []
    for parallel in (1, 2, 32):
        _, a = tf.while_loop(
            lambda i, a: i < 7, lambda i, a: (i + 1, a * x + 0.5), [0, x], parallel_iterations=parallel
        )
        fetches += [a, tf.gradients(a, x)[0]]
    return Case(fetches, [{x: 1.1}])


@program
def while_growing_shape(tf: Any) -> Case:
    x = tf.constant(_matrix(1, 2))
    _, m = tf.while_loop(
        lambda i, m: i < 3,
        lambda i, m: [i + 1, tf.concat([m, m * 2.0], 0)],
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    return Case([m, *grads(tf, tf.reduce_sum(m * m), [x])])


@program
def while_shrinking_shape(tf: Any) -> Case:
    x = tf.constant(_matrix(6))
    m = tf.while_loop(
        lambda m: tf.shape(m)[0] > 1,
        lambda m: m[1:] * m[:-1],
        [x],
        shape_invariants=[tf.TensorShape([None])],
    )
    return Case([m, *grads(tf, m, [x])])


@program
def while_nest_of_variables(tf: Any) -> Case:
    Pair = collections.namedtuple("Pair", "j, k")
    x = tf.placeholder(tf.float32, [])
    start = (tf.constant(0), Pair(x, {"b": tf.constant(2.0), "a": x * 2.0}))

    def body(i: Any, p: Any) -> Any:
        return i + 1, Pair(p.j + p.k["b"], {"a": p.j - p.k["b"], "b": p.k["a"] * 0.5})

    i, p = tf.while_loop(lambda i, p: i < 5, body, start)
    return Case([i, p.j, p.k["a"], p.k["b"], *grads(tf, p.j, [x])], [{x: 1.0}])


@program
def while_in_while(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    n = tf.placeholder(tf.int32, [])

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any) -> Any:
            return j + 1, b * x + tf.cast(i, tf.float32)

        return i + 1, tf.while_loop(lambda j, b: j < i + n, inner, [0, a])[1]

    _, a = tf.while_loop(lambda i, a: i < n, outer, [0, x])
    return Case([a, *grads(tf, a, [x])], [{x: 1.1, n: 3}, {x: 1.1, n: 0}, {x: 0.9, n: 1}])


@program
def while_in_while_in_while(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])

    def loop(depth: int, a: Any) -> Any:
        if depth == 0:
            return a * x + 0.1
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, loop(depth - 1, a)), [0, a])[1]

    a = loop(3, x)
    return Case([a, *grads(tf, a, [x])], [{x: 1.05}])


@program
def while_inner_starts_from_outside(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    c = tf.constant(2.0)

    def outer(i: Any, a: Any) -> Any:
        _, b = tf.while_loop(lambda k, b: k < 2, lambda k, b: (k + 1, b * c), [0, x])
        return i + 1, a + b

    _, a = tf.while_loop(lambda i, a: i < 3, outer, [0, c])
    return Case([a, *grads(tf, a, [x, c])], [{x: 1.5}])


@program
def while_with_branches(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, a: Any) -> Any:
        a = tf.cond(tf.equal(i % 2, 0), lambda: a + x, lambda: tf.cond(a > 3.0, lambda: a * x, lambda: -a * 2.0))
        return i + 1, a

    _, a = tf.while_loop(lambda i, a: tf.logical_and(i < 6, a < 100.0), body, [0, x])
    return Case([a, *grads(tf, a, [x])], [{x: 1.5}, {x: 4.0}, {x: -1.0}])


@program
def branch_with_while(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    p = tf.placeholder(tf.bool, [])

    def loop() -> Any:
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1]

    a = tf.cond(p, loop, lambda: x * 0.5)
    return Case([a, *grads(tf, a, [x])], [{x: 1.5, p: True}, {x: 1.5, p: False}])


@program
def while_branch_with_while(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, a: Any) -> Any:
        def loop() -> Any:
            return tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * x), [0, a])[1]

        return i + 1, tf.cond(i > 1, loop, lambda: a + x)

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    return Case([a, *grads(tf, a, [x])], [{x: 1.2}])


@program
def while_after_while(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])
    _, b = tf.while_loop(lambda i, b: i < 2, lambda i, b: (i + 1, b * a + x), [0, a])
    return Case([a, b, *grads(tf, b, [x, a])], [{x: 1.1}])


@program
def while_gradient_by_exit(tf: Any) -> Case:
    x, seed = _floats(tf, "x", "seed")
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * a), [0, x])
    return Case([*grads(tf, a, [x], grad_ys=seed)], [{x: 1.1, seed: 2.0}])


@program
def while_stops_gradient(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, a: Any) -> Any:
        return i + 1, a * x + tf.stop_gradient(a) * 2.0

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    return Case([a, *grads(tf, a, [x])], [{x: 1.3}])


@program
def while_dynamic_shapes(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable(_matrix(2))
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w + tf.reduce_mean(a)), [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, w])], [{x: _matrix(3, 2)}, {x: _matrix(1, 2)}])


@program
def while_broadcasts(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, None])
    b = tf.Variable(_matrix(3))

    def body(i: Any, a: Any) -> Any:
        return i + 1, (a + b) * tf.reduce_max(a, 1, keepdims=True)

    _, a = tf.while_loop(lambda i, a: i < 2, body, [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, b])], [{x: _matrix(2, 3)}])


@program
def while_gradient_of_gather(tf: Any) -> Case:
    v = tf.Variable(_matrix(5, 2))

    def body(i: Any, a: Any) -> Any:
        return i + 1, a + tf.reduce_sum(tf.gather(v, [i, i + 1, 0]) ** 2.0, 0)

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, tf.zeros([2])])
    return Case([a, *grads(tf, tf.reduce_sum(a), [v])])


@program
def while_types(tf: Any) -> Case:
    i, d, b, s = tf.while_loop(
        lambda i, d, b, s: i < 3,
        lambda i, d, b, s: (i + 1, d * 0.5, tf.logical_not(b), s),
        [tf.constant(0, tf.int64), tf.constant(8.0, tf.float64), tf.constant(True), tf.constant(["a", "b"])],
    )
    return Case([i, d, b, s])


@program
def while_second_order(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])
    y = x * x * x
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, y])
    (dx,) = tf.gradients(a, x)
    return Case([a, dx, *grads(tf, dx, [x])], [{x: 1.5}])


# ---- loops and state -------------------------------------------------------------------------------------


@program
def while_updates_variable(tf: Any) -> Case:
    v = tf.Variable(1.0)
    r = tf.get_variable("r", initializer=10.0, use_resource=True)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(v, 2.0), r.assign_sub(1.0)]):
            return i + 1

    i = tf.while_loop(lambda i: i < 4, body, [0], parallel_iterations=1)
    with tf.control_dependencies([i]):
        after = [tf.identity(v.read_value()), r.read_value()]
    return Case([i, *after], [{}, {}])


@program
def while_reads_what_it_writes(tf: Any) -> Case:
    r = tf.get_variable("r", initializer=1.0, use_resource=True)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([r.assign(r * 2.0)]):
            return i + 1, total + r.read_value()

    _, total = tf.while_loop(lambda i, total: i < 5, body, [0, 0.0], parallel_iterations=1)
    return Case([total], [{}, {}])


@program
def while_conditional_update(tf: Any) -> Case:
    r = tf.get_variable("r", initializer=0, use_resource=True)

    def body(i: Any) -> Any:
        ran = tf.cond(tf.equal(i % 3, 0), lambda: tf.group(r.assign_add(i)), lambda: tf.no_op())
        with tf.control_dependencies([ran]):
            return i + 1

    i = tf.while_loop(lambda i: i < 8, body, [0], parallel_iterations=1)
    with tf.control_dependencies([i]):
        return Case([i, r.read_value()], [{}, {}])


@program
def while_waits_for_update(tf: Any) -> Case:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    with tf.control_dependencies([v.assign_add(1.0)]):
        a = tf.while_loop(lambda a: a < 5.0, lambda a: a + v.read_value(), [0.0])
    return Case([a], [{}, {}])


@program
def while_control_from_outside(tf: Any) -> Case:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    update = v.assign_add(1.0, read_value=False)
    gate = tf.identity(3.0)
    with tf.control_dependencies([update]):
        gate = tf.identity(gate)

    def body(i: Any) -> Any:
        with tf.control_dependencies([gate]):
            c = tf.constant(2)
        return i + c

    return Case([tf.while_loop(lambda i: i < 5, body, [0])])


@program
def while_variables_made_inside(tf: Any) -> Case:
    x = tf.constant([1.0, 2.0])

    def body(i: Any, a: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer(0.5))
        r = tf.get_variable("r", initializer=lambda: tf.ones([2]), use_resource=True)
        return i + 1, a * w + r

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    variables = tf.trainable_variables()
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, *variables])])


@program
def while_gradient_step(tf: Any) -> Case:
    w = tf.get_variable("w", initializer=_matrix(3), use_resource=True)
    x = tf.constant(_matrix(2, 3))
    _, h = tf.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, tf.tanh(h * w)), [0, x])
    loss = tf.reduce_sum(h * h)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.control_dependencies([step]):
        return Case([loss, w.read_value()], [{}, {}, {}])


@program
def while_sparse_variables(tf: Any) -> Case:
    s = tf.SparseTensor(np.array([[0, 1]], np.int64), [2.0], [2, 2])
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))

    def body(i: Any, s: Any, r: Any) -> Any:
        s = tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)
        return i + 1, s, tf.IndexedSlices(r.values + 1.0, r.indices)

    _, s, r = tf.while_loop(lambda i, s, r: i < 3, body, [0, s, rows])
    return Case([s.indices, s.values, s.dense_shape, r.values, r.indices])


@program
def while_fails_inside(tf: Any) -> Case:
    n = tf.placeholder(tf.int32, [])
    x = tf.constant([1.0, 2.0, 3.0])
    _, a = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + tf.gather(x, i)), [0, 0.0])
    return Case([a], [{n: 3}, {n: 5}, {n: 2}])


# ---- TensorArrays ----------------------------------------------------------------------------------------


@program
def array_write_read(tf: Any) -> Case:
    x, y = _floats(tf, "x", "y")
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    ta = ta.write(0, x).write(2, x * y).write(1, y)
    z = ta.read(0) * ta.read(2) + ta.read(1)
    return Case([ta.stack(), ta.size(), z, *grads(tf, z, [x, y])], [{x: 2.0, y: 3.0}])


@program
def array_stack_gather(tf: Any) -> Case:
    x = tf.constant(_matrix(3, 2))
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    s, g = ta.stack(), ta.gather([2, 0])
    return Case([s, g, *grads(tf, tf.reduce_sum(s * s), [x]), *grads(tf, tf.reduce_sum(g * g), [x])])


@program
def array_split_concat(tf: Any) -> Case:
    x = tf.constant(_matrix(5, 2))
    ta = tf.TensorArray(tf.float32, size=3, infer_shape=False, clear_after_read=False).split(x, [2, 0, 3])
    c = ta.concat() * 2.0
    r = ta.read(2)
    return Case([c, r, *grads(tf, tf.reduce_sum(c * c), [x]), *grads(tf, tf.reduce_sum(r * r), [x])])


@program
def array_scatter(tf: Any) -> Case:
    x = tf.constant(_matrix(2, 2))
    ta = tf.TensorArray(tf.float32, size=4, element_shape=[2], clear_after_read=False).scatter([3, 1], x)
    r = ta.read(3) * ta.read(1)
    return Case([r, *grads(tf, tf.reduce_sum(r), [x])])


@program
def array_grows(tf: Any) -> Case:
    n = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    _, ta = tf.while_loop(lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, i * i)), [0, ta])
    return Case([ta.stack(), ta.size()], [{n: 4}, {n: 1}])


@program
def array_errors(tf: Any) -> Case:
    i = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, size=2, element_shape=[])
    twice = ta.write(0, 1.0).write(i, 2.0)
    return Case([twice.stack()], [{i: 1}, {i: 0}, {i: 2}, {i: -1}])


@program
def array_read_twice(tf: Any) -> Case:
    ta = tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0])
    first = ta.read(0)
    with tf.control_dependencies([first]):
        return Case([ta.read(0)])


@program
def array_unwritten_is_zero(tf: Any) -> Case:
    ta = tf.TensorArray(tf.float32, size=3, element_shape=[2]).write(1, [1.0, 2.0])
    empty = tf.TensorArray(tf.float32, size=0, element_shape=[2])
    return Case([ta.stack(), empty.stack(), empty.concat()])


@program
def array_goes_round(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable([1.0, 0.5])
    n = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, n).unstack(x)

    def body(i: Any, ta: Any, a: Any) -> Any:
        a = tf.tanh(a * w + inputs.read(i))
        return i + 1, ta.write(i, a), a

    _, ta, a = tf.while_loop(lambda i, *_: i < n, body, [0, tf.TensorArray(tf.float32, n), tf.zeros([2])])
    s = ta.stack()
    loss = tf.reduce_sum(s * s) + tf.reduce_sum(a)
    return Case([s, a, *grads(tf, loss, [x, w])], [{x: _matrix(4, 2)}, {x: _matrix(1, 2)}])


@program
def array_read_in_reverse(tf: Any) -> Case:
    x = tf.constant(_matrix(4))
    inputs = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)

    def body(i: Any, a: Any) -> Any:
        return i + 1, a * 0.5 + inputs.read(3 - i) * inputs.read(i)

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, 0.0])
    return Case([a, *grads(tf, a, [x])])


@program
def array_in_branches(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(_matrix(2))
    ta = tf.TensorArray(tf.float32, 3, element_shape=[2]).write(0, x)
    ta = tf.cond(p, lambda: ta.write(1, x * 2.0), lambda: ta.write(2, x * 3.0))
    s = ta.stack()
    return Case([s, *grads(tf, tf.reduce_sum(s * s), [x])], [{p: True}, {p: False}])


@program
def array_made_in_loop(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [])

    def body(i: Any, a: Any) -> Any:
        ta = tf.TensorArray(tf.float32, 2, name="inner").write(0, a).write(1, x)
        return i + 1, tf.reduce_prod(ta.stack())

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    return Case([a], [{x: 1.5}])


@program
def array_two_gradients(tf: Any) -> Case:
    x = tf.constant(_matrix(3))
    s = tf.TensorArray(tf.float32, 3).unstack(x * 2.0).stack()
    first = grads(tf, tf.reduce_sum(s * s), [x])
    second = grads(tf, tf.reduce_sum(s), [x])
    return Case([s, *first, *second])


# ---- functions over rows ---------------------------------------------------------------------------------


@program
def map_fn_rows(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable([1.0, 0.5])
    y = tf.map_fn(lambda row: tf.reduce_sum(row * row * w), x)
    return Case([y, *grads(tf, tf.reduce_sum(y * y), [x, w])], [{x: _matrix(4, 2)}, {x: _matrix(1, 2)}])


@program
def map_fn_nest(tf: Any) -> Case:
    x, y = tf.constant(_matrix(3)), tf.constant([1, 2, 3])
    a, b = tf.map_fn(lambda t: (t[0] * 2.0, tf.cast(t[1], tf.float64)), (x, y), dtype=(tf.float32, tf.float64))
    return Case([a, b, *grads(tf, tf.reduce_sum(a), [x])])


@program
def map_fn_variables(tf: Any) -> Case:
    x = tf.constant(_matrix(3, 2))

    def fn(row: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer(2.0))
        return tf.reduce_sum(row * w)

    y = tf.map_fn(fn, x)
    return Case([y, *grads(tf, y, tf.trainable_variables())])


@program
def map_fn_in_map_fn(tf: Any) -> Case:
    x = tf.constant(_matrix(2, 3))
    y = tf.map_fn(lambda row: tf.map_fn(lambda e: e * e, row), x)
    return Case([y, *grads(tf, tf.reduce_sum(y * y), [x])])


@program
def folds(tf: Any) -> Case:
    x = tf.constant(_matrix(4))
    left = tf.foldl(lambda a, e: a * 0.5 + e * e, x)
    right = tf.foldr(lambda a, e: a * 0.5 + e * e, x, initializer=2.0)
    pair = tf.foldl(lambda a, t: (a[0] + t[0], a[1] - t[1]), (x, x), initializer=(1.0, tf.constant(2.0)))
    return Case([left, right, *pair, *grads(tf, left, [x]), *grads(tf, right, [x])])


@program
def scans(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None])
    plain = tf.scan(lambda a, e: a * e + 0.5, x)
    backwards = tf.scan(lambda a, e: a * e + 0.5, x, reverse=True)
    a, b = tf.scan(lambda a, e: (a[1], a[0] + e), x, initializer=(0.0, tf.constant(1.0)))
    gradients = [grads(tf, tf.reduce_sum(y * y), [x])[0] for y in (plain, backwards, b)]
    return Case([plain, backwards, a, b, *gradients], [{x: _matrix(5)}, {x: _matrix(1)}])


@program
def scan_recurrent_net(tf: Any) -> Case:
    x = tf.constant(_matrix(4, 2, 3))
    w = tf.get_variable("w", initializer=_matrix(3, 3), use_resource=True)
    u = tf.Variable(_matrix(3, 3) * FLOAT(0.5))
    h = tf.scan(lambda h, e: tf.tanh(tf.matmul(e, w) + tf.matmul(h, u)), x, initializer=tf.zeros([2, 3]))
    return Case([h, *grads(tf, tf.reduce_mean(h[-1] ** 2.0), [x, w, u])])
