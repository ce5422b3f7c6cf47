"""Descriptions of clusters and cost models: JSON, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import thalweg as tf
from thalweg.base.errors import InvalidArgumentError
from thalweg.plan.placement.cluster import ClusterDescription, Link, Speed, default_device, local_cluster

TWO = [{"name": "/job:w/task:0/gpu:0"}, {"name": "/job:w/task:1/gpu:0"}]
FAST = {"latency": 1e-5, "bandwidth": 1e10}


def read(**data: Any) -> ClusterDescription:
    return ClusterDescription.from_json(json.dumps(data))


def test_round_trip() -> None:
    cluster = read(
        devices=[
            {"name": "/job:ps/task:0/cpu:0", "memory": 1e9, "hosts": True, "shares": ""},
            {"name": "/job:w/task:{0..1}/gpu:{0..3}", "flops": 1e13, "flops_of": {"float16": 4e13}, "bandwidth": 9e11},
        ],
        links=[
            {"between": ["/job:ps", "/job:w"], "latency": 1e-4, "bandwidth": 1e9},
            {"between": ["/job:w/task:0", "/job:w/task:1"], "latency": 0.0, "bandwidth": 3e9, "one_way": True},
        ],
        same_task=FAST,
        other_task={"latency": 1.0, "bandwidth": 1.0},
    )
    assert len(cluster) == 9
    again = ClusterDescription.from_json(cluster.to_json())
    assert again.devices == cluster.devices and again.links == cluster.links
    assert (again.same_task, again.other_task) == (cluster.same_task, cluster.other_task)
    assert (again.kind_of == cluster.kind_of).all() and again.speeds == cluster.speeds


def test_names_with_ranges_are_written_out_and_types_have_defaults() -> None:
    cluster = read(devices=[{"name": "/job:w/task:{0..1}/gpu:{0..1}"}], same_task=FAST, other_task=FAST)
    assert cluster.names == [
        f"/job:w/replica:0/task:{t}/device:GPU:{i}" for t in (0, 1) for i in (0, 1)
    ]
    gpu, cpu = cluster.devices[0], default_device("/job:w/replica:0/task:0/device:CPU:0")
    assert (gpu.type, gpu.hosts, cpu.hosts) == ("GPU", False, True)
    assert gpu.flops > cpu.flops and gpu.flops_for("float64") == gpu.flops


def test_the_first_link_that_matches_holds() -> None:
    links = [
        {"between": [TWO[0]["name"], TWO[1]["name"]], "latency": 1.0, "bandwidth": 2.0, "one_way": True},
        {"between": ["/job:w", "/job:w"], "latency": 3.0, "bandwidth": 4.0},
    ]
    cluster = read(devices=TWO, links=links)
    a, b = cluster.names
    assert cluster.speed(a, b) == Speed(1.0, 2.0)
    assert cluster.speed(b, a) == Speed(3.0, 4.0)
    assert cluster.speed(a, a).latency == 0


def test_local_devices_are_near_and_share_their_cores() -> None:
    cluster = local_cluster([f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2)])
    assert cluster.devices[0].shares == cluster.devices[1].shares != ""
    assert 0 < cluster.speed(*cluster.names).latency < 1e-3


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"devices": []}, "one device at least"),
        ({"devices": TWO}, "no link from '/job:w/replica:0/task:0/device:GPU:0' to .*\"other_task\""),
        ({"devices": [{"name": "/job:w/task:0/gpu:{0..1}"}]}, "no link .*\"same_task\""),
        ({"devices": [TWO[0], TWO[0]], "same_task": FAST}, "two devices .* the name '/job:w/replica:0/task:0/device:GPU:0'"),
        ({"devices": TWO, "other_task": {"latency": -1, "bandwidth": 1}}, "'other_task': its latency .* 0 seconds or more, but is -1"),
        ({"devices": TWO, "other_task": {"latency": 0, "bandwidth": -5}}, "'other_task': its bandwidth .* positive .* but is -5"),
        ({"devices": TWO, "other_task": {"latency": 0}}, "bandwidth .* but is None"),
        ({"devices": TWO, "other_task": 3}, "\"other_task\" is an object"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "flops": 0}]}, "its flops must be a positive number, but is 0"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "bandwidth": "fast"}]}, "its bandwidth .* 'fast'"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "memory": -1}]}, "its memory must be 0 or more, but is -1"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "overhead": True}]}, "its overhead"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "flops_of": {"float8": 1.0}}]}, "float8.*float32, float64, float16, int"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "flop": 1.0}]}, "unknown key 'flop'; it may have name, type"),
        ({"devices": [{"name": "/job:w/task:0/gpu:0", "type": "TPU"}]}, "type 'TPU', but its name says otherwise"),
        ({"devices": [{"name": "/job:w/gpu:0"}]}, "leaves open task"),
        ({"devices": [{"name": "/jib:w/gpu:0"}]}, "Unknown attribute 'jib'"),
        ({"devices": [{"name": "/job:w/task:{3..1}/gpu:0"}]}, "stands for 0 devices"),
        ({"devices": [{"type": "GPU"}]}, "with a \"name\""),
        ({"devices": TWO, "links": 5}, "\"links\" of a cluster is a list, but got 5"),
        ({"devices": TWO, "links": [{"between": ["/job:w"]}]}, "\"between\": \\[device, device\\]"),
        ({"devices": TWO, "links": [{"between": ["/job:w", "/job:q"], "latency": 0, "bandwidth": 1}]}, "no device of the cluster matches '/job:q'. The devices are /job:w"),
        ({"devices": TWO, "links": [{"between": ["/job:w", "/oops"], "latency": 0, "bandwidth": 1}]}, "oops"),
        ({"devices": TWO, "links": [{"between": ["/job:w", "/job:w"], "bandwith": 1}]}, "unknown key 'bandwith'"),
        ({"device": TWO}, "a list \"devices\""),
        ({"devices": TWO, "link": []}, "unknown key 'link'"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_refused_with_what_would_be_right(data: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        ClusterDescription.from_json(json.dumps(data))


def test_what_is_not_json_is_refused() -> None:
    for text in ("devices: 3", b"\xff\xfe", "[" * 100_000):
        with pytest.raises(InvalidArgumentError, match="not JSON"):
            ClusterDescription.from_json(text)


def test_descriptions_made_in_python_are_checked_too() -> None:
    device = default_device("/job:w/replica:0/task:0/device:GPU:0")
    with pytest.raises(InvalidArgumentError, match="bandwidth"):
        ClusterDescription([device], [Link("/job:w", "/job:w", 0.0, float("nan"))])
    with pytest.raises(InvalidArgumentError, match="flops"):
        ClusterDescription([dataclasses.replace(device, flops=-1.0)])


def test_cost_models_round_trip_and_take_the_median() -> None:
    costs = tf.placement.CostModel()
    assert not costs
    costs.record("a", "CPU", 1.0)
    costs.record("a", "CPU", 3.0)
    costs.record("a", "GPU", 0.5)
    costs.record_bytes("a:0", 12)
    again = tf.placement.CostModel.from_json(costs.to_json())
    assert (again.time("a", "CPU"), again.time("a", "GPU"), again.time("b", "CPU")) == (2.0, 0.5, None)
    assert again.bytes("a:0") == 12 and again.to_json() == costs.to_json()
    for slow in (7.0, 900.0, 7.0):
        again.record("a", "CPU", slow)
    assert again.time("a", "CPU") == 7.0  # the median of 2, 2, 7, 7, 900


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "a JSON object"), ("{}", "version"), ("x", "not JSON"),
        ('{"version": 1, "times": {"a": {"CPU": 3}}}', "\\[seconds, runs\\], but is 3"),
        ('{"version": 1, "times": {"a": {"CPU": [-1, 1]}}}', "0 seconds or more, but is -1"),
        ('{"version": 1, "times": {"a": 5}}', "'a' of a cost model must be an object"),
        ('{"version": 1, "times": {"a": {"CPU": [1, Infinity]}}}', "\\[seconds, runs\\], but is \\[1, inf\\]"),
        ('{"version": 1, "bytes": {"a:0": -2}}', "bytes of 'a:0'"),
        ('{"version": 1, "bytes": {"a:0": NaN}}', "bytes of 'a:0'"),
        ("[" * 100_000, "not JSON"),
    ],
)  # fmt: skip
def test_bad_cost_models_are_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        tf.placement.CostModel.from_json(text)
