"""Placement of graphs: constraints, colocation, kinds of devices, memory, homes of variables, reports."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.base.errors import InvalidArgumentError, ResourceExhaustedError
from thalweg.graph.graph import Graph
from thalweg.plan.placement.cluster import ClusterDescription, DeviceInfo, Speed
from thalweg.plan.placement.colocation import Groups
from thalweg.plan.placement.homes import find_homes
from thalweg.plan.placement.place import Decision, decide, place

TASK = "/job:localhost/replica:0/task:0"


def info(device: str, **facts: Any) -> DeviceInfo:
    kind = device.partition(":")[0]
    made = {"CPU": {"flops": 1e10, "hosts": True}, "GPU": {"flops": 1e13, "bandwidth": 1e12}}.get(kind, {"compiles": False})
    return DeviceInfo(f"{TASK}/device:{device}", kind, **{**made, **facts})


def cluster(*devices: str | DeviceInfo, latency: float = 1e-5, bandwidth: float = 1e10) -> ClusterDescription:
    return ClusterDescription([info(d) if isinstance(d, str) else d for d in devices], (), Speed(latency, bandwidth))


MIXED = cluster("CPU:0", "CPU:1", "GPU:0", "GPU:1")


def devices_of(decision: Decision) -> dict[str, str]:
    names = decision.cluster.names
    return {
        op.name: names[d].removeprefix(TASK + "/device:") for op, d in zip(decision.ops, decision.assignment, strict=True)
    }


def placed(graph: Graph, where: ClusterDescription = MIXED, **options: Any) -> dict[str, str]:
    return devices_of(decide(graph._ops, where, **options))


@pytest.fixture
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def big(name: str = "m", size: int = 2000) -> Any:
    x = tf.placeholder(tf.float32, [size, size], name=f"{name}_in")
    return tf.matmul(x, x, name=name)


def test_big_work_goes_to_the_fast_device_and_small_work_stays(graph: Graph) -> None:
    big()
    tf.add(tf.placeholder(tf.float32, [3], name="x"), 1.0, name="small")
    assert placed(graph)["m"].startswith("GPU")
    shared = cluster(info("CPU:0", shares="c"), info("CPU:1", shares="c"))
    assert set(placed(graph, shared).values()) == {"CPU:0"}


def test_parts_of_names_leave_a_choice(graph: Graph) -> None:
    with tf.device("/gpu:*"):
        tf.add(tf.placeholder(tf.float32, [3], name="x"), 1.0, name="any_gpu")
    with tf.device("/cpu:1"):
        tf.add(tf.placeholder(tf.float32, [3], name="y"), 1.0, name="this")
    where = placed(graph)
    assert where["any_gpu"].startswith("GPU") and where["this"] == "CPU:1"


def test_what_xla_has_no_part_in_stays_on_the_host(graph: Graph) -> None:
    tf.identity(tf.constant(["a"]), name="text")
    tf.py_func(lambda v: v, [big()], tf.float32, name="python")
    where = placed(graph)
    assert where["text"].startswith("CPU") and where["python"].startswith("CPU")


def test_no_kernel_on_the_device_that_is_asked_for(graph: Graph) -> None:
    with tf.device("/gpu:1"):
        text = tf.identity(tf.constant(["a"]), name="text")
    with pytest.raises(InvalidArgumentError) as caught:
        placed(graph)
    says = str(caught.value)
    assert "Could not satisfy explicit device specification '/device:GPU:1'" in says
    assert "no supported kernel for GPU" in says and "Registered kernels: CPU" in says
    assert "device:CPU:0" in says and "allow_soft_placement" in says
    decision = decide(graph._ops, MIXED, soft=True)
    assert devices_of(decision)["text"] == "CPU:0"
    assert any("'text' (Identity) asks for '/device:GPU:1'" in t for t in decision.constraints.fallbacks.values())


def test_no_device_has_a_kernel(graph: Graph) -> None:
    tf.identity(tf.constant(["a"]), name="text")
    with pytest.raises(InvalidArgumentError, match=r"no device has a kernel for Const \(string\).*Registered kernels: CPU.*GPU:0"):
        placed(graph, cluster("GPU:0", "GPU:1"))


def test_a_conflict_shows_both_sides_and_the_chain_between_them(graph: Graph) -> None:
    nodes = {}
    for name, device, ties in (("a", "/cpu:0", []), ("b", "", ["a"]), ("c", "", ["b"]), ("d", "/cpu:1", ["c"])):
        with tf.device(device), graph._attr_scope({"_class": tuple(b"loc:@" + t.encode() for t in ties)}):
            nodes[name] = tf.placeholder(tf.float32, [], name=name)
    with pytest.raises(InvalidArgumentError) as caught:
        placed(graph)
    says = str(caught.value)
    assert "Cannot colocate nodes a and d" in says
    assert "'a' (Placeholder) asks for '/device:CPU:0'; 'd' (Placeholder) asks for '/device:CPU:1'" in says
    assert "'a' - 'b' (_class 'loc:@a'), 'b' - 'c' (_class 'loc:@b'), 'c' - 'd' (_class 'loc:@c')" in says
    decision = decide(graph._ops, MIXED, soft=True)
    assert len({devices_of(decision)[n] for n in nodes}) == 1


def test_of_a_long_chain_an_error_shows_the_ends(graph: Graph) -> None:
    with tf.device("/cpu:0"):
        nodes = [tf.random_uniform([], name="n")]
    for i in range(100):
        with tf.device("/cpu:1" if i == 99 else None):
            nodes.append(tf.random_uniform([], name="n"))
        nodes[-1].op._set_attr("_class", (f"loc:@{nodes[-2].op.name}".encode(),))
    with pytest.raises(InvalidArgumentError, match=r"'n' - 'n_1' .*, \d+ more, .* - 'n_100'") as e:
        placed(graph)
    assert len(e.value.message) < 1500


def test_a_group_that_one_member_drags_along_is_reported(graph: Graph) -> None:
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", [3], initializer=tf.zeros_initializer(), use_resource=False)
    with graph._attr_scope({"_class": (b"loc:@v",)}):
        tf.py_func(lambda x: x, [v.read_value()], tf.float32, name="python")
    with pytest.raises(InvalidArgumentError, match=r"'python' \(PyFunc\) of its colocation group has no supported kernel for GPU.*_class 'loc:@v'"):
        placed(graph)
    decision = decide(graph._ops, MIXED, soft=True)
    assert devices_of(decision)["v"] == devices_of(decision)["v/Assign"] == "CPU:0"
    (text,) = set(decision.constraints.fallbacks.values())
    assert "'v' asks for '/device:GPU:0', but 'python' (PyFunc) has no kernel there and drags its colocation group" in text


def test_no_device_for_both_of_a_group(graph: Graph) -> None:
    where = cluster(info("CPU:0", hosts=False, compiles=False), info("CPU:1", hosts=True, compiles=False), "GPU:0")
    where = ClusterDescription([info("GPU:0"), info("TOY:0", hosts=True, compiles=False)], (), Speed(0.0, 1.0))
    a = tf.identity(tf.constant(["a"]), name="text")
    with graph._attr_scope({"_class": (b"loc:@text",)}):
        big()
    assert placed(graph, where)["m"] == "TOY:0"


def test_chain_of_a_group() -> None:
    groups = Groups([None] * 4, [3] * 4, [3] * 4, 3)  # type: ignore[list-item]
    groups.unite(0, 1, "x")
    groups.unite(2, 1, "y")
    groups.unite(3, 2, "z")
    assert groups.chain(0, 3) == [(1, "x"), (2, "y"), (3, "z")]
    assert groups.members() == {0: [0, 1, 2, 3]}
    assert Groups([None] * 2, [1, 2], [3, 3], 3).unite_softly(0, 1, "") is False  # type: ignore[list-item]


@pytest.mark.parametrize("use_resource", [False, True])
def test_updates_are_where_the_variable_is(graph: Graph, use_resource: bool) -> None:
    x = tf.placeholder(tf.float32, [64, 2048], name="x")
    w = tf.get_variable("w", [2048, 2048], use_resource=use_resource)
    loss = tf.reduce_mean(tf.matmul(x, w))
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    where = placed(graph)
    together = {d for n, d in where.items() if n in ("w", "w/Assign", "w/Momentum") or "update_w" in n}
    assert len(together) == 1


def test_what_goes_along_with_a_use_of_a_resource_gives_way_with_it(graph: Graph) -> None:
    """Gradients of a tower that gathers from a variable elsewhere, with colocate_gradients_with_ops."""
    with tf.device("/cpu:0"):
        v = tf.get_variable("v", [5, 3], use_resource=True)
    with tf.device("/cpu:1"):
        rows = tf.gather(v, [1, 2], name="rows")
        loss = tf.reduce_sum(tf.square(rows), name="loss")
    with tf.colocate_with(rows):
        tf.add(rows, 1.0, name="beside")
    tf.gradients(loss, [v], colocate_gradients_with_ops=True)
    where = placed(graph)
    assert (where["rows"], where["beside"], where["loss"]) == ("CPU:0", "CPU:0", "CPU:1")


def test_homes_come_from_the_training_step_and_not_from_the_initializer(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [256, 2048], name="x")
    w = tf.get_variable("w", [2048, 2048])
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.matmul(x, w)))
    homes: dict[Any, str] = {}
    assert find_homes(graph, MIXED, homes) == len(graph._ops)
    assert homes["variable", "", "w"].endswith("GPU:0")
    before = dict(homes)
    find_homes(graph, MIXED, homes)
    assert homes == before
    where = placed(graph, homes=homes)
    assert where["w"] == where["w/Assign"] == "GPU:0"


def test_state_stays_where_it_is(graph: Graph) -> None:
    v = tf.get_variable("v", initializer=1.0)
    u = tf.get_variable("u", initializer=1.0)
    homes = {("variable", "", "v"): f"{TASK}/device:GPU:1"}
    where = placed(graph, homes=homes)
    assert where["v"] == where["v/Assign"] == "GPU:1" and where["u"] != "GPU:1"


def test_loops_stay_whole_unless_they_ask_for_several_devices(graph: Graph) -> None:
    def body(i: Any, x: Any) -> Any:
        return i + 1, tf.matmul(x, x)

    tf.while_loop(lambda i, x: i < 3, body, [0, tf.placeholder(tf.float32, [900, 900])], name="loop")
    from_plan = _plan(graph, graph._ops[-1]._outputs)
    inside = {d for n, d in from_plan.items() if n.startswith("loop/") and "Enter" not in n}
    assert len(inside) == 1


def _plan(graph: Graph, fetches: Any) -> dict[str, str]:
    report = tf.placement.explain(graph, list(fetches), MIXED)
    return {row.name: row.device.removeprefix(TASK + "/device:") for row in report.nodes}


def test_arrays_and_stacks_go_where_their_loop_asks_to_be(graph: Graph) -> None:
    """TensorFlow has kernels of them for GPUs; and a loop with a part of it elsewhere can't be compiled."""
    x, n = tf.placeholder(tf.float32, [4, 2]), tf.placeholder(tf.int32, [])
    with tf.device("/gpu:1"):
        y = tf.scan(lambda a, v: tf.tanh(a * v + 1.0), x)
        z = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.sin(v) * v), [0, y])[1]
        tf.gradients(tf.reduce_sum(z), x)
    where = placed(graph)
    kept = [op.name for op in graph.get_operations() if op.type.startswith(("Stack", "TensorArray"))]
    assert len(kept) > 8 and {where[name] for name in kept} == {"GPU:1"}


def test_a_kind_of_its_own_gets_what_it_has_kernels_for(graph: Graph) -> None:
    from thalweg.testing import devices as _  # noqa: F401  (registers TOY)

    x = tf.placeholder(tf.float32, [512, 512], name="x")
    product = tf.matmul(x, x, name="product")
    tf.exp(product, name="exp")
    toy = info("TOY:0", flops=1e13, bandwidth=1e12)
    where = placed(graph, cluster("CPU:0", toy))
    assert where["product"] == "TOY:0" and where["exp"] == "CPU:0"
    slow = info("TOY:0", flops=1e8)
    assert placed(graph, cluster("CPU:0", slow))["product"] == "CPU:0"
    far = cluster("CPU:0", toy, latency=10.0)
    assert placed(graph, far)["product"] == "CPU:0"
    new = tf.Graph()
    with new.as_default(), tf.device("/device:TOY:0"):
        tf.matmul(*[tf.placeholder(tf.float64, [2, 2])] * 2, name="double")
    with pytest.raises(InvalidArgumentError, match=r"MatMul \(float64\).*TOY for float32"):
        placed(new, cluster("CPU:0", toy))


def test_kernels_of_a_kind_are_put_into_the_plan(graph: Graph) -> None:
    from thalweg.testing import devices as _  # noqa: F401

    x = tf.placeholder(tf.float32, [4, 4], name="x")
    with tf.device("/device:TOY:0"):
        product = tf.matmul(x, x, name="product")
    usual = product.op._record
    place(graph, cluster("CPU:0", "TOY:0"))
    assert product.op._record is not usual
    assert product.op._record.kernel is usual.device_kernels["TOY"][0][1]
    assert product.op._record.definition is usual.definition


def layers(count: int, size: int) -> Any:
    h = tf.placeholder(tf.float32, [64, size], name="x")
    for i in range(count):
        h = tf.nn.relu(tf.matmul(h, tf.get_variable(f"w{i}", [size, size])))
    return tf.reduce_mean(h)


def test_no_device_is_given_more_than_it_holds(graph: Graph) -> None:
    tf.train.GradientDescentOptimizer(0.1).minimize(layers(6, 512))
    gpus = [info(f"GPU:{i}", memory=5e6) for i in range(3)]
    decision = decide(graph._ops, cluster("CPU:0", *gpus), homes={})
    assert decision.choice is not None
    peaks = decision.choice.best.result.peak
    assert all(p <= 5e6 for p in peaks[1:]) and sum(p > 0 for p in peaks[1:]) == 3
    roomy = cluster("CPU:0", *[info(f"GPU:{i}") for i in range(3)])
    assert len(set(placed(graph, roomy).values())) == 1


def test_a_variable_that_no_device_holds(graph: Graph) -> None:
    tf.get_variable("table", [1000, 1000], initializer=tf.zeros_initializer())
    where = cluster(info("CPU:0", memory=3e6), info("GPU:0", memory=1e6))
    with pytest.raises(ResourceExhaustedError) as caught:
        placed(graph, where)
    says = str(caught.value)
    assert "'table' (VariableV2), 4e+06 bytes" in says and "CPU:0 3e+06" in says and "more memory" in says
    assert caught.value.op.name == "table"


def test_devices_that_hold_nothing(graph: Graph) -> None:
    v = tf.get_variable("v", [100, 100])
    update = tf.assign_add(v, v * 2.0)
    none = cluster(info("CPU:0", memory=0.0), info("CPU:1", memory=0.0))
    with pytest.raises(ResourceExhaustedError, match="'v' and what goes with it would take 4e\\+04 bytes"):
        tf.placement.explain(graph, update, none)


def test_explain_refuses_what_is_no_graph_and_no_cluster(graph: Graph) -> None:
    with pytest.raises(TypeError, match=r"`graph` must be a tf.Graph, but got None"):
        tf.placement.explain(None, [])
    with pytest.raises(TypeError, match=r"`cluster` must be a ClusterDescription .* but got 'c.json'"):
        tf.placement.explain(graph, [], "c.json")


def test_variables_that_don_t_fit_on_the_device_that_they_ask_for(graph: Graph) -> None:
    for i in range(3):
        with tf.device("/gpu:0"):
            tf.get_variable(f"v{i}", [100, 1000], initializer=tf.zeros_initializer())
    with pytest.raises(ResourceExhaustedError, match=r"the variables on .*GPU:0 would take 1.2e\+06 bytes"):
        placed(graph, cluster("CPU:0", info("GPU:0", memory=1e6)))


def test_placing_is_deterministic(graph: Graph) -> None:
    tf.train.AdamOptimizer().minimize(layers(4, 256))
    first = placed(graph)
    assert all(placed(graph) == first for _ in range(2))


def test_measured_costs_replace_estimates(graph: Graph) -> None:
    product = big()
    costs = tf.placement.CostModel()
    assert placed(graph)["m"] == "GPU:0"
    costs.record("m", "GPU", 100.0)
    costs.record("m", "CPU", 1e-3)
    assert placed(graph, costs=costs)["m"] == "CPU:0"


def test_costs_are_measured_from_a_traced_run(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [500, 500], name="x")
    y = tf.reduce_sum(tf.exp(tf.matmul(x, x, name="product"), name="exp"), name="sum")
    options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    with tf.Session() as session:
        session.run(y, {x: np.zeros((500, 500), np.float32)}, options, metadata)
    costs = tf.placement.measure(graph, metadata)
    product, exp = costs.time("product", "CPU"), costs.time("exp", "CPU")
    assert product is not None and exp is not None and product > exp > 0
    total = sum(n.all_end_rel_nanos for d in metadata.step_stats.dev_stats for n in d.node_stats) * 1e-9
    assert sum(costs.time(n, "CPU") or 0 for n in costs._times) == pytest.approx(total)


def test_a_report_tells_why(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [2000, 2000], name="x")
    w = tf.get_variable("w", [2000, 2000])
    with tf.device("/cpu:1"):
        y = tf.matmul(x, w, name="pinned")
    free = tf.matmul(y, y, name="free")
    text = tf.py_func(lambda v: v, [free], tf.float32, name="python")
    report = tf.placement.explain(graph, [text], MIXED)
    rows = {row.name: row for row in report.nodes}
    assert rows["pinned"].reason == "asked for: /device:CPU:1" and rows["pinned"].device.endswith("CPU:1")
    assert rows["free"].reason.startswith("simulated") and rows["free"].alternatives
    assert all(t >= report.simulated * 0.99 for t in rows["free"].alternatives.values())
    assert "'python' has kernels on CPU only" in rows["python"].reason
    assert rows["w/read"].reason.startswith("with 'w'")
    assert report.device("pinned") == f"{TASK}/device:CPU:1"
    busy = {row.name: row.busy for row in report.devices}
    assert sum(row.time for row in report.nodes) == pytest.approx(sum(busy.values()))
    assert sum(row.sent for row in report.devices) == pytest.approx(sum(t[3] for t in report.transfers))
    data = json.loads(report.to_json())
    assert data["step_time"] == report.step_time and len(data["nodes"]) == len(report.nodes)
    shown = tf.placement.format_placement(report)
    assert "pinned" in shown and "predicted" in shown
    assert tf.placement.draw(report).startswith("<svg")


def test_the_report_is_what_a_session_does(graph: Graph) -> None:
    with tf.device("/cpu:1"):
        a = tf.add(tf.placeholder(tf.float32, [2], name="x"), 1.0, name="a")
    b = tf.multiply(a, 2.0, name="b")
    config = tf.ConfigProto(device_count={"CPU": 2})
    report = tf.placement.explain(graph, b, config=config)
    assert report.device("a").endswith("CPU:1")
    metadata = tf.RunMetadata()
    with tf.Session(config=config) as session:
        session.run(b, {"x:0": [1, 2]}, tf.RunOptions(output_partition_graphs=True), metadata)
    where = {n.name: n.device for g in metadata.partition_graphs for n in g.node}
    assert where["a"] == report.device("a") and where["b"] == report.device("b")
