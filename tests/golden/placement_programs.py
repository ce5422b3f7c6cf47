"""TF 1.x programs whose nodes ask for devices that aren't there, or for several at once.

Each takes the module `tf`: TensorFlow's own, or thalweg; it builds into the default graph and returns what is
fetched. Sessions have two CPU devices and no other. record_placement.py writes down what TensorFlow does with
and without soft placement; tests/plan/test_placement_recorded.py compares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adds a program under its function's name."""
    PROGRAMS[build.__name__] = build
    return build


def _sum(tf: Any) -> Any:
    return tf.add(tf.constant(1.0, name="one"), tf.constant(2.0, name="two"), name="sum")


def _tied(tf: Any, *names: str) -> Any:
    """A scope whose nodes are in these nodes' colocation groups, and keep their own devices."""
    value = tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@" + n.encode() for n in names]))
    return tf.get_default_graph()._attr_scope({"_class": value})


@program
def unconstrained(tf: Any) -> Any:
    """Anywhere."""
    return _sum(tf)


@program
def second_cpu(tf: Any) -> Any:
    """A device that is there."""
    with tf.device("/cpu:1"):
        return _sum(tf)


@program
def any_cpu(tf: Any) -> Any:
    """A type, any number."""
    with tf.device("/device:CPU:*"):
        return _sum(tf)


@program
def gpu(tf: Any) -> Any:
    """A type that isn't there."""
    with tf.device("/gpu:0"):
        return _sum(tf)


@program
def cpu_seven(tf: Any) -> Any:
    """A number that isn't there."""
    with tf.device("/cpu:7"):
        return _sum(tf)


@program
def unknown_type(tf: Any) -> Any:
    """A type that nobody knows."""
    with tf.device("/device:ABACUS:0"):
        return _sum(tf)


@program
def other_job(tf: Any) -> Any:
    """Soft placement doesn't change jobs."""
    with tf.device("/job:ps/task:1"):
        return _sum(tf)


@program
def other_job_gpu(tf: Any) -> Any:
    """Nor where the type isn't there either."""
    with tf.device("/job:ps/task:1/gpu:0"):
        return _sum(tf)


@program
def other_task(tf: Any) -> Any:
    """The job is there, the task isn't."""
    with tf.device("/job:localhost/task:3"):
        return _sum(tf)


@program
def own_task_gpu(tf: Any) -> Any:
    """The task is there, the type isn't."""
    with tf.device("/job:localhost/replica:0/task:0/gpu:0"):
        return _sum(tf)


@program
def variable_on_gpu(tf: Any) -> Any:
    """A whole colocation group asks for what isn't there."""
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=3.0, use_resource=False)
    with tf.control_dependencies([v.initializer]):
        return tf.identity(v.read_value(), name="value")


@program
def string_on_gpu(tf: Any) -> Any:
    """An op that a GPU could never run."""
    with tf.device("/gpu:0"):
        return tf.gather(tf.constant(["a", "b"], name="letters"), tf.constant(1, name="which"), name="letter")


@program
def colocated_numbers(tf: Any) -> Any:
    """Two numbers of a type in one group."""
    with tf.device("/cpu:0"):
        a = tf.constant(1.0, name="a")
    with tf.device("/cpu:1"), _tied(tf, "a"):
        b = tf.constant(2.0, name="b")
    return tf.add(a, b, name="sum")


@program
def colocated_types(tf: Any) -> Any:
    """Two types in one group."""
    with tf.device("/cpu:0"):
        a = tf.constant(1.0, name="a")
    with tf.device("/gpu:0"), _tied(tf, "a"):
        b = tf.constant(2.0, name="b")
    return tf.add(a, b, name="sum")


@program
def colocated_jobs(tf: Any) -> Any:
    """Two jobs in one group."""
    with tf.device("/job:localhost"):
        a = tf.constant(1.0, name="a")
    with tf.device("/job:ps"), _tied(tf, "a"):
        b = tf.constant(2.0, name="b")
    return tf.add(a, b, name="sum")


@program
def colocated_by_a_third(tf: Any) -> Any:
    """Both in groups of nodes that are in one group."""
    with tf.device("/cpu:0"):
        a = tf.constant(1.0, name="a")
    with _tied(tf, "a"):
        b = tf.constant(2.0, name="b")
    with _tied(tf, "a", "d"):
        c = tf.constant(3.0, name="c")
    with tf.device("/cpu:1"):
        d = tf.constant(4.0, name="d")
    return tf.add_n([a, b, c, d], name="sum")


@program
def colocated_with_nobody(tf: Any) -> Any:
    """A group of which no node has the name."""
    with _tied(tf, "nobody"):
        a = tf.constant(1.0, name="a")
        b = tf.constant(2.0, name="b")
    return tf.add(a, b, name="sum")


@program
def update_elsewhere(tf: Any) -> Any:
    """An update that asks for another device than its variable's goes where the variable is."""
    with tf.device("/cpu:0"):
        v = tf.get_variable("v", initializer=3.0, use_resource=False)
    with tf.control_dependencies([v.initializer]), tf.device("/cpu:1"):
        return tf.assign_add(v, 2.0, name="more")


@program
def resource_update_elsewhere(tf: Any) -> Any:
    """The same of a resource variable."""
    with tf.device("/cpu:0"):
        v = tf.get_variable("v", initializer=3.0, use_resource=True)
    with tf.control_dependencies([v.initializer]), tf.device("/cpu:1"):
        return v.assign_add(2.0, name="more", read_value=True)


@program
def queue_elsewhere(tf: Any) -> Any:
    """A dequeue that asks for another device than its queue's."""
    with tf.device("/cpu:0"):
        q = tf.FIFOQueue(3, [tf.float32], shapes=[[]], name="q")
    with tf.control_dependencies([q.enqueue(5.0)]), tf.device("/cpu:1"):
        return q.dequeue(name="taken")
