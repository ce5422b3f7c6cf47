"""TF 1.x programs that run: branches. See control_flow_programs.py."""

from __future__ import annotations

from typing import Any

from control_flow_case import Case, floats, grads, matrix, program

# ---- branches --------------------------------------------------------------------------------------------


@program
def cond_two_sides(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    z = tf.cond(x < y, lambda: x * x * y, lambda: tf.sin(y) + 3.0)
    return Case([z, *grads(tf, z, [x, y])], [{x: 1.5, y: 2.0}, {x: 2.5, y: 2.0}])


@program
def cond_returns_outside_value(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    z = tf.cond(x < y, lambda: x, lambda: y)
    return Case([z, *grads(tf, z * 2.0, [x, y])], [{x: 1.0, y: 2.0}, {x: 3.0, y: 2.0}])


@program
def cond_nest_of_results(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    r = tf.cond(
        x > 0.0,
        lambda: {"a": x * y, "b": (tf.constant(1), [y])},
        lambda: {"a": y, "b": (tf.constant(2), [x * 3.0])},
    )
    parts = [r["a"], r["b"][0], r["b"][1][0]]
    return Case([*parts, *grads(tf, [parts[0], parts[2]], [x, y])], [{x: 2.0, y: 5.0}, {x: -2.0, y: 5.0}])


@program
def cond_in_cond(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")

    def inner() -> Any:
        z = x + y
        return tf.cond(z > 3.0, lambda: z * x, lambda: tf.cond(y > 0.0, lambda: z * z, lambda: x - y))

    z = tf.cond(x > 0.0, inner, lambda: -x)
    feeds = [{x: 2.0, y: 2.0}, {x: 1.0, y: 1.0}, {x: 1.0, y: -1.0}, {x: -1.0, y: 1.0}]
    return Case([z, *grads(tf, z, [x, y])], feeds)


@program
def cond_shares_value_between_branches(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    shared = tf.exp(x)
    a = tf.cond(y > 0.0, lambda: shared * y, lambda: shared + y)
    b = tf.cond(y < 1.0, lambda: shared * a, lambda: a)
    return Case([a, b, *grads(tf, b, [x, y])], [{x: 0.5, y: 0.5}, {x: 0.5, y: 2.0}, {x: 0.5, y: -2.0}])


@program
def cond_different_shapes(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(matrix(2, 3))
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
    v = tf.Variable(matrix(4, 2))
    p = tf.placeholder(tf.bool, [])
    z = tf.cond(p, lambda: tf.gather(v, [1, 1, 3]), lambda: tf.gather(v, [0]))
    return Case([z, *grads(tf, tf.reduce_sum(z * z), [v])], [{p: True}, {p: False}])


@program
def cond_second_order(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
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
    x, y = floats(tf, "x", "y")
    pairs = [(x < y, lambda: x * y), (x > 10.0, lambda: y * 2.0), (y > 0.0, lambda: x - y)]
    z = tf.case(pairs, default=lambda: tf.constant(-1.0))
    feeds = [{x: 1.0, y: 2.0}, {x: 11.0, y: 2.0}, {x: 5.0, y: 2.0}, {x: 5.0, y: -2.0}]
    return Case([z, *grads(tf, z, [x, y])], feeds)


@program
def case_exclusive(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
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
