"""The layer between the runtime and XLA: bits kept, buffers owned, executables reloaded."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from thalweg.runtime import arrays, xla
from thalweg.runtime.arrays import ArgSpec
from thalweg.runtime.executable_cache import ExecutableCache

CPU = arrays.devices("cpu")[0]
BIG = 1 << 18  # elements: over the size from which memory is borrowed


def spec(dtype, *shape):
    return ArgSpec(shape, np.dtype(dtype))


def compiled(fn, *specs, **options):
    return xla.compile(fn, specs, device=CPU, **options)


def aligned(count, dtype=np.float32, offset=0):
    size = count * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].view(dtype)


def not_called(*args):
    raise AssertionError("traced, though the cache has it")


ALL_TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL_TYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
def test_every_type_passes_unchanged(dtype, shape):
    f = compiled(lambda x: (x, x), spec(dtype, *shape))
    assert f.out_specs == (spec(dtype, *shape),) * 2
    value = np.ones(shape, dtype)
    for y in map(arrays.to_host, f(value)):
        assert y.dtype == value.dtype and y.shape == shape
        assert y.flags.writeable and (y == value).all()
    (y,) = f(*f(value)[:1])[:1]
    assert y.dtype == value.dtype


def test_64_bits_are_kept_and_no_global_flag_changes():
    before = jax.config.jax_enable_x64
    f = compiled(lambda a, b: (a + 1, b * 2), spec("int64"), spec("float64", 2))
    assert jax.config.jax_enable_x64 == before
    a, b = f(np.int64(2**40), np.array([1e300, 2.0]))
    assert (int(arrays.to_host(a)), arrays.to_host(b).tolist()) == (2**40 + 1, [2e300, 4.0])
    assert arrays.to_device(np.float64(1e300), CPU).dtype == np.float64


def test_wrong_arguments_are_named():
    f = compiled(lambda a, b: (a, b), spec("float32", 2, 3), spec("int32"))
    a, b = np.ones((2, 3), np.float32), np.array(1, np.int32)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        f(a)
    with pytest.raises(TypeError, match="takes 2 arguments, got 3"):
        f(a, b, b)
    with pytest.raises(ValueError, match=r"argument 0 must be float32\[2,3\], got float32\[3,2\]"):
        f(a.reshape(3, 2), b)
    with pytest.raises(ValueError, match=r"argument 1 must be int32\[\], got int64\[\]"):
        f(a, np.array(1))
    with pytest.raises(ValueError, match="foreign byte order"):
        f(a.astype(">f4"), b)
    with pytest.raises(TypeError, match=r"argument 1 .* got int"):
        f(a, 1)
    # XLA itself checks only the number of bytes of an array on the device.
    with pytest.raises(ValueError, match=r"argument 0 must be float32\[2,3\]"):
        f(arrays.to_device(a.reshape(6), CPU), b)
    with pytest.raises(ValueError, match="to_device"):
        f(jnp.ones((2, 3), jnp.float32), b)
    assert f(arrays.to_device(jnp.ones((2, 3), jnp.float32), CPU), b)[0].shape == (2, 3)


def test_a_byte_order_is_mended_on_the_way_to_a_device():
    assert arrays.to_host(arrays.to_device(np.arange(3, dtype=">i4"), CPU)).tolist() == [0, 1, 2]


def test_devices_are_independent_and_stay_apart():
    one, two = arrays.devices("cpu", 2)
    assert arrays.devices("cpu", 2) == (one, two)
    f = xla.compile(lambda x: [x + 1], [spec("float32")], device=two)
    (y,) = f(np.float32(1))
    assert y.devices() == {two} and float(y) == 2
    with pytest.raises(ValueError, match="argument 0 must be on"):
        f(arrays.to_device(np.float32(1), one))
    assert arrays.to_device(y, one).devices() == {one}


def test_a_donated_array_is_consumed_and_its_buffer_reused():
    f = compiled(lambda a: [a + 1], spec("float32", 1000), donate=[0])
    assert f.donate == (0,)
    x = arrays.to_device(np.ones(1000, np.float32), CPU)
    where = x.unsafe_buffer_pointer()
    (y,) = f(x)
    assert y.unsafe_buffer_pointer() == where
    assert x.is_deleted()
    with pytest.raises(jax.errors.JaxRuntimeError, match="deleted or donated"):
        f(x)


def test_a_view_of_a_donated_array_keeps_its_values():
    f = compiled(lambda a: [a + 1], spec("float32", 1000), donate=[0])
    x = arrays.to_device(np.ones(1000, np.float32), CPU)
    view = np.asarray(x)
    assert (arrays.to_host(f(x)[0]) == 2).all()
    assert (view == 1).all()


def test_the_same_array_twice_in_one_call_is_refused_if_donated():
    f = compiled(lambda a, b: [a + b], spec("float32", 10), spec("float32", 10), donate=[0])
    x = arrays.to_device(np.ones(10, np.float32), CPU)
    with pytest.raises(jax.errors.JaxRuntimeError, match="donated in the same call"):
        f(x, x)


@pytest.mark.filterwarnings("error")
def test_only_what_a_result_can_take_over_is_donated():
    args = spec("float32", 3), spec("float32", 4), spec("float32", 3)
    f = compiled(lambda a, b, c: [a + c + b.sum()], *args, donate=[0, 1, 2])
    assert f.donate == (0,)
    with pytest.raises(ValueError, match="out of range"):
        compiled(lambda a: [a], spec("float32"), donate=[1])


@pytest.mark.parametrize("offset", [0, 4], ids=["aligned", "unaligned"])
@pytest.mark.parametrize("donate", [(), (0,)], ids=["kept", "donated"])
def test_numpy_memory_belongs_to_the_caller_again_when_the_call_returns(offset, donate):
    f = compiled(lambda a: [a, a * 2], spec("float32", BIG), donate=donate)
    x = aligned(BIG, offset=offset)
    x[:] = 3
    same, double = f(x)
    assert (x == 3).all()
    x[:] = 4
    assert (np.asarray(same) == 3).all() and (np.asarray(double) == 6).all()
    y = arrays.to_device(x, CPU)
    x[:] = 5
    assert (np.asarray(y) == 4).all()


def test_layouts_of_numpy_arrays():
    f = compiled(lambda a: [a], spec("float32", 400, 300))
    x = np.arange(120000, dtype=np.float32).reshape(300, 400)
    assert (np.asarray(f(x.T)[0]) == x.T).all()
    wide = np.arange(240000, dtype=np.float32).reshape(400, 600)
    assert (np.asarray(f(wide[:, ::2])[0]) == wide[:, ::2]).all()


@pytest.mark.parametrize("dtype", ["float32", "complex128", ml_dtypes.bfloat16, "bool"])
def test_a_big_result_can_be_given_away_without_a_copy(dtype):
    f = compiled(lambda a: [a], spec(dtype, 500, 600))
    (y,) = f(np.ones((500, 600), dtype))
    where = y.unsafe_buffer_pointer()
    given = arrays.to_host(y, give=True)
    del y
    assert given.ctypes.data == where and given.shape == (500, 600)
    assert given.dtype == np.dtype(dtype) and given.flags.writeable
    given[:] = 0
    assert not given.any()
    (y,) = f(np.ones((500, 600), dtype))
    copy = arrays.to_host(y)
    copy[:] = 0
    assert np.asarray(y).all()


def test_the_call_has_finished_when_it_returns():
    f = compiled(lambda a: [lax.fori_loop(0, 50, lambda i, x: x @ a, a)], spec("float32", 200, 200))
    (y,) = f(np.eye(200, dtype=np.float32))
    assert y.is_ready()


def test_both_levels_agree():
    def fn(a):
        return [jnp.tanh(a @ a).sum(), jnp.sort(a, axis=0)]

    a = np.random.default_rng(0).normal(size=(30, 30)).astype(np.float32)
    fast = compiled(fn, spec("float32", 30, 30))(a)
    cheap = compiled(fn, spec("float32", 30, 30), level="cheap")(a)
    for x, y in zip(fast, cheap, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)
    with pytest.raises(ValueError, match="level"):
        compiled(fn, spec("float32", 30, 30), level="slow")


def test_threads_share_an_executable():
    f = compiled(lambda a, n: [lax.fori_loop(0, 20, lambda i, x: x + n, a)],
                 spec("float64", 100), spec("float64"))  # fmt: skip
    wrong = []

    def work(n):
        for _ in range(200):
            (y,) = f(np.zeros(100), np.float64(n))
            if not (np.asarray(y) == 20 * n).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_compile_at_once():
    results = {}

    def work(n):
        f = compiled(lambda a: [a + np.int64(2**40) * n], spec("int64"))
        results[n] = int(arrays.to_host(f(np.int64(1))[0]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: 2**40 * n + 1 for n in range(4)}


# The disk cache.


@pytest.fixture
def cache(tmp_path):
    return ExecutableCache(tmp_path / "cache")


def files(cache):
    return sorted(cache.directory.iterdir())


def test_a_hit_neither_traces_nor_changes_anything(cache):
    specs = [spec("float64", 3), spec(ml_dtypes.bfloat16, 2)]
    options = dict(donate=[0], key=b"k", cache=cache)
    first = compiled(lambda a, b: (a * 2, b), *specs, **options)
    assert len(files(cache)) == 1
    again = compiled(not_called, *specs, **options)
    assert (again.out_specs, again.donate) == (first.out_specs, (0,))
    x = arrays.to_device(np.arange(3.0), CPU)
    a, b = again(x, np.ones(2, ml_dtypes.bfloat16))
    assert a.dtype == np.float64 and a.tolist() == [0, 2, 4] and b.dtype == ml_dtypes.bfloat16
    assert x.is_deleted()
    two = arrays.devices("cpu", 2)[1]
    moved = xla.compile(not_called, specs, device=two, **options)
    assert moved(np.arange(3.0), np.ones(2, ml_dtypes.bfloat16))[0].devices() == {two}


def test_key_specs_donation_and_level_tell_entries_apart(cache):
    def build(*specs, **options):
        return compiled(lambda a: [a + 1], *specs, cache=cache, **{"key": b"k", **options})

    build(spec("float32", 3))
    build(spec("float32", 4))
    build(spec("int32", 3))
    build(spec("float32", 3), donate=[0])
    build(spec("float32", 3), level="cheap")
    build(spec("float32", 3), key=b"l")
    assert len(files(cache)) == 6
    build(spec("float32", 3), key=None)
    assert len(files(cache)) == 6


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "header", "valid but not XLA"])
def test_a_damaged_entry_is_compiled_again(cache, damage):
    options = dict(key=b"k", cache=cache)
    compiled(lambda a: [a + 1], spec("float32"), **options)
    (path,) = files(cache)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    elif damage == "cut":
        del data[-100:]
    elif damage == "empty":
        data.clear()
    elif damage == "header":
        data[16:20] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    if damage == "valid but not XLA":
        name = compiled_key(options)
        cache.put(name, {"out_specs": [[[], "float32"]], "donate": []}, b"not XLA")
    f = compiled(lambda a: [a + 2], spec("float32"), **options)
    assert float(f(np.float32(1))[0]) == 3
    assert float(compiled(not_called, spec("float32"), **options)(np.float32(1))[0]) == 3


def compiled_key(options):
    return xla._full_key(options["key"], (spec("float32"),), (), CPU, "fast")


def test_a_callback_into_python_is_refused(cache):
    shape = jax.ShapeDtypeStruct((), np.float32)

    def fn(a):
        return [jax.pure_callback(lambda v: np.asarray(v) + 1, shape, a)]

    def debug(a):
        jax.debug.print("{}", a)
        return [a]

    for f in fn, debug:
        with pytest.raises(NotImplementedError, match="call back"):
            compiled(f, spec("float32"), key=b"k", cache=cache)
    assert not files(cache)


def test_the_least_recently_used_entries_go(tmp_path):
    cache = ExecutableCache(tmp_path, max_bytes=5000)
    for n in range(4):
        cache.put(f"k{n}", {}, bytes(1000))
        newest = max(files(cache), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (1000 + n, 1000 + n))
    assert cache.get("k0") is not None  # a read makes it recent
    cache.put("k4", {}, bytes(1000))
    assert [n for n in range(5) if cache.get(f"k{n}")] == [0, 2, 3, 4]
    cache.put("huge", {}, bytes(9000))
    assert cache.get("huge") is None and cache.get("k4") is not None


def test_the_directory_is_private(tmp_path):
    directory = tmp_path / "a" / "cache"
    cache = ExecutableCache(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    cache.put("k", {}, b"x")
    assert all(path.stat().st_mode & 0o077 == 0 for path in files(cache))
    directory.chmod(0o777)
    with pytest.raises(PermissionError, match="chmod 700"):
        ExecutableCache(directory)


def test_a_vanished_directory_is_only_a_miss(cache):
    cache.directory.rmdir()
    assert cache.get("k") is None
    cache.put("k", {}, b"x")
    assert cache.get("k") is None


PROGRAM = """
import sys
import numpy as np
from thalweg.runtime import arrays, xla
from thalweg.runtime.executable_cache import ExecutableCache
cache = ExecutableCache(sys.argv[1])
traced = []
def fn(n):
    def f(a):
        traced.append(n)
        return [a * n]
    return f
for n in range(4):
    f = xla.compile(fn(n), [xla.ArgSpec((3,), np.dtype("int64"))],
                    device=arrays.devices()[0], key=b"%d" % n, cache=cache)
    assert f(np.arange(3))[0].tolist() == [0, n, 2 * n]
print(len(traced))
"""


def test_processes_share_the_cache(cache):
    command = [sys.executable, "-c", PROGRAM, str(cache.directory)]
    source = Path(xla.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(source)}
    start = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(2)]
    for process in start:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(files(cache)) == 4
    done = subprocess.run(command, env=env, capture_output=True, check=True, timeout=120)
    assert done.stdout == b"0\n"
    assert done.stderr == b""
