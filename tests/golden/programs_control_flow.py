"""TF 1.x programs with branches and loops that build graphs; see graph_programs.py."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any], None]

PROGRAMS: dict[str, Program] = {}


def program(build: Program) -> Program:
    """Adds a program under its function's name."""
    PROGRAMS[build.__name__] = build
    return build


def _float(tf: Any, name: str = "x") -> Any:
    return tf.placeholder(tf.float32, [], name=name)


# ---- branches --------------------------------------------------------------------------------------------


@program
def cond_plain(tf: Any) -> None:
    """Values from outside, constants, a nest, and one that is returned as it is."""
    x, y = _float(tf), _float(tf, "y")
    tf.cond(x < y, lambda: x * 2.0, lambda: y + 3.0)
    tf.cond(x < y, lambda: (x, [y, tf.constant(1)]), lambda: (y, [x * y, tf.constant(2)]), name="pair")
    tf.cond(x > 0.0, fn1=lambda: [x], fn2=lambda: [x + 1.0], strict=True)


@program
def cond_nested(tf: Any) -> None:
    """Branches in branches, over the same and over other values."""
    x, y = _float(tf), _float(tf, "y")

    def inner() -> Any:
        z = x + y
        return tf.cond(z > 0.0, lambda: z * x, lambda: tf.cond(y > 1.0, lambda: y, lambda: z - 1.0))

    tf.cond(x > y, inner, lambda: x)


@program
def cond_effects(tf: Any) -> None:
    """Updates, operations as results, control dependencies from outside and inside."""
    v = tf.Variable(1.0, name="v")
    r = tf.get_variable("r", initializer=2.0, use_resource=True)
    p = tf.placeholder(tf.bool, [])
    outside = tf.assign_add(v, 1.0)

    def true_fn() -> Any:
        with tf.control_dependencies([tf.assign(v, 5.0), outside]):
            return tf.constant(10)

    def false_fn() -> Any:
        with tf.control_dependencies([tf.assign_sub(r, 1.0)]):
            return tf.constant(20)

    tf.cond(p, true_fn, false_fn)
    tf.cond(p, lambda: tf.assign_add(v, 2.0), lambda: v)
    tf.cond(p, lambda: tf.group(tf.assign(v, 0.0)), lambda: tf.no_op())
    with tf.control_dependencies([outside]):
        tf.cond(p, lambda: r.read_value(), lambda: r * 2.0)


@program
def cond_variables_inside(tf: Any) -> None:
    """Variables that are made in a branch are initialised outside of it."""
    x = _float(tf)

    def layer(name: str) -> Any:
        with tf.variable_scope(name):
            w = tf.get_variable("w", [2], initializer=tf.constant_initializer(0.5))
            b = tf.get_variable("b", initializer=lambda: tf.zeros([2]), use_resource=True)
            return w * x + b

    tf.cond(x > 0.0, lambda: layer("a"), lambda: layer("b"))


@program
def cond_sparse(tf: Any) -> None:
    """SparseTensors and IndexedSlices as results."""
    p = tf.placeholder(tf.bool, [])
    s = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    tf.cond(p, lambda: s, lambda: tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape))
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    tf.cond(p, lambda: rows, lambda: tf.IndexedSlices(rows.values + 1.0, rows.indices, rows.dense_shape))


@program
def case_default(tf: Any) -> None:
    """Several branches."""
    x, y = _float(tf), _float(tf, "y")
    pairs = [(x < y, lambda: x), (x > 10.0, lambda: y * 2.0)]
    tf.case(pairs, default=lambda: tf.constant(-1.0))


# ---- loops -----------------------------------------------------------------------------------------------


@program
def while_plain(tf: Any) -> None:
    """One and several variables, constants, values from outside."""
    x = _float(tf)
    tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0])
    tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, a * x + tf.constant(1.0)), [tf.constant(0), x])
    tf.while_loop(lambda i: i < x, lambda i: [i + 1.0], [0.0], return_same_structure=True, name="same")


@program
def while_options(tf: Any) -> None:
    """A bound, shape invariants, parallel iterations."""
    n = tf.placeholder(tf.int32, [])
    tf.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=n, parallel_iterations=1)
    tf.while_loop(
        lambda i, m: i < 3,
        lambda i, m: [i + 1, tf.concat([m, m], 0)],
        [tf.constant(0), tf.ones([2, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
        maximum_iterations=5,
        back_prop=False,
        swap_memory=True,
    )


@program
def while_nest(tf: Any) -> None:
    """A nest of loop variables."""
    Pair = collections.namedtuple("Pair", "j, k")
    ijk = (tf.constant(0), Pair(tf.constant(1), {"b": tf.constant(2), "a": tf.constant(3)}))

    def body(i: Any, p: Any) -> Any:
        return i + 1, Pair(p.j + p.k["b"], {"a": p.j - p.k["b"], "b": p.k["a"]})

    tf.while_loop(lambda i, p: i < 10, body, ijk)


@program
def while_nested(tf: Any) -> None:
    """Loops in loops: outer values in the inner condition and body."""
    x = _float(tf)
    n = tf.placeholder(tf.int32, [])

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any) -> Any:
            return j + 1, b * x + tf.cast(i, tf.float32)

        _, b = tf.while_loop(lambda j, b: j < i + n, inner, [tf.constant(0), a])
        return i + 1, b

    tf.while_loop(lambda i, a: i < n, outer, [0, x])


@program
def while_captured_loop_start(tf: Any) -> None:
    """The inner loop starts from values of outside both loops, and from constants of the outer one."""
    x = _float(tf)
    c = tf.constant(2.0)

    def outer(i: Any) -> Any:
        r = tf.while_loop(lambda a, b: a < 5.0, lambda a, b: (a + b, b), [x, c])
        s = tf.while_loop(lambda j: j < 3, lambda j: j + 1, [0])
        return i + tf.cast(r[0], tf.int32) + s

    tf.while_loop(lambda i: i < 10, outer, [tf.constant(0)])


@program
def while_with_cond(tf: Any) -> None:
    """Branches in loops."""
    x = _float(tf)

    def body(i: Any, a: Any) -> Any:
        a = tf.cond(tf.equal(i % 2, 0), lambda: a + x, lambda: tf.cond(a > 3.0, lambda: a, lambda: -a * 2.0))
        return i + 1, a

    tf.while_loop(lambda i, a: tf.logical_and(i < 10, a < 100.0), body, [0, x])


@program
def cond_with_while(tf: Any) -> None:
    """Loops in branches."""
    x = _float(tf)
    p = tf.placeholder(tf.bool, [])

    def loop() -> Any:
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x])[1]

    tf.cond(p, loop, lambda: x)
    tf.cond(p, lambda: tf.while_loop(lambda a: a < 10.0, lambda a: a + 1.0, [x]), lambda: tf.constant(0.0))


@program
def while_effects(tf: Any) -> None:
    """Updates in loops, of variables of both kinds; control dependencies from outside, and inside."""
    v = tf.Variable(1.0, name="v")
    r = tf.get_variable("r", initializer=2.0, use_resource=True)
    start = tf.assign(v, 0.0)
    group = tf.group(start)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(v, 2.0), r.assign_add(1.0)]):
            i = i + 1
        with tf.control_dependencies([start, group]):
            c = tf.constant(1)
            d = i * 2
        return tf.identity(i) + c - c + d - d

    tf.while_loop(lambda i: i < 5, body, [0])
    with tf.control_dependencies([start]):
        tf.while_loop(lambda i: i < 5, lambda i: i + tf.cast(v, tf.int32), [0])


@program
def while_variables(tf: Any) -> None:
    """Variables as loop variables, made inside, and read inside."""
    v = tf.Variable([1.0, 2.0], name="v")

    def body(i: Any, a: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
        u = tf.get_variable("u", [2], initializer=tf.zeros_initializer())
        return i + 1, a * w + u + v

    tf.while_loop(lambda i, a: i < 3, body, [0, v])


@program
def while_devices(tf: Any) -> None:
    """Devices and colocation."""
    with tf.device("/cpu:0"):
        x = _float(tf)
        v = tf.Variable(1.0, name="v")

    def body(i: Any, a: Any) -> Any:
        with tf.colocate_with(v):
            a = a * x
        with tf.device("/cpu:0"):
            return i + 1, a + v

    tf.while_loop(lambda i, a: i < 3, body, [0, x])


@program
def while_sparse(tf: Any) -> None:
    """SparseTensors and IndexedSlices as loop variables."""
    s = tf.SparseTensor(np.array([[0, 1]], np.int64), [2.0], [2, 2])
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))

    def body(i: Any, s: Any, r: Any) -> Any:
        s = tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)
        return i + 1, s, tf.IndexedSlices(r.values + 1.0, r.indices)

    tf.while_loop(lambda i, s, r: i < 3, body, [0, s, rows])


# ---- TensorArrays ----------------------------------------------------------------------------------------


@program
def tensor_array_methods(tf: Any) -> None:
    """Every method of TensorArray."""
    x = tf.placeholder(tf.float32, [3, 2])
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False, tensor_array_name="ta").unstack(x)
    ta.read(0)
    ta.stack()
    ta.gather([1, 2])
    ta.concat()
    ta.size()
    ta.close()
    ta.identity().read(1)
    grown = tf.TensorArray(tf.int32, size=0, dynamic_size=True, infer_shape=False)
    grown = grown.write(0, [1]).write(1, [2, 3])
    grown.concat()
    grown.size()
    grown.stack()
    ta = tf.TensorArray(tf.float32, 2, element_shape=[None, 2], colocate_with_first_write_call=False)
    ta.split(x, [1, 2]).read(0)
    ta.scatter([0], tf.ones([1, 4, 2])).read(0)
    tf.TensorArray(tf.float32, tf.shape(x)[0], name="named").grad("gradients").read(0)


@program
def tensor_array_in_loop(tf: Any) -> None:
    """A TensorArray goes round."""
    x = tf.placeholder(tf.float32, [None, 2])
    n = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, n).unstack(x)

    def body(i: Any, ta: Any, a: Any) -> Any:
        a = a + inputs.read(i)
        return i + 1, ta.write(i, a), a

    outputs = tf.TensorArray(tf.float32, n)
    _, outputs, _ = tf.while_loop(lambda i, *_: i < n, body, [0, outputs, tf.zeros([2])])
    outputs.stack()
    p = tf.placeholder(tf.bool, [])
    tf.cond(p, lambda: outputs.write(0, [1.0, 2.0]), lambda: outputs).size()


@program
def functional(tf: Any) -> None:
    """map_fn, foldl, foldr, scan over known and unknown numbers of rows."""
    x = tf.placeholder(tf.float32, [4, 2])
    y = tf.placeholder(tf.float32, [None])
    tf.map_fn(lambda row: row * 2.0, x)
    tf.map_fn(lambda t: (t[0] + 1.0, tf.cast(t[0], tf.int32)), (y, y), dtype=(tf.float32, tf.int32))
    tf.foldl(lambda a, row: a + row, x)
    tf.foldl(lambda a, row: a + row, y, initializer=0.0)
    tf.foldr(lambda a, row: a - row, x)
    tf.foldr(lambda a, row: a - row, y, initializer=tf.constant(1.0))
    tf.scan(lambda a, row: a * row, x)
    tf.scan(lambda a, t: (a[0] + t[0], a[1] * t[1]), (y, y), initializer=(0.0, tf.constant(1.0)))
    tf.scan(lambda a, row: a * row, x, reverse=True)


@program
def map_fn_variables(tf: Any) -> None:
    """Variables made in map_fn are cached outside."""
    x = tf.placeholder(tf.float32, [4, 2])

    def fn(row: Any) -> Any:
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        return tf.reduce_sum(row * w)

    tf.map_fn(fn, x)


# ---- gradients -------------------------------------------------------------------------------------------


@program
def gradient_cond(tf: Any) -> None:
    """Through branches."""
    x, y = _float(tf), _float(tf, "y")
    z = tf.cond(x < y, lambda: x * x * 2.0, lambda: y + tf.cond(y > 1.0, lambda: x * 3.0, lambda: y))
    tf.gradients(z, [x, y])


@program
def gradient_while(tf: Any) -> None:
    """Through a loop with an invariant."""
    x, y = _float(tf), _float(tf, "y")
    z = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * y + tf.sin(a)), [0, x])[1]
    tf.gradients(z, [x, y])


@program
def gradient_while_nested(tf: Any) -> None:
    """Through a loop in a loop, with a branch in it."""
    x = _float(tf)

    def outer(i: Any, a: Any) -> Any:
        def inner(j: Any, b: Any) -> Any:
            return j + 1, tf.cond(b > 2.0, lambda: b * x, lambda: b + a)

        return i + 1, tf.while_loop(lambda j, b: j < 3, inner, [0, a])[1] * a

    z = tf.while_loop(lambda i, a: i < 2, outer, [0, x])[1]
    tf.gradients(z, x)


@program
def gradient_unknown_shapes(tf: Any) -> None:
    """Branches in a loop, an exit that isn't used, an invariant: all of unknown shape."""
    x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None])

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * y, lambda: a + x), b * 0.5 + a

    z = tf.while_loop(lambda i, *_: i < 4, body, [0, x, x])[1]
    tf.gradients(z, [x, y])


@program
def gradient_tensor_array(tf: Any) -> None:
    """Through scan, map_fn and TensorArrays."""
    x = tf.placeholder(tf.float32, [4, 2])
    y = tf.scan(lambda a, row: a * row, x)
    z = tf.map_fn(lambda row: tf.reduce_sum(row), x)
    tf.gradients([y, z], x)
