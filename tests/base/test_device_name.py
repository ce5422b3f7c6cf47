"""Expected names are what TensorFlow gives."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.base.device_name import DeviceName, DeviceSpec, canonical, is_compatible, merge, parse

numbers = st.none() | st.integers(0, 10**6)


@st.composite
def device_names(draw: st.DrawFn) -> DeviceName:
    kind = draw(st.none() | st.sampled_from(["CPU", "GPU", "TPU", "FPGA", "toy"]))
    job = draw(st.none() | st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True))
    return DeviceName(job, draw(numbers), draw(numbers), kind, draw(numbers) if kind else None)


@given(device_names())
def test_round_trip(name: DeviceName) -> None:
    assert parse(str(name)) == name
    assert canonical(str(name)) == str(name)


@given(device_names(), device_names())
def test_merge_laws(outer: DeviceName, inner: DeviceName) -> None:
    merged = merge(str(outer), str(inner))
    assert is_compatible(str(inner), merged)
    assert merge(merged, str(inner)) == merged
    assert merge(str(outer), "") == str(outer)
    assert merge("", str(inner)) == str(inner)


@pytest.mark.parametrize(
    ("name", "long"),
    [
        ("/job:worker/replica:0/task:17/device:GPU:3", "/job:worker/replica:0/task:17/device:GPU:3"),
        ("/cpu:0", "/device:CPU:0"),
        ("/gpu:*", "/device:GPU:*"),
        ("/gpu", "/device:GPU:*"),
        ("cpu:0", "/device:CPU:0"),
        ("/device:gpu:0", "/device:GPU:0"),
        ("/tpu:1", "/device:TPU:1"),
        ("/device:foo:*", "/device:foo:*"),
        ("/device:XLA_CPU:0", "/device:XLA_CPU:0"),
        ("/device:GPU", "/device:GPU:*"),
        ("//job:a/", "/job:a"),
        ("/task:2/replica:1", "/replica:1/task:2"),
        ("/job:a/job:b", "/job:b"),
        ("/job:*/task:*/device:*", ""),
        ("", ""),
    ],
)
def test_canonical(name: str, long: str) -> None:
    assert canonical(name) == long
    assert DeviceSpec.from_string(name).to_string() == long


@pytest.mark.parametrize(
    "name",
    ["/gpux:0:1", "/job:a/what", "/cpu:0/gpu:0", "/task:x", "/job:", "/device:GPU:x", "/xla_cpu:0", "/JOB:a"]
    + ["/task:-1", "/device:CPU:-1", "/job:a b", "/device:cpu:0:1", "/cpu:0:1", "/device", "/task:", "/task:\u00b2"],
)
def test_malformed(name: str) -> None:
    with pytest.raises(ValueError, match="while parsing the device spec") as info:
        parse(name)
    assert name in str(info.value)


@pytest.mark.parametrize(
    ("outer", "inner", "merged"),
    [
        ("/job:a/task:1", "/cpu:0", "/job:a/task:1/device:CPU:0"),
        ("/job:a", "/task:2/gpu:*", "/job:a/task:2/device:GPU:*"),
        ("/gpu:0", "/cpu", "/device:CPU:0"),
        ("/gpu:1", "/gpu:*", "/device:GPU:1"),
        ("/job:a", "", "/job:a"),
        ("/job:a/gpu:1", "/job:b", "/job:b/device:GPU:1"),
    ],
)
def test_merge(outer: str, inner: str, merged: str) -> None:
    assert merge(outer, inner) == merged


def test_is_compatible() -> None:
    full = "/job:ps/replica:0/task:1/device:GPU:0"
    assert all(is_compatible(name, full) for name in ("", "/job:ps", "/gpu:0", "/gpu:*", "/task:1", full))
    assert not any(is_compatible(name, full) for name in ("/job:worker", "/cpu:0", "/gpu:1", "/task:0"))
    assert not is_compatible(full, "/job:ps")


def test_spec() -> None:
    spec = DeviceSpec(job="ps", device_type="gpu")
    assert spec.to_string() == "/job:ps/device:GPU:*"
    spec.merge_from(DeviceSpec.from_string("/task:1/cpu:0"))
    assert spec.to_string() == "/job:ps/task:1/device:CPU:0"
    assert spec.replace(device_index=3, job=None).to_string() == "/task:1/device:CPU:3"
    assert spec.make_merged_spec(DeviceSpec(job="x")).to_string() == "/job:x/task:1/device:CPU:0"
    text = "<DeviceSpec(job=ps, replica=None, task=1, device_type=CPU, device_index=0)>"
    assert repr(spec) == text
    assert spec == DeviceSpec.from_string("/job:ps/task:1/cpu:0") and spec != "/job:ps/task:1/cpu:0"
    assert hash(spec) == hash(copy.deepcopy(spec))
    with pytest.raises(ValueError, match="invalid literal"):
        DeviceSpec(task="x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="colour"):
        spec.replace(colour="red")


def test_spec_parts_can_be_set() -> None:
    spec = DeviceSpec.from_string(None)
    spec.job, spec.replica, spec.task, spec.device_type, spec.device_index = "w", 0, 2, "tpu", 5
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("w", 0, 2, "TPU", 5)
    assert spec.to_string() == "/job:w/replica:0/task:2/device:TPU:5"
    spec.device_type = spec.device_index = None
    assert spec.to_string() == "/job:w/replica:0/task:2"
    assert spec.parse_from_string("/cpu:0") is spec and spec.to_string() == "/device:CPU:0"
    with pytest.raises(ValueError, match="'/what'"):
        spec.parse_from_string("/what")
    assert spec.to_string() == "/device:CPU:0"
