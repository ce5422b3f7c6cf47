"""TF 1.x programs that run: loops, and loops with state. See control_flow_programs.py."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
from control_flow_case import Case, floats, grads, matrix, program

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
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a * b, b + tf.sin(a)

    _, a, b = tf.while_loop(lambda i, a, b: i < 4, body, [0, x, y])
    return Case([a, b, *grads(tf, a, [x, y]), *grads(tf, [a, b], [x, y])], [{x: 0.5, y: 1.2}])


@program
def while_swaps(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    _, a, b = tf.while_loop(lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b, a), [0, x, y])
    return Case([a, b, *grads(tf, a * 3.0, [x, y])], [{x: 1.0, y: 2.0}])


@program
def while_unused_and_constant_variables(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def body(i: Any, a: Any, b: Any, c: Any) -> Any:
        return i + 1, a * b, b, tf.constant(7.0)

    _, a, b, c = tf.while_loop(lambda i, a, b, c: i < 3, body, [0, x, y, x])
    return Case([a, b, c, *grads(tf, a, [x, y]), *grads(tf, b, [x, y])], [{x: 2.0, y: 3.0}])


@program
def while_matrix_invariant(tf: Any) -> Case:
    w = tf.Variable(matrix(3, 3))
    x = tf.constant(matrix(2, 3))
    _, h = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])
    return Case([h, *grads(tf, tf.reduce_sum(h * h), [w, x])])


@program
def while_condition_on_value(tf: Any) -> Case:
    x, limit = floats(tf, "x", "limit")
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
    x = tf.constant(matrix(1, 2))
    _, m = tf.while_loop(
        lambda i, m: i < 3,
        lambda i, m: [i + 1, tf.concat([m, m * 2.0], 0)],
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    return Case([m, *grads(tf, tf.reduce_sum(m * m), [x])])


@program
def while_shrinking_shape(tf: Any) -> Case:
    x = tf.constant(matrix(6))
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
    x, seed = floats(tf, "x", "seed")
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
    w = tf.Variable(matrix(2))
    _, a = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w + tf.reduce_mean(a)), [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, w])], [{x: matrix(3, 2)}, {x: matrix(1, 2)}])


@program
def while_broadcasts(tf: Any) -> Case:
    x = tf.placeholder(tf.float32, [None, None])
    b = tf.Variable(matrix(3))

    def body(i: Any, a: Any) -> Any:
        return i + 1, (a + b) * tf.reduce_max(a, 1, keepdims=True)

    _, a = tf.while_loop(lambda i, a: i < 2, body, [0, x])
    return Case([a, *grads(tf, tf.reduce_sum(a), [x, b])], [{x: matrix(2, 3)}])


@program
def while_gradient_of_gather(tf: Any) -> Case:
    v = tf.Variable(matrix(5, 2))

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
    w = tf.get_variable("w", initializer=matrix(3), use_resource=True)
    x = tf.constant(matrix(2, 3))
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
