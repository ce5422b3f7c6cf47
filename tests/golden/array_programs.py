"""TF 1.x programs that run: TensorArrays, and functions over rows. See control_flow_programs.py."""

from __future__ import annotations

from typing import Any

from control_flow_case import FLOAT, Case, floats, grads, matrix, program

# ---- TensorArrays ----------------------------------------------------------------------------------------


@program
def array_write_read(tf: Any) -> Case:
    x, y = floats(tf, "x", "y")
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    ta = ta.write(0, x).write(2, x * y).write(1, y)
    z = ta.read(0) * ta.read(2) + ta.read(1)
    return Case([ta.stack(), ta.size(), z, *grads(tf, z, [x, y])], [{x: 2.0, y: 3.0}])


@program
def array_stack_gather(tf: Any) -> Case:
    x = tf.constant(matrix(3, 2))
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
    s, g = ta.stack(), ta.gather([2, 0])
    return Case([s, g, *grads(tf, tf.reduce_sum(s * s), [x]), *grads(tf, tf.reduce_sum(g * g), [x])])


@program
def array_split_concat(tf: Any) -> Case:
    x = tf.constant(matrix(5, 2))
    ta = tf.TensorArray(tf.float32, size=3, infer_shape=False, clear_after_read=False).split(x, [2, 0, 3])
    c = ta.concat() * 2.0
    r = ta.read(2)
    return Case([c, r, *grads(tf, tf.reduce_sum(c * c), [x]), *grads(tf, tf.reduce_sum(r * r), [x])])


@program
def array_scatter(tf: Any) -> Case:
    x = tf.constant(matrix(2, 2))
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
    return Case([s, a, *grads(tf, loss, [x, w])], [{x: matrix(4, 2)}, {x: matrix(1, 2)}])


@program
def array_read_in_reverse(tf: Any) -> Case:
    x = tf.constant(matrix(4))
    inputs = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)

    def body(i: Any, a: Any) -> Any:
        return i + 1, a * 0.5 + inputs.read(3 - i) * inputs.read(i)

    _, a = tf.while_loop(lambda i, a: i < 4, body, [0, 0.0])
    return Case([a, *grads(tf, a, [x])])


@program
def array_in_branches(tf: Any) -> Case:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant(matrix(2))
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
    x = tf.constant(matrix(3))
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
    return Case([y, *grads(tf, tf.reduce_sum(y * y), [x, w])], [{x: matrix(4, 2)}, {x: matrix(1, 2)}])


@program
def map_fn_nest(tf: Any) -> Case:
    x, y = tf.constant(matrix(3)), tf.constant([1, 2, 3])
    a, b = tf.map_fn(lambda t: (t[0] * 2.0, tf.cast(t[1], tf.float64)), (x, y), dtype=(tf.float32, tf.float64))
    return Case([a, b, *grads(tf, tf.reduce_sum(a), [x])])


@program
def map_fn_variables(tf: Any) -> Case:
    x = tf.constant(matrix(3, 2))

    def fn(row: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.constant_initializer(2.0))
        return tf.reduce_sum(row * w)

    y = tf.map_fn(fn, x)
    return Case([y, *grads(tf, y, tf.trainable_variables())])


@program
def map_fn_in_map_fn(tf: Any) -> Case:
    x = tf.constant(matrix(2, 3))
    y = tf.map_fn(lambda row: tf.map_fn(lambda e: e * e, row), x)
    return Case([y, *grads(tf, tf.reduce_sum(y * y), [x])])


@program
def folds(tf: Any) -> Case:
    x = tf.constant(matrix(4))
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
    return Case([plain, backwards, a, b, *gradients], [{x: matrix(5)}, {x: matrix(1)}])


@program
def scan_recurrent_net(tf: Any) -> Case:
    x = tf.constant(matrix(4, 2, 3))
    w = tf.get_variable("w", initializer=matrix(3, 3), use_resource=True)
    u = tf.Variable(matrix(3, 3) * FLOAT(0.5))
    h = tf.scan(lambda h, e: tf.tanh(tf.matmul(e, w) + tf.matmul(h, u)), x, initializer=tf.zeros([2, 3]))
    return Case([h, *grads(tf, tf.reduce_mean(h[-1] ** 2.0), [x, w, u])])
