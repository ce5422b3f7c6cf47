"""Devices: which there are, what opens them, what of GPUOptions reaches JAX."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from thalweg.base import errors
from thalweg.graph.graph import Graph
from thalweg.graph.text import parse
from thalweg.runtime import device as device_module
from thalweg.runtime.arrays import to_device
from thalweg.runtime.device import DeviceConfig, DeviceType, device_types, make_devices, register_device_type
from thalweg.runtime.worker import Worker
from thalweg.testing.devices import TOY

TASK = "/job:localhost/replica:0/task:0"


def test_one_cpu_by_default() -> None:
    (found,) = make_devices(TASK, DeviceConfig()).values()
    assert found.name == f"{TASK}/device:CPU:0" and found.type.name == "CPU" and found.index == 0
    assert found.memory_limit > 1 << 28 and found.attributes == {"platform": "cpu", "kind": "cpu"}
    assert not found.is_open and found.bytes_in_use == 0 and found.peak_bytes == 0
    assert not found.is_open


def test_virtual_devices_are_devices_of_one_client() -> None:
    found = list(make_devices(TASK, DeviceConfig({"CPU": 3, "TOY": 2})).values())
    assert [d.name.removeprefix(TASK) for d in found] == [
        "/device:CPU:0", "/device:CPU:1", "/device:CPU:2", "/device:TOY:0", "/device:TOY:1"
    ]  # fmt: skip
    assert len({d.jax_device for d in found}) == 5 and len({d.jax_device.client for d in found}) == 1
    assert found[3].memory_limit == TOY.memory == 16 << 20
    array = to_device(to_device(np.arange(4.0), found[0].jax_device), found[4].jax_device)
    assert array.devices() == {found[4].jax_device} and array.tolist() == [0, 1, 2, 3]


def test_incarnations_tell_devices_of_the_same_name_apart() -> None:
    seen = {d.incarnation for _ in range(50) for d in make_devices(TASK, DeviceConfig({"CPU": 2})).values()}
    assert len(seen) == 100 and all(0 < i < 1 << 63 for i in seen)


@pytest.mark.parametrize("count", [0, -1])
def test_there_must_be_a_cpu(count: int) -> None:
    with pytest.raises(errors.NotFoundError, match=f"No CPU devices.*asks for {max(count, 0)} of them"):
        make_devices(TASK, DeviceConfig({"CPU": count}))


def test_unknown_types_are_told_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "thalweg"):
        assert len(make_devices(TASK, DeviceConfig({"FPGA": 2, "cpu": 2}))) == 1
    assert "'FPGA', which isn't known (known: CPU, GPU, TPU" in caplog.text and "'cpu'" in caplog.text


def test_a_name_of_a_type_is_taken_once() -> None:
    register_device_type(TOY)  # the same again: nothing happens
    with pytest.raises(ValueError, match="TOY is registered already"):
        register_device_type(DeviceType("TOY", memory=1))
    assert device_types()["TOY"] is TOY


def test_bytes_in_use_and_peak() -> None:
    a, b = make_devices(TASK, DeviceConfig({"CPU": 2})).values()
    before = [d.jax_device and d.bytes_in_use for d in (a, b)]
    array = to_device(np.zeros(1000, np.float32), b.jax_device)
    assert [a.bytes_in_use - before[0], b.bytes_in_use - before[1]] == [0, 4000]
    del array
    assert b.bytes_in_use == before[1] and b.peak_bytes == before[1] + 4000
    b.saw(b.peak_bytes - 1)
    assert b.peak_bytes == before[1] + 4000
    b.reset_peak()
    assert b.peak_bytes == 0


def test_a_node_on_a_device_that_is_not_there() -> None:
    graph: Graph = parse("n = NoOp() on(/device:CPU:7)")
    with pytest.raises(errors.InternalError, match=r"'n' is placed on '/device:CPU:7', but here are .*CPU:0"):
        Worker().device_of(graph.get_operation_by_name("n"))


OPENS = """
import thalweg as tf
from thalweg.client import device_lib
from thalweg.runtime import arrays

opened = arrays._cpu_devices.cache_info
with tf.device("/cpu:1"):
    x = tf.placeholder(tf.float32)
    y = x + 1.0
session = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))
assert len(session.list_devices()) == 2 and len(device_lib.list_local_devices()) == 1
assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""
assert opened().currsize == 0, "a device was opened"
assert session.run(y, {x: 2.0}) == 3.0
assert opened().currsize == 1
from jax._src import xla_bridge
assert not xla_bridge._backends, "JAX's own clients were opened"
"""


def test_devices_open_when_something_runs() -> None:
    ran = subprocess.run([sys.executable, "-c", OPENS], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


# ---- GPUs, as JAX would show them ---------------------------------------------------------------------------


class _FakeGpu:
    """A JAX device that counts its memory itself."""

    device_kind = "Fake 9000"

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_in_use": 7, "peak_bytes_in_use": 9, "bytes_limit": 1 << 30}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Two GPUs; the list holds what was set in JAX's configuration."""
    settings: list[Any] = []
    fakes = (_FakeGpu(), _FakeGpu())

    def devices(kind: str, count: int | None = None) -> Any:
        return fakes if kind == "gpu" else device_module_devices(kind, count)

    device_module_devices = device_module.jax_devices
    monkeypatch.setattr(device_module, "_may_have", lambda platform: platform == "gpu")
    monkeypatch.setattr(device_module, "jax_devices", devices)
    monkeypatch.setattr(device_module, "_gpus_prepared", [])
    monkeypatch.setattr(device_module.jax, "config", SimpleNamespace(update=lambda *a: settings.append(a)))
    for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    yield settings


def test_gpus_are_found(gpus: list[Any]) -> None:
    found = make_devices(TASK, DeviceConfig())
    assert [n.removeprefix(TASK) for n in found] == ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    gpu = found[f"{TASK}/device:GPU:1"]
    assert not gpu.is_open and gpu.memory_limit == 1 << 30
    assert (gpu.bytes_in_use, gpu.peak_bytes, gpu.attributes["kind"]) == (7, 9, "Fake 9000")
    assert gpus == []  # nothing was asked for


@pytest.mark.parametrize(("asked", "count"), [(0, 0), (1, 1), (5, 2)])
def test_device_count_limits_gpus(gpus: list[Any], asked: int, count: int) -> None:
    assert len(make_devices(TASK, DeviceConfig({"GPU": asked}))) == 1 + count


def test_gpu_options_reach_jax(gpus: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    first = DeviceConfig(gpu_visible="0,1", gpu_memory_fraction=0.25, gpu_allow_growth=True)
    make_devices(TASK, first)
    assert gpus == [("jax_cuda_visible_devices", "0,1"), ("jax_rocm_visible_devices", "0,1")]
    environment = device_module.os.environ
    assert environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert environment["XLA_CLIENT_MEM_FRACTION"] == "0.25"
    with caplog.at_level(logging.WARNING, "thalweg"):
        make_devices(TASK, first)
        assert not caplog.records
        make_devices(TASK, DeviceConfig(gpu_visible="1"))
    assert "those of the process's first session, which hold" in caplog.text and len(gpus) == 2


def test_the_environment_wins_over_gpu_options(gpus: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    make_devices(TASK, DeviceConfig(gpu_memory_fraction=0.25, gpu_allow_growth=True))
    assert device_module.os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true"
    assert "XLA_CLIENT_MEM_FRACTION" not in device_module.os.environ


def test_software_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU plugin on a machine that has no GPU."""
    monkeypatch.setattr(device_module, "_may_have", lambda platform: True)
    monkeypatch.setattr(device_module, "_gpus_prepared", [])
    if any(d.platform != "cpu" for d in jax.devices()):
        pytest.skip("this machine has an accelerator")
    assert len(make_devices(TASK, DeviceConfig())) == 1
