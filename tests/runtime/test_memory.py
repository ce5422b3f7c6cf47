"""Memory of devices, as traced steps see it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import thalweg as tf
from thalweg.runtime.arrays import to_device
from thalweg.runtime.device import DeviceConfig, make_devices
from thalweg.runtime.memory import MemoryMeter

KILO = 250  # float32s in 1000 bytes


def made(device: Any, kilobytes: int) -> Any:
    return to_device(np.zeros(kilobytes * KILO, np.float32), device.jax_device)


def test_meter_follows_what_lives() -> None:
    a, b = make_devices("/job:x", DeviceConfig({"CPU": 2})).values()
    old = made(a, 5)
    meter = MemoryMeter([a, b])
    start = meter.before[a.name]
    assert start >= 5000 and meter.peaks == meter.before
    new = made(a, 3)
    memory = meter.after(a, [new], 2000)
    assert (memory.outputs, memory.temporaries, memory.in_use - start) == (3000, 2000, 3000)
    assert meter.peaks[a.name] == a.peak_bytes == start + 5000
    del old, new
    assert meter.after(a, [], 0).in_use == start - 5000
    assert meter.peaks[a.name] == start + 5000


def test_meter_tells_devices_apart_and_finds_those_that_open_late() -> None:
    a, b = make_devices("/job:x", DeviceConfig({"CPU": 2})).values()
    assert a.jax_device is not None
    meter = MemoryMeter([a, b])
    assert meter.before[b.name] == 0 and not b.is_open
    there = made(b, 4)
    assert meter.after(a, [], 0).in_use == meter.before[a.name]
    assert meter.after(b, [there], 0).in_use >= 4000
    assert meter.peaks[b.name] >= 4000 and meter.peaks[a.name] == meter.before[a.name]


def test_meter_counts_arrays_of_the_host_once() -> None:
    (a,) = make_devices("/job:x", DeviceConfig()).values()
    meter = MemoryMeter([a])
    array = np.zeros(KILO, np.float32)
    first = meter.after(a, [array], 0)
    again = meter.after(a, [array], 0)
    assert first.outputs == again.outputs == first.in_use == again.in_use == 1000
    assert meter.after(a, [array[2:], array.reshape(2, -1)], 0).in_use == 1000
    del array
    assert meter.after(a, [], 0).in_use == 0


def test_meter_in_many_threads() -> None:
    """Partitions of a step share it: what died is taken off once, what has its identity now is counted."""
    devices = list(make_devices("/job:x", DeviceConfig({"CPU": 2})).values())
    assert all(d.jax_device for d in devices)
    meter = MemoryMeter(devices)

    def churn(device: Any) -> None:
        for i in range(200):
            array = made(device, 1 + i % 3)
            meter.after(device, [array, np.zeros(i)], 0)

    threads = [threading.Thread(target=churn, args=[devices[i % 2]]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for device in devices:
        assert meter.after(device, [], 0).in_use == meter.before[device.name]


def traced(session: tf.Session, fetches: Any, feeds: Any = None) -> Any:
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(fetches, feeds, options=options, run_metadata=metadata)
    return {n.node_name: n.memory[0] for d in metadata.step_stats.dev_stats for n in d.node_stats}


def test_a_traced_step_tells_the_memory_of_its_nodes() -> None:
    """An update gives its variable the old buffer; what a queue holds stays in use."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [KILO], initializer=tf.zeros_initializer())
        queue = tf.FIFOQueue(10, tf.float32, [[KILO]])
        ones = tf.fill([KILO], tf.placeholder_with_default(1.0, []))
        step = [v.assign_add(ones).op, queue.enqueue(ones)]
        session.run([v.initializer])
        session.run(v.assign_add(tf.ones([KILO])).op)  # initial values are made on the host
        (device,) = session._master.worker.devices.values()
        start = device.bytes_in_use
        found = [traced(session, step) for _ in range(3)]
        assert device.bytes_in_use == start + 3 * KILO * 4
        peaks = [max(m.allocator_bytes_in_use for m in memory.values()) for memory in found]
        assert peaks[1] - peaks[0] == peaks[2] - peaks[1] == KILO * 4
        assert {m.allocator_name for m in found[0].values()} == {"cpu"}


def test_the_peak_has_temporaries_in_it() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [400, 400])
        y = tf.reduce_sum(tf.matmul(tf.matmul(x, x), x))
        (memory,) = traced(session, y, {x: np.ones((400, 400), np.float32)}).values()
        (device,) = session._master.worker.devices.values()
        assert memory.live_bytes == 4 and memory.peak_bytes >= 400 * 400 * 4
        assert device.peak_bytes >= memory.peak_bytes


@pytest.mark.parametrize("clusters", [True, False])
def test_values_are_freed_after_their_last_use(clusters: bool) -> None:
    """Op by op, a chain of adds holds two values at a time."""
    config = tf.ConfigProto()
    if not clusters:
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        y = x = tf.placeholder(tf.float32, [KILO])
        for _ in range(6):
            y = tf.tanh(y)
        (device,) = session._master.worker.devices.values()
        session.run(y, {x: np.zeros(KILO, np.float32)})
        start = device.bytes_in_use
        device.reset_peak()
        rows = traced(session, y, {x: np.zeros(KILO, np.float32)})
        assert len(rows) == (1 if clusters else 6)
        assert device.bytes_in_use == start
        assert device.peak_bytes - start <= 2 * KILO * 4
