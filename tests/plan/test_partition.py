"""Cutting a graph for its devices: what crosses, what is copied instead, and loops on several devices."""

from __future__ import annotations

import collections
from typing import Any

import pytest

import thalweg as tf
from thalweg.base import errors
from thalweg.graph.check import check
from thalweg.graph.graph import Graph
from thalweg.graph.operation import Operation
from thalweg.graph.text import parse
from thalweg.plan.localize import localize
from thalweg.plan.partition import Partition, partition
from thalweg.plan.pipeline import Plan, PlanOptions, make_plan
from thalweg.plan.places import find_places
from thalweg.plan.prune import prune

CPU = "/job:localhost/replica:0/task:0/device:CPU:"
DEVICES = [CPU + str(i) for i in range(4)]


def placed(text: str, fetch: str = "", feeds: str = "", targets: str = "") -> Graph:
    """The pruned graph of a text, its nodes where they ask to be: `on(/cpu:1)`; others on device 0."""
    graph = parse(text)
    new = prune(
        graph,
        [graph.get_tensor_by_name(f"{n}:0") for n in feeds.split()],
        [graph.get_tensor_by_name(n if ":" in n else f"{n}:0") for n in fetch.split()],
        [graph.get_operation_by_name(n) for n in targets.split()],
    )
    for op in new._ops:
        op._device = CPU + (op._device[-1] if op._device else "0")
    return new


def cut(text: str, fetch: str = "", feeds: str = "", targets: str = "") -> dict[str, list[str]]:
    """The statements of each partition, by the number of its device."""
    graph = placed(text, fetch, feeds, targets)
    dynamic = find_places(graph)
    localize(graph)
    check(graph, "localize")
    parts = partition(graph, {}, dynamic)
    for part in parts:
        check(part.graph, "partition")
        assert {op._device for op in part.graph._ops} == {part.device}
    return {part.device[-1]: [statement(op) for op in part.graph._ops] for part in parts}


def statement(op: Operation) -> str:
    after = f" after({', '.join(c._name for c in op._control_inputs)})" if op._control_inputs else ""
    inputs = ", ".join(t.name.removesuffix(":0") for t in op._inputs)
    text = f"{op._name} = {op.type}({inputs}){after}"
    if "tensor_name" in op._attrs:
        text += f" {op._attrs['tensor_name'].decode()} {op._attrs['send_device'].decode()[-1]}->" + (
            op._attrs["recv_device"].decode()[-1]
        )
    return text


# ---- what crosses -------------------------------------------------------------------------------------------


def test_one_device_is_left_as_it_is() -> None:
    graph = placed("x = Placeholder[dtype=float](); y = Exp(x)", "y", "x")
    (part,) = partition(graph, {}, False)
    assert part.graph is graph and part.device == DEVICES[0]


def test_an_edge_becomes_a_send_and_a_recv() -> None:
    text = "x = Placeholder[dtype=float](); a = Exp(x); b = Neg(a) on(/cpu:1)"
    assert cut(text, "b", "x") == {
        "0": ["_arg_x_0 = _Arg()", "a = Exp(_arg_x_0)", "a/_1 = _HostSend(a) edge_1_a 0->1"],
        "1": ["a/_2 = _HostRecv() edge_1_a 0->1", "b = Neg(a/_2)", "_retval_b_0_0 = _Retval(b)"],
    }


def test_a_tensor_crosses_once_for_each_device() -> None:
    text = """x = Placeholder[dtype=float]()
    a = Exp(x)
    b = Neg(a) on(/cpu:1)
    c = Tanh(a) on(/cpu:1)
    d = Mul(b, a) on(/cpu:1)
    e = Sin(a) on(/cpu:2)
    f = Add(d, e) on(/cpu:1)
    g = Add(f, c) on(/cpu:1)"""
    parts = cut(text, "g", "x")
    kinds = {d: collections.Counter(s.split(" = ")[1].split("(")[0] for s in lines) for d, lines in parts.items()}
    assert (kinds["0"]["_HostSend"], kinds["1"]["_HostSend"], kinds["2"]["_HostSend"]) == (2, 0, 1)
    assert (kinds["0"]["_HostRecv"], kinds["1"]["_HostRecv"], kinds["2"]["_HostRecv"]) == (0, 2, 1)


def test_a_control_edge_crosses_with_a_value_where_there_is_one() -> None:
    text = "x = Placeholder[dtype=float](); a = Exp(x); b = Neg(a) on(/cpu:1); c = Tanh(b) after(a) on(/cpu:1)"
    assert cut(text, "c", "x")["1"] == [
        "a/_2 = _HostRecv() edge_1_a 0->1",
        "b = Neg(a/_2)",
        "c = Tanh(b) after(a/_2)",
        "_retval_c_0_0 = _Retval(c)",
    ]


def test_a_control_edge_alone_crosses_with_an_empty_constant() -> None:
    text = "x = Placeholder[dtype=float](); a = Exp(x); y = Placeholder[dtype=float](); b = Neg(y) after(a) on(/cpu:1)"
    assert cut(text, "b", "x y") == {
        "0": [
            "_arg_x_0 = _Arg()",
            "a = Exp(_arg_x_0)",
            "a/ctrl/_1 = Const() after(a)",
            "a/_1 = _HostSend(a/ctrl/_1) edge_1_a 0->1",
        ],
        "1": [
            "_arg_y_0 = _Arg()",
            "a/_2 = _HostRecv() edge_1_a 0->1",
            "b = Neg(_arg_y_0) after(a/_2)",
            "_retval_b_0_0 = _Retval(b)",
        ],
    }


def test_many_control_edges_cross_once() -> None:
    text = """x = Placeholder[dtype=float]()
    a = Exp(x)
    n = NoOp() after(a) on(/cpu:1)
    m = NoOp() after(a) on(/cpu:1)"""
    parts = cut(text, "", "x", "n m")
    assert sum("_HostSend" in s for s in parts["0"]) == 1
    assert [s.rpartition(" after")[2] for s in parts["1"] if "NoOp" in s] == ["(a/_2)"] * 2


def test_attributes_and_names_are_tensorflows() -> None:
    graph = placed("x = Placeholder[dtype=float](); a = Exp(x); b = Neg(a) on(/cpu:1)", "b", "x")
    parts = {p.device: p for p in partition(graph, {}, False, {DEVICES[0]: 0xABC, DEVICES[1]: 5})}
    (send,) = (op for op in parts[DEVICES[0]].graph._ops if op.type == "_HostSend")
    (recv,) = (op for op in parts[DEVICES[1]].graph._ops if op.type == "_HostRecv")
    common = {
        "tensor_name": b"edge_2_a",
        "send_device": DEVICES[0].encode(),
        "send_device_incarnation": 0xABC,
        "recv_device": DEVICES[1].encode(),
        "client_terminated": False,
    }
    common["tensor_name"] = send._attrs["tensor_name"]
    assert send._attrs == {"T": tf.float32, **common}
    assert recv._attrs == {"tensor_type": tf.float32, **common}


def test_values_for_clusters_go_to_the_device_others_stay_on_the_host() -> None:
    text = """x = Placeholder[dtype=float, shape=[4]]()
    a = Exp(x) on(/cpu:0)
    b = Tanh(a) on(/cpu:1)
    u = Unique(a) on(/cpu:2)"""
    plan = planned(text, "b u", "x")
    kinds = {p.device[-1]: sorted(op.type for op in p.graph._ops if "Recv" in op.type) for p in plan.partitions}
    assert kinds == {"0": [], "1": ["_Recv"], "2": ["_HostRecv"]}


def planned(text: str, fetch: str = "", feeds: str = "", targets: str = "", devices: int = 3) -> Plan:
    graph = parse(text)
    fetches = [graph.get_tensor_by_name(f"{n}:0") for n in fetch.split()]
    fed = [graph.get_tensor_by_name(f"{n}:0") for n in feeds.split()]
    ops = [graph.get_operation_by_name(n) for n in targets.split()]
    return make_plan(graph, fed, fetches, ops, PlanOptions(check=True), DEVICES[:devices])


def test_a_variable_that_is_used_elsewhere_is_read_where_it_is() -> None:
    text = "v = VariableV2[dtype=float, shape=[]]() on(/cpu:1); y = Exp(v)"
    parts = cut(text, "y")
    assert "_read_v = Identity(v)" in parts["1"]
    assert [s for s in parts["0"] if "Exp" in s] == ["y = Exp(_read_v/_2)"]


def test_who_uses_a_resource_is_where_it_is() -> None:
    text = """q = FIFOQueueV2[component_types=[float], shapes=[[]]]() on(/cpu:1)
    x = Placeholder[dtype=float]()
    e = QueueEnqueueV2(q, x)"""
    assert [s.split(" = ")[1] for s in cut(text, "", "x", "e")["1"]] == [
        "_Arg()", "FIFOQueueV2()", "QueueEnqueueV2(q, _arg_x_0)",
    ]  # fmt: skip


def test_resources_of_two_devices() -> None:
    text = """q = FIFOQueueV2[component_types=[float], shapes=[[]]]() on(/cpu:1)
    r = FIFOQueueV2[component_types=[float], shapes=[[]]]() on(/cpu:2)
    p = Placeholder[dtype=bool]()
    s = Switch(q, p)
    t = Switch(r, p)
    m = Merge(s, t:1)
    d = QueueSizeV2(m)"""
    with pytest.raises(errors.InvalidArgumentError, match=r"'m' uses resources of several devices: 's' on .*CPU:1 and 't'"):
        cut(text, "d", "p")


# ---- what is copied instead ---------------------------------------------------------------------------------


def test_arguments_and_constants_are_copied() -> None:
    text = """x = Placeholder[dtype=float]()
    c = Const[value=[1.5, 2.5]]()
    a = Mul(x, c)
    b = Add(x, c) on(/cpu:1)
    d = Sub(a, b) on(/cpu:1)"""
    parts = cut(text, "d", "x")
    assert [s.split(" = ")[1] for s in parts["1"] if "Recv" not in s] == [
        "_Arg()", "Const()", "Add(_arg_x_0_1, c_1)", "Sub(a/_2, b)", "_Retval(d)",
    ]  # fmt: skip
    assert sum("_HostSend" in s for s in parts["0"]) == 1


def test_a_constant_goes_where_it_is_used() -> None:
    text = "x = Placeholder[dtype=float](); c = Const[value=2.0](); a = Mul(x, c) on(/cpu:1)"
    assert list(cut(text, "a", "x")) == ["1"]


def test_the_shape_of_what_crosses_anyway_is_taken_there() -> None:
    text = """x = Placeholder[dtype=float]()
    a = Exp(x)
    s = Shape(a)
    b = Neg(a) on(/cpu:1)
    y = Placeholder[dtype=float]()
    r = Reshape(y, s) on(/cpu:1)
    d = Add(r, b) on(/cpu:1)"""
    parts = cut(text, "d", "x y")
    assert sum("_HostRecv" in s for s in parts["1"]) == 1
    assert any("Shape(a/_2)" in s for s in parts["1"])


def test_a_shape_crosses_where_its_tensor_does_not() -> None:
    text = "x = Placeholder[dtype=float](); a = Exp(x); s = Shape(a); y = Placeholder[dtype=float](); r = Reshape(y, s) on(/cpu:1)"
    parts = cut(text, "r", "x y")
    assert "s/_2 = _HostRecv() edge_1_s 0->1" in parts["1"]


def test_arithmetic_on_shapes_is_copied() -> None:
    text = """x = Placeholder[dtype=float, shape=[?,4]]()
    s = Shape(x)
    c = Const[value=2]()
    p = Mul(s, c)
    y = Placeholder[dtype=float]()
    r = Reshape(y, p) on(/cpu:1)
    e = Exp(x)"""
    parts = cut(text, "r e", "x y")
    assert not any("Recv" in s for lines in parts.values() for s in lines)


# ---- loops --------------------------------------------------------------------------------------------------


def loop_plan(nested: bool = False, gradient: bool = False, **options: Any) -> Plan:
    with Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")

        def inner(v: Any) -> Any:
            def step(j: Any, u: Any) -> Any:
                with tf.device("/cpu:2"):
                    return j + 1, tf.sin(u) + x

            return tf.while_loop(lambda j, _: j < 3, step, [tf.constant(0), v], name="inner")[1]

        def body(i: Any, v: Any) -> Any:
            with tf.device("/cpu:1"):
                w = tf.tanh(v) * x
            return i + 1, inner(w) if nested else w

        with tf.device("/cpu:0"):
            y = tf.while_loop(lambda i, _: i < 5, body, [tf.constant(0), x], name="outer")[1]
            fetches = [y, *(tf.gradients(y, x) if gradient else [])]
        return make_plan(graph, [x], fetches, [], PlanOptions(check=True, **options), DEVICES[:3])


def of_type(part: Partition, *kinds: str) -> list[Operation]:
    return [op for op in part.graph._ops if op.type in kinds]


def test_a_loop_on_two_devices_goes_round_on_both() -> None:
    plan = loop_plan()
    assert [p.dynamic for p in plan.partitions] == [True, True]
    second = next(p for p in plan.partitions if p.device == DEVICES[1])
    loops = [op for op in second.graph._ops if op._name.startswith("_cloop/")]
    assert [op.type for op in sorted(loops, key=lambda op: op.type)] == [
        "Const", "Enter", "Merge", "NextIteration", "Switch",
    ]  # fmt: skip
    merge = next(op for op in loops if op.type == "Merge")
    inside = [op for op in of_type(second, "_Recv", "_HostRecv") if op._control_flow_context is not None]
    assert inside and all(merge in op._control_inputs for op in inside)
    switch = next(op for op in loops if op.type == "Switch")
    assert switch._inputs[1]._op.type == "_HostRecv" or switch._inputs[1]._op.type == "_Recv"
    assert any("several devices" in text for text, _ in plan.report)


def test_what_stays_the_same_in_a_loop_crosses_before_it() -> None:
    plan = loop_plan()
    second = next(p for p in plan.partitions if p.device == DEVICES[1])
    constant = [op for op in of_type(second, "Enter") if op._attrs["is_constant"]]
    assert [op._inputs[0]._op.type for op in constant] == ["_Arg"]


def test_the_parts_of_a_loop_variable_are_together() -> None:
    for nested in (False, True):
        for part in loop_plan(nested).partitions:
            for merge in of_type(part, "Merge"):
                for t in merge._inputs:
                    assert t._op.type in ("Enter", "NextIteration", "Switch", "_Cluster", "Identity"), t


def test_an_inner_loop_is_entered_from_the_outer_control_loop() -> None:
    plan = loop_plan(nested=True)
    third = next(p for p in plan.partitions if p.device == DEVICES[2])
    enters = [op for op in of_type(third, "Enter") if op._name.startswith("_cloop/")]
    assert len(enters) == 2
    outer, inner = sorted(enters, key=lambda op: len(op._attrs["frame_name"]))
    assert outer._inputs[0]._op.type == "Const"
    assert inner._inputs[0]._op.type == "Merge" and inner._inputs[0]._op._name.startswith("_cloop/")


def test_a_loop_on_one_device_is_compiled_there() -> None:
    with Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        with tf.device("/cpu:1"):
            y = tf.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, v * 2.0), [tf.constant(0), x])[1]
        with tf.device("/cpu:0"):
            z = tf.exp(y)
        plan = make_plan(graph, [x], [z], [], PlanOptions(check=True), DEVICES[:2])
    assert not plan.dynamic and len(plan.partitions) == 2
    assert ("loop 'while/while_context' compiled" in dict(plan.report)), plan.report


def test_a_loop_on_several_devices_without_a_condition() -> None:
    text = """x = Placeholder[dtype=float]()
    p = Placeholder[dtype=bool]()
    e = Enter[frame_name='f'](x)
    ep = Enter[frame_name='f', is_constant=True](p)
    m = Merge(e, e)
    s = Switch(m, ep)
    t = Tanh(s:1) on(/cpu:1)
    n = NextIteration(t)
    out = Exit(s)"""
    graph = placed(text, "out", "x p")
    ops = graph._by_name
    source = ops.get("n") or None
    if source is None:  # nothing needs it before the edge back is made
        new = parse(text)
        new.get_operation_by_name("m")._update_input(1, new.get_tensor_by_name("n:0"))
        feeds = [new.get_tensor_by_name("x:0"), new.get_tensor_by_name("p:0")]
        graph = prune(new, feeds, [new.get_tensor_by_name("out:0")], [])
        for op in graph._ops:
            op._device = CPU + (op._device[-1] if op._device else "0")
    find_places(graph)
    localize(graph)
    with pytest.raises(errors.InvalidArgumentError, match="A cross-device loop must have a pivot predicate: 'f'"):
        partition(graph, {}, True)


# ---- ends that don't meet -----------------------------------------------------------------------------------


SEND = (
    "s = _Send[tensor_name='t', send_device='{0}0', send_device_incarnation=1, recv_device='{0}{1}'](x)"
)
RECV = (
    "r = _Recv[tensor_type=float, tensor_name='t', send_device='{0}0', send_device_incarnation=1, recv_device='{0}{1}']()"
)


def test_a_send_without_a_recv() -> None:
    text = "x = Placeholder[dtype=float](); " + SEND.format(CPU, 0)
    with pytest.raises(errors.InvalidArgumentError, match=r"_Send 's': nothing in this step receives 't' from .*CPU:0"):
        planned(text, "", "x", "s", devices=1)


def test_a_recv_without_a_send() -> None:
    text = RECV.format(CPU, 1) + "; y = Exp(r) on(/cpu:1)"
    for devices in (1, 2):
        with pytest.raises(errors.InvalidArgumentError, match=r"_Recv 'r': nothing in this step sends 't'"):
            planned(text.replace("/cpu:1", f"/cpu:{devices - 1}"), "y", devices=devices)


def test_two_sends_of_one_key() -> None:
    text = "x = Placeholder[dtype=float](); " + SEND.format(CPU, 0) + "; " + SEND.format(CPU, 0).replace("s =", "s2 =")
    with pytest.raises(errors.InvalidArgumentError, match="'s2' and 's' are two _Send nodes of one key"):
        planned(text, "", "x", "s s2", devices=1)
