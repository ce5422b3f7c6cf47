"""Random kernels against numbers recorded under TensorFlow (tests/golden/record_random.py)."""

import json
import pathlib
import zlib

import jax
import ml_dtypes
import numpy as np
import pytest

from thalweg.graph.graph import Graph
from thalweg.kernel import distributions, host_distributions, philox
from thalweg.library.random_seed import get_seed

DATA = pathlib.Path(__file__).parents[1] / "golden" / "data" / "random.npz"
NORMALS = ("RandomStandardNormal", "TruncatedNormal")


def _load():
    """[(case, [kept elements of each run])], and the programs' seeds."""
    with np.load(DATA) as stored:
        arrays = dict(stored)
    at = dict.fromkeys(arrays, 0)
    cases = []
    for case in json.loads(arrays["index"].tobytes()):
        size = int(np.prod(case["shape"]))
        count, name = (size if size <= 16 else 12), case["stored"]
        runs = []
        for _ in case["runs"]:
            runs.append(arrays[name][at[name] : at[name] + count])
            at[name] += count
        cases.append((case, runs))
    return cases, json.loads(arrays["program_seeds"].tobytes())


CASES, PROGRAM_SEEDS = _load()
GROUPS = sorted({(case["op"], case["dtype"]) for case, _ in CASES})


def _dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


HOST = {
    "RandomUniform": host_distributions.random_uniform,
    "RandomStandardNormal": host_distributions.random_standard_normal,
    "TruncatedNormal": host_distributions.truncated_normal,
}
# Compiling is what takes time here, so the traced forms see a few shapes, the host forms all of them. [9] comes
# with all the odd seeds; among many blocks some need more than two groups of candidates.
COMPILED = {"float32": ([], [0], [9], [400_000]), "float64": ([9], [40_000]), "float16": ([257],), "bfloat16": ([9],)}
# The code is what counts, not its speed.
QUICK = {"xla_backend_optimization_level": "0"}


def _compiled(function):
    return jax.jit(function, compiler_options=QUICK)


def _kernel(case):
    """The case as a function of the state alone; traced and compiled once for its runs, as in a session."""
    op, shape, dtype = case["op"], tuple(case["shape"]), _dtype(case["dtype"])
    if op == "RandomUniformInt":
        lo, hi = np.array(case["lo"], dtype), np.array(case["hi"], dtype)
        return _compiled(lambda state: distributions.random_uniform_int(state, shape, lo, hi))
    if op == "Multinomial":
        logits = np.array(case["logits"], dtype).reshape(shape[0], -1)
        return _compiled(lambda state: distributions.multinomial(state, logits, shape[1]))
    draw = {
        "RandomUniform": distributions.random_uniform,
        "RandomStandardNormal": distributions.random_standard_normal,
        "TruncatedNormal": distributions.truncated_normal,
    }[op]
    return _compiled(lambda state: draw(state, shape, dtype))


def _host_kernel(case):
    op, shape, dtype = case["op"], tuple(case["shape"]), _dtype(case["dtype"])
    if op == "RandomShuffle":
        rows = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
        return lambda state: rows[distributions.shuffle_permutation(state, shape[0])]
    return lambda state: HOST[op](state, shape, dtype)


def _check_runs(case, runs, kernel):
    state = philox.initial_state(case["seed"], case["seed2"])
    for note, kept in zip(case["runs"], runs, strict=True):
        _compare(case, note, kept, np.asarray(kernel(state)))
        state = philox.advance(state, case["op"], case["shape"])


@pytest.mark.parametrize(("op", "dtype"), [g for g in GROUPS if g[0] in HOST or g[0] == "RandomShuffle"])
def test_recorded_numbers_on_the_host(op, dtype):
    for case, runs in CASES:
        if (case["op"], case["dtype"]) == (op, dtype):
            _check_runs(case, runs, _host_kernel(case))


@pytest.mark.parametrize(("op", "dtype"), [g for g in GROUPS if g[0] != "RandomShuffle"])
def test_recorded_numbers(op, dtype):
    draws = {}  # seeds are inputs: one compilation serves every case of a shape
    for case, runs in CASES:
        if (case["op"], case["dtype"]) != (op, dtype) or (op in HOST and case["shape"] not in COMPILED[dtype]):
            continue
        if op == "RandomUniformInt" and case["shape"] not in ([0], [7], [257]):
            continue
        key = json.dumps([case["shape"], case.get("lo"), case.get("hi"), case.get("logits")])
        with jax.enable_x64(True):
            _check_runs(case, runs, draws.setdefault(key, _kernel(case)))


@pytest.mark.parametrize("op", ["Multinomial", "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"])
def test_the_scope_outside_does_not_matter(op):
    wanted = {"Multinomial": [1, 5], "RandomUniformInt": [7]}.get(op, [9])
    case, runs = next(c for c in CASES if c[0]["op"] == op and c[0]["shape"] == wanted and "16" not in c[0]["dtype"])
    with jax.enable_x64(False):
        _check_runs(case, runs, _kernel(case))


def test_moving_on_while_traced():
    move = jax.jit(philox.advanced, static_argnums=1)
    for words in ((0,) * 4, (2**32 - 1,) * 4, (2**32 - 2, 5, 0, 0), (7, 2**32 - 1, 2**32 - 1, 1)):
        state = np.array([*words, 3, 4], np.uint32)
        for shape in ((0,), (1,), (2**20, 2**20)):
            want = philox.advance(state, "RandomUniform", shape)
            groups = philox.reserved_groups("RandomUniform", shape)
            np.testing.assert_array_equal(move(state, groups), want)


def _compare(case, note, kept, got):
    assert got.shape == tuple(case["shape"])
    flat = got.reshape(-1)
    ends = flat if flat.size <= 16 else np.concatenate([flat[:6], flat[-6:]])
    want = kept.view(got.dtype) if kept.dtype == np.uint16 else kept
    if case["op"] in NORMALS:
        np.testing.assert_allclose(ends.astype(np.float64), want.astype(np.float64), rtol=1e-6, atol=1e-6)
        # One block gone astray moves the sum by about 1; rounding to the type's last bit by far less.
        total = flat.astype(np.float64).sum()
        np.testing.assert_allclose(total, note["sum"], rtol=0, atol=1e-7 * flat.size + 0.02)
    else:
        np.testing.assert_array_equal(ends, want, strict=True)
        assert zlib.crc32(np.ascontiguousarray(flat).tobytes()) == note["crc"], case


def test_program_seeds():
    for program in PROGRAM_SEEDS:
        with Graph().as_default() as graph:
            graph.seed = program["graph_seed"]
            for op_seed, attrs in zip(program["op_seeds"], program["attrs"], strict=True):
                assert [seed or 0 for seed in get_seed(op_seed)] == attrs, program


def test_blocks_that_need_many_redraws():
    """float64 redoes 4 blocks in 10,000, so this takes that path about eight times."""
    state = philox.initial_state(11, 13)
    out = np.asarray(
        _compiled(lambda state: distributions.truncated_normal(state, (40_000,), np.float64))(state)
    )
    assert np.all(np.abs(out) < 2)
    assert len(np.unique(out)) == out.size


def test_several_draws_in_one_piece_of_code():
    shapes = [(3, 5), (0,), (7,)]
    states = np.stack([philox.initial_state(1, number) for number in range(len(shapes))])
    for many, one in (
        (distributions.truncated_normals, host_distributions.truncated_normal),
        (distributions.random_standard_normals, host_distributions.random_standard_normal),
    ):
        together = _compiled(lambda states, many=many: many(states, shapes, np.float32))(states)
        for state, shape, got in zip(states, shapes, together, strict=True):
            np.testing.assert_allclose(got, one(state, shape, np.float32), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("low_words", [(2**32 - 2, 0, 0, 0), (2**32 - 2, 2**32 - 1, 5, 6), (2**32 - 1,) * 4])
def test_the_counter_carries(low_words):
    state = np.array([*low_words, 7, 8], np.uint32)
    bits = np.asarray(_compiled(lambda state: philox.random_bits(state, 17))(state))
    np.testing.assert_array_equal(bits, philox.host_bits(state, 17))
    one_by_one = state
    for group in range(4):
        np.testing.assert_array_equal(bits[4 * group : 4 * group + 4], philox.host_bits(one_by_one, 4))
        one_by_one = philox.advance(one_by_one, "RandomShuffle", (2,))


def test_published_test_vector():
    """Random123's known answer for philox4x32-10 with counter and key of ones."""
    bits = philox.host_bits(np.full(6, 0xFFFFFFFF, np.uint32), 4)
    assert [hex(word) for word in bits.tolist()] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


def test_no_seed_draws_one():
    assert not np.array_equal(philox.initial_state(0, 0), philox.initial_state(0, 0))


def test_an_op_without_a_state_is_refused():
    with pytest.raises(ValueError, match="MatMul"):
        philox.advance(philox.initial_state(1, 1), "MatMul", (1,))
