"""TF 1.x programs that ask for devices. Each takes the module `tf`: TensorFlow's own, or thalweg.

record_devices.py writes down the device and the colocation groups of every node that TensorFlow builds;
tests/library/test_devices.py compares thalweg's with them. A program builds into the default graph; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]

PROGRAMS: dict[str, Program] = {}
#: programs that raise: the class of the error is recorded
BROKEN: dict[str, Program] = {}


def program(build: Program) -> Program:
    """Adds a program under its function's name."""
    PROGRAMS[build.__name__] = build
    return build


def broken(build: Program) -> Program:
    """Adds a program that raises under its function's name."""
    BROKEN[build.__name__] = build
    return build


# ---- tf.device -------------------------------------------------------------------------------------------


@program
def spellings(tf: Any) -> None:
    """Every way to write a name."""
    for name in (
        "/cpu:0", "/CPU:1", "/gpu:2", "/device:GPU:3", "/device:gpu:1", "/device:CPU:*", "/job:worker", "/task:2",
        "/job:a/replica:1/task:2/device:TPU:3", "/job:a/task:2/cpu:0", "cpu:0", "CPU:0", "job:b/task:1", "/device:TOY:1",
        "/device:XLA_CPU:0", "/cpu:*", "",
        "/job:w_1.x-2/task:0",
    ):  # fmt: skip
        with tf.device(name):
            tf.no_op(name="n")


@program
def nested(tf: Any) -> None:
    """Parts that inner scopes leave open come from outer ones."""
    with tf.device("/job:worker/task:1"):
        tf.no_op(name="a")
        with tf.device("/gpu:0"):
            tf.no_op(name="b")
            with tf.device("/job:ps"):
                tf.no_op(name="c")
                with tf.device("/task:3/cpu:1"):
                    tf.no_op(name="d")
        with tf.device("/device:GPU:*"), tf.device("/device:CPU:2"):
            tf.no_op(name="e")
        tf.no_op(name="f")


@program
def none_resets(tf: Any) -> None:
    """None drops the outer scopes, not the inner ones."""
    with tf.device("/job:worker/gpu:0"):
        with tf.device(None):
            tf.no_op(name="a")
            with tf.device("/cpu:1"):
                tf.no_op(name="b")
        with tf.device(""):
            tf.no_op(name="c")


@program
def device_specs(tf: Any) -> None:
    """A DeviceSpec in place of a string."""
    with tf.device(tf.DeviceSpec(job="worker", task=2)):
        tf.no_op(name="a")
        with tf.device(tf.DeviceSpec(device_type="GPU", device_index=1)):
            tf.no_op(name="b")
        with tf.device(tf.DeviceSpec()):
            tf.no_op(name="c")


@program
def functions(tf: Any) -> None:
    """A function of the node: its result is the node's device."""
    def by_type(op: Any) -> str:
        return "/gpu:1" if op.type == "MatMul" else "/cpu:0"

    with tf.device(by_type):
        x = tf.constant([[1.0]], name="x")
        tf.matmul(x, x, name="y")
        with tf.device("/job:worker"):
            tf.matmul(x, x, name="z")
    with tf.device("/job:ps/task:1"), tf.device(by_type):
        tf.matmul(x, x, name="u")


@program
def functions_see_inner_devices(tf: Any) -> None:
    """A function gets the node with what inner scopes asked for, and says all of the device."""
    seen = []

    def keep(op: Any) -> str:
        seen.append(op.device)
        return op.device

    def spec(op: Any) -> Any:
        return tf.DeviceSpec.from_string(op.device or "").make_merged_spec(tf.DeviceSpec(task=7))

    with tf.device(keep), tf.device("/gpu:3"):
        tf.no_op(name="a")
    with tf.device(spec), tf.device("/job:w"):
        tf.no_op(name="b")
    with tf.device("/job:outer"), tf.device(spec):
        tf.no_op(name="c")
    tf.constant(seen, name="seen")


@program
def function_overrides_inner(tf: Any) -> None:
    """A function that doesn't look at the node's device replaces it."""
    with tf.device(lambda op: "/job:f/cpu:0"), tf.device("/gpu:3"):
        tf.no_op(name="a")
    with tf.device("/job:o/replica:0"), tf.device(lambda op: "/cpu:0"), tf.device("/task:1/gpu:3"):
        tf.no_op(name="b")
    with tf.device(lambda op: ""), tf.device("/gpu:3"):
        tf.no_op(name="c")


@program
def graph_device(tf: Any) -> None:
    """The method of a graph."""
    graph = tf.get_default_graph()
    with graph.device("/gpu:1"):
        with graph.name_scope("s"):
            tf.no_op(name="a")
        with graph.control_dependencies(None):
            tf.no_op(name="b")


@program
def scope_helpers(tf: Any) -> None:
    """What sets a device by itself: grouping, tuples, the initializer of several variables."""
    with tf.device("/cpu:1"):
        a = tf.no_op(name="a")
    with tf.device("/gpu:0"):
        b = tf.no_op(name="b")
        c = tf.constant(1.0, name="c")
    d = tf.constant(2.0, name="d")
    with tf.device("/job:z"):
        tf.group(a, b, c.op, name="g")
        tf.tuple([c, d], control_inputs=[a], name="t")


# ---- colocation ------------------------------------------------------------------------------------------


@program
def colocation(tf: Any) -> None:
    """colocate_with drops the devices of scopes and takes those of the node."""
    with tf.device("/gpu:0"):
        a = tf.constant(1.0, name="a")
    b = tf.constant(1.0, name="b")
    with tf.colocate_with(a):
        tf.no_op(name="x")
        with tf.device("/cpu:0"):
            tf.no_op(name="y")
        with tf.colocate_with(b):
            tf.no_op(name="z")
        with tf.colocate_with(b, ignore_existing=True):
            tf.no_op(name="u")
        with tf.colocate_with(None, ignore_existing=True):
            tf.no_op(name="v")
    with tf.device("/cpu:2"), tf.colocate_with(b):
        tf.no_op(name="w")
        with tf.device("/gpu:5"):
            tf.no_op(name="s")


@program
def colocation_chain(tf: Any) -> None:
    """A group is named by its first node."""
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.constant(1.0, name="b")
    with tf.colocate_with(b):
        tf.constant(1.0, name="c")


@program
def colocation_in_function_scope(tf: Any) -> None:
    """Device functions don't see colocated nodes."""
    with tf.device(lambda op: "/gpu:9"):
        a = tf.constant(1.0, name="a")
        with tf.colocate_with(a):
            tf.constant(1.0, name="b")


# ---- variables -------------------------------------------------------------------------------------------


@program
def variables(tf: Any) -> None:
    """Initial values go where the variable is."""
    with tf.device("/cpu:0"):
        v = tf.Variable(tf.ones([2]), name="v")
    w = tf.Variable([1.0], name="w")
    with tf.device("/gpu:0"):
        u = tf.get_variable("u", [2], initializer=tf.zeros_initializer())
        v.assign_add([1.0, 1.0])
        tf.identity(w)
        tf.assign(u, v)
    tf.global_variables_initializer()


@program
def caching_devices(tf: Any) -> None:
    """The read of a variable goes to its caching device."""
    with tf.device("/job:ps"):
        v = tf.Variable(1.0, name="v", caching_device="/job:worker")
        w = tf.get_variable("w", [], caching_device=lambda op: "/cpu:3")
        u = tf.get_variable("u", [], caching_device="/cpu:1")
        with tf.variable_scope("s", caching_device="/gpu:2"):
            s = tf.get_variable("s", [])
    with tf.device("/gpu:0"):
        tf.add_n([v, w, u, s])


@program
def resource_variables(tf: Any) -> None:
    """The same for resource variables: reads are where they are asked for."""
    with tf.device("/job:ps/cpu:0"):
        v = tf.get_variable("v", [2], use_resource=True)
        c = tf.get_variable("c", [], use_resource=True, caching_device="/gpu:1")
    with tf.device("/gpu:0"):
        tf.multiply(v, c)
        v.read_value()
        v.assign_add([1.0, 1.0])


@program
def partitioned(tf: Any) -> None:
    """Parts of a variable one by one, and looking them up."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        v = tf.get_variable("v", [4, 3], partitioner=tf.fixed_size_partitioner(2))
        tf.nn.embedding_lookup(v, [0, 3], partition_strategy="div")
        tf.identity(v)


# ---- parameter servers -----------------------------------------------------------------------------------


def _model(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.get_variable("w", [3, 2])
    b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
    return tf.reduce_mean(tf.square(tf.nn.bias_add(tf.matmul(x, w), b)), name="loss")


@program
def setter_round_robin(tf: Any) -> None:
    """Variables go to parameter servers in turn."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=3)):
        for name in ("v0", "v1", "v2", "v3"):
            tf.get_variable(name, [2])
        _model(tf)


@program
def setter_cluster(tf: Any) -> None:
    """Tasks counted from a cluster; the worker's device by name."""
    cluster = tf.train.ClusterSpec({"ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1"]})
    setter = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:1/gpu:0")
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        tf.train.GradientDescentOptimizer(0.1).minimize(_model(tf), step)


@program
def setter_merges(tf: Any) -> None:
    """What a scope inside says is kept."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:3")):
        with tf.device("/gpu:1"):
            tf.get_variable("a", [2])
            tf.no_op(name="n")
        with tf.device("/job:other"):
            tf.get_variable("b", [2])
        with tf.device("/job:ps/task:9"):
            tf.get_variable("c", [2])
        with tf.device("/task:4"):
            tf.no_op(name="m")


@program
def setter_overrides(tf: Any) -> None:
    """With merge_devices=False a node that has a device keeps it as it is."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, merge_devices=False)):
        with tf.device("/gpu:1"):
            tf.get_variable("a", [2])
            tf.no_op(name="n")
        tf.get_variable("b", [2])
        tf.no_op(name="m")


@program
def setter_variants(tf: Any) -> None:
    """Own names of jobs, own ops, no parameter server at all."""
    setter = tf.train.replica_device_setter
    with tf.device(setter(ps_tasks=2, ps_device="/job:store/cpu:0", worker_device="/job:trainer")):
        tf.get_variable("a", [2])
        tf.get_variable("r", [2], use_resource=True)
    with tf.device(setter(ps_tasks=2, ps_ops=["Placeholder"])):
        tf.placeholder(tf.float32, name="p")
        tf.placeholder(tf.float32, name="q")
        tf.get_variable("b", [2])
    with tf.device(setter(ps_tasks=0)):
        tf.get_variable("c", [2])
    with tf.device(setter(cluster={"worker": ["w0:1"]})):
        tf.get_variable("d", [2])
    with tf.device(setter(ps_tasks=1, ps_device="", worker_device="")):
        tf.get_variable("e", [2])


@program
def setter_strategy(tf: Any) -> None:
    """A strategy of the program's own."""
    with tf.device(tf.train.replica_device_setter(ps_tasks=4, ps_strategy=lambda op: len(op.name))):
        for name in ("a", "bb", "ccc"):
            tf.get_variable(name, [2])


# ---- gradients and optimizers ----------------------------------------------------------------------------


def _two_layers(tf: Any) -> tuple[Any, list[Any]]:
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [4, 3], name="x")
        w = tf.Variable(tf.ones([3, 3]), name="w")
    with tf.device("/gpu:0"):
        h = tf.nn.relu(tf.matmul(x, w), name="h")
    with tf.device("/gpu:1"):
        y = tf.reduce_sum(tf.tanh(tf.matmul(h, w)), name="y")
    return y, [w]


@program
def gradients(tf: Any) -> None:
    """Without colocation a gradient's nodes go where the call is."""
    y, xs = _two_layers(tf)
    with tf.device("/cpu:7"):
        tf.gradients(y, xs)


@program
def gradients_colocated(tf: Any) -> None:
    """With it they go where the nodes are that they differentiate."""
    y, xs = _two_layers(tf)
    with tf.device("/cpu:7"):
        tf.gradients(y, xs, colocate_gradients_with_ops=True)


@program
def optimizer(tf: Any) -> None:
    """Slots and updates go where the variables are."""
    y, _ = _two_layers(tf)
    with tf.device("/cpu:5"):
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(y)


@program
def adam_colocated(tf: Any) -> None:
    """Adam with a step counter, gradients colocated."""
    with tf.device("/job:ps"):
        step = tf.train.create_global_step()
        v = tf.get_variable("v", [3])
    with tf.device("/job:worker/gpu:0"):
        loss = tf.reduce_sum(tf.square(v))
        tf.train.AdamOptimizer().minimize(loss, step, colocate_gradients_with_ops=True)


@program
def towers(tf: Any) -> None:
    """Data parallelism by hand: a tower a GPU, averaged gradients."""
    with tf.device("/cpu:0"):
        opt = tf.train.GradientDescentOptimizer(0.1)
        x = tf.placeholder(tf.float32, [4, 3], name="x")
        found = []
        for i, part in enumerate(tf.split(x, 2)):
            variables = tf.variable_scope(tf.get_variable_scope(), reuse=i > 0)
            with tf.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"), variables:
                w = tf.get_variable("w", [3, 1])
                loss = tf.reduce_mean(tf.matmul(part, w))
                found.append(opt.compute_gradients(loss))
        mean = [(tf.add_n([g for g, _ in pairs]) / 2.0, pairs[0][1]) for pairs in zip(*found, strict=True)]
        opt.apply_gradients(mean)


@program
def averages(tf: Any) -> None:
    """Moving averages go where their variables are."""
    with tf.device("/job:ps/task:1"):
        v = tf.get_variable("v", [3])
    with tf.device("/gpu:0"):
        tf.train.ExponentialMovingAverage(0.9).apply([v])


# ---- other sources of devices ----------------------------------------------------------------------------


@program
def imported(tf: Any) -> None:
    """Devices of an imported graph lie inside the scopes in force."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/gpu:1"):
            a = tf.constant(1.0, name="a")
        with tf.device("/job:b"):
            tf.identity(a, name="b")
        with tf.colocate_with(a):
            tf.identity(a, name="c")
    with tf.device("/job:w/cpu:0"):
        tf.import_graph_def(graph.as_graph_def(), name="i")


@program
def loops_and_branches(tf: Any) -> None:
    """Nodes of control flow ask for what the scope asks."""
    with tf.device("/gpu:0"):
        x = tf.constant(1.0, name="x")
        tf.cond(x > 0.0, lambda: x + 1.0, lambda: x - 1.0)
        with tf.device("/cpu:0"):
            tf.while_loop(lambda i: i < 3.0, lambda i: i + x, [x])


@program
def queues(tf: Any) -> None:
    """A queue, and its runner's nodes."""
    with tf.device("/cpu:1"):
        queue = tf.FIFOQueue(3, tf.float32, name="q")
    with tf.device("/gpu:0"):
        queue.enqueue(1.0)
        queue.dequeue()


# ---- what is refused -------------------------------------------------------------------------------------


@broken
def unknown_part(tf: Any) -> None:
    """A part that is none."""
    with tf.device("/jobb:worker"):
        tf.no_op()


@broken
def two_types(tf: Any) -> None:
    """Two types in one name."""
    with tf.device("/cpu:0/gpu:1"):
        tf.no_op()


@broken
def task_is_no_number(tf: Any) -> None:
    """A task is a number."""
    with tf.device("/task:x"):
        tf.no_op()


@broken
def index_is_no_number(tf: Any) -> None:
    """So is an index."""
    with tf.device("/gpu:one"):
        tf.no_op()


@broken
def plain_word(tf: Any) -> None:
    """A word is no name."""
    with tf.device("gpu0"):
        tf.no_op()


@broken
def number(tf: Any) -> None:
    """A number is no name."""
    with tf.device(3):
        tf.no_op()


@broken
def function_gives_a_number(tf: Any) -> None:
    """A function must return a name."""
    with tf.device(lambda op: 3):
        tf.no_op()


@broken
def function_gives_a_bad_name(tf: Any) -> None:
    """A function must return a name that is well formed."""
    with tf.device(lambda op: "/bad:1"):
        tf.no_op()


@broken
def function_gives_none(tf: Any) -> None:
    """TensorFlow wants a name from every function."""
    with tf.device(lambda op: None):
        tf.no_op()


@broken
def spec_of_words(tf: Any) -> None:
    """The parts of a DeviceSpec."""
    tf.DeviceSpec(task="one")


@broken
def spec_from_bad_text(tf: Any) -> None:
    """The text of a DeviceSpec."""
    tf.DeviceSpec.from_string("/oops")


@broken
def colocate_with_nothing(tf: Any) -> None:
    """None needs ignore_existing."""
    with tf.colocate_with(None):
        tf.no_op()


@broken
def colocate_with_a_name(tf: Any) -> None:
    """A name that is no node's."""
    with tf.colocate_with("nobody"):
        tf.no_op()


@broken
def setter_of_a_list(tf: Any) -> None:
    """A cluster is a dictionary."""
    tf.train.replica_device_setter(cluster=["a:1"])


@broken
def setter_of_a_bad_strategy(tf: Any) -> None:
    """A strategy is a function."""
    tf.train.replica_device_setter(ps_tasks=2, ps_strategy=1)


@broken
def cluster_of_numbers(tf: Any) -> None:
    """Addresses are strings."""
    tf.train.ClusterSpec({"ps": [1]})


@broken
def cluster_of_text(tf: Any) -> None:
    """Tasks are a list or a dictionary."""
    tf.train.ClusterSpec({"ps": "p0:1"})


@broken
def cluster_without_a_job(tf: Any) -> None:
    """A job that isn't there."""
    tf.train.ClusterSpec({"ps": ["p0:1"]}).num_tasks("worker")


@broken
def no_cpu(tf: Any) -> None:
    """A session without any device."""
    tf.Session(config=tf.ConfigProto(device_count={"CPU": 0}))
