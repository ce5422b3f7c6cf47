"""TF 1.x programs whose gradients go through branches and loops; see control_flow_case.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from control_flow_case import Case, floats, grads, matrix

PROGRAMS: dict[str, Callable[[Any], Case]] = {}


def program(build: Callable[[Any], Case]) -> Callable[[Any], Case]:
    """Adds a program under its function's name."""
    PROGRAMS[build.__name__] = build
    return build


def _vector(tf: Any) -> Any:
    return tf.placeholder(tf.float32, [None])


# ---- what is asked for -----------------------------------------------------------------------------------


@program
def back_prop_false(tf: Any) -> Case:
    (x,) = floats(tf, "x")
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)
    b = a * x
    return Case([b, *grads(tf, b, [x])], [{x: 1.5}])


@program
def several_calls(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x + y), [0, x])
    return Case([a, *grads(tf, a, [x]), *grads(tf, a * a, [x, y]), *grads(tf, a, [y])], [{x: 1.5, y: 0.3}])


@program
def stop_gradients(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    z = x * y
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * z + y), [0, x])
    return Case([*grads(tf, a, [x, y], stop_gradients=[z]), *grads(tf, a, [z, y])], [{x: 1.5, y: 0.3}])


@program
def options(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i < 1, lambda: a * y, lambda: a * a)

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    found = [
        *grads(tf, a, [x, y], colocate_gradients_with_ops=True),
        *grads(tf, a, [x, y], gate_gradients=True),
        *grads(tf, a + a * x, [x, y], aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE),
    ]
    return Case(found, [{x: 1.2, y: 0.7}])


@program
def unconnected(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    i, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])
    found = tf.gradients(a, [x, y], unconnected_gradients="zero")
    return Case([*found, *grads(tf, tf.cast(i, tf.float32) * x, [x])], [{x: 1.2, y: 0.7}])


@program
def several_exits(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any, b: Any, c: Any) -> Any:
        return i + 1, a * b, b + c, c * 1.5

    _, a, b, c = tf.while_loop(lambda i, *_: i < 3, body, [0, x, y, x])
    found = [*grads(tf, [a, b], [x, y]), *grads(tf, [c], [x]), *grads(tf, [a, b, c], [x, y])]
    return Case(found, [{x: 1.2, y: 0.7}])


@program
def double_precision(tf: Any) -> Case:
    x = tf.placeholder(tf.float64, [2])

    def body(i: Any, a: Any, _: Any) -> Any:
        return i + 1, a * tf.reduce_sum(x), tf.stop_gradient(a)

    _, a, b = tf.while_loop(lambda i, *_: i < 3, body, [0, x, x])
    return Case([a, b, *grads(tf, tf.reduce_sum(a * a) + tf.reduce_sum(b), [x])], [{x: np.array([0.5, 0.25])}])


# ---- where gradients are asked for -----------------------------------------------------------------------


@program
def inside_a_body(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any) -> Any:
        return i + 1, a - 0.1 * tf.gradients(tf.sin(a) * y, a)[0]

    return Case([tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]], [{x: 1.5, y: 0.7}])


@program
def of_a_loop_inside_a_body(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any) -> Any:
        c = a * 1.0
        _, f = tf.while_loop(lambda j, b: j < 3, lambda j, b: (j + 1, b * tf.sin(b) * y), [0, c])
        return i + 1, a - 0.1 * tf.gradients(f, c)[0]

    return Case([tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]], [{x: 1.5, y: 0.7}])


@program
def inside_a_branch(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    z = x * x * y
    g = tf.cond(x > 0.0, lambda: tf.gradients(z, x)[0], lambda: tf.gradients(z, y)[0])

    def inside() -> Any:
        _, f = tf.while_loop(lambda j, b: j < 3, lambda j, b: (j + 1, b * tf.sin(b) * y), [0, x * 1.0])
        return tf.gradients(f, y)[0]

    h = tf.cond(x > 0.0, inside, lambda: y)
    return Case([g, h], [{x: 1.5, y: 0.7}, {x: -1.5, y: 0.7}])


@program
def second_order_in_branches(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def true_fn() -> Any:
        return tf.cond(x > 0.0, lambda: x * x * x * y, lambda: y * x)

    z = tf.cond(x < y, true_fn, lambda: y * y * x * x)
    (dx,) = tf.gradients(z, x)
    (dxy,) = tf.gradients(dx, y)
    return Case([dx, dxy, *grads(tf, dxy, [x])], [{x: 1.0, y: 2.0}, {x: -3.0, y: 2.0}, {x: 3.0, y: 2.0}])


# ---- shapes ----------------------------------------------------------------------------------------------


@program
def branches_of_unknown_shape(tf: Any) -> Case:
    x, y = tf.placeholder(tf.float32, [None, None]), _vector(tf)
    p = tf.placeholder(tf.bool, [])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * y, lambda: a + tf.reduce_sum(x))

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    b = tf.cond(p, lambda: x * y, lambda: tf.reduce_sum(y) * x)
    found = [*grads(tf, tf.reduce_sum(a * a), [x, y]), *grads(tf, tf.reduce_sum(b * b), [x, y])]
    return Case([a, *found], [{x: matrix(2, 3), y: matrix(3), p: v} for v in (True, False)])


@program
def several_outputs(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, 4])

    def first(i: Any, a: Any) -> Any:
        u, v, w = tf.split(a, [1, 1, 2], 1)
        return i + 1, tf.concat([v, u, w * tf.unstack(a, axis=1)[1][:, None]], 1)

    def second(i: Any, a: Any) -> Any:
        u, v, _ = tf.split(a, [1, 1, 2], 1)
        return i + 1, tf.concat([v * u, v, v, v], 1)

    a, b = (tf.while_loop(lambda i, a: i < 3, f, [0, x])[1] for f in (first, second))
    return Case([a, b, *grads(tf, [a * a, b * b], [x])], [{x: matrix(2, 4)}])


@program
def unused_exits_of_unknown_shape(tf: Any) -> Case:
    x, y = _vector(tf), _vector(tf)

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any, c: Any) -> Any:
            return j + 1, b * c, c + b * 0.5

        return i + 1, tf.while_loop(lambda j, *_: j < 2, inner, [0, a, y])[1]

    _, a = tf.while_loop(lambda i, a: i < 2, outer, [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, y])], [{x: matrix(3), y: matrix(3) + 1}])


@program
def unknown_rank(tf: Any) -> Case:
    x, w = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, x])
    b = tf.cond(tf.rank(x) > 1, lambda: x * w, lambda: x + w)
    feeds = [{x: matrix(2, 3), w: matrix(2, 3)}, {x: matrix(3), w: matrix(3)}]
    return Case([a, *grads(tf, a, [x, w]), *grads(tf, b, [x, w])], feeds)


# ---- branches in loops in branches -----------------------------------------------------------------------


@program
def branch_in_branch_in_loop(tf: Any) -> Case:
    x, y = _vector(tf), _vector(tf)

    def body(i: Any, a: Any) -> Any:
        def true_fn() -> Any:
            q = a * y
            return tf.cond(i < 2, lambda: q * q, lambda: q + x * y)

        return i + 1, tf.cond(i > 0, true_fn, lambda: tf.sin(x))

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, y])], [{x: matrix(3), y: matrix(3) + 1}])


@program
def loop_in_branch_in_loop_in_branch(tf: Any) -> Case:
    x = _vector(tf)
    p = tf.placeholder(tf.bool, [])

    def inner(j: Any, b: Any) -> Any:
        return j + 1, tf.cond(j > 0, lambda: b * x, lambda: b + tf.exp(b * 0.1))

    def body(i: Any, a: Any) -> Any:
        def true_fn() -> Any:
            return tf.while_loop(lambda j, b: j <= i, inner, [0, a])[1]

        return i + 1, tf.cond(tf.equal(i % 2, 1), true_fn, lambda: a * a)

    z = tf.cond(p, lambda: tf.while_loop(lambda i, a: i < 4, body, [0, x])[1], lambda: x * 3.0)
    return Case([z, *grads(tf, tf.reduce_sum(z), [x])], [{x: matrix(3), p: v} for v in (True, False)])


@program
def maximum_iterations_in_loop(tf: Any) -> Case:
    (x,) = floats(tf, "x")
    n = tf.placeholder(tf.int32, [])

    def body(a: Any) -> Any:
        return tf.while_loop(lambda b: b < 10.0, lambda b: b * x + 1.0, [a], maximum_iterations=n)

    a = tf.while_loop(lambda a: True, body, [x], maximum_iterations=3)
    return Case([a, *grads(tf, a, [x])], [{x: 1.2, n: 2}, {x: 1.2, n: 0}])


@program
def switch_and_merge(tf: Any) -> Case:
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    false, true = tf.raw_ops.Switch(data=x, pred=p)
    merged, _ = tf.raw_ops.Merge(inputs=[false * 3.0, true * true])
    return Case([merged, *grads(tf, merged, [x])], [{p: v, x: [1.0, 2.0]} for v in (True, False)])


# ---- what is kept, and variables -------------------------------------------------------------------------


@program
def constants(tf: Any) -> Case:
    x, c = tf.placeholder(tf.float32, [2, 2]), tf.constant(matrix(2, 2))

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.matmul(a, tf.constant(matrix(2, 2) * 2)) + tf.matmul(c, a)

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a * a), [x, c])], [{x: matrix(2, 2)}])


@program
def variables(tf: Any) -> Case:
    v = tf.Variable(matrix(3))
    r = tf.get_variable("r", initializer=matrix(3), use_resource=True)
    n = tf.placeholder(tf.int32, [])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i > 0, lambda: a * v, lambda: a + r * v) * r

    _, a = tf.while_loop(lambda i, a: i < n, body, [0, tf.ones([3])])
    return Case([a, *grads(tf, tf.reduce_sum(a), [v, r])], [{n: 3}, {n: 0}])


@program
def resource_in_branches(tf: Any) -> Case:
    r = tf.get_variable("r", initializer=matrix(4, 2), use_resource=True)
    p = tf.placeholder(tf.bool, [])
    z = tf.cond(p, lambda: tf.nn.embedding_lookup(r, [1, 1]), lambda: r.read_value()[:2])
    y = tf.cond(p, lambda: tf.reduce_sum(r * r), lambda: tf.constant(1.0))
    return Case([z, *grads(tf, tf.reduce_sum(z * z), [r]), *grads(tf, y, [r])], [{p: True}, {p: False}])


@program
def slices_of_a_reference(tf: Any) -> Case:
    v = tf.Variable(matrix(5, 2))

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any) -> Any:
            return j + 1, b + tf.reduce_sum(tf.gather(v, [j, 0, j]) ** 2.0, 0)

        return i + 1, tf.while_loop(lambda j, b: j <= i, inner, [0, a * 0.5])[1]

    _, a = tf.while_loop(lambda i, a: i < 3, outer, [0, tf.zeros([2])])
    return Case([a, *grads(tf, tf.reduce_sum(a * a), [v])])


@program
def slices_in_a_branch(tf: Any) -> Case:
    x, rows = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [None])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i < 2, lambda: a + tf.reduce_sum(tf.gather(x, rows) * a), lambda: a * 2.0)

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, 1.0])
    return Case([a, *grads(tf, a, [x])], [{x: matrix(3, 2), rows: [0, 2, 2]}])


@program
def arrays_in_a_map(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, 3])

    def fn(row: Any) -> Any:
        read = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(row)

        def body(i: Any, a: Any, written: Any) -> Any:
            a = a * 0.5 + read.read(i) * read.read(2 - i)
            return i + 1, a, written.write(i, a * a)

        written = tf.TensorArray(tf.float32, 3)
        return tf.while_loop(lambda i, *_: i < 3, body, [0, 0.0, written])[2].stack()

    y = tf.map_fn(fn, x)
    return Case([y, *grads(tf, y, [x])], [{x: matrix(2, 3)}])


@program
def swapped_memory(tf: Any) -> Case:
    x, w = tf.placeholder(tf.float32, [3, 4, 2]), tf.Variable(matrix(2, 2))

    def step(h: Any, row: Any) -> Any:
        return tf.nn.relu(tf.matmul(row, w) + h * 0.9)

    z = tf.scan(step, x, initializer=tf.zeros([4, 2]), swap_memory=True)
    return Case([z, *grads(tf, tf.reduce_sum(z * z), [x, w])], [{x: matrix(3, 4, 2)}])


@program
def custom_gradient(tf: Any) -> Case:
    (x,) = floats(tf, "x")

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.clip_by_norm(tf.stack([a, a * x]), 1.5)[1] + tf.nn.elu(a)

    _, a = tf.while_loop(lambda i, a: i < 3, body, [0, x])
    return Case([a, *grads(tf, a, [x])], [{x: 1.2}])
