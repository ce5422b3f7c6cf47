"""Record what TensorFlow's random ops draw, for tests/kernel/test_philox.py.

Run under TensorFlow on a CPU: python tests/golden/record_random.py. Writes tests/golden/data/random.npz: `index`
(JSON: every case's op, dtype, seeds, shape, and a note for each of its runs in one session), one flat array of kept
elements for each storage type, in the order of the index, and `program_seeds` (JSON: graph and op seeds of small
programs, and the attributes they gave).
"""

import json
import os
import pathlib
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

OUT = pathlib.Path(__file__).parent / "data" / "random.npz"
RUNS = 3
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [(0,), (), (1,), (3,), (4,), (5,), (7,), (255,), (256,), (257,), (1000,), (3, 5, 7), (2, 0, 3)]
SEEDS = [(1, 2), (87654321, 42)]
ODD_SEEDS = [(0, 2147483647), (7, 0), (-3, -5), (2**40 + 3, 2**50 + 9), (123456789, 2**63 - 1)]
INT_BOUNDS = {
    "int32": [(0, 10), (-5, 7), (-(2**31), 2**31 - 1)],
    "int64": [(0, 10), (-(2**40), 2**50 + 1), (-(2**63), 2**63 - 1)],
}


def cases():
    """(name, settings, build) for every op run by itself."""
    draws = {
        "RandomUniform": tf.raw_ops.RandomUniform,
        "RandomStandardNormal": tf.raw_ops.RandomStandardNormal,
        "TruncatedNormal": tf.raw_ops.TruncatedNormal,
    }
    for op, make in draws.items():
        for dtype in FLOATS:
            grid = [(s, shape) for s in SEEDS for shape in SHAPES] + [(s, (9,)) for s in ODD_SEEDS]
            if op == "TruncatedNormal":
                grid.append(((11, 13), (400_000 if dtype != "float64" else 40_000,)))
            for (seed, seed2), shape in grid:
                settings = {"op": op, "dtype": dtype, "seed": seed, "seed2": seed2, "shape": shape}
                yield (
                    settings,
                    lambda make=make, d=dtype, a=seed, b=seed2, s=shape: make(
                        shape=np.array(s, np.int32), dtype=tf.as_dtype(d), seed=a, seed2=b
                    ),
                )
    for dtype, bounds in INT_BOUNDS.items():
        for lo, hi in bounds:
            for shape in SHAPES:
                settings = {
                    "op": "RandomUniformInt",
                    "dtype": dtype,
                    "seed": 5,
                    "seed2": 6,
                    "shape": shape,
                    "lo": lo,
                    "hi": hi,
                }
                yield (
                    settings,
                    lambda lo=lo, hi=hi, d=dtype, s=shape: tf.raw_ops.RandomUniformInt(
                        shape=np.array(s, np.int32),
                        minval=np.array(lo, d),
                        maxval=np.array(hi, d),
                        seed=5,
                        seed2=6,
                    ),
                )
    for shape in [(1,), (2,), (5,), (6,), (300,), (5, 3), (0, 3), (1, 4), (4, 0)]:
        settings = {"op": "RandomShuffle", "dtype": "int32", "seed": 3, "seed2": 4, "shape": shape}
        yield (
            settings,
            lambda s=shape: tf.raw_ops.RandomShuffle(
                value=np.arange(int(np.prod(s)), dtype=np.int32).reshape(s), seed=3, seed2=4
            ),
        )
    for batch, classes, samples, dtype in [
        (1, 3, 5, "float32"),
        (3, 4, 7, "float32"),
        (2, 6, 9, "float64"),
        (2, 3, 0, "float32"),
    ]:
        logits = np.random.RandomState(batch).randn(batch, classes).astype(dtype)
        settings = {
            "op": "Multinomial",
            "dtype": dtype,
            "seed": 8,
            "seed2": 9,
            "shape": (batch, samples),
            "logits": logits.tolist(),
        }
        yield (
            settings,
            lambda x=logits, n=samples: tf.raw_ops.Multinomial(logits=x, num_samples=n, seed=8, seed2=9),
        )


def program_seeds():
    """(graph seed, op seeds, attributes of each op) for small programs."""
    rows = []
    for graph_seed in [None, 0, 1, 87654321, 2**31 - 1, 2**31, -1, 2**40 + 5]:
        for op_seeds in [(None, None, None), (0, None, 1), (7, 7, None), (2**31 - 1, -3, 2**35 + 1)]:
            with tf.Graph().as_default() as graph:
                if graph_seed is not None:
                    tf.set_random_seed(graph_seed)
                for seed in op_seeds:
                    tf.random_uniform([2], seed=seed)
                ops = [op for op in graph.get_operations() if op.type == "RandomUniform"]
                attrs = [(op.get_attr("seed"), op.get_attr("seed2")) for op in ops]
            rows.append({"graph_seed": graph_seed, "op_seeds": op_seeds, "attrs": attrs})
    return rows


def thinned(value):
    """What is kept of one output: all of a short one, else the ends; a CRC of its bytes and the sum say the rest."""
    flat = value.reshape(-1)
    kept = flat if flat.size <= 16 else np.concatenate([flat[:6], flat[-6:]])
    total = float(flat.astype(np.float64).sum()) if value.dtype.kind in "fV" else None
    return kept, {"crc": zlib.crc32(np.ascontiguousarray(flat).tobytes()), "sum": total}


def main():
    index, kept = [], {}
    for settings, build in cases():
        with tf.Graph().as_default():
            out = build()
            with tf.Session() as session:
                runs = [session.run(out) for _ in range(RUNS if out.shape.num_elements() < 10_000 else 2)]
        notes = []
        for value in runs:
            part, note = thinned(value)
            stored = part.view(np.uint16) if part.dtype.itemsize == 2 else part
            kept.setdefault(stored.dtype.name, []).append(stored)
            notes.append(note)
        index.append(settings | {"runs": notes, "stored": stored.dtype.name})
    arrays = {name: np.concatenate(parts) for name, parts in kept.items()}
    arrays["index"] = np.frombuffer(json.dumps(index).encode(), np.uint8)
    arrays["program_seeds"] = np.frombuffer(json.dumps(program_seeds()).encode(), np.uint8)
    np.savez_compressed(OUT, **arrays)
    print(len(index), "cases,", OUT.stat().st_size, "bytes")


main()
