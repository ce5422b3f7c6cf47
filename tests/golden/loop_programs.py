"""Programs with loops and branches, written for TensorFlow 1.x: recorded as GraphDefs with their values.

A program takes TensorFlow's module and returns what to fetch. A program's feeds: names of placeholders to
values; several dictionaries are several runs of one session. The initializer of its variables runs first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Feeds = dict[str, Any]
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Sequence[Feeds]]] = {}
_X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


def _program(*feeds: Feeds) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def add(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        PROGRAMS[build.__name__] = (build, feeds or ({},))
        return build

    return add


def _n(tf: Any) -> Any:
    return tf.placeholder(tf.int32, [], "n")


def _x(tf: Any) -> Any:
    return tf.placeholder(tf.float32, [2, 2], "x")


@_program({"n": 0}, {"n": 1}, {"n": 25})
def count(tf: Any) -> Any:
    n = _n(tf)
    return [tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0)])]


@_program({"n": 4, "x": _X}, {"n": 0, "x": _X})
def powers(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)
    return tf.while_loop(
        lambda i, p: i < n, lambda i, p: (i + 1, tf.matmul(p, x) * 0.5), [0, tf.constant(_X)], parallel_iterations=1
    )


@_program({"n": 5}, {"n": 0})
def nested(tf: Any) -> Any:
    n = _n(tf)

    def row(i: Any, total: Any) -> Any:
        _, total = tf.while_loop(lambda j, t: j <= i, lambda j, t: (j + 1, t + i * j), [0, total])
        return i + 1, total

    return tf.while_loop(lambda i, t: i < n, row, [0, 0])


@_program({"n": 3, "x": _X})
def nested_thrice(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def inner(k: Any, a: Any) -> Any:
        return k + 1, tf.tanh(a + x)

    def middle(j: Any, a: Any) -> Any:
        _, a = tf.while_loop(lambda k, a: k < j, inner, [0, a], parallel_iterations=2)
        return j + 1, a * 1.5

    def outer(i: Any, a: Any) -> Any:
        _, a = tf.while_loop(lambda j, a: j < i + 1, middle, [0, a])
        return i + 1, a - x

    return tf.while_loop(lambda i, a: i < n, outer, [0, x])


@_program({"p": True, "x": _X}, {"p": False, "x": _X})
def branch(tf: Any) -> Any:
    p, x = tf.placeholder(tf.bool, [], "p"), _x(tf)
    return [tf.cond(p, lambda: x * 2, lambda: x - 1), tf.cond(p, lambda: 1, lambda: 2)]


@_program({"x": _X}, {"x": -_X}, {"x": _X * 5})
def branches_in_branches(tf: Any) -> Any:
    x = _x(tf)
    s = tf.reduce_sum(x)
    return [
        tf.cond(
            s > 0,
            lambda: tf.cond(s > 5, lambda: x / s, lambda: x + s),
            lambda: [tf.exp(x)],
        ),
        tf.case([(s > 5, lambda: 1), (s > 0, lambda: 2)], default=lambda: 3),
    ]


@_program({"n": 7}, {"n": 0})
def branch_in_loop(tf: Any) -> Any:
    n = _n(tf)

    def body(i: Any, odd: Any, even: Any) -> Any:
        odd, even = tf.cond(
            tf.equal(i % 2, 1), lambda: (odd + tf.cast(i, tf.float32), even), lambda: (odd, tf.sqrt(even + 1))
        )
        return i + 1, odd, even

    return tf.while_loop(lambda i, *_: i < n, body, [0, 0.0, 0.0])


@_program({"n": 3, "x": _X}, {"n": -3, "x": _X})
def loop_in_branch(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def grow() -> Any:
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + x), [0, x])[1]

    def shrink() -> Any:
        return tf.while_loop(lambda i, a: i > n, lambda i, a: (i - 1, a * 0.5), [0, x])[1]

    chosen = tf.cond(n > 0, grow, shrink)
    return [chosen, chosen + 1]


@_program({"n": 6})
def two_in_a_row(tf: Any) -> Any:
    n = _n(tf)
    i, a = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 1.5), [0, 1.0])
    j, b = tf.while_loop(lambda j, b: b < a * 3, lambda j, b: (j + 1, b + a), [i, 0.0])
    return [i, a, j, b, a + b]


@_program({"n": 5})
def growing(tf: Any) -> Any:
    n = _n(tf)
    return tf.while_loop(
        lambda i, v: i < n,
        lambda i, v: (i + 1, tf.concat([v, [tf.cast(i, tf.float32)]], 0)),
        [tf.constant(0), tf.zeros([1])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )


@_program({"x": _X, "n": 2})
def slices(tf: Any) -> Any:
    x, n = _x(tf), _n(tf)
    return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 2 + x[i] + x[:, i]), [0, tf.zeros([2])])


@_program({"x": _X})
def until_small(tf: Any) -> Any:
    x = _x(tf)
    return tf.while_loop(
        lambda a, go: go, lambda a, go: (a * 0.7, tf.reduce_any(tf.abs(a) > 0.1)), [x, tf.constant(True)]
    )


@_program({"n": 4}, {"n": 2})
def variable_in_loop(tf: Any) -> Any:
    n = _n(tf)
    v = tf.Variable(1.0, name="v", use_resource=False)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign(v, v.read_value() * 2 + tf.cast(i, tf.float32)).op]):
            return i + 1

    i = tf.while_loop(lambda i: i < n, body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([i]):
        return [i, v.read_value()]


@_program({"n": 4}, {"n": 2})
def resource_in_loop(tf: Any) -> Any:
    n = _n(tf)
    v = tf.Variable([1.0, 2.0], name="v", use_resource=True)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([v.assign_add([0.5, 1.0], read_value=False)]):
            return i + 1, total + v.read_value()

    i, total = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.zeros([2])], parallel_iterations=1)
    with tf.control_dependencies([i]):
        return [total, v.read_value()]


@_program({"p": True}, {"p": False}, {"p": True})
def variable_in_branch(tf: Any) -> Any:
    p = tf.placeholder(tf.bool, [], "p")
    v = tf.Variable(3.0, name="v", use_resource=False)
    w = tf.Variable(3.0, name="w", use_resource=True)
    a = tf.cond(p, lambda: tf.assign_add(v, 1.0), lambda: tf.assign(v, v * 2))
    b = tf.cond(p, lambda: w.assign_add(2.0, read_value=False), lambda: tf.no_op())
    with tf.control_dependencies([b]):
        return [a, w.read_value()]


@_program({"n": 6, "x": _X})
def host_nodes_in_loop(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def body(i: Any, a: Any) -> Any:
        found = tf.where(a > 0)
        return i + 1, a - tf.cast(tf.shape(found)[0], tf.float32) * 0.25

    return tf.while_loop(lambda i, a: i < n, body, [0, x])


@_program({"n": 9})
def at_most(tf: Any) -> Any:
    n = _n(tf)
    return tf.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, a + i], [0, 0], maximum_iterations=5)


@_program({"n": 5, "x": _X})
def invariants_two_deep(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.while_loop(lambda b: tf.reduce_sum(b) < 9, lambda b: b + tf.abs(x) + 0.1, [a])

    return tf.while_loop(lambda i, a: i < n, body, [0, tf.zeros([2, 2])])


@_program({"n": 3}, {"n": 0})
def asserts_in_branch(tf: Any) -> Any:
    n = _n(tf)

    def checked() -> Any:
        with tf.control_dependencies([tf.Assert(n > 0, ["n is", n])]):
            return 10 // n

    return [tf.cond(n > 0, checked, lambda: 0)]


@_program({"n": 4, "x": _X}, {"n": 0, "x": _X})
def loop_gradient(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)
    w = tf.constant(_X * 0.3)
    _, y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w) + x)), [0, x])
    return [y, *tf.gradients(tf.reduce_sum(y * y), [x, w])]


@_program({"n": 3, "x": _X})
def nested_gradient(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def row(i: Any, a: Any) -> Any:
        _, a = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, tf.sin(b * x)), [0, a])
        return i + 1, a + x

    _, y = tf.while_loop(lambda i, a: i < n, row, [0, x])
    return [y, *tf.gradients(y, [x])]


@_program({"n": 5, "x": _X}, {"n": 1, "x": _X})
def branch_in_loop_gradient(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * x, lambda: a + tf.exp(-a))

    _, y = tf.while_loop(lambda i, a: i < n, body, [0, x])
    return [y, *tf.gradients(y, [x])]


@_program({"n": 2, "x": _X}, {"n": -1, "x": _X})
def loop_in_branch_gradient(tf: Any) -> Any:
    n, x = _n(tf), _x(tf)

    def looped() -> Any:
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, x])[1]

    y = tf.cond(n > 0, looped, lambda: x * 3)
    return [y, *tf.gradients(y, [x])]


@_program({"x": _X, "p": True}, {"x": _X, "p": False})
def branch_gradient(tf: Any) -> Any:
    p, x = tf.placeholder(tf.bool, [], "p"), _x(tf)
    y = tf.cond(p, lambda: x * x, lambda: tf.sin(x))
    (g,) = tf.gradients(y, [x])
    return [y, g, *tf.gradients(g, [x])]


@_program({"x": np.arange(6, dtype=np.float32).reshape(3, 2)})
def maps_and_scans(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [None, 2], "x")
    y = tf.map_fn(lambda r: tf.tanh(r) * 2, x)
    z = tf.scan(lambda a, r: a * 0.5 + r, x)
    f = tf.foldl(lambda a, r: a + r * r, x)
    return [y, z, f, *tf.gradients([y, z, f], [x])]


@_program({"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2), "n": 3})
def recurrent(tf: Any) -> Any:
    x, n = tf.placeholder(tf.float32, [2, None, 2], "x"), _n(tf)
    w = tf.constant(np.linspace(-0.5, 0.5, 8, dtype=np.float32).reshape(4, 2))
    inputs = tf.TensorArray(tf.float32, n).unstack(tf.transpose(x, [1, 0, 2]))

    def step(t: Any, h: Any, out: Any) -> Any:
        h = tf.tanh(tf.matmul(tf.concat([inputs.read(t), h], 1), w))
        return t + 1, h, out.write(t, h)

    _, h, out = tf.while_loop(lambda t, *_: t < n, step, [0, tf.zeros([2, 2]), tf.TensorArray(tf.float32, n)])
    outputs = out.stack()
    return [h, outputs, *tf.gradients(tf.reduce_sum(outputs * outputs), [x, w])]
